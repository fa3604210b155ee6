package sessions_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/server/sessions"
	"github.com/metier-run/metier/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tenant is that of all callers for now, and foreign another one.
const (
	tenant  = access.DefaultTenant
	foreign = "foreign"
)

// admin may see the sessions of its tenant.
func admin() access.Caller { return access.Caller{ID: "boss", Tenant: tenant, Admin: true} }

// clock is the time of a database; it stands until a test moves it.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(1_790_000_000_000 + c.ms.Load()).UTC() }

// rig is a database, and servers over it.
type rig struct {
	path  string
	clock *clock
	db    *store.DB
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{path: filepath.Join(t.TempDir(), "metier.db"), clock: &clock{}}
	r.db = r.open(t)
	return r
}

// open opens the database as one more process does.
func (r *rig) open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{
		URL: config.NewSecret(r.path), Now: r.clock.now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// known is a door whose requests all come from one caller.
type known struct {
	server.Door
	caller access.Caller
}

func (k known) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range k.Door.Routes() {
		routes[pattern] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), k.caller)))
		})
	}
	return routes
}

// client asks one server.
type client struct {
	url  string
	left chan struct{} // gets one for each request that has ended
}

// serve answers a caller. change, if set, changes the options.
func (r *rig) serve(t *testing.T, who access.Caller, change func(*sessions.Options)) client {
	t.Helper()
	o := sessions.Options{Store: r.db, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	door := known{sessions.New(o).WithKeepAlive(time.Millisecond), who}
	inner := server.New(server.Options{Doors: []server.Door{door}, Logger: o.Logger, NewID: rand.Text, Loopback: true})
	c := client{left: make(chan struct{}, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { c.left <- struct{}{} }()
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close()
	})
	c.url = s.URL + sessions.Prefix
	return c
}

// send sends a request and leaves its body open.
func (c client) send(t *testing.T, ctx context.Context, path string, header ...string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	check(t, err)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(q)
	check(t, err)
	return res
}

// get asks and reads the whole answer, which is JSON that no browser takes for a page and
// no terminal for orders.
func (c client) get(t *testing.T, path string, header ...string) (int, string) {
	t.Helper()
	res := c.send(t, t.Context(), path, header...)
	defer res.Body.Close()
	if kind, sniff := res.Header.Get("Content-Type"), res.Header.Get("X-Content-Type-Options"); kind != "application/json" || sniff != "nosniff" {
		t.Fatalf("%s: Content-Type %q, X-Content-Type-Options %q", path, kind, sniff)
	}
	b, err := io.ReadAll(res.Body)
	check(t, err)
	if i := slices.IndexFunc(b, func(c byte) bool { return c < ' ' }); i >= 0 {
		t.Errorf("%s: byte %#x in %q", path, b[i], b)
	}
	return res.StatusCode, string(b)
}

// read asks for something that must be there.
func read[T any](t *testing.T, c client, path string, header ...string) T {
	t.Helper()
	status, body := c.get(t, path, header...)
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, status, body, err)
	}
	return v
}

// create makes a session of an agent that was asked something.
func (r *rig) create(t *testing.T, tenant, id, agent, text string) *store.Log {
	t.Helper()
	l, err := r.db.CreateSession(t.Context(), tenant, id,
		journal.Draft{Data: journal.SessionCreated{Agent: agent, Origin: "test"}},
		journal.Draft{TurnID: "t1", Data: said("n1", llm.TextMessage(llm.User, text))})
	check(t, err)
	return l
}

func said(id string, m llm.Message) journal.MessagesAdded {
	return journal.MessagesAdded{Entries: []journal.Entry{{ID: journal.NodeID(id), Message: m}}}
}

// add appends to a session as its writer.
func add(t *testing.T, l *store.Log, drafts ...journal.Draft) {
	t.Helper()
	at, err := l.Take(t.Context())
	check(t, err)
	_, err = l.Append(t.Context(), at, drafts...)
	check(t, err)
}

// turn are the facts of a turn that gives one reply below a node.
func turn(id, anchor, node string, m llm.Message) []journal.Draft {
	draft := func(d journal.Data) journal.Draft {
		return journal.Draft{TurnID: id, Anchor: journal.NodeID(anchor), Data: d}
	}
	ended := journal.GenerateEnded{ID: "g" + id, Node: journal.NodeID(node), Reply: llm.Reply{Message: m}}
	for range m.Calls {
		ended.Handlers = append(ended.Handlers, journal.Host)
	}
	return []journal.Draft{
		draft(journal.TurnStarted{Model: "m", Bounds: journal.Bounds{Rounds: 1, Calls: 1}}),
		draft(journal.GenerateRequested{ID: "g" + id, Round: 1, Attempt: 1}), draft(ended),
	}
}

func answered(id, anchor string) journal.Draft {
	return journal.Draft{TurnID: id, Anchor: journal.NodeID(anchor), Data: journal.TurnEnded{Reason: journal.Answered}}
}

// forked makes a session whose first answer was asked for again: on the second branch a
// call was made and answered.
func (r *rig) forked(t *testing.T, id string) *store.Log {
	t.Helper()
	l := r.create(t, tenant, id, "", "Which tide?")
	add(t, l, append(turn("t1", "n1", "n2", llm.TextMessage(llm.Assistant, "low")), answered("t1", "n2"))...)
	add(t, l, journal.Draft{Data: journal.HeadMoved{To: "n1"}})
	call := llm.Call{ID: "c1", Name: "skills_read", Arguments: `{"skill":"tides"}`}
	asks := llm.TextMessage(llm.Assistant, "Let me see.")
	asks.Calls = []llm.Call{call}
	add(t, l, turn("t2", "n1", "n3", asks)...)
	result := llm.TextMessage(llm.Tool, "high \x1b[31m</script>")
	result.CallID = "c1"
	for _, d := range []journal.Data{
		journal.InvokeRequested{Call: call, Attempt: 1, Replay: journal.Again},
		journal.InvokeEnded{CallID: "c1", Result: journal.Result{Text: result.Text(), OK: true}},
		said("n4", result),
		journal.TurnEnded{Reason: journal.Failed, Error: "no more"},
	} {
		add(t, l, journal.Draft{TurnID: "t2", Anchor: "n3", Data: d})
	}
	return l
}

func ids(p sessions.Page) []string {
	found := []string{}
	for _, s := range p.Sessions {
		found = append(found, s.SessionID)
	}
	return found
}

// TestList: filters, the latest in front, and only the caller's tenant.
func TestList(t *testing.T) {
	r := newRig(t)
	for i, agent := range []string{"", "cook", "cook", ""} {
		r.clock.ms.Store(int64(i))
		l := r.create(t, tenant, fmt.Sprint("s", i), agent, "hello \x1b[31m<script>")
		if i >= 2 {
			add(t, l, turn("t1", "n1", "n2", llm.TextMessage(llm.Assistant, "x"))...)
		}
	}
	r.create(t, foreign, "s9", "cook", "theirs")
	c := r.serve(t, admin(), nil)
	for query, want := range map[string][]string{
		"":                             {"s3", "s2", "s1", "s0"},
		"?status=running":              {"s3", "s2"},
		"?status=idle":                 {"s1", "s0"},
		"?status=ended":                {},
		"?agent_id=cook":               {"s2", "s1"},
		"?agent_id=cook&status=idle":   {"s1"},
		"?agent_id=nobody":             {},
		"?limit=1":                     {"s3"},
		"?limit=4":                     {"s3", "s2", "s1", "s0"},
		"?limit=999999999":             {"s3", "s2", "s1", "s0"},
		"?agent_id=%27%20OR%201%3D1--": {},
	} {
		p := read[sessions.Page](t, c, query)
		if diff := cmp.Diff(want, ids(p)); diff != "" || (p.NextCursor != "") != (query == "?limit=1") {
			t.Errorf("%s: cursor %q %s", query, p.NextCursor, diff)
		}
	}
	if _, body := c.get(t, "?status=ended"); body != `{"sessions":[]}` {
		t.Errorf("an empty list is %s", body)
	}
	_, body := c.get(t, "?limit=1")
	const want = `{"sessions":[{"session_id":"s3","seq":5,"origin":"test","title":"hello [31m<script>","model":"m","status":"running","turn_count":1,"message_count":2,"head":"n2","created_at":"2026-09-21T14:13:20.003Z","updated_at":"2026-09-21T14:13:20.003Z"}],"next_cursor":`
	if !strings.HasPrefix(body, want) {
		t.Errorf("a row is\n%s, want\n%s", body, want)
	}
}

// TestPages: every session comes once, whichever changed at the same moment, and one that
// changes meanwhile does not come again.
func TestPages(t *testing.T) {
	r := newRig(t)
	var logs []*store.Log
	for i := range 9 {
		r.clock.ms.Store(int64(i / 4)) // four of a moment
		logs = append(logs, r.create(t, tenant, fmt.Sprint("s", i), "", "hello"))
	}
	c := r.serve(t, admin(), nil)
	want := ids(read[sessions.Page](t, c, ""))
	for limit := 1; limit <= 10; limit++ {
		var got []string
		for cursor := ""; ; {
			p := read[sessions.Page](t, c, "?limit="+strconv.Itoa(limit)+"&cursor="+cursor)
			got = append(got, ids(p)...)
			if cursor = p.NextCursor; cursor == "" || len(got) > len(want) {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
	first := read[sessions.Page](t, c, "?limit=3")
	r.clock.ms.Store(100)
	add(t, logs[8], turn("t1", "n1", "n2", llm.TextMessage(llm.Assistant, "x"))...) // of the first page
	rest := read[sessions.Page](t, c, "?limit=100&cursor="+first.NextCursor)
	if diff := cmp.Diff(want, slices.Concat(ids(first), ids(rest))); diff != "" {
		t.Errorf("with a change: %s", diff)
	}
}

// TestBadQueries: what is asked wrongly is the client's error, which names it.
func TestBadQueries(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	c := r.serve(t, admin(), nil)
	cursorOf := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, q := range []struct{ path, want string }{
		{"?limit=0", `limit=\"0\": give a number from 1`},
		{"?limit=-1", `limit=\"-1\": give`},
		{"?limit=1.5", `limit=\"1.5\": give`},
		{"?limit=99999999999999999999", `give a number from 1`},
		{"?limit=%1b%5b31m%3Cscript%3E", `limit=\"\\x1b[31m<script>\": give`},
		{"?status=wrong", `status=\"wrong\": give idle, running, waiting or ended`},
		{"?cursor=wrong", `the cursor \"wrong\" is none of a list of sessions: take`},
		{"?cursor=" + cursorOf("12"), `is none of a list of sessions`},
		{"?cursor=" + cursorOf("x/s"), `is none of a list of sessions`},
		{"?cursor=" + cursorOf("12/\x00"), `is none of a list of sessions`},
		{"?cursor=%00", `is none of a list of sessions`},
		{"?agent_id=%00", `the agent \"\\x00\" is no text: give its name`},
		{"?agent_id=%ff", `is no text: give its name`},
		{"/s/events?limit=0", `limit=\"0\": give a number from 1`},
		{"/s/events?after_seq=-1", `after_seq=\"-1\": give the seq of the last event that you have`},
		{"/s/events?after_seq=x", `after_seq=\"x\": give`},
		{"/s/events/stream?after_seq=x", `after_seq=\"x\": give`},
		{"/s/events/stream?after_seq=99999999999999999999", `give the seq of the last event`},
	} {
		if status, body := c.get(t, q.path); status != http.StatusBadRequest || !strings.HasPrefix(body, `{"error":"`) || !strings.Contains(body, q.want) {
			t.Errorf("%s: %d %s, want %s", q.path, status, body, q.want)
		}
	}
	for _, path := range []string{"/s/events", "/s/events/stream"} {
		status, body := c.get(t, path+"?after_seq=1", "Last-Event-ID", "one")
		if status != http.StatusBadRequest || !strings.Contains(body, `Last-Event-ID=\"one\": give the seq`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestShow: what was said on the branch that the session stands on, and all branches.
func TestShow(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	status, body := r.serve(t, admin(), nil).get(t, "/s")
	const want = `{"session_id":"s","seq":14,"origin":"test","title":"Which tide?","model":"m","status":"ended","reason":"failed",` +
		`"turn_count":2,"message_count":4,"head":"n4","created_at":"2026-09-21T14:13:20Z","updated_at":"2026-09-21T14:13:20Z",` +
		`"messages":[{"id":"n1","turn_id":"t1","role":"user","text":"Which tide?"},` +
		`{"id":"n3","turn_id":"t2","role":"assistant","text":"Let me see.","calls":[{"id":"c1","name":"skills_read","arguments":"{\"skill\":\"tides\"}"}]},` +
		`{"id":"n4","turn_id":"t2","role":"tool","text":"high \u001b[31m</script>","call_id":"c1"}],` +
		`"message_tree":[{"id":"n1","role":"user","active":true},{"id":"n2","parent":"n1","role":"assistant"},` +
		`{"id":"n3","parent":"n1","role":"assistant","active":true},{"id":"n4","parent":"n3","role":"tool","active":true}]}`
	if diff := cmp.Diff(want, body); status != http.StatusOK || diff != "" {
		t.Errorf("%d %s", status, diff)
	}
}

// events is a page of events.
type events struct {
	Events []sessions.Frame `json:"events"`
	Next   int64            `json:"next_after_seq"`
}

func seqs(frames []sessions.Frame) []int64 {
	all := []int64{}
	for _, f := range frames {
		all = append(all, f.Seq)
	}
	return all
}

// TestEvents: pages that end with where the next begins, and the last with nothing.
func TestEvents(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	c := r.serve(t, admin(), nil)
	for _, q := range []struct {
		query, last string
		from, to    int64
		next        int64
	}{
		{"", "", 1, 14, 0},
		{"?limit=5", "", 1, 5, 5},
		{"?limit=5&after_seq=5", "", 6, 10, 10},
		{"?limit=5&after_seq=10", "", 11, 14, 0},
		{"?limit=14", "", 1, 14, 0},
		{"?limit=13", "", 1, 13, 13},
		{"?after_seq=14", "", 1, 0, 0},
		{"?after_seq=1000", "", 1, 0, 0},
		{"?after_seq=2", "11", 12, 14, 0}, // the header wins
		{"?after_seq=x", "13", 14, 14, 0},
	} {
		var header []string
		if q.last != "" {
			header = []string{"Last-Event-ID", q.last}
		}
		got := read[events](t, c, "/s/events"+q.query, header...)
		want := []int64{}
		for n := q.from; n <= q.to; n++ {
			want = append(want, n)
		}
		if diff := cmp.Diff(want, seqs(got.Events)); diff != "" || got.Next != q.next {
			t.Errorf("%s: next %d, want %d %s", q.query, got.Next, q.next, diff)
		}
	}
	_, body := c.get(t, "/s/events?limit=1&after_seq=11")
	const want = `{"events":[{"session_id":"s","seq":12,"type":"invoke.ended","occurred_at":"2026-09-21T14:13:20Z","turn_id":"t2","anchor":"n3",` +
		`"payload":{"call_id":"c1","result":{"text":"high \u001b[31m</script>","ok":true}}}],"next_after_seq":12}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if _, body := c.get(t, "/s/events?after_seq=14"); body != `{"events":[]}` {
		t.Errorf("no events are %s", body)
	}
}

// frame is one of a stream.
type frame struct{ id, event, data string }

// follow opens a stream; end has its client leave.
func (c client) follow(t *testing.T, path string, header ...string) (lines *bufio.Reader, end func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	res := c.send(t, ctx, path, header...)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	end = func() {
		leave()
		_ = res.Body.Close() // the context has ended it
	}
	t.Cleanup(end)
	return bufio.NewReader(res.Body), end
}

// next reads the next event, and how many comments stood before it.
func next(t *testing.T, lines *bufio.Reader) (f frame, comments int) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		check(t, err)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case strings.HasPrefix(line, ":"):
			comments++
		case name == "id":
			f.id = value
		case name == "event":
			f.event = value
		case name == "data":
			f.data = value
		case line == "\n" && f.id != "":
			return f, comments
		case line != "\n":
			t.Fatalf("the line %q", line)
		}
	}
}

// TestStream: the events of a session from where the client says, those that another
// process adds, and comments in a silence; who leaves ends it.
func TestStream(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	c := r.serve(t, admin(), nil)
	lines, leave := c.follow(t, "/s/events/stream?after_seq=2", "Last-Event-ID", "12")
	for _, want := range []frame{
		{"13", "messages.added", `"role":"tool"`},
		{"14", "turn.ended", `"payload":{"reason":"failed","error":"no more"}`},
	} {
		got, _ := next(t, lines)
		if got.id != want.id || got.event != want.event || !strings.Contains(got.data, want.data) || !strings.HasPrefix(got.data, `{"session_id":"s","seq":`+want.id+`,`) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	// The silence is broken until there is more.
	for range 3 {
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, ":") {
			t.Fatalf("%q, %v, want a comment", line, err)
		}
		_, err := lines.ReadString('\n')
		check(t, err)
	}
	add(t, r.open(t).Log(tenant, "s"), journal.Draft{Data: journal.HeadMoved{To: "n2"}})
	if got, comments := next(t, lines); got.id != "15" || got.event != "head.moved" || comments == 0 {
		t.Errorf("%+v after %d comments", got, comments)
	}
	add(t, r.db.Log(tenant, "s"), journal.Draft{Data: journal.HeadMoved{To: "n1"}})
	if got, _ := next(t, lines); got.id != "16" {
		t.Errorf("%+v", got)
	}
	leave()
	<-c.left // the handler has ended

	all, leave := c.follow(t, "/s/events/stream")
	for i := range 16 {
		if got, _ := next(t, all); got.id != strconv.Itoa(i+1) {
			t.Errorf("event %d is %+v", i+1, got)
		}
	}
	leave()
	<-c.left
	later, _ := c.follow(t, "/s/events/stream?after_seq=15")
	if got, _ := next(t, later); got.id != "16" {
		t.Errorf("after_seq: %+v", got)
	}
}

// routes of a session that is there.
func routes() []string { return []string{"", "/s", "/s/events", "/s/events/stream"} }

// TestWho: sessions are for those who may see them, and for nobody else.
func TestWho(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	none := func(o *sessions.Options) { o.Store = nil }
	open := func(o *sessions.Options) { o.Open = true }
	holder := access.Caller{ID: "laptop", Tenant: tenant}
	for _, w := range []struct {
		name   string
		who    access.Caller
		change func(*sessions.Options)
		status int
		want   string
	}{
		{"no key", access.Anonymous(), nil, http.StatusUnauthorized, "sessions are shown to keys with admin = true: make a key with metier keys new NAME"},
		{"no key, nothing kept", access.Anonymous(), none, http.StatusUnauthorized, "keys with admin"},
		{"a key", holder, nil, http.StatusForbidden, `the key \"laptop\" may not see sessions: it needs admin = true`},
		{"a key, open to those without", holder, open, http.StatusForbidden, "may not see sessions"},
		{"nothing kept", admin(), none, http.StatusServiceUnavailable, "this server keeps no sessions: start it with --db"},
	} {
		c := r.serve(t, w.who, w.change)
		for _, path := range routes() {
			if status, body := c.get(t, path); status != w.status || !strings.Contains(body, w.want) || strings.Contains(body, "tide") {
				t.Errorf("%s %q: %d %s", w.name, path, status, body)
			}
		}
	}
	for _, c := range []client{r.serve(t, admin(), nil), r.serve(t, access.Anonymous(), open)} {
		for _, path := range routes()[:3] {
			if status, body := c.get(t, path); status != http.StatusOK || !strings.Contains(body, `"session_id":"s"`) {
				t.Errorf("%q: %d %s", path, status, body)
			}
		}
		lines, _ := c.follow(t, "/s/events/stream")
		if got, _ := next(t, lines); got.id != "1" {
			t.Errorf("%+v", got)
		}
	}
}

// TestTenants: a session of another tenant is as one that does not exist, byte for byte.
func TestTenants(t *testing.T) {
	r := newRig(t)
	r.forked(t, "s")
	r.create(t, foreign, "theirs", "", "secret")
	stranger := access.Caller{ID: "boss", Tenant: foreign, Admin: true}
	mine, theirs := r.serve(t, admin(), nil), r.serve(t, stranger, nil)
	if got := ids(read[sessions.Page](t, theirs, "")); len(got) != 1 || got[0] != "theirs" {
		t.Errorf("the other tenant sees %q", got)
	}
	const want = `{"error":"there is no such session"}`
	for _, rest := range []string{"", "/events", "/events?limit=1", "/events/stream"} {
		for _, q := range []struct {
			c  client
			id string
		}{{mine, "theirs"}, {theirs, "s"}, {mine, "nowhere"}, {mine, "%00"}, {mine, "%ff"}, {mine, "..%2fs"}, {mine, url.PathEscape("s' OR '1'='1")}} {
			if status, body := q.c.get(t, "/"+q.id+rest); status != http.StatusNotFound || body != want {
				t.Errorf("%s%s: %d %s", q.id, rest, status, body)
			}
		}
	}
}

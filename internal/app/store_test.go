package app_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server/sessions"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/wire"
)

// teller is a model that answers with the number of its answer. Asked for notes, it reads
// a skill first.
type teller struct {
	url string

	mu      sync.Mutex
	answers int
	asked   []string
}

func newTeller(t *testing.T) *teller {
	t.Helper()
	u := &teller{}
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	u.url = s.URL + "/v1"
	return u
}

func (u *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r) // a probe
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	body := string(b)
	u.asked = append(u.asked, body)
	delta, finish := "", "stop"
	if strings.Contains(body, `"content":"notes?"`) && !strings.Contains(body, `"role":"tool"`) {
		delta = `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"skills_read","arguments":"{\"skill\":\"release-notes\",\"path\":\"SKILL.md\"}"}}]`
		finish = "tool_calls"
	} else {
		u.answers++
		delta = fmt.Sprintf(`"content":"answer %d"`, u.answers)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	// A client that is gone needs none.
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",%s},\"finish_reason\":null}]}\n\n", delta)
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// last is the body of the last request, and how many there were.
func (u *teller) last() (body string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked[len(u.asked)-1], len(u.asked)
}

// kept are the settings of a process that keeps what is said in a home.
func (u *teller) kept(home string) app.Settings {
	return app.Settings{
		Home: home, SkillsDirs: []string{"../../examples/skills"}, NoAuth: true, Upstream: app.Upstream{URL: u.url, Type: "openai"},
	}
}

// call sends a request and gives the answer's body, which must have a status.
func call(t *testing.T, want int, method, url, body string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Fatalf("%s %s: %d %s %v", method, url, res.StatusCode, b, err)
	}
	return string(b)
}

// talk is a conversation as a client keeps it: the user's words and the model's in turn.
func talk(words ...string) string {
	var messages []string
	for i, text := range words {
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text))
	}
	return "[" + strings.Join(messages, ",") + "]"
}

// chat asks in a session of the web stream and gives the answer.
func chat(t *testing.T, url, session string, words ...string) string {
	t.Helper()
	body := call(t, http.StatusOK, http.MethodPost, url+"/api/chat", `{"use_model":"m","sessionId":`+quoted(session)+`,"messages":`+talk(words...)+`}`)
	events := wire.NewEventReader(strings.NewReader(body), 1<<20, nil)
	var text strings.Builder
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatalf("no end in %s", body)
		}
		var f webFrame
		if err := json.Unmarshal(e.Data, &f); err != nil || f.Error != "" {
			t.Fatalf("%s %v", e.Data, err)
		}
		if text.WriteString(f.Token); f.Done {
			return text.String()
		}
	}
}

func unmarshal[T any](t *testing.T, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// drawn is a session's tree, one node a line: its text, and that of its parent.
func drawn(t *testing.T, url, id string) (tree, path []string, s sessions.Session) {
	t.Helper()
	s = unmarshal[sessions.Session](t, call(t, http.StatusOK, http.MethodGet, url+sessions.Prefix+"/"+id, ""))
	events := unmarshal[struct {
		Events []struct {
			Payload struct {
				Entries []journal.Entry `json:"entries"`
				Node    journal.NodeID  `json:"node"`
				Reply   llm.Reply       `json:"reply"`
			} `json:"payload"`
		} `json:"events"`
	}](t, call(t, http.StatusOK, http.MethodGet, url+sessions.Prefix+"/"+id+"/events?limit=1000", ""))
	texts := map[journal.NodeID]string{"": "-"}
	for _, e := range events.Events {
		for _, m := range e.Payload.Entries {
			texts[m.ID] = m.Message.Text()
		}
		if e.Payload.Node != "" {
			texts[e.Payload.Node] = e.Payload.Reply.Message.Text()
		}
	}
	for _, n := range s.Tree {
		tree = append(tree, texts[n.Parent]+" > "+texts[n.ID])
	}
	for _, m := range s.Messages {
		path = append(path, m.Text)
	}
	return tree, path, s
}

// TestSharedSession: two processes keep one session of the web stream in one database:
// turns lie on one tree, an answer that is asked for again is a sibling, an edited message
// begins a branch, and a session that one removes is gone for the other.
func TestSharedSession(t *testing.T) {
	u := newTeller(t)
	home := t.TempDir()
	one, two := serve(t, u.kept(home)), serve(t, u.kept(home))
	made := unmarshal[struct {
		ID string `json:"sessionId"`
	}](t, call(t, http.StatusCreated, http.MethodPost, one+"/api/sessions", ""))
	id := made.ID

	steps := []struct {
		url   string
		words []string
		tree  []string // what is new of it
		path  []string
	}{
		{one, []string{"first"}, []string{"- > first", "first > answer 1"}, []string{"first", "answer 1"}},
		{
			two,
			[]string{"first", "answer 1", "second"},
			[]string{"answer 1 > second", "second > answer 2"},
			[]string{"first", "answer 1", "second", "answer 2"},
		},
		{one, []string{"first", "answer 1", "second"}, []string{"second > answer 3"}, []string{"first", "answer 1", "second", "answer 3"}},
		{two, []string{"edited"}, []string{"- > edited", "edited > answer 4"}, []string{"edited", "answer 4"}},
		{
			one,
			[]string{"first", "answer 1", "second", "answer 2", "third"},
			[]string{"answer 2 > third", "third > answer 5"},
			[]string{"first", "answer 1", "second", "answer 2", "third", "answer 5"},
		},
	}
	var tree []string
	for i, s := range steps {
		if got, want := chat(t, s.url, id, s.words...), fmt.Sprint("answer ", i+1); got != want {
			t.Errorf("turn %d answered %q, want %q", i+1, got, want)
		}
		tree = append(tree, s.tree...)
		got, path, session := drawn(t, two, id)
		if diff := cmp.Diff(tree, got); diff != "" {
			t.Errorf("the tree after turn %d: %s", i+1, diff)
		}
		if diff := cmp.Diff(s.path, path); diff != "" {
			t.Errorf("the path after turn %d: %s", i+1, diff)
		}
		if session.Turns != i+1 || session.Status != journal.Idle {
			t.Errorf("after turn %d: %+v", i+1, session.Summary)
		}
	}
	page := unmarshal[sessions.Page](t, call(t, http.StatusOK, http.MethodGet, one+sessions.Prefix, ""))
	if len(page.Sessions) != 1 || page.Sessions[0].SessionID != id || page.Sessions[0].Origin != "web" || page.Sessions[0].Title != "first" {
		t.Errorf("the list is %+v", page)
	}
	call(t, http.StatusOK, http.MethodDelete, two+"/api/sessions/"+id, "")
	call(t, http.StatusNotFound, http.MethodGet, one+sessions.Prefix+"/"+id, "")
	call(t, http.StatusNotFound, http.MethodPost, one+"/api/chat", `{"use_model":"m","sessionId":`+quoted(id)+`,"messages":`+talk("again")+`}`)
}

// TestSharedContinuity: the hidden rounds that one process remembers are put back by
// another, and by one that starts later.
func TestSharedContinuity(t *testing.T) {
	u := newTeller(t)
	home := t.TempDir()
	ask := func(url string, words ...string) string {
		body := call(t, http.StatusOK, http.MethodPost, url+"/v1/chat/completions", `{"model":"m","messages":`+talk(words...)+`}`)
		return body
	}
	one, two := serve(t, u.kept(home)), serve(t, u.kept(home))
	if got := ask(one, "notes?"); !strings.Contains(got, "answer 1") || strings.Contains(got, "skills_read") {
		t.Fatalf("the client sees %s", got)
	}
	for i, url := range []string{two, serve(t, u.kept(home))} {
		ask(url, "notes?", "answer 1", "and?")
		if got, n := u.last(); !strings.Contains(got, `"role":"tool"`) || !strings.Contains(got, "call_1") || n != 3+i {
			t.Errorf("process %d asks the model %s", i+2, got)
		}
	}
	if page := call(t, http.StatusOK, http.MethodGet, one+sessions.Prefix, ""); page != `{"sessions":[]}` {
		t.Errorf("a door without sessions keeps %s", page)
	}
}

// TestNoPlace: a home that cannot be written is said, and everything else goes on; a
// database that somebody named is an error.
func TestNoPlace(t *testing.T) {
	u := newTeller(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := u.kept(filepath.Join(file, "home"))
	s.NoSkills = true
	a, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Home + " cannot be written: sessions and what is remembered end with this process; set METIER_HOME"; a.Store != nil || !strings.HasPrefix(a.StoreWarning, want) {
		t.Errorf("the warning is %q, want %q", a.StoreWarning, want)
	}
	a.Close()
	url := serve(t, s)
	if got := chat(t, url, "", "hello"); got != "answer 1" {
		t.Errorf("it answers %q", got)
	}
	call(t, http.StatusServiceUnavailable, http.MethodGet, url+sessions.Prefix, "")

	for db, want := range map[string]string{
		filepath.Join(file, "x.db"):        "x.db cannot be made, because a part of its path is no folder",
		filepath.Dir(file):                 "is a folder: name a file in it",
		"mysql://me:hunter2@127.0.0.1/x":   `the database is no "mysql://": give postgres://`,
		"postgres://me:hunter2@:1/x?pool=": "postgres://",

		"host=localhost user=me password=hunter2 dbname=x": "looks like a server's and is no URL: give postgres://",
		"dbname = x password = 'hunter2'":                  "looks like a server's and is no URL",
		"postgres:/me:hunter2@h/x":                         "looks like a server's and is no URL",
		"PostgreSQL:me:hunter2@h/x":                        "looks like a server's and is no URL",
		"me:hunter2@h/x":                                   "looks like a server's and is no URL",
		"me:hunter2/or@h:5432/x":                           "looks like a server's and is no URL",
	} {
		s.DB = config.NewSecret(db)
		_, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", db, err, want)
		}
		if path := s.DBPath(); strings.Contains(path, "hunter2") {
			t.Errorf("%s is taken for a file", path)
		}
	}
	for _, name := range []string{"me@host.db", "a:b.db", "user.db", "./postgres:x@y.db", "x/password=y.db"} {
		s.DB = config.NewSecret(name)
		if path := s.DBPath(); path != name {
			t.Errorf("%s is taken for no file", name)
		}
	}
	s.DB = config.NewSecret(app.MemoryDB)
	if a, err = app.Open(t.Context(), s, slog.New(slog.DiscardHandler)); err != nil || a.Store != nil || a.StoreWarning != "" {
		t.Fatalf("memory: %v %+v", err, a)
	}
	a.Close()
}

// TestNoHome: where no folder can be made, of which the system says so in words of its own,
// nothing is kept.
func TestNoHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	s := newTeller(t).kept("/proc/nope")
	s.NoSkills = true
	a, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Store != nil || !strings.HasPrefix(a.StoreWarning, "/proc/nope cannot be written") {
		t.Errorf("the warning is %q", a.StoreWarning)
	}
}

// open opens a database as another program does.
func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{
		URL: config.NewSecret(path), Now: time.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// TestNewerDatabase: what a newer build has written is refused, also where it is the one
// in the home: not even a warning is enough.
func TestNewerDatabase(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "metier.db")
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{"", path} {
		s := newTeller(t).kept(home)
		s.DB = config.NewSecret(db)
		_, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
		if e := fault.From(err); e.Detail != "store_newer" || !strings.Contains(e.Message, path+" was written by a newer metier (its tables have version 9999") {
			t.Errorf("%q: %v", db, err)
		}
	}
}

// cutOff makes a session whose turn was in the middle of a call when its process ended.
func cutOff(t *testing.T, db *store.DB, id string) *store.Log {
	t.Helper()
	drafts := []journal.Draft{{Data: journal.SessionCreated{Origin: "run"}}}
	asks := llm.TextMessage(llm.Assistant, "")
	asks.Calls = []llm.Call{{ID: "c1", Name: "skills_list", Arguments: "{}"}, {ID: "c2", Name: "skills_list", Arguments: "{}"}}
	for _, d := range []journal.Draft{
		{Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "n1", Message: llm.TextMessage(llm.User, "hello")}}}},
		{Anchor: "n1", Data: journal.TurnStarted{Model: "m", Bounds: journal.Bounds{Rounds: 8, Calls: 8}}},
		{Anchor: "n1", Data: journal.GenerateRequested{ID: "g1", Round: 1, Attempt: 1}},
		{Anchor: "n1", Data: journal.GenerateEnded{ID: "g1", Node: "n2", Reply: llm.Reply{Message: asks}, Handlers: []journal.Handler{journal.Host, journal.Host}}},
		{Anchor: "n2", Data: journal.InvokeRequested{Call: asks.Calls[0], Attempt: 1, Replay: journal.Never}},
	} {
		d.TurnID = "t1"
		drafts = append(drafts, d)
	}
	l, err := db.CreateSession(t.Context(), access.DefaultTenant, id, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSettle: a turn that a dead process left is ended, and that of a living one is not.
// A conversation goes on from what a model can be asked.
func TestSettle(t *testing.T) {
	home := t.TempDir()
	other := open(t, filepath.Join(home, "metier.db"))
	cutOff(t, other, "dead")
	h, err := cutOff(t, other, "alive").Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newTeller(t).kept(home)
	a, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		a.Settle(ctx)
	}()
	var last journal.Event
	for e, err := range a.Store.Log(access.DefaultTenant, "dead").Follow(t.Context(), 6) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
		break
	}
	if d, ok := last.Data.(journal.TurnEnded); !ok || d.Reason != journal.Cancelled || d.Error != "the process that ran the turn ended in the middle of it" || last.TurnID != "t1" {
		t.Errorf("event %d is %+v", last.Seq, last)
	}
	stop()
	<-settled
	for id, want := range map[string]journal.Status{"dead": journal.Ended, "alive": journal.Running} {
		if found, err := a.Store.Session(t.Context(), access.DefaultTenant, id); err != nil || found.Status != want || found.Held != (id == "alive") {
			t.Errorf("%s: %+v %v", id, found, err)
		}
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	messages, err := a.Conversation(t.Context(), access.DefaultTenant, "dead")
	if err != nil || len(messages) != 1 || messages[0].Text() != "hello" {
		t.Errorf("the conversation is %+v, %v", messages, err)
	}
	if _, err := a.Conversation(t.Context(), "another", "dead"); fault.From(err).Detail != "session_not_found" {
		t.Errorf("another tenant: %v", err)
	}
}

// lineChannel is a log whose lines are read as they come.
type lineChannel chan string

// Write is one line.
func (c lineChannel) Write(b []byte) (int, error) {
	c <- string(b)
	return len(b), nil
}

// TestSettleOthers: turns that cannot be ended keep no others open, however many they are,
// and are told of in one line. What nothing refers to goes.
func TestSettleOthers(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "metier.db")
	other := open(t, path)
	for i := range 110 { // more than are looked for at once
		cutOff(t, other, fmt.Sprint("bad", i))
	}
	cutOff(t, other, "good")
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, s := range []string{
		"UPDATE events SET kind = 'unheard.of' WHERE session LIKE 'bad%' AND seq = 2",
		"INSERT INTO blobs (tenant, digest, bytes, created_at) VALUES ('default', 'left', x'00', 0)",
	} {
		if _, err := raw.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	told := make(lineChannel, 100)
	a, err := app.Open(t.Context(), newTeller(t).kept(home), slog.New(slog.NewTextHandler(told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		a.Settle(ctx)
	}()
	soon, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	for e, err := range a.Store.Log(access.DefaultTenant, "good").Follow(soon, 6) {
		if d, ok := e.Data.(journal.TurnEnded); !ok || d.Reason != journal.Cancelled {
			t.Errorf("event %+v, %v", e, err)
		}
		break
	}
	line := ""
	for !strings.Contains(line, "stay open") {
		line = <-told
	}
	if !strings.Contains(line, "turns=110") || strings.Count(line, "unheard.of") != 1 {
		t.Errorf("the log has %q", line)
	}
	stop()
	<-settled
	var left int
	if err := raw.QueryRowContext(t.Context(), "SELECT count(*) FROM blobs").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d blobs are left: %v", left, err)
	}
}

package responses_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/rescue"
	"github.com/metier-run/metier/internal/server"
	door "github.com/metier-run/metier/internal/server/responses"
	"github.com/metier-run/metier/internal/wire"
	"github.com/metier-run/metier/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type ids struct{ n atomic.Int64 }

func (i *ids) NewID() string { return fmt.Sprint("id", i.n.Add(1)) }

// clock stands still, so that goldens do.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1767225600)
	return c
}

func (c *clock) now() time.Time { return time.Unix(c.at.Load(), 0) }

// rig is the whole house in front of an upstream, over real HTTP.
type rig struct {
	url   string
	log   *syncBuffer
	clock *clock
	door  *door.Door
	house *server.Server
	up    *recorder
}

type rigOptions struct {
	noSkills   bool
	limits     config.Values
	provider   llm.Provider // in place of the scripted upstream
	upstream   http.Handler // the same, over HTTP
	continuity continuity.Store
	store      door.Store
	journal    func(string) gateway.Journal
	held       func(context.Context, string, string) (bool, error)
	keys       *access.Keys
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{log: &syncBuffer{}, clock: newClock()}
	if o.provider == nil {
		o.provider = r.connect(t, o)
	}
	snapshot, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: "../openai/testdata/skills"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o.noSkills {
		snapshot = nil
	}
	logger, turns, id := slog.New(slog.NewTextHandler(r.log, nil)), &ids{}, &ids{}
	g := gateway.New(gateway.Options{
		Provider: o.provider, Skills: func() *skill.Snapshot { return snapshot },
		Limits: o.limits, Logger: logger, Now: r.clock.now, Host: turns, Continuity: o.continuity,
	})
	r.door = door.New(door.Options{
		Gateway: g, Store: o.store, Journal: o.journal, Held: o.held, Limits: o.limits, Now: r.clock.now, NewID: id.NewID, Logger: logger,
	})
	var behind server.Door = r.door
	if o.keys != nil {
		behind = locked{Door: r.door, keys: o.keys}
	}
	r.house = server.New(server.Options{
		Doors: []server.Door{behind}, Limits: o.limits, Logger: logger, NewID: turns.NewID, Loopback: true,
	})
	s := httptest.NewServer(r.house)
	t.Cleanup(s.Close)
	t.Cleanup(r.door.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	r.url = s.URL
	return r
}

// locked is the door behind keys, as the wiring has it.
type locked struct {
	server.Door
	keys *access.Keys
}

func (l locked) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range l.Door.Routes() {
		routes[pattern] = access.Require(l.keys, h, l.Refuse)
	}
	return routes
}

// recorder keeps what an upstream was sent.
type recorder struct {
	next   http.Handler
	mu     sync.Mutex
	bodies []string
}

func (u *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.mu.Lock()
	u.bodies = append(u.bodies, string(b))
	u.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(b))
	u.next.ServeHTTP(w, r)
}

// sent is what the upstream was asked for, in order.
func (u *recorder) sent() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.bodies...)
}

// last is the last request.
func (u *recorder) last(t *testing.T) jsontext.Value {
	t.Helper()
	bodies := u.sent()
	if len(bodies) == 0 {
		t.Fatal("the upstream was asked nothing")
	}
	return jsontext.Value(bodies[len(bodies)-1])
}

func (r *rig) connect(t *testing.T, o rigOptions) llm.Provider {
	t.Helper()
	if o.upstream == nil {
		h, err := scripted.New(scripted.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.upstream = h
	}
	r.up = &recorder{next: o.upstream}
	up := httptest.NewServer(r.up)
	transport := upstream.NewTransport(o.limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		up.Close()
	})
	base, err := url.Parse(up.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	id := &ids{}
	p := openai.New(openai.Options{Base: base, Transport: transport, Limits: o.limits, NewID: id.NewID})
	return rescue.Wrap(p, rescue.Options{MaxHeld: o.limits.Int(config.RescueHold), NewID: id.NewID})
}

// ask sends a request and gives its answer, read to its end.
func (r *rig) ask(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		b = append(b, "\n<broken off>"...)
	}
	return res, string(b)
}

func (r *rig) post(t *testing.T, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return r.ask(t, http.MethodPost, "/v1/responses", body, header...)
}

// get is a response that must be there.
func (r *rig) get(t *testing.T, id string, header ...string) jsontext.Value {
	t.Helper()
	res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id, "", header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("get %s: %d %s", id, res.StatusCode, body)
	}
	return jsontext.Value(body)
}

// made posts a request whose answer must be a response, and checks it.
func (r *rig) made(t *testing.T, body string, header ...string) jsontext.Value {
	t.Helper()
	res, answer := r.post(t, body, header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	v := jsontext.Value(answer)
	checkResponse(t, v)
	return v
}

// member is a text in a value, behind names.
func member(v jsontext.Value, path ...string) string {
	for _, name := range path {
		v = wire.Member(v, name)
	}
	if s, ok := wire.String(v); ok {
		return s
	}
	return string(v)
}

// textOf is the text of a response's messages.
func textOf(response jsontext.Value) string {
	var out strings.Builder
	for c := wire.Array(wire.Member(response, "output")); c.Next(); {
		if member(c.Value, "type") == "message" {
			for p := wire.Array(wire.Member(c.Value, "content")); p.Next(); {
				out.WriteString(member(p.Value, "text"))
			}
		}
	}
	return out.String()
}

// kinds are the types of a response's items.
func kinds(response jsontext.Value) string {
	var out []string
	for c := wire.Array(wire.Member(response, "output")); c.Next(); {
		out = append(out, member(c.Value, "type"))
	}
	return strings.Join(out, " ")
}

func quote(s string) string { return string(wire.AppendString(nil, s)) }

// syncBuffer is a log that is written to and read at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

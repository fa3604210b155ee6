package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/rescue"
	"github.com/metier-run/metier/internal/server"
	door "github.com/metier-run/metier/internal/server/anthropic"
	dooropenai "github.com/metier-run/metier/internal/server/openai"
	"github.com/metier-run/metier/skill"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type ids struct{ n atomic.Int64 }

func (i *ids) NewID() string { return fmt.Sprint("id", i.n.Add(1)) }

// rig is the whole house in front of an upstream, over real HTTP.
type rig struct {
	url      string
	upstream *scripted.Handler
	provider llm.Provider
	log      *syncBuffer
}

type rigOptions struct {
	noSkills bool
	limits   config.Values
	provider llm.Provider // in place of the scripted upstream
	upstream http.Handler // the same, over HTTP
	vendor   bool         // upstream speaks this dialect, and not OpenAI Chat

	continuity continuity.Store
	models     map[string]config.Model
	discovery  config.Discovery
	keys       *access.Keys
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{log: &syncBuffer{}}
	if o.provider == nil {
		o.provider = r.connect(t, o)
	}
	r.provider = o.provider
	s := httptest.NewServer(newHouse(t, o, r.log))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	r.url = s.URL
	return r
}

// as makes the requests that follow those of a caller whose key was checked.
func (r *rig) as(t *testing.T, o rigOptions, c access.Caller) {
	t.Helper()
	o.provider = r.provider
	house := newHouse(t, o, r.log)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		house.ServeHTTP(w, q.WithContext(access.WithCaller(q.Context(), c)))
	}))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	r.url = s.URL
}

// locked is a door behind keys, as the wiring has it.
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

// newHouse is the server with this door and the one that shares paths with it.
func newHouse(t *testing.T, o rigOptions, log io.Writer) *server.Server {
	t.Helper()
	snapshot, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: "testdata/skills"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o.noSkills {
		snapshot = nil
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	id := &ids{}
	g := gateway.New(gateway.Options{
		Provider: o.provider, Skills: func() *skill.Snapshot { return snapshot },
		Limits: o.limits, Logger: logger, Now: time.Now, Host: id, Continuity: o.continuity,
		Models: o.models, Discovery: o.discovery,
	})
	var doors []server.Door
	for _, d := range []server.Door{
		door.New(door.Options{Gateway: g, Limits: o.limits, Now: time.Now, NewID: id.NewID}),
		dooropenai.New(dooropenai.Options{Gateway: g, Limits: o.limits, Now: time.Now, NewID: id.NewID}),
	} {
		if o.keys != nil {
			d = locked{Door: d, keys: o.keys}
		}
		doors = append(doors, d)
	}
	return server.New(server.Options{
		Doors: doors, Limits: o.limits, Logger: logger, NewID: id.NewID, Loopback: true,
	})
}

// connect is the scripted upstream, or the test's own, which speak OpenAI Chat.
func (r *rig) connect(t *testing.T, o rigOptions) llm.Provider {
	t.Helper()
	var err error
	if r.upstream, err = scripted.New(scripted.Options{}); err != nil {
		t.Fatal(err)
	}
	if o.upstream == nil {
		o.upstream = r.upstream
	}
	base, transport := serve(t, o.upstream, o.limits)
	id := &ids{}
	if o.vendor {
		return anthropic.New(anthropic.Options{Base: base, Transport: transport, Limits: o.limits, NewID: id.NewID})
	}
	p := openai.New(openai.Options{Base: base, Transport: transport, Limits: o.limits, NewID: id.NewID})
	return rescue.Wrap(p, rescue.Options{MaxHeld: o.limits.Int(config.RescueHold), NewID: id.NewID})
}

// serve is an upstream over HTTP until the test ends.
func serve(t *testing.T, h http.Handler, limits config.Values) (*url.URL, *http.Transport) {
	t.Helper()
	up := httptest.NewServer(h)
	transport := upstream.NewTransport(limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		up.Close()
	})
	base, err := url.Parse(up.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	return base, transport
}

// version is what today's SDKs send; a test that sends one itself replaces it.
const version = "Anthropic-Version"

// send sends a request and returns the answer, read to its end. An empty value leaves a
// header out.
func (r *rig) send(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(version, "2026-10-21")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Del(header[i])
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
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
	return r.send(t, http.MethodPost, "/v1/messages", body, header...)
}

// request is a body for a scenario, with members added in front of the end.
func request(model, more string) string {
	return `{"model":"` + model + `","max_tokens":1000,"messages":[{"role":"user","content":"hello"}]` + more + `}`
}

const (
	weatherTool = `{"name":"get_weather","description":"w","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}`
	weather     = `,"tools":[` + weatherTool + `]`
	streamed    = `,"stream":true`
	thinking    = `,"thinking":{"type":"adaptive"}`
)

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

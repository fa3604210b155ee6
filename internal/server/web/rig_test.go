package web

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/server"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
	"github.com/metier-run/metier/internal/wire"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/shell"
	"github.com/metier-run/metier/skill"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ids are 1, 2, 3.
type ids struct{ n atomic.Int64 }

func (i *ids) NewID() string { return fmt.Sprint("id", i.n.Add(1)) }

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// doer is a model that makes the calls which the user's last message lists, one a line
// as "NAME ARGUMENTS", and then answers with their results. Lines without arguments
// have it think, say or wait.
type doer struct {
	models []string
	mu     sync.Mutex
	asked  []*llm.Request
	hangs  chan struct{} // gets one when a request has begun to wait
}

func (d *doer) Dialect() llm.Dialect { return "" }

func (d *doer) Lost(*llm.Request) []string { return nil }

func (d *doer) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

func (d *doer) Models(context.Context) ([]llm.Model, error) {
	var all []llm.Model
	for _, id := range d.models {
		all = append(all, llm.Model{ID: id})
	}
	return all, nil
}

func (d *doer) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	d.mu.Unlock()
	var todo, had []string
	for _, m := range r.Messages {
		switch m.Role {
		case llm.User:
			todo, had = strings.Split(m.Text(), "\n"), nil
		case llm.Tool:
			had = append(had, m.Text())
		}
	}
	return func(yield func(llm.Piece, error) bool) {
		pieces := []llm.Piece{{Text: strings.Join(had, "\n---\n")}, {Finish: llm.FinishStop}}
		if len(had) < len(todo) {
			name, arguments, call := strings.Cut(todo[len(had)], " {")
			switch {
			case call:
				pieces = []llm.Piece{
					{Calls: []llm.CallDelta{{ID: fmt.Sprint("call", len(had)), Name: name}}},
					{Calls: []llm.CallDelta{{Arguments: "{" + arguments}}},
					{Finish: llm.FinishCalls},
				}
			case name == "hang":
				if !yield(llm.Piece{Text: "One moment "}, nil) {
					return
				}
				d.hangs <- struct{}{}
				<-ctx.Done()
				yield(llm.Piece{}, ctx.Err())
				return
			default:
				pieces[0].Text = "I am told: " + name
			}
		}
		var a llm.Assembler
		for _, p := range pieces {
			a.Add(p)
			if !yield(p, nil) {
				return
			}
		}
		reply := a.Reply()
		yield(llm.Piece{Reply: &reply}, nil)
	}
}

// last is the newest request for an answer.
func (d *doer) last() *llm.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[len(d.asked)-1]
}

// idle is a launcher that runs nothing.
type idle struct{}

func (idle) Start(context.Context, sandbox.Launch) (sandbox.Job, error) { return over{}, nil }
func (idle) Run(context.Context, sandbox.Launch) (sandbox.Result, error) {
	return sandbox.Result{Ended: sandbox.Exited}, nil
}
func (idle) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{Backend: "idle"} }

// over is a launch that has ended.
type over struct{}

func (over) Wait() sandbox.Result { return sandbox.Result{Ended: sandbox.Exited} }
func (over) Stop()                {}

// rig is the house with this door.
type rig struct {
	house    http.Handler
	sessions *Sessions
	doer     *doer
	upstream *scripted.Handler
	area     string // of workspaces
	log      *lines
}

type rigOptions struct {
	scripted bool // in place of the doer
	provider llm.Provider
	noCode   bool
	noSkills bool
	limits   map[config.Name]int64
	now      func() time.Time
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{doer: &doer{models: []string{"m", "other"}, hangs: make(chan struct{})}, area: t.TempDir(), log: &lines{}}
	var limits config.Values
	for name, v := range o.limits {
		var err error
		if limits, err = limits.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if o.now == nil {
		o.now = time.Now
	}
	logger, id := slog.New(slog.NewTextHandler(r.log, nil)), &ids{}
	provider := llm.Provider(r.doer)
	switch {
	case o.scripted:
		provider = r.connect(t, limits)
	case o.provider != nil:
		provider = o.provider
	}
	snapshot, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: "testdata/skills"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o.noSkills {
		snapshot = nil
	}
	skills := func() *skill.Snapshot { return snapshot }
	var work *code.Service
	if !o.noCode {
		work = code.New(code.Options{
			Workspaces: workspace.Options{Area: r.area, Interpreters: interpreter.Options{Path: "/none"}, Limits: limits}, Launcher: idle{},
			Shell: shell.Program{Dialect: shell.Bash, Argv: []string{"/bin/bash"}},
			Facts: toolshell.Facts{Dialect: "bash", System: "Linux", Backend: "idle", Files: true, Timeout: 1, Longest: 1},
		})
	}
	g := gateway.New(gateway.Options{
		Provider: provider, Skills: skills, Limits: limits, Logger: logger, Now: o.now, Host: id, Code: work,
		Continuity: continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now),
	})
	sessions := &ids{}
	r.sessions = NewSessions(SessionOptions{
		Code: work, Limits: limits, Now: o.now, Logger: logger, NewID: func() string { return "session-" + sessions.NewID() },
	})
	t.Cleanup(r.sessions.Close)
	door := New(Options{Gateway: g, Sessions: r.sessions, Skills: skills, Limits: limits, Now: o.now, Logger: logger})
	r.house = server.New(server.Options{Doors: []server.Door{door}, Limits: limits, Logger: logger, NewID: id.NewID, Loopback: true})
	return r
}

func (r *rig) connect(t *testing.T, limits config.Values) llm.Provider {
	t.Helper()
	var err error
	if r.upstream, err = scripted.New(scripted.Options{}); err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(r.upstream)
	transport := upstream.NewTransport(limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		up.Close()
	})
	base, err := url.Parse(up.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	id := &ids{}
	return openai.New(openai.Options{Base: base, Transport: transport, Limits: limits, NewID: id.NewID})
}

// caller is whoever has a key.
func caller(id string) access.Caller {
	return access.Caller{ID: id, Tenant: access.DefaultTenant}
}

// as sends a request of a caller, and gives the whole answer.
func (r *rig) as(t *testing.T, c access.Caller, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	q := httptest.NewRequestWithContext(access.WithCaller(t.Context(), c), method, path, strings.NewReader(body))
	q.Host = "localhost"
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.house.ServeHTTP(w, q)
	return w
}

func (r *rig) chat(t *testing.T, body string) *httptest.ResponseRecorder {
	t.Helper()
	return r.as(t, access.Anonymous(), http.MethodPost, "/api/chat", body)
}

// say is a body with one message, and members behind it.
func say(text string, more ...string) string {
	return `{"messages":[{"role":"user","content":` + quoted(text) + `}]` + strings.Join(more, "") + `}`
}

func quoted(text string) string { return string(wire.AppendString(nil, text)) }

// session begins one.
func (r *rig) session(t *testing.T, c access.Caller) string {
	t.Helper()
	w := r.as(t, c, http.MethodPost, "/api/sessions", "")
	var got struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated || got.ID == "" {
		t.Fatalf("begin a session: %d %s", w.Code, w.Body)
	}
	return got.ID
}

// send uploads a file.
func (r *rig) send(t *testing.T, session, name, content string) *httptest.ResponseRecorder {
	t.Helper()
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	part, err := form.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(part, content); err != nil {
		t.Fatal(err)
	}
	if session != "" {
		if err := form.WriteField("sessionId", session); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return r.as(t, access.Anonymous(), http.MethodPost, "/api/upload", body.String(), "Content-Type", form.FormDataContentType())
}

// frame is any frame.
type shown struct {
	Token    string `json:"token"`
	Thinking string `json:"thinking"`
	Calls    []any  `json:"tool_calls"`
	Step     string `json:"skill_step"`
	Progress string `json:"tool_progress"`
	OK       bool   `json:"ok"`
	doneFrame
}

// read gives the frames of a stream, of which exactly the last is a done one.
func read(t *testing.T, w *httptest.ResponseRecorder) []shown {
	t.Helper()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Fatalf("there is no stream: %d %s", w.Code, w.Body)
	}
	var all []shown
	events := wire.NewEventReader(w.Body, 1<<20, nil)
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		var f shown
		if err := json.Unmarshal(e.Data, &f); err != nil {
			t.Fatalf("frame %s: %v", e.Data, err)
		}
		all = append(all, f)
	}
	for i, f := range all {
		if f.Done != (i == len(all)-1) {
			t.Fatalf("frame %d of %d: done is %v", i, len(all), f.Done)
		}
	}
	if len(all) == 0 {
		t.Fatal("the stream has no frames")
	}
	return all
}

// answer is the text of a stream that went well.
func answer(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var text strings.Builder
	frames := read(t, w)
	for _, f := range frames {
		text.WriteString(f.Token)
	}
	if end := frames[len(frames)-1]; end.Error != nil || end.Aborted {
		t.Fatalf("the turn failed: %+v", end)
	}
	return text.String()
}

// workspaces are the contents of those on the disk: the names of their files, each
// workspace's joined.
func (r *rig) workspaces(t *testing.T) []string {
	t.Helper()
	rooms, err := filepath.Glob(filepath.Join(r.area, "*", "work"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, room := range rooms {
		entries, err := os.ReadDir(room)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		all = append(all, strings.Join(names, " "))
	}
	slices.Sort(all)
	return all
}

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/app"
)

// worker is a model that makes the calls which the user's last message lists, one
// after the other, and then answers with all their results, word for word.
type worker struct {
	t   *testing.T
	url string
	// props is what it says of itself as a llama.cpp server; empty when it is none.
	props string
	// before, if set, runs before it answers; an error is a broken upstream.
	before func(ctx context.Context, results int) error

	mu    sync.Mutex
	asked [][]byte // the bodies of requests for an answer
}

// step is a call that the worker is asked for.
type step struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

func run(command string) step { return step{"shell", map[string]any{"command": command}} }

func write(path, content string) step {
	return step{"write_file", map[string]any{"path": path, "content": content}}
}

// task is a user's message that asks for calls.
func task(calls ...step) string {
	b, err := json.Marshal(calls)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// between stands between the results in the worker's answer.
const between = "\n<<<>>>\n"

func results(answer string) []string { return strings.Split(answer, between) }

func newWorker(t *testing.T) *worker {
	w := &worker{t: t}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	w.url = srv.URL + "/v1"
	return w
}

func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/props" && w.props != "" {
		_, _ = io.WriteString(rw, w.props) // a client that is gone needs none
		return
	}
	if r.URL.Path == "/v1/models" && w.props != "" {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"llamacpp"}]}`)
		return
	}
	if r.URL.Path != "/v1/chat/completions" {
		rw.WriteHeader(http.StatusNotFound) // a probe
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	w.mu.Lock()
	w.asked = append(w.asked, body)
	w.mu.Unlock()
	todo, had, forced, err := understood(body)
	if err != nil {
		w.t.Error(err)
	}
	if w.before != nil {
		if err := w.before(r.Context(), len(had)); err != nil {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	delta, finish := map[string]any{"role": "assistant", "content": strings.Join(had, between)}, "stop"
	if len(had) < len(todo) && !forced {
		arguments, err := json.Marshal(todo[len(had)].Arguments, json.Deterministic(true))
		if err != nil {
			w.t.Error(err)
		}
		call := map[string]any{"name": todo[len(had)].Name, "arguments": string(arguments)}
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": fmt.Sprint("call_", len(had)), "type": "function", "function": call}}}
		finish = "tool_calls"
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []map[string]any{{"index": 0, "delta": delta}, {"index": 0, "delta": map[string]any{}, "finish_reason": finish}} {
		b, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{choice}})
		if err != nil {
			w.t.Error(err)
		}
		fmt.Fprintf(rw, "data: %s\n\n", b)
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}

// understood is what a request asks for: the calls of the last user's message, the
// results behind it, and whether no tool may be called.
func understood(body []byte) (todo []step, had []string, forced bool, err error) {
	var asked struct {
		Choice   any `json:"tool_choice"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, nil, false, err
	}
	forced = asked.Choice == "none"
	for _, m := range asked.Messages {
		switch text := textOf(m.Content); m.Role {
		case "user":
			if !strings.HasPrefix(text, "[{") && forced { // that there are no rounds left
				continue
			}
			todo, had = nil, nil
			if strings.HasPrefix(text, "[{") {
				err = json.UnmarshalDecode(jsontext.NewDecoder(strings.NewReader(text)), &todo)
			}
		case "tool":
			had = append(had, text)
		}
	}
	return todo, had, forced, err
}

// textOf is a content's text, or that of its first text part.
func textOf(content jsontext.Value) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // other parts have other shapes
	for _, p := range parts {
		if p.Type == "text" {
			return p.Text
		}
	}
	return ""
}

// bodies are the requests so far.
func (w *worker) bodies() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// coder is a server whose model may work with files.
type coder struct {
	rig
	*worker
	home string
	log  *lines
}

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

func newCoder(t *testing.T, change func(*app.Settings)) coder {
	t.Helper()
	return newCoderOf(t, newWorker(t), change)
}

// newFiles is a server whose model works with files and can run no command: to find
// what confines commands takes longer than most tests.
func newFiles(t *testing.T, w *worker, change func(*app.Settings)) coder {
	t.Helper()
	return newCoderOf(t, w, func(s *app.Settings) {
		s.Scripts.Finders = brokenHost()
		if change != nil {
			change(s)
		}
	})
}

func newCoderOf(t *testing.T, w *worker, change func(*app.Settings)) coder {
	t.Helper()
	c := coder{worker: w, home: filepath.Join(t.TempDir(), "home"), log: &lines{}}
	s := app.Settings{
		Home: c.home, NoSkills: true, Scripts: app.Scripts{}.FromEnvironment(), Code: app.Code{Allowed: true},
		Upstream: app.Upstream{URL: w.url, Type: "openai"},
	}
	s.Scripts.FilesURL = app.ArtifactsURL
	if change != nil {
		change(&s)
	}
	c.home = s.Home
	a, err := app.Open(t.Context(), s, slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Server(true))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
		a.Close()
	})
	c.rig = rig{a, srv.URL}
	return c
}

// able skips a test of real commands where nothing confines them.
func (c coder) able(t *testing.T) coder {
	t.Helper()
	if confinement, _ := c.app.CodeConfinement(); confinement.Problem != nil {
		t.Skip(confinement.Problem)
	}
	return c
}

// do has the model make calls, and gives their results.
func (c coder) do(t *testing.T, key string, calls ...step) []string {
	t.Helper()
	got := results(c.run(t, task(calls...), key))
	if len(got) != len(calls) {
		t.Fatalf("%d results for %d calls:\n%s", len(got), len(calls), strings.Join(got, between))
	}
	return got
}

// workspaces are those on the disk.
func (c coder) workspaces(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.home, "workspaces", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// post sends a request's body, and gives the whole answer.
func (c coder) post(t *testing.T, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.rig.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// quoted is a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/llm/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noWait(context.Context, time.Duration) error { return nil }

func open(t *testing.T, o scripted.Options) (*scripted.Handler, string, *http.Client) {
	t.Helper()
	h, err := scripted.New(o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return h, server.URL, &http.Client{Transport: transport}
}

// TestSuite proves the scenarios and the suite of providers with each other.
func TestSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, scenario string) (llm.Provider, string) {
		_, url, c := open(t, scripted.Options{Sleep: noWait})
		return &client{http: c, url: url}, scenario
	})
}

// ask posts a body and returns status, headers and body, and the error that
// ended the body.
func ask(t *testing.T, c *http.Client, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res, string(data), err
}

const user = `"messages":[{"role":"user","content":"hi"}]`

func chat(model, more string) string { return `{"model":"` + model + `",` + user + more + `}` }

func play(t *testing.T, files map[string]string, o scripted.Options) (*scripted.Handler, string, *http.Client) {
	t.Helper()
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name+scripted.Ext] = &fstest.MapFile{Data: []byte(text)}
	}
	o.FS = dir
	return open(t, o)
}

func TestBodyBytes(t *testing.T) {
	head := "-- 1.answer --\n200\nContent-Type: text/event-stream\n-- 1.body --\n"
	for name, tt := range map[string]struct{ body, want string }{
		"plain":        {"data: a\n\ndata: b\n\n", "data: a\n\ndata: b\n\n"},
		"escaped at":   {"@@repeat 2\n", "@repeat 2\n"},
		"crlf":         {"@crlf\ndata: a\n\n", "data: a\r\n\r\n"},
		"chomp":        {"data: a\n@chomp\n", "data: a"},
		"raw":          {`@raw "a\xff{{results}}"` + "\n", "a\xff{{results}}"},
		"repeat":       {"@repeat 3\ndata: {{i}}\n\n@end\ndata: {{i}}\n\n", "data: 1\n\ndata: 2\n\ndata: 3\n\ndata: {{i}}\n\n"},
		"results":      {"data: {{results}}\n\n", "data: 0\n\n"},
		"split":        {"@split 2\ndata: wört\n\ndata: x\n\n", "data: wört\n\ndata: x\n\n"},
		"close":        {"data: a\n\n@close\ndata: b\n\n", "data: a\n\n"},
		"close inside": {"@repeat 3\ndata: a\n\n@close\n@end\n", "data: a\n\n"},
		"open line":    {"data: a", "data: a\n"},
		"stall":        {"data: a\n@stall 1h\ndata: b\n\n", "data: a\ndata: b\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url, c := play(t, map[string]string{"s": head + tt.body}, scripted.Options{Sleep: noWait})
			_, got, err := ask(t, c, url, chat("s", ""))
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// flushes counts what reaches the wire in one piece.
type flushes struct {
	*httptest.ResponseRecorder
	pieces []string
	seen   int
}

func (f *flushes) Flush() {
	body := f.Body.String()
	f.pieces = append(f.pieces, body[f.seen:])
	f.seen = len(body)
}

func direct(t *testing.T, text string, o scripted.Options) *flushes {
	t.Helper()
	o.FS = fstest.MapFS{"s.txtar": {Data: []byte(text)}}
	h, err := scripted.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &flushes{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(chat("s", ""))))
	return w
}

func TestFlushes(t *testing.T) {
	const sse = "-- 1.answer --\n200\nContent-Type: text/event-stream\n-- 1.body --\n"
	w := direct(t, sse+"data: 1\n\n@split 3\ndata: ü\n\ndata: 3\n\n", scripted.Options{})
	want := []string{"data: 1\n\n", "dat", "a: ", "ü\n", "\n", "data: 3\n\n"}
	if d := cmp.Diff(want, w.pieces); d != "" {
		t.Error(d)
	}
	w = direct(t, "-- 1.answer --\n200\nContent-Type: application/json\n-- 1.body --\n{\n\n}\n", scripted.Options{})
	if len(w.pieces) != 0 {
		t.Errorf("JSON was flushed in pieces: %q", w.pieces)
	}
}

// TestStall holds that what was sent is on the wire before the wait, and that a
// wait before the headers sends nothing.
func TestStall(t *testing.T) {
	var waits []string
	var w *flushes
	sleep := func(_ context.Context, d time.Duration) error {
		waits = append(waits, d.String())
		return nil
	}
	w = direct(t, "-- 1.answer --\n@stall 2s\n200\nContent-Type: text/event-stream\n-- 1.body --\ndata: 1\n@stall 30ms\n\n", scripted.Options{Sleep: sleep})
	if d := cmp.Diff([]string{"2s", "30ms"}, waits); d != "" {
		t.Error(d)
	}
	if got := strings.Join(w.pieces, "|"); !strings.HasPrefix(got, "data: 1\n|") {
		t.Errorf("the line before the wait was not sent by itself: %q", w.pieces)
	}
	w = direct(t, "-- 1.answer --\n200\nContent-Type: application/json\n-- 1.body --\n{\n@stall 1s\n}\n", scripted.Options{Sleep: sleep})
	if d := cmp.Diff([]string{"{\n"}, w.pieces); d != "" {
		t.Errorf("what stands before a wait in JSON was not sent: %s", d)
	}
	w = direct(t, "-- 1.answer --\n@stall 2s\n200\n", scripted.Options{Sleep: func(context.Context, time.Duration) error { return context.Canceled }})
	if w.Code != 200 || w.Body.Len() != 0 || len(w.pieces) != 0 {
		t.Errorf("after a wait that was cut short: %d %q", w.Code, w.Body)
	}
}

func TestCut(t *testing.T) {
	_, url, c := open(t, scripted.Options{})
	_, body, err := ask(t, c, url, chat("cut", `,"stream":true`))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(body, "not be") {
		t.Errorf("got %q, %v, want the text and then an unexpected EOF", body, err)
	}
	if _, _, err := ask(t, c, url, chat("cut-headers", "")); err == nil {
		t.Error("cut-headers: got an answer")
	}
	res, _, err := ask(t, c, url, chat("no-done", ""))
	if err != nil || !res.Close {
		t.Errorf("@close: got %v, connection closed: %v", err, res.Close)
	}
}

// TestConditions asks a scenario with one step a condition which of them fits.
func TestConditions(t *testing.T) {
	for name, tt := range map[string]struct{ when, body, misfit string }{
		"has raw":         {"has: \"hi\"", chat("s", ""), ""},
		"has decoded":     {"has: say \"x\"", `{"model":"s","messages":[{"role":"user","content":[{"type":"text","text":"say \"x\""}]}]}`, ""},
		"has not":         {"has: bye", chat("s", ""), "it is not there"},
		"lacks":           {"lacks: bye", chat("s", ""), ""},
		"lacks not":       {"lacks: hi", chat("s", ""), "it is there"},
		"stream":          {"stream: true", chat("s", `,"stream":true`), ""},
		"stream not":      {"stream: true", chat("s", ""), "it is false"},
		"usage":           {"usage: true", chat("s", `,"stream":true,"stream_options":{"include_usage":true}`), ""},
		"usage not":       {"usage: true", chat("s", `,"stream":true`), "it is false"},
		"tool":            {"tool: f", chat("s", `,"tools":[{"function":{"name":"f"}}]`), ""},
		"tool not":        {"tool: f", chat("s", ""), "the tools are []"},
		"choice unset":    {"choice: unset", chat("s", ""), ""},
		"choice none":     {"choice: none", chat("s", `,"tool_choice":"none"`), ""},
		"choice named":    {"choice: named", chat("s", `,"tool_choice":{"type":"function"}`), ""},
		"choice not":      {"choice: none", chat("s", `,"tool_choice":"auto"`), "tool_choice is auto"},
		"results 0":       {"results: 0", chat("s", ""), ""},
		"results 1":       {"results: 1", answered, ""},
		"results 1+":      {"results: 0+", answered, ""},
		"results not":     {"results: 1", chat("s", ""), "there are 0"},
		"results 2+ not":  {"results: 2+", answered, "there are 1"},
		"nth":             {"nth: 1", chat("s", ""), ""},
		"nth not":         {"nth: 2", chat("s", ""), "this is request 1"},
		"both":            {"has: hi\nstream: false", chat("s", ""), ""},
		"second is wrong": {"has: hi\nstream: true", chat("s", ""), "wants stream: true"},
	} {
		t.Run(name, func(t *testing.T) {
			h, url, c := play(t, map[string]string{"s": "-- 1.when --\n" + tt.when + "\n-- 1.answer --\n200\n"}, scripted.Options{})
			res, body, err := ask(t, c, url, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			step := h.Requests()[0].Step
			if tt.misfit == "" && (res.StatusCode != 200 || step != 1) {
				t.Errorf("got %d %s from step %d", res.StatusCode, body, step)
			}
			if tt.misfit != "" && (res.StatusCode != 400 || step != 0 || !strings.Contains(body, tt.misfit)) {
				t.Errorf("got %d %s from step %d, want a 400 that says %q", res.StatusCode, body, step, tt.misfit)
			}
		})
	}
}

const answered = `{"model":"s","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,` +
	`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`

// TestStrict holds that what a vendor refuses is refused.
func TestStrict(t *testing.T) {
	call := `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"a","content":"r"}`
	list := func(messages ...string) string {
		return `{"model":"hello","messages":[` + strings.Join(messages, ",") + `]}`
	}
	_, url, c := open(t, scripted.Options{})
	for name, tt := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no JSON":          {`{"model":`, 400, "no chat request"},
		"twice":            {`{"model":"hello","model":"hello",` + user + `}`, 400, "duplicate"},
		"no model":         {`{` + user + `}`, 400, "model is missing"},
		"no messages":      {`{"model":"hello"}`, 400, "messages is missing"},
		"options alone":    {chat("hello", `,"stream_options":{}`), 400, "stream_options"},
		"required no tool": {chat("hello", `,"tool_choice":"required"`), 400, "tool_choice"},
		"two of one name":  {chat("hello", `,"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]`), 400, "tools[1]"},
		"orphan result":    {list(result), 400, "messages[0]"},
		"open call":        {list(call), 400, "not answered"},
		"open, then user":  {list(call, `{"role":"user","content":"x"}`), 400, "messages[1]"},
		"answered twice":   {list(call, result, result), 400, "messages[2]"},
		"call without id":  {list(strings.Replace(call, `"a"`, `""`, 1)), 400, "messages[0]"},
		"unknown model":    {chat("nobody", ""), 404, "skill-read"},
		"good":             {list(call, result), 200, "chat.completion"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body, err := ask(t, c, url, tt.body)
			if err != nil || res.StatusCode != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, %v, want %d with %q", res.StatusCode, body, err, tt.status, tt.want)
			}
		})
	}
}

func TestLoopNeedsFreshIDs(t *testing.T) {
	_, url, c := open(t, scripted.Options{})
	_, one, _ := ask(t, c, url, chat("loop", `,"stream":true`))
	_, two, _ := ask(t, c, url, strings.Replace(strings.Replace(answered, `"s"`, `"loop"`, 1), `{"model"`, `{"stream":true,"model"`, 1))
	if !strings.Contains(one, "call_loop_0") || !strings.Contains(two, "call_loop_1") {
		t.Errorf("ids do not count the results: %s %s", one, two)
	}
	for model, calls := range map[string]bool{"loop": false, "loop-stubborn": true} {
		_, forced, _ := ask(t, c, url, chat(model, `,"stream":true,"tool_choice":"none"`))
		if strings.Contains(forced, "tool_calls\":[") != calls {
			t.Errorf("%s with tool_choice none: calls %v is wrong: %s", model, !calls, forced)
		}
	}
}

func TestRequests(t *testing.T) {
	h, url, c := open(t, scripted.Options{Key: "secret"})
	res, _, err := ask(t, c, url, chat("hello", ""))
	if err != nil || res.StatusCode != http.StatusUnauthorized || len(h.Requests()) != 0 {
		t.Fatalf("without the key: got %v, %v, %d requests", res.StatusCode, err, len(h.Requests()))
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(chat("hello", "")))
	req.Header.Set("Authorization", "Bearer secret")
	res, err = c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	got := h.Requests()
	if len(got) != 1 || got[0].Model != "hello" || got[0].Step != 3 || string(got[0].Body) != chat("hello", "") || got[0].Header.Get("Authorization") == "" {
		t.Errorf("got %+v", got)
	}
	h.Reset()
	if len(h.Requests()) != 0 {
		t.Error("Reset kept requests")
	}
}

// TestManyStreams runs 1,000 streams at once through one handler.
func TestManyStreams(t *testing.T) {
	h, err := scripted.New(scripted.Options{Sleep: noWait})
	if err != nil {
		t.Fatal(err)
	}
	const streams = 1000
	bodies := make([]string, streams)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			model := []string{"hello", "stall", "skill-read", "split-utf8"}[i%4]
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(chat(model, `,"stream":true`))))
			bodies[i] = w.Body.String()
		})
	}
	wg.Wait()
	for i, b := range bodies {
		if !strings.HasSuffix(b, "data: [DONE]\n\n") || b != bodies[i%4] {
			t.Fatalf("stream %d differs: %q", i, b)
		}
	}
	if n := len(h.Requests()); n != streams {
		t.Errorf("%d requests were noted, want %d", n, streams)
	}
}

func TestProbes(t *testing.T) {
	for kind, paths := range map[scripted.Kind]map[string]string{
		scripted.OpenAI:   {"/health": "ok", "/v1/models": `"owned_by":"system"`, "/v1/models/hello": `"id":"hello"`, "/props": "404"},
		scripted.LlamaCPP: {"/health": "ok", "/v1/health": "ok", "/props": "default_generation_settings", "/v1/models": `"owned_by":"llamacpp"`},
		scripted.Ollama:   {"/": "Ollama is running", "/api/version": "version", "/api/tags": `"name":"hello"`, "/v1/models": "library"},
		scripted.LMStudio: {"/api/v0/models": `"state":"loaded"`, "/nowhere": "Unexpected endpoint", "/v1/models": "organization_owner"},
		scripted.VLLM:     {"/version": "version", "/health": "", "/v1/models": `"owned_by":"vllm"`},
	} {
		_, url, c := open(t, scripted.Options{Kind: kind})
		for path, want := range paths {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if !strings.Contains(fmt.Sprint(res.StatusCode, " ", string(body)), want) {
				t.Errorf("%s %s: got %d %s, want %q", kind, path, res.StatusCode, body, want)
			}
		}
	}
	if _, err := scripted.New(scripted.Options{Kind: "abacus"}); err == nil || !strings.Contains(err.Error(), "llamacpp") {
		t.Errorf("unknown kind: got %v", err)
	}
}

// TestScenarios holds that the embedded scenarios are those that others count on.
func TestScenarios(t *testing.T) {
	h, err := scripted.New(scripted.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := h.Names()
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	for _, want := range []string{
		"hello", "skill-read", "two-reads", "mixed", "caller-tool", "many-calls", "unknown-tool", "loop", "loop-stubborn", "cut-call",
		"reasoning", "usage-cached", "n-two", "no-ids", "stall", "hang", "hang-headers", "cut", "cut-event", "cut-headers", "malformed",
		"split-utf8", "rate-limited", "unauthorized", "overflow", "server-error", "slow-load", "slow-headers", "no-done", "early-end",
		"json-answer", "error-in-stream", "crlf", "multi-line", "long",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("scenario %s is missing", want)
		}
	}
}

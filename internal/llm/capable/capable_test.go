package capable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/capable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// supposing is a provider that supposes the best.
type supposing struct{ llm.Provider }

func (supposing) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// asked counts questions and answers them.
type asked struct {
	mu    sync.Mutex
	n     int
	slow  time.Duration
	word  capable.Word
	err   error
	names []string
}

func (a *asked) probe(ctx context.Context, model string) (capable.Word, error) {
	a.mu.Lock()
	a.n++
	a.names = append(a.names, model)
	word, err := a.word, a.err
	a.mu.Unlock()
	select {
	case <-time.After(a.slow):
		return word, err
	case <-ctx.Done():
		return capable.Word{}, ctx.Err()
	}
}

const wait, keep = 3 * time.Second, time.Minute

func wrap(a *asked, models map[string]capable.Word) llm.Provider {
	return capable.Wrap(supposing{}, capable.Options{
		Models: models, Probe: a.probe, Wait: wait, Keep: keep, Most: 3, Logger: slog.New(slog.DiscardHandler),
	})
}

func get(t *testing.T, p llm.Provider, model string) llm.Capabilities {
	t.Helper()
	c, err := p.Capabilities(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOrder: the file is above the upstream's word, which is above what is
// supposed; each says only what it says.
func TestOrder(t *testing.T) {
	yes, no := true, false
	all := llm.Capabilities{Declares: true, Parsed: true, Results: true}
	for name, c := range map[string]struct {
		file, word capable.Word
		err        error
		want       llm.Capabilities
	}{
		"nobody says anything": {want: all},
		"the upstream":         {word: capable.Word{Parsed: &no, Context: 4096}, want: llm.Capabilities{Declares: true, Results: true, Context: 4096}},
		"the file":             {file: capable.Word{Parsed: &yes, Context: 9}, word: capable.Word{Parsed: &no, Declares: &no, Context: 4096}, want: llm.Capabilities{Parsed: true, Results: true, Context: 9}},
		"a silent upstream":    {err: capable.ErrSilent, want: all},
		"a failure":            {word: capable.Word{Context: 5}, err: errors.New("x"), want: all},
		"nonsense":             {word: capable.Word{Context: -1}, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := wrap(&asked{word: c.word, err: c.err}, map[string]capable.Word{"m": c.file})
				if d := cmp.Diff(c.want, get(t, p, "m")); d != "" {
					t.Error(d)
				}
			})
		})
	}
	a := &asked{}
	p := wrap(a, map[string]capable.Word{"m": {Declares: &yes, Parsed: &yes, Results: &no, Context: 1}})
	if c := get(t, p, "m"); c.Results || a.n != 0 {
		t.Errorf("the file says everything: %+v, asked %d times", c, a.n)
	}
	none := capable.Wrap(supposing{}, capable.Options{})
	if d := cmp.Diff(all, get(t, none, "m")); d != "" {
		t.Errorf("nobody to ask: %s", d)
	}
}

// TestOneQuestion: one question for each model however many ask, bounded in time,
// believed for a while, and asked again soon after a failure.
func TestOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{slow: time.Second, word: capable.Word{Context: 7}}
		p := wrap(a, nil)
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = p.Capabilities(ctx, "m") }()
		synctest.Wait()
		leave() // who asked first is gone; the others get its answer
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if c := get(t, p, "m"); c.Context != 7 {
					t.Errorf("got %+v", c)
				}
			})
		}
		wg.Wait()
		<-time.After(keep / 2)
		get(t, p, "m")
		if a.n != 1 {
			t.Errorf("asked %d times, want once", a.n)
		}
		<-time.After(keep)
		get(t, p, "m")
		if a.n != 2 {
			t.Errorf("asked %d times after its word was old, want twice", a.n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := &asked{slow: time.Hour}
		p := wrap(a, nil)
		began := time.Now()
		get(t, p, "m")
		if d := time.Since(began); d != wait {
			t.Errorf("a question took %s, want %s", d, wait)
		}
		get(t, p, "m")
		if a.n != 1 {
			t.Error("asked again at once after a failure")
		}
		<-time.After(wait + time.Second)
		a.slow = 0
		a.word.Context = 5
		if c := get(t, p, "m"); c.Context != 5 || a.n != 2 {
			t.Errorf("a while after a failure: %+v, asked %d times", c, a.n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := &asked{word: capable.Word{Context: 5, Passing: true}}
		p := wrap(a, nil)
		get(t, p, "m")
		<-time.After(wait + time.Second)
		a.word = capable.Word{Context: 4}
		if c := get(t, p, "m"); c.Context != 4 {
			t.Errorf("after the model was loaded: %+v", c)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := wrap(&asked{slow: time.Second}, nil)
		ctx, leave := context.WithCancel(t.Context())
		var first sync.WaitGroup
		defer first.Wait()
		first.Go(func() { _, _ = p.Capabilities(t.Context(), "m") })
		synctest.Wait()
		leave()
		if _, err := p.Capabilities(ctx, "m"); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that is gone: %v", err)
		}
	})
}

// TestMost: names of models come from clients, and only so many are kept.
func TestMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{}
		p := wrap(a, nil)
		for i := range 5 {
			get(t, p, fmt.Sprint(i))
			<-time.After(time.Second)
		}
		get(t, p, "4")
		get(t, p, "2")
		if a.n != 5 {
			t.Errorf("asked about %v, want the last three to be kept", a.names)
		}
		get(t, p, "0")
		if a.n != 6 {
			t.Errorf("asked about %v, want the first to be forgotten", a.names)
		}
	})
}

// upstream answers routes with fixed texts.
func upstream(t *testing.T, routes map[string]string) capable.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := routes[r.Method+" "+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s %s without the key", r.Method, r.URL.Path)
		}
		if strings.HasPrefix(body, "http") {
			http.Redirect(w, r, body, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return capable.Server{Base: s.URL + "/v1", Root: s.URL, Key: config.NewSecret("k"), Client: &http.Client{Transport: transport}, Bytes: 4096}
}

func TestProbes(t *testing.T) {
	yes, no := true, false
	llama := func(s capable.Server) capable.Probe { return s.LlamaCPP }
	ollama := func(s capable.Server) capable.Probe { return s.Ollama }
	studio := func(s capable.Server) capable.Probe { return s.LMStudio }
	listed := func(s capable.Server) capable.Probe { return s.Listed }
	type routes map[string]string
	for name, c := range map[string]struct {
		probe  func(capable.Server) capable.Probe
		routes routes
		want   capable.Word
		err    string
	}{
		"llama.cpp":              {llama, routes{"GET /props": `{"chat_template_caps":{"supports_tools":true,"supports_tool_calls":true,"supports_tool_responses":false},"default_generation_settings":{"n_ctx":4096}}`}, capable.Word{Declares: &yes, Parsed: &yes, Results: &no, Context: 4096}, ""},
		"llama.cpp, newer":       {llama, routes{"GET /props": `{"chat_template_caps":{"supports_tools":false,"supports_tool_calls":false}}`}, capable.Word{Declares: &no, Parsed: &no, Results: &no}, ""},
		"llama.cpp, older":       {llama, routes{"GET /props": `{"default_generation_settings":{"n_ctx":512}}`}, capable.Word{Context: 512}, ""},
		"llama.cpp, penalty":     {llama, routes{"GET /props": `{"default_generation_settings":{"params":{"repeat_penalty":1.1}}}`}, capable.Word{Penalty: "repeat_penalty"}, ""},
		"llama.cpp, old penalty": {llama, routes{"GET /props": `{"default_generation_settings":{"repeat_penalty":1.05}}`}, capable.Word{Penalty: "repeat_penalty"}, ""},
		"llama.cpp, no penalty":  {llama, routes{"GET /props": `{"default_generation_settings":{"repeat_penalty":1,"params":{"repeat_penalty":1}}}`}, capable.Word{}, ""},
		"no such route":          {llama, routes{}, capable.Word{}, "answered 404"},
		"a redirect":             {llama, routes{"GET /props": "http://127.0.0.1:1/"}, capable.Word{}, "answered 302"},
		"no JSON":                {llama, routes{"GET /props": `<html>`}, capable.Word{}, "/props"},
		"wrong types":            {llama, routes{"GET /props": `{"default_generation_settings":{"n_ctx":"x"}}`}, capable.Word{}, "/props"},
		"too long":               {llama, routes{"GET /props": `{"a":"` + strings.Repeat("x", 5000) + `"}`}, capable.Word{}, "/props"},
		"ollama, loaded":         {ollama, routes{"POST /api/show": card, "GET /api/ps": `{"models":[{"name":"m","context_length":16384}]}`}, capable.Word{Declares: &yes, Parsed: &yes, Results: &yes, Context: 16384}, ""},
		"ollama, by its tag":     {ollama, routes{"POST /api/show": card, "GET /api/ps": `{"models":[{"name":"m:latest","context_length":16384}]}`}, capable.Word{Declares: &yes, Parsed: &yes, Results: &yes, Context: 16384}, ""},
		"ollama, not loaded":     {ollama, routes{"POST /api/show": card, "GET /api/ps": `{"models":[{"name":"other","context_length":1}]}`}, capable.Word{Declares: &yes, Parsed: &yes, Results: &yes, Context: 8192, Passing: true}, ""},
		"ollama, without tools":  {ollama, routes{"POST /api/show": `{"capabilities":["completion"],"model_info":{"gemma.context_length":2048}}`}, capable.Word{Declares: &no, Parsed: &no, Results: &no, Context: 2048, Passing: true}, ""},
		"ollama, older":          {ollama, routes{"POST /api/show": `{"model_info":{"general.architecture":"llama"}}`, "GET /api/ps": `{"models":[{"name":"m"}]}`}, capable.Word{}, ""},
		"lm studio":              {studio, routes{"GET /api/v0/models": `{"data":[{"id":"n"},{"id":"m","state":"loaded","loaded_context_length":4096,"max_context_length":32768}]}`}, capable.Word{Context: 4096, Penalty: "repeat_penalty"}, ""},
		"lm studio, not loaded":  {studio, routes{"GET /api/v0/models": `{"data":[{"id":"m","state":"not-loaded","max_context_length":32768}]}`}, capable.Word{Context: 32768, Passing: true, Penalty: "repeat_penalty"}, ""},
		"vllm":                   {listed, routes{"GET /v1/models": `{"data":[{"id":"m","max_model_len":32768}]}`}, capable.Word{Context: 32768}, ""},
		"a router":               {listed, routes{"GET /v1/models": `{"data":[{"id":"m","context_length":1000,"supported_parameters":["tools"]}]}`}, capable.Word{Declares: &yes, Parsed: &yes, Context: 1000}, ""},
		"a router without tools": {listed, routes{"GET /v1/models": `{"data":[{"id":"m","supported_parameters":["top_p"]}]}`}, capable.Word{Declares: &no, Parsed: &no}, ""},
		"a list of names":        {listed, routes{"GET /v1/models": `{"data":[{"id":"m","object":"model"}]}`}, capable.Word{}, ""},
		"not in the list":        {listed, routes{"GET /v1/models": `{"data":null}`}, capable.Word{}, "does not list it"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.probe(upstream(t, c.routes))(t.Context(), "m")
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

const card = `{"capabilities":["completion","tools"],"parameters":"stop    \"a\"\nnum_ctx      8192\n","model_info":{"llama.context_length":131072}}`

// FuzzProbes: whatever an upstream answers, a question ends and no window is
// negative in the end.
func FuzzProbes(f *testing.F) {
	f.Add(card)
	f.Add(`{"data":[{"id":"m","max_model_len":-5,"context_length":1e3}]}`)
	f.Add(`{"chat_template_caps":null,"default_generation_settings":{"n_ctx":-1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		s := capable.Server{Base: "http://x", Root: "http://x", Bytes: 1 << 16, Client: &http.Client{Transport: fixed(body)}}
		for _, probe := range []capable.Probe{s.LlamaCPP, s.Ollama, s.LMStudio, s.Listed} {
			p := capable.Wrap(supposing{}, capable.Options{Probe: probe, Wait: time.Second, Keep: keep, Most: 1, Logger: slog.New(slog.DiscardHandler)})
			if c, err := p.Capabilities(t.Context(), "m"); err != nil || c.Context < 0 {
				t.Errorf("%q: %+v, %v", body, c, err)
			}
		}
	})
}

type fixed string

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(f))
	res := w.Result()
	res.Request = r
	return res, nil
}

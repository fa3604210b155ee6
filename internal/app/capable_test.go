package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/capable"
	"github.com/metier-run/metier/internal/llm/detect"
)

// TestAsker: a server that was not there at the start is recognised by the first
// question, and then asked in its own way.
func TestAsker(t *testing.T) {
	yes, no := true, false
	routes := map[string]string{
		"llamacpp /v1/models":     `{"data":[{"id":"m","owned_by":"llamacpp"}]}`,
		"llamacpp /props":         `{"chat_template_caps":{"supports_tools":true,"supports_tool_calls":false},"default_generation_settings":{"n_ctx":4096}}`,
		"lmstudio /v1/models":     `{"data":[{"id":"m","owned_by":"organization_owner"}]}`,
		"lmstudio /api/v0/models": `{"data":[{"id":"m","state":"loaded","loaded_context_length":8192,"max_context_length":32768}]}`,
		"vllm /v1/models":         `{"data":[{"id":"m","owned_by":"vllm","max_model_len":2048}]}`,
		"ollama /v1/models":       `{"data":[{"id":"m","owned_by":"library"}]}`,
		"ollama /api/version":     `{"version":"1"}`,
		"ollama /api/show":        `{"capabilities":["completion","tools"],"model_info":{"llama.context_length":131072}}`,
		"ollama /api/ps":          `{"models":[{"name":"m:latest","context_length":16384}]}`,
	}
	for kind, want := range map[string]capable.Word{
		"llamacpp": {Declares: &yes, Parsed: &no, Results: &no, Context: 4096},
		"lmstudio": {Context: 8192, Penalty: "repeat_penalty"},
		"vllm":     {Context: 2048},
		"ollama":   {Declares: &yes, Parsed: &yes, Results: &yes, Context: 16384},
	} {
		t.Run(kind, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := routes[kind+" "+r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(body))
			}))
			defer s.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			a := newAsker(detect.Found{URL: s.URL + "/v1/"}, Settings{}, transport)
			got, err := a.ask(t.Context(), "m")
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%v %s", err, d)
			}
			if got := a.kind.Load(); got == nil || string(*got) != kind {
				t.Errorf("kind %v, want %q", got, kind)
			}
		})
	}
	a := newAsker(detect.Found{URL: "https://api.openai.com/v1", Kind: detect.OpenAI, NeedsKey: true}, Settings{}, http.DefaultTransport)
	if _, err := a.ask(t.Context(), "gpt"); err != capable.ErrSilent {
		t.Errorf("the vendor: %v, want ErrSilent and no question", err)
	}
}

// TestSlots: how many slots which server says to have, asked once for a while.
func TestSlots(t *testing.T) {
	const llama = `{"data":[{"id":"m","owned_by":"llamacpp"}]}`
	for name, c := range map[string]struct {
		models, props string
		want          int
	}{
		"llama.cpp":      {llama, `{"total_slots":4}`, 4},
		"several models": {llama, `{"role":"router","model_path":"none"}`, 0},
		"nonsense":       {llama, `{"total_slots":-1}`, 0},
		"too much":       {llama, `{"total_slots":1e99}`, 0},
		"no JSON":        {llama, `{"total_slots":4`, 0},
		"no such route":  {llama, ``, 0},
		"a redirect":     {llama, `elsewhere`, 0},
		"another server": {`{"data":[{"id":"m","owned_by":"vllm"}]}`, `{"total_slots":4}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/models":
					_, _ = w.Write([]byte(c.models))
				case r.URL.Path == "/props" && c.props == "elsewhere":
					http.Redirect(w, r, "/elsewhere", http.StatusFound)
				case r.URL.Path == "/elsewhere":
					_, _ = w.Write([]byte(`{"total_slots":4}`))
				case r.URL.Path == "/props" && c.props != "":
					asked++
					if r.Header.Get("Authorization") != "Bearer k" {
						t.Error("asked without the key")
					}
					_, _ = w.Write([]byte(c.props))
				default:
					http.NotFound(w, r)
				}
			}))
			defer s.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			a := newAsker(detect.Found{URL: s.URL + "/v1"}, Settings{Upstream: Upstream{Key: config.NewSecret("k")}}, transport)
			if n, ok := a.slots(t.Context()); n != 0 || ok || asked > 0 {
				t.Errorf("before the kind is known %d, asked %d times", n, asked)
			}
			if _, err := a.identify(t.Context()); err != nil {
				t.Fatal(err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			for _, ctx := range []context.Context{gone, t.Context(), t.Context()} {
				if n, ok := a.slots(ctx); n != c.want || ok != (c.want > 0) {
					t.Errorf("%d %t, want %d", n, ok, c.want)
				}
			}
			if asked > 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// TestSlotsAreAskedForAgain: after a while, sooner after a failure; meanwhile the
// others go by what was known and wait for nobody.
func TestSlotsAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string)
		a := newAsker(detect.Found{URL: "http://x/v1", Kind: detect.LlamaCPP}, Settings{}, props(answers))
		results := make(chan int, 1)
		ask := func() {
			go func() {
				n, _ := a.slots(t.Context())
				results <- n
			}()
			synctest.Wait()
		}
		known := func(want int) {
			t.Helper()
			if n, _ := a.slots(t.Context()); n != want {
				t.Errorf("%d, want %d", n, want)
			}
		}
		ask()
		known(0) // while the first one asks
		answers <- `{"total_slots":4}`
		if n := <-results; n != 4 {
			t.Errorf("%d, want 4", n)
		}
		known(4)
		<-time.After(Settings{}.Limits.Duration(config.UpstreamWord) + time.Second)
		ask()
		known(4)
		answers <- `?`
		if n := <-results; n != 0 {
			t.Errorf("after a failure %d, want 0", n)
		}
		known(0)
		<-time.After(Settings{}.Limits.Duration(config.UpstreamAsk) + time.Second)
		ask()
		answers <- `{"total_slots":2}`
		if n := <-results; n != 2 {
			t.Errorf("%d, want 2", n)
		}
		<-time.After(Settings{}.Limits.Duration(config.UpstreamWord) + time.Second)
		began := time.Now()
		known(0) // nobody answers
		if d := time.Since(began); d != (Settings{}).Limits.Duration(config.UpstreamAsk) {
			t.Errorf("a question without an answer took %s", d)
		}
	})
}

// props answers each request with the next text.
type props chan string

func (p props) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case text := <-p:
		w := httptest.NewRecorder()
		_, _ = w.WriteString(text)
		return w.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestReused(t *testing.T) {
	for event, want := range map[string]int64{
		`{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":7}},"timings":{"cache_n":3}}`: 7,
		`{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":0}}}`:                         0,
		`{"usage":{"prompt_tokens":9},"timings":{"cache_n":3}}`:                                             3,
		`{"usage":{"prompt_tokens":9},"timings":{"cache_n":0}}`:                                             0,
		`{"usage":{"prompt_tokens":9}}`:                                                                     -1,
		`{"usage":{"prompt_tokens_details":null},"timings":null}`:                                           -1,
		`{"usage":{"prompt_tokens_details":{"cached_tokens":null}}}`:                                        -1,
		`{"usage":{"prompt_tokens_details":{"cached_tokens":-3}}}`:                                          -1,
		`{"usage":{"prompt_tokens_details":{"cached_tokens":"7"}}}`:                                         -1,
		`{"timings":{"cache_n":1.5}}`:                                                                       -1,
		``:                                                                                                  -1,
		`[`:                                                                                                 -1,
	} {
		n, told := reused(jsontext.Value(event))
		if told != (want >= 0) || told && n != want {
			t.Errorf("%s: %d %t, want %d", event, n, told, want)
		}
	}
}

// FuzzReused: whatever an upstream sends, what is read is a count.
func FuzzReused(f *testing.F) {
	f.Add([]byte(`{"usage":{"prompt_tokens_details":{"cached_tokens":7}},"timings":{"cache_n":3}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		if n, told := reused(event); told && n < 0 {
			t.Errorf("%q: %d", event, n)
		}
	})
}

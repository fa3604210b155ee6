package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"lmstudio": {Context: 8192},
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
			if string(a.kind) != kind {
				t.Errorf("kind %q, want %q", a.kind, kind)
			}
		})
	}
	a := newAsker(detect.Found{URL: "https://api.openai.com/v1", Kind: detect.OpenAI, NeedsKey: true}, Settings{}, http.DefaultTransport)
	if _, err := a.ask(t.Context(), "gpt"); err != capable.ErrSilent {
		t.Errorf("the vendor: %v, want ErrSilent and no question", err)
	}
}

package upstream

import (
	"net/http"
	"testing"

	"github.com/metier-run/metier/internal/llm"
)

// TestOverflow: each known server's way of saying that a conversation is too
// long is recognised, and nothing else is.
func TestOverflow(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   *llm.Overflow
	}{
		{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, &llm.Overflow{Limit: 8192}},
		{"OpenAI, code only", 400, `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`, &llm.Overflow{}},
		{"llama.cpp", 400, `{"error":{"code":400,"type":"exceed_context_size_error","message":"the request exceeds the available context size, try increasing it","n_prompt_tokens":9019,"n_ctx":4096}}`, &llm.Overflow{Limit: 4096}},
		{"llama.cpp, newer", 400, `{"error":{"code":400,"message":"request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}`, &llm.Overflow{Limit: 8192}},
		{"vLLM", 400, `{"object":"error","error":{"message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion).","type":"BadRequestError"}}`, &llm.Overflow{Limit: 16384}},
		{"Ollama", 400, `{"error":"the input length exceeds the context length"}`, &llm.Overflow{}},
		{"LM Studio", 400, `{"error":"Trying to keep the first 11490 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, &llm.Overflow{Limit: 4096}},
		{"LM Studio, MLX", 400, `{"error":"Context size has been exceeded"}`, &llm.Overflow{}},
		{"TGI", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000\",\"error_type\":\"validation\"}", &llm.Overflow{Limit: 4096}},
		{"Gemini", 400, `{"error":{"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."}}`, &llm.Overflow{Limit: 1048576}},
		{"Anthropic behind a router", 400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, &llm.Overflow{Limit: 200000}},
		{"Mistral", 400, `{"error":{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}}`, &llm.Overflow{Limit: 32768}},
		{"rate limit in tokens", 429, `{"error":{"message":"Rate limit reached: maximum context length of your tier"}}`, nil},
		{"bad key", 401, `{"error":{"message":"prompt is too long a story"}}`, nil},
		{"other 400", 400, `{"error":{"message":"unknown parameter: context"}}`, nil},
		{"max_tokens too large", 400, `{"error":{"message":"max_tokens must be at most 4096"}}`, nil},
	} {
		client := &Client{}
		got := client.statusError(&http.Response{StatusCode: c.status, Header: http.Header{}}, []byte(c.body)).Overflow
		if (got == nil) != (c.want == nil) || (got != nil && *got != *c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

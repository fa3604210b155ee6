package upstream

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// overflowWords are what the known servers say, in lower case, when a
// conversation does not fit the window: OpenAI and its code, llama.cpp, vLLM and
// SGLang, Ollama, LM Studio (which may say it inside a stream), TGI and Together,
// Gemini's OpenAI endpoint, Anthropic behind a router, Mistral.
func overflowWords() []string {
	return []string{
		"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded",
		"maximum context length", "exceeds the available context size", "exceeds the context length",
		"context size has been exceeded", "context the overflows", "context length of only",
		"exceeds the context window", "longer than the model's context length",
		"`inputs` tokens + `max_new_tokens` must be", "exceeds the maximum number of tokens allowed",
		"prompt is too long", "prompt too long", "too large for model with",
	}
}

// overflowLimit finds the window in what a server says about it.
var overflowLimit = regexp.MustCompile(`(?:maximum context length (?:is|of)|context size \(|context length of only|tokens >|must be <=|tokens allowed \(|model with)\s*(\d+)`)

// OverflowOf recognises an error that says that the conversation is too long.
// body is the error as it came, message its text.
func OverflowOf(body []byte, message string) *llm.Overflow {
	text := strings.ToLower(message + " " + string(body))
	for _, words := range overflowWords() {
		if !strings.Contains(text, words) {
			continue
		}
		o := &llm.Overflow{}
		if m := overflowLimit.FindStringSubmatch(text); m != nil {
			o.Limit, _ = strconv.Atoi(m[1]) // digits only; too many of them are no limit
		}
		if n, err := strconv.Atoi(string(wire.Member(wire.Member(jsontext.Value(body), "error"), "n_ctx"))); err == nil && n > 0 {
			o.Limit = n
		}
		return o
	}
	return nil
}

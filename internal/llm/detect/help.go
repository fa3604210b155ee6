package detect

import (
	"fmt"
	"strings"
)

// Help says what to type when there is no upstream: exact commands, one of which
// works on any machine. What was found and cannot be used is named first.
func Help(found []Found) string {
	var b strings.Builder
	b.WriteString("No model to talk to: no --upstream was given, and no server on the usual loopback ports can answer.\n")
	for _, f := range found {
		if !f.Usable() {
			fmt.Fprintf(&b, "\nFound %s.\n%s", f, remedy(f))
		}
	}
	b.WriteString(`
Start a local model, then run the same command again:

  Ollama      ollama serve & ollama pull qwen3:4b
  llama.cpp   llama-server -m MODEL.gguf --host 127.0.0.1 --port 8080 --jinja
  LM Studio   lms server start
  vLLM        vllm serve MODEL --host 127.0.0.1 --port 8000

Or say where a model is:

  --upstream http://HOST:PORT/v1
  --upstream https://api.openai.com/v1      with OPENAI_API_KEY in the environment

Or see how it works without any model:

  --upstream demo
`)
	return b.String()
}

// remedy is what to do about a server that cannot be used.
func remedy(f Found) string {
	switch {
	case f.Loading:
		return "Wait until it has loaded, then run the same command again.\n"
	case f.Kind == Ollama:
		return "Give it a model:\n\n  ollama pull qwen3:4b\n"
	case f.Kind == LMStudio:
		return "Give it a model:\n\n  lms get && lms load\n"
	}
	return "Give it a model, then run the same command again.\n"
}

package matrix

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/llm"
)

// speaker writes one dialect's answers, as its servers do.
type speaker interface {
	// header begins an answer.
	header() (contentType string)
	start() string
	reasoning(text string) string
	text(text string) string
	call(index int, c llm.Call) string
	end(finish llm.Finish) string
	// failed is an error inside an answer, refusal the body of one in its place.
	failed(message string) string
	refusal(message string) string
}

// upstream plays a scenario in one dialect. Which round it is it tells by the assistant's
// messages in the request.
type upstream struct {
	speaker  speaker
	scenario scenario

	mu     sync.Mutex
	bodies []string
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"m","type":"model","display_name":"m","object":"model"}],"models":[{"name":"m","model":"m"}],"has_more":false}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if strings.HasSuffix(r.URL.Path, "/show") {
		_, _ = io.WriteString(w, `{"capabilities":["completion","tools","vision","thinking"]}`)
		return
	}
	u.mu.Lock()
	u.bodies = append(u.bodies, string(body))
	u.mu.Unlock()
	var request struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := 0
	for _, m := range request.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	u.play(w, n)
}

func (u *upstream) play(w http.ResponseWriter, n int) {
	s := u.speaker
	if f := u.scenario.failure; f != nil && f.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, s.refusal(refused))
		return
	}
	w.Header().Set("Content-Type", s.header())
	if n >= len(u.scenario.rounds) {
		_, _ = io.WriteString(w, s.start()+s.failed(fmt.Sprintf("there is no round %d", n+1)))
		return
	}
	out := func(text string) {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
	round := u.scenario.rounds[n]
	out(s.start())
	if round.reasoning != "" {
		out(s.reasoning(round.reasoning))
	}
	for i, text := range round.text {
		if u.scenario.failure != nil && i == 1 {
			out(s.failed(refused))
			return
		}
		out(s.text(text))
	}
	for i, c := range round.calls {
		out(s.call(i, c))
	}
	finish := llm.FinishStop
	if len(round.calls) > 0 {
		finish = llm.FinishCalls
	}
	out(s.end(finish))
}

// last is the last request that came.
func (u *upstream) last() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.bodies) == 0 {
		return ""
	}
	return u.bodies[len(u.bodies)-1]
}

func text(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

type object = map[string]any

// chatSpeaker speaks Chat Completions.
type chatSpeaker struct{}

func (chatSpeaker) header() string { return "text/event-stream" }

func (chatSpeaker) chunk(delta object, finish any) string {
	return "data: " + text(object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
	}) + "\n\n"
}

func (s chatSpeaker) start() string { return s.chunk(object{"role": "assistant", "content": ""}, nil) }

func (s chatSpeaker) reasoning(t string) string { return s.chunk(object{"reasoning_content": t}, nil) }

func (s chatSpeaker) text(t string) string { return s.chunk(object{"content": t}, nil) }

func (s chatSpeaker) call(index int, c llm.Call) string {
	half := len(c.Arguments) / 2
	return s.chunk(object{"tool_calls": []object{{
		"index": index, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments[:half]},
	}}}, nil) + s.chunk(object{"tool_calls": []object{{"index": index, "function": object{"arguments": c.Arguments[half:]}}}}, nil)
}

func (s chatSpeaker) end(f llm.Finish) string {
	return s.chunk(object{}, string(f)) + "data: " + text(object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []object{},
		"usage": object{"prompt_tokens": inputTokens, "completion_tokens": outputTokens, "total_tokens": inputTokens + outputTokens},
	}) + "\n\ndata: [DONE]\n\n"
}

func (s chatSpeaker) failed(m string) string { return "data: " + s.refusal(m) + "\n\n" }

func (chatSpeaker) refusal(m string) string {
	return text(object{"error": object{"message": m, "type": "invalid_request_error", "param": nil, "code": nil}})
}

// messagesSpeaker speaks Anthropic's Messages. It numbers its blocks by what was said, so
// there is one for each answer.
type messagesSpeaker struct{ blocks int }

func (*messagesSpeaker) header() string { return "text/event-stream" }

func (*messagesSpeaker) event(kind string, v object) string {
	v["type"] = kind
	return "event: " + kind + "\ndata: " + text(v) + "\n\n"
}

func (s *messagesSpeaker) block(start object, deltas ...object) string {
	index := s.blocks
	s.blocks++
	out := s.event("content_block_start", object{"index": index, "content_block": start})
	for _, d := range deltas {
		out += s.event("content_block_delta", object{"index": index, "delta": d})
	}
	return out + s.event("content_block_stop", object{"index": index})
}

func (s *messagesSpeaker) start() string {
	s.blocks = 0
	return s.event("message_start", object{"message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []object{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": inputTokens, "output_tokens": 1},
	}}) + s.event("ping", object{})
}

func (s *messagesSpeaker) reasoning(t string) string {
	return s.block(object{"type": "thinking", "thinking": "", "signature": ""},
		object{"type": "thinking_delta", "thinking": t}, object{"type": "signature_delta", "signature": "c2ln"})
}

func (s *messagesSpeaker) text(t string) string {
	return s.block(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": t})
}

func (s *messagesSpeaker) call(_ int, c llm.Call) string {
	half := len(c.Arguments) / 2
	return s.block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
		object{"type": "input_json_delta", "partial_json": c.Arguments[:half]}, object{"type": "input_json_delta", "partial_json": c.Arguments[half:]})
}

func (s *messagesSpeaker) end(f llm.Finish) string {
	reason := "end_turn"
	if f == llm.FinishCalls {
		reason = "tool_use"
	}
	return s.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": outputTokens}}) +
		s.event("message_stop", object{})
}

func (s *messagesSpeaker) failed(m string) string {
	return s.event("error", object{"error": object{"type": "api_error", "message": m}})
}

func (*messagesSpeaker) refusal(m string) string {
	return text(object{"type": "error", "error": object{"type": "invalid_request_error", "message": m}})
}

// linesSpeaker speaks Ollama's own dialect.
type linesSpeaker struct{}

func (linesSpeaker) header() string { return "application/x-ndjson" }

func (linesSpeaker) line(message object) string {
	message["role"] = "assistant"
	return text(object{"model": "m", "created_at": "2026-12-01T12:00:00Z", "message": message, "done": false}) + "\n"
}

func (linesSpeaker) start() string { return "" }

func (s linesSpeaker) reasoning(t string) string { return s.line(object{"content": "", "thinking": t}) }

func (s linesSpeaker) text(t string) string { return s.line(object{"content": t}) }

func (s linesSpeaker) call(_ int, c llm.Call) string {
	var arguments any
	if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
		panic(err)
	}
	return s.line(object{"content": "", "tool_calls": []object{{"function": object{"name": c.Name, "arguments": arguments}}}})
}

func (linesSpeaker) end(llm.Finish) string {
	return text(object{
		"model": "m", "created_at": "2026-12-01T12:00:01Z", "message": object{"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
		"total_duration": 5, "load_duration": 1, "prompt_eval_count": inputTokens, "prompt_eval_duration": 2, "eval_count": outputTokens, "eval_duration": 2,
	}) + "\n"
}

func (linesSpeaker) failed(m string) string { return text(object{"error": m}) + "\n" }

func (linesSpeaker) refusal(m string) string { return text(object{"error": m}) }

// wantInOrder checks that an upstream was told texts, one after the other.
func wantInOrder(t *testing.T, body string, texts []string) {
	t.Helper()
	at := 0
	for _, want := range texts {
		i := strings.Index(body[at:], want)
		if i < 0 {
			t.Errorf("the upstream was not told %q at its place: %s", want, excerpt(body))
			return
		}
		at += i + len(want)
	}
}

func excerpt(s string) string { return s[:min(len(s), 3000)] }

package model

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/test/tasks/task"
)

// Options set up a [Handler].
type Options struct {
	// Rounds is how many rounds the host allows a turn; 0 means the default of
	// [config.CodeRounds].
	Rounds int
}

// Report is how a conversation went.
type Report struct {
	Run Run
	// Requests is the number of generations, Baseline that of a run without faults.
	Requests, Baseline int
	// Bytes is the size of all calls as they were sent.
	Bytes int
	// Ended says that the final answer was given.
	Ended bool
	Moves []Move
}

// conversation is a session that is being played.
type conversation struct {
	mu      sync.Mutex
	session *session
	plan    Plan
	users   int
	bytes   int
	ended   bool
}

// Handler is the upstream. It is safe for concurrent use.
type Handler struct {
	book    *Book
	options Options
	mux     *http.ServeMux

	mu    sync.Mutex
	talks map[string]*conversation
}

// New serves the runs that a book can plan.
func New(book *Book, o Options) *Handler {
	if o.Rounds == 0 {
		o.Rounds = int(config.Values{}.Get(config.CodeRounds))
	}
	h := &Handler{book: book, options: o, mux: http.NewServeMux(), talks: map[string]*conversation{}}
	h.mux.HandleFunc("POST /v1/chat/completions", h.chat)
	h.mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}})
	})
	h.mux.HandleFunc("GET /v1/models/{id}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "object": "model", "created": 0, "owned_by": "tasks"})
	})
	return h
}

// ServeHTTP answers chat requests and lists of models.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Report tells how the conversation of a run went; false when there was none.
func (h *Handler) Report(run Run) (Report, bool) {
	h.mu.Lock()
	c := h.talks[run.ID()]
	h.mu.Unlock()
	if c == nil {
		return Report{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	moves := c.session.moves()
	return Report{Run: run, Requests: len(moves), Baseline: c.plan.Baseline(), Bytes: c.bytes, Ended: c.ended, Moves: moves}, true
}

// message is what the model reads of one.
type message struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// text is the message's text, of a string or of parts.
func (m message) text() string {
	var whole string
	if json.Unmarshal(m.Content, &whole) == nil {
		return whole
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts) // a content of another shape has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

type request struct {
	Model      string         `json:"model"`
	Stream     bool           `json:"stream"`
	Messages   []message      `json:"messages"`
	Tools      jsontext.Value `json:"tools"`
	ToolChoice jsontext.Value `json:"tool_choice"`
}

// forced says whether no tool may be called.
func (q request) forced() bool {
	return len(q.Tools) == 0 || string(q.Tools) == "null" || string(q.Tools) == "[]" || string(q.ToolChoice) == `"none"`
}

// tail is what came after the model's last message, and the text of that message.
func (q request) tail() (results string, said string, users int) {
	var seen []string
	for _, m := range q.Messages {
		switch m.Role {
		case "assistant":
			seen, said = nil, m.text()
		case "tool":
			seen = append(seen, m.text())
		case "user":
			users++
		}
	}
	return strings.Join(seen, "\n\n"), said, users
}

func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, config.Values{}.Get(config.RequestBody)))
	var q request
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		refuse(w, "read the request: "+err.Error())
		return
	}
	c, err := h.talk(q.Model)
	if err != nil {
		refuse(w, err.Error())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.next(q)
	if err != nil {
		refuse(w, err.Error())
		return
	}
	calls, err := encode(m.Calls, len(c.session.moves()))
	if err != nil {
		refuse(w, err.Error())
		return
	}
	for _, call := range calls {
		c.bytes += len(call.Function.Arguments)
	}
	if q.Stream {
		stream(w, q.Model, m.Text, calls)
		return
	}
	whole(w, q.Model, m.Text, calls)
}

// talk is the conversation of a model name, begun if need be.
func (h *Handler) talk(id string) (*conversation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.talks[id]; c != nil {
		return c, nil
	}
	run, err := ParseRun(id)
	if err != nil {
		return nil, err
	}
	plan, err := h.book.NewPlan(run)
	if err != nil {
		return nil, err
	}
	c := &conversation{session: newSession(plan, h.options.Rounds), plan: plan}
	h.talks[id] = c
	return c, nil
}

func (c *conversation) next(q request) (Move, error) {
	if c.ended {
		return Move{}, fmt.Errorf("the conversation %s has ended: give the next one another tag", q.Model)
	}
	results, said, users := q.tail()
	// The host's own word to a model that may call no more comes as a user's.
	if !q.forced() {
		if c.users > 0 && users > c.users {
			if err := c.session.newTurn(said); err != nil {
				return Move{}, err
			}
		}
		c.users = users
	}
	m, err := c.session.next(results, q.forced())
	c.ended = m.Kind == Answer
	return m, err
}

// call is one as it goes over the wire.
type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func encode(round task.Round, generation int) ([]call, error) {
	var calls []call
	for i, c := range round {
		arguments, err := json.Marshal(c.Args, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("encode call of %s: %w", c.Tool, err)
		}
		out := call{Index: i, ID: fmt.Sprintf("call_%d_%d", generation, i+1), Type: "function"}
		out.Function.Name, out.Function.Arguments = c.Tool, string(arguments)
		calls = append(calls, out)
	}
	return calls, nil
}

func finish(calls []call) string {
	if len(calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// stream sends the generation as chunks.
func stream(w http.ResponseWriter, model, text string, calls []call) {
	w.Header().Set("Content-Type", "text/event-stream")
	var out bytes.Buffer
	chunk := func(delta map[string]any, end any) {
		data, err := json.Marshal(map[string]any{
			"id": "chatcmpl-task", "object": "chat.completion.chunk", "created": 0, "model": model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": end}},
		}, json.Deterministic(true))
		if err != nil {
			panic("model: encode chunk: " + err.Error()) // all of it is made here
		}
		fmt.Fprintf(&out, "data: %s\n\n", data)
	}
	chunk(map[string]any{"role": "assistant", "content": text}, nil)
	for _, c := range calls {
		chunk(map[string]any{"tool_calls": []call{c}}, nil)
	}
	chunk(map[string]any{}, finish(calls))
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes()) // a client that is gone misses it
}

// whole sends the generation at once.
func whole(w http.ResponseWriter, model, text string, calls []call) {
	m := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	reply(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-task", "object": "chat.completion", "created": 0, "model": model,
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": finish(calls)}},
	})
}

func refuse(w http.ResponseWriter, why string) {
	reply(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": why, "type": "invalid_request_error"}})
}

func reply(w http.ResponseWriter, status int, body map[string]any) {
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		panic("model: encode reply: " + err.Error()) // all of it is made here
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone misses it
}

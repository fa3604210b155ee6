// Package scripted plays an upstream that speaks OpenAI Chat Completions, from
// scenario files that hold the very bytes of the wire. It is made for tests and
// benches: it can stall, cut, split a character, answer 429 and lie about a
// stream, always in the same way. It also writes such files, so that a recorded
// turn can be played again.
//
// It holds no model, never calls out, and never decides what a model would say:
// a request is matched with the steps of the scenario that its model names, and
// the first one that fits answers. It is as strict as the vendors are about the
// shape of a request, so that a host's mistake shows here.
//
// A [Handler] keeps no state between requests but its log of them and the
// counter behind the condition "nth"; any number of requests may run at once.
//
// # Scenario files
//
// A file is a txtar archive: free prose, then the sections of steps 1, 2, 3…
//
//	-- 1.when --
//	stream: true
//	results: 0
//	-- 1.answer --
//	200
//	Content-Type: text/event-stream
//	-- 1.body --
//	data: {"id":"c1","choices":[…]}
//	@stall 200ms
//
//	data: [DONE]
//
// A step answers when all lines of its "when" hold (no section: always):
//
//	has: TEXT        TEXT is in the body, or in the text of one of its messages
//	lacks: TEXT      the opposite
//	stream: BOOL     the request's "stream"
//	usage: BOOL      its stream_options.include_usage
//	tool: NAME       a tool of that name is declared
//	choice: WORD     tool_choice: unset, none, auto, required or named
//	results: K       messages of role tool, in all; "K+" is K or more
//	nth: K           this is the K-th request that the handler gets for the scenario
//
// An answer is a status and headers, one a line. "@stall 1s" before the status
// holds the headers back, "@cut" drops the connection without any.
//
// In a body these lines are directives; a line that begins with @@ stands for
// one that begins with @. Every other line is sent as it is, and an event is
// flushed at the blank line that ends it.
//
//	@stall 200ms     wait; "@stall forever" waits until the client is gone
//	@cut             drop the connection here
//	@close           end the body here, and the connection with it
//	@split K         send the next event in pieces of K bytes
//	@crlf            end the lines that follow with CR LF
//	@chomp           take back the end of the line before
//	@raw "TEXT"      send a Go string, with no line end
//	@repeat N        send what follows, up to @end, N times; {{i}} counts from 1
//
// {{results}} in a body is the number of the request's messages of role tool.
//
// Sections "client.request" and "N.request" are what a recording keeps of the
// bodies that were sent; they don't take part in matching.
//
// Start at [New], and at [Parse] for the format.
package scripted

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metier-run/metier/internal/config"
)

//go:embed scenarios/*.txtar
var embedded embed.FS

// Ext is the extension of a scenario file. What stands before it is the model
// that picks the scenario.
const Ext = ".txtar"

// Options set up a [Handler]. The zero value plays the embedded scenarios.
type Options struct {
	// FS holds scenario files at its root; nil means the embedded ones.
	FS fs.FS
	// Kind is the server whose probes are answered; empty means [OpenAI].
	Kind Kind
	// Key is a bearer token that requests need; empty means that none is asked for.
	Key string
	// Sleep waits for d or until ctx ends, whose error it returns then; nil waits
	// on the clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Forget turns [Handler.Requests] off, for a server that runs for long.
	Forget bool
	// MaxBody is the largest request body, in bytes; 0 means the default of
	// [config.RequestBody].
	MaxBody int64
}

// Request is a chat request that a [Handler] got.
type Request struct {
	Model string
	// Step is the number of the step that answered; 0 when none fitted.
	Step   int
	Header http.Header
	Body   []byte
}

// Handler plays scenarios. It is safe for concurrent use.
type Handler struct {
	options   Options
	mux       *http.ServeMux
	scenarios map[string]*Scenario
	counts    map[string]*atomic.Int64
	names     []string

	mu       sync.Mutex
	requests []Request
}

// Embedded is the file system with the scenarios of this package.
func Embedded() fs.FS {
	sub, err := fs.Sub(embedded, "scenarios")
	if err != nil {
		panic("scripted: " + err.Error()) // the folder is named in the line that embeds it
	}
	return sub
}

// New loads all scenarios. It fails on the first broken file, which it names
// with step and line, and on a file system without any.
func New(o Options) (*Handler, error) {
	o = o.withDefaults()
	if !o.Kind.known() {
		return nil, fmt.Errorf("scripted upstream: kind %q: use one of %v", o.Kind, Kinds())
	}
	h := &Handler{options: o, scenarios: map[string]*Scenario{}, counts: map[string]*atomic.Int64{}}
	files, err := fs.Glob(o.FS, "*"+Ext)
	if err != nil {
		return nil, fmt.Errorf("scripted upstream: list scenarios: %w", err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(o.FS, file)
		if err != nil {
			return nil, fmt.Errorf("scripted upstream: read scenario: %w", err)
		}
		s, err := Parse(file, data)
		if err != nil {
			return nil, err
		}
		h.scenarios[s.Name] = s
		h.counts[s.Name] = new(atomic.Int64)
		h.names = append(h.names, s.Name)
	}
	if len(h.names) == 0 {
		return nil, fmt.Errorf("scripted upstream: no *%s file: give a folder that has one", Ext)
	}
	slices.Sort(h.names)
	h.mux = h.routes()
	return h, nil
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = Embedded()
	}
	if o.Kind == "" {
		o.Kind = OpenAI
	}
	if o.Sleep == nil {
		o.Sleep = wait
	}
	if o.MaxBody == 0 {
		o.MaxBody = config.Values{}.Get(config.RequestBody)
	}
	return o
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Names lists the scenarios, sorted.
func (h *Handler) Names() []string { return slices.Clone(h.names) }

// Requests lists the chat requests so far, in the order of their arrival. The
// bodies are shared: don't change them.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Reset forgets the requests so far; counters of "nth" go on.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = nil
}

// ServeHTTP answers chat requests and probes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.options.Key != "" && r.Header.Get("Authorization") != "Bearer "+h.options.Key {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "the request needs this upstream's key as a bearer token")
		return
	}
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "unreadable_body", err.Error())
		return
	}
	f, err := readFacts(body)
	if err != nil {
		h.note(Request{Header: r.Header, Body: body})
		refuse(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	s := h.scenarios[f.model]
	if s == nil {
		h.note(Request{Model: f.model, Header: r.Header, Body: body})
		refuse(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("no scenario is called %q; there are: %s", f.model, strings.Join(h.names, ", ")))
		return
	}
	f.nth = h.counts[s.Name].Add(1)
	step, misfits := s.pick(f)
	if step == nil {
		h.note(Request{Model: f.model, Header: r.Header, Body: body})
		refuse(w, http.StatusBadRequest, "no_step", fmt.Sprintf("scenario %s: no step fits the request: %s", s.Name, strings.Join(misfits, "; ")))
		return
	}
	h.note(Request{Model: f.model, Step: step.Number, Header: r.Header, Body: body})
	p := player{w: w, flusher: http.NewResponseController(w).Flush, sleep: h.options.Sleep, results: f.results}
	p.play(r.Context(), step)
}

func (h *Handler) note(r Request) {
	if h.options.Forget {
		return
	}
	r.Header, r.Body = r.Header.Clone(), bytes.Clone(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, r)
}

// Package ollama is the door for clients of Ollama's own API: chat, generate, and what they
// ask about models.
//
// It decodes a request, hands it to the gateway, and encodes the signals that come back as
// one well-formed answer over all rounds. It holds no loop, no skills logic and no provider
// logic; it loads and removes no model.
//
// Start at [New].
package ollama

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Door].
type Options struct {
	Gateway *gateway.Gateway
	Limits  config.Values
	Now     func() time.Time
	// Web answers POST /api/chat where the body names no model: both kinds of clients ask
	// there (DESIGN section 6).
	Web http.Handler
}

// Door answers Ollama's routes.
type Door struct {
	options   Options
	keepAlive time.Duration
	bounds    codec.Bounds
}

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door {
	return &Door{options: o, keepAlive: o.Limits.Duration(config.KeepAlive), bounds: codec.NewBounds(o.Limits)}
}

// prefix is for clients that are given a base URL of their own.
const prefix = "/ollama"

// Routes are those of DESIGN section 6.
func (d *Door) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"POST /api/chat":               http.HandlerFunc(d.either),
		"POST /api/chat/ollama":        http.HandlerFunc(d.chat),
		"GET " + prefix:                http.HandlerFunc(d.hello),
		"GET " + prefix + "/{$}":       http.HandlerFunc(d.hello),
		"POST " + prefix + "/api/chat": http.HandlerFunc(d.chat),
	}
	for _, base := range []string{"", prefix} {
		routes["POST "+base+"/api/generate"] = http.HandlerFunc(d.generate)
		routes["GET "+base+"/api/tags"] = http.HandlerFunc(d.tags)
		routes["POST "+base+"/api/show"] = http.HandlerFunc(d.show)
		routes["GET "+base+"/api/ps"] = http.HandlerFunc(d.loaded)
		routes["GET "+base+"/api/version"] = http.HandlerFunc(d.version)
		for _, other := range []string{"POST /api/pull", "POST /api/push", "POST /api/create", "POST /api/copy", "DELETE /api/delete", "POST /api/embed", "POST /api/embeddings"} {
			method, path, _ := strings.Cut(other, " ")
			routes[method+" "+base+path] = http.HandlerFunc(d.elsewhere)
		}
	}
	return routes
}

// Owns claims the prefix, the shared chat route, and what only Ollama has.
func (d *Door) Owns(r *http.Request) bool {
	path, own := strings.CutPrefix(r.URL.Path, prefix)
	if own && (path == "" || path[0] == '/') {
		return true
	}
	switch r.URL.Path {
	case "/api/chat", "/api/chat/ollama", "/api/generate", "/api/tags", "/api/show", "/api/ps", "/api/version",
		"/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete", "/api/embed", "/api/embeddings":
		return true
	}
	return false
}

// hello is what clients and people that knock see.
func (d *Door) hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A client that is gone is noticed by its request's context.
	_, _ = io.WriteString(w, "Ollama's API, as Metier speaks it.\n")
}

// elsewhere answers what would change the upstream's models, or is no chat.
func (d *Door) elsewhere(w http.ResponseWriter, r *http.Request) {
	d.Refuse(w, r, fault.New(fault.NotFound, "%s is not here: ask the Ollama behind this server itself", strings.TrimPrefix(r.URL.Path, prefix)))
}

// either sends a request to the door that it is for.
func (d *Door) either(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if d.options.Web != nil && !(wire.Lenient(body) && wire.Member(body, "model") != nil) {
		d.options.Web.ServeHTTP(w, r)
		return
	}
	d.chat(w, r)
}

func (d *Door) chat(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	d.answer(w, r, body, nil, false)
}

// answer runs a request of /api/chat, in the form of /api/generate if it was one.
func (d *Door) answer(w http.ResponseWriter, r *http.Request, body []byte, warnings []string, generate bool) {
	req, in, err := d.decode(r, body)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	e := &encoder{model: req.Model, generate: generate, now: d.options.Now, began: d.options.Now()}
	if len(req.Messages) == 0 {
		server.WriteBody(w, http.StatusOK, e.idle(req))
		return
	}
	t, err := d.options.Gateway.Prepare(r.Context(), in)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	for _, warning := range append(warnings, t.Warnings()...) {
		w.Header().Add(server.WarningHeader, warning)
	}
	if req.Stream {
		d.stream(w, r, t, e)
		return
	}
	d.buffer(w, r, t, e)
}

// decode reads a request and takes the members that are for the host.
func (d *Door) decode(r *http.Request, body []byte) (*ollama.Request, gateway.Request, error) {
	req, err := ollama.DecodeRequest(body, d.bounds, d.options.Gateway.Dialect() != llm.Ollama)
	if err != nil {
		return nil, gateway.Request{}, err
	}
	in := gateway.Request{
		Request: req.Request, Header: server.Passing(ollama.PassHeader(r.Header), r.Header),
		Expand: ollama.Expand, Files: files, Nameless: true,
	}
	selected, err := server.Select(req.Take, r.Header)
	if err != nil {
		return nil, in, err
	}
	in.Skills, in.Discovery = selected.Skills, selected.Discovery
	return req, in, nil
}

// files are those that a message holds.
func files(m llm.Message) []llm.Attachment { return llm.Attachments(ollama.Expand(m)) }

func invalid(param, message string) error {
	return &fault.Error{Code: fault.Invalid, Param: param, Message: message}
}

// silence goes out when nothing was for a while. Clients read an answer line by line, and an
// empty line is none; a space before the next one is nothing to them.
const silence = " "

func (d *Door) stream(w http.ResponseWriter, r *http.Request, t *gateway.Turn, e *encoder) {
	s := server.NewStream(w, d.keepAlive, server.Form{ContentType: "application/x-ndjson", Silence: silence})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind != turn.Delta {
			return nil
		}
		b := e.piece(signal.Piece)
		if len(b) == 0 && signal.Piece.More {
			return nil
		}
		return s.Write(b, !signal.Piece.More)
	})
	switch {
	case err == nil:
		err = s.Write(e.end(out), true)
	case !s.Begun():
		_ = s.Close() // nothing was written, so nothing can fail
		d.Refuse(w, r, err)
		return
	default:
		err = s.Write(append(streamError(err), '\n'), true)
	}
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

func (d *Door) buffer(w http.ResponseWriter, r *http.Request, t *gateway.Turn, e *encoder) {
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind == turn.Delta {
			e.collect(signal.Piece)
		}
		return nil
	})
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, e.whole(out))
}

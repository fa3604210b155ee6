// Package openai is the door for clients of the OpenAI API: Chat Completions
// and the model list.
//
// It decodes a request, hands it to the gateway, and encodes the signals that
// come back as one well-formed completion over all rounds. It holds no loop, no
// skills logic and no provider logic.
//
// Start at [New].
package openai

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Door].
type Options struct {
	Gateway *gateway.Gateway
	Limits  config.Values
	Now     func() time.Time
	NewID   func() string
}

// Door answers the OpenAI routes.
type Door struct {
	options   Options
	keepAlive time.Duration
	bounds    codec.Bounds
}

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door {
	return &Door{
		options: o, keepAlive: o.Limits.Duration(config.KeepAlive),
		bounds: codec.NewBounds(o.Limits),
	}
}

// Routes are those of DESIGN section 6 that the door has so far.
func (d *Door) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /v1/chat/completions": http.HandlerFunc(d.chat),
		"GET /v1/models":            http.HandlerFunc(d.models),
		"GET /v1/models/{id...}":    http.HandlerFunc(d.model),
		// A base URL without its /v1 is the most common slip of all.
		"POST /chat/completions": http.HandlerFunc(d.chat),
		"GET /models":            http.HandlerFunc(d.models),
		"GET /models/{id...}":    http.HandlerFunc(d.model),
	}
}

// Owns claims everything below /v1.
func (d *Door) Owns(r *http.Request) bool {
	return r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")
}

func (d *Door) chat(w http.ResponseWriter, r *http.Request) {
	req, in, err := d.decode(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	t, err := d.options.Gateway.Prepare(r.Context(), in)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	for _, warning := range t.Warnings() {
		w.Header().Add(server.WarningHeader, warning)
	}
	head := openai.Head{ID: "chatcmpl-" + d.options.NewID(), Created: d.options.Now().Unix(), Model: req.Model}
	if req.Stream {
		d.stream(w, r, t, newEncoder(head, req.IncludeUsage, d.own()))
		return
	}
	d.buffer(w, r, t, head)
}

// own reports whether the upstream speaks this door's dialect.
func (d *Door) own() bool { return d.options.Gateway.Dialect() == llm.OpenAIChat }

// decode reads a request and takes the members that are for the host.
func (d *Door) decode(r *http.Request) (*openai.Request, gateway.Request, error) {
	body, err := server.ReadBody(r)
	if err != nil {
		return nil, gateway.Request{}, err
	}
	req, err := openai.DecodeRequest(body, d.bounds, !d.own())
	if err != nil {
		return nil, gateway.Request{}, err
	}
	in := gateway.Request{Request: req.Request, Header: server.Passing(openai.PassHeader(r.Header), r.Header), EndUser: endUser(req), Expand: openai.Expand, Files: openai.Attachments}
	selected, err := server.Select(req.Take, r.Header)
	if err != nil {
		return nil, in, err
	}
	in.Skills, in.Discovery = selected.Skills, selected.Discovery
	return req, in, nil
}

// endUser is whom a product's request is made for, as it says itself.
func endUser(req *openai.Request) string {
	for _, name := range []string{"safety_identifier", "user"} {
		for _, m := range req.Rest {
			if id, ok := wire.String(m.Value); ok && m.Name == name && id != "" {
				return id
			}
		}
	}
	return ""
}

func (d *Door) stream(w http.ResponseWriter, r *http.Request, t *gateway.Turn, e *encoder) {
	s := server.NewStream(w, d.keepAlive, server.Form{})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind != turn.Delta {
			return nil
		}
		b := e.piece(signal.Round, signal.Piece)
		if b == nil && (signal.Piece.More || !s.Begun()) {
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
		err = s.Write(e.fail(streamError(err, d.own())), true)
	}
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

func (d *Door) buffer(w http.ResponseWriter, r *http.Request, t *gateway.Turn, head openai.Head) {
	c := openai.Collector{Foreign: !d.own()}
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind == turn.Delta {
			c.Add(signal.Piece)
		}
		return nil
	})
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, c.Completion(head, out.Finish, out.Rounds, out.Usage))
}

func (d *Door) models(w http.ResponseWriter, r *http.Request) {
	models, err := d.list(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	out := []byte(`{"object":"list","data":[`)
	for i, m := range models {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendModel(out, m)
	}
	server.WriteBody(w, http.StatusOK, append(out, "]}"...))
}

func (d *Door) model(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	models, err := d.list(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	for _, m := range models {
		if m.ID == id {
			server.WriteBody(w, http.StatusOK, appendModel(nil, m))
			return
		}
	}
	e := fault.New(fault.NotFound, "there is no model %q here: GET /v1/models lists those there are", id)
	e.Detail, e.Param = "model_not_found", "model"
	d.Refuse(w, r, e)
}

func (d *Door) list(ctx context.Context) ([]llm.Model, error) {
	return d.options.Gateway.Models(ctx)
}

func appendModel(dst []byte, m llm.Model) []byte {
	if m.Raw.Is(llm.OpenAIChat) {
		return append(dst, m.Raw.Bytes...)
	}
	dst = append(dst, `{"id":`...)
	dst = wire.AppendString(dst, m.ID)
	return append(dst, `,"object":"model","created":0,"owned_by":"metier"}`...)
}

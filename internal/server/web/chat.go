package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/turn"
)

func (d *Door) chat(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	req, err := decode(body)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	x, err := d.options.Sessions.enter(r.Context(), ownerOf(r), req.session)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	defer d.options.Sessions.leave(x)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	done, err := d.options.Sessions.turn(x, cancel)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	defer done()
	t, warnings, err := d.prepare(ctx, r, req, x)
	if err != nil {
		done() // who reads the refusal may ask again at once
		d.Refuse(w, r, causeOf(ctx, err))
		return
	}
	for _, warning := range append(warnings, t.Warnings()...) {
		w.Header().Add(server.WarningHeader, warning)
	}
	x.speak()
	d.stream(ctx, w, r, t, x, done)
}

// prepare makes the turn of a request in its session.
func (d *Door) prepare(ctx context.Context, r *http.Request, req *request, x *session) (*gateway.Turn, []string, error) {
	g := d.options.Gateway
	name, err := d.modelOf(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	in, err := req.compose(name, r.Header, d.bounds, g.Dialect() != llm.OpenAIChat)
	if err != nil {
		return nil, nil, err
	}
	warnings := req.warnings()
	if req.newChat {
		if lost := x.empty(); len(lost) > 0 {
			warnings = append(warnings, fmt.Sprintf("newChat removed uploaded files that no message has told of, %s: upload them after it", strings.Join(lost, ", ")))
		}
	}
	if x.work != nil {
		in.Conversation, in.Notes = x.work, x.notes
	}
	in.Journal = x.journal()
	t, err := g.Prepare(ctx, in)
	return t, warnings, err
}

// modelOf is the one that the request names, or the first that its caller may use.
func (d *Door) modelOf(ctx context.Context, req *request) (string, error) {
	if req.model != "" {
		return req.model, nil
	}
	models, err := d.options.Gateway.Models(ctx)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return "", fault.New(fault.Unavailable, `the upstream lists no model that you may use: name one by "use_model"`)
	}
	return models[0].ID, nil
}

// stream runs the turn, and writes its frames as they come. It calls done when the turn
// has ended, before its client can know.
func (d *Door) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, t *gateway.Turn, x *session, done func()) {
	s, f := server.NewStream(w, d.keepAlive, server.Form{}), newFrames(x.id, d.options.Now)
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	out, err := t.Run(ctx, func(signal turn.Signal) error {
		b := f.signal(signal)
		more := signal.Kind == turn.Delta && signal.Piece.More
		if len(b) == 0 && (more || !s.Begun()) {
			return nil
		}
		return s.Write(b, !more)
	})
	done()
	if err != nil {
		err = causeOf(ctx, err)
		if fault.From(err).Detail == detailNoSession {
			d.options.Sessions.forget(x)
		}
		if !s.Begun() {
			_ = s.Close() // nothing was written, so nothing can fail
			d.Refuse(w, r, err)
			return
		}
	}
	err = s.Write(f.end(out, err), true)
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// causeOf is why a context ended, where that is the reason for an error.
func causeOf(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*fault.Error](context.Cause(ctx)); ok {
		return e
	}
	return err
}

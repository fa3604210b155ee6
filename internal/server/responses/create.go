package responses

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/turn"
)

func (d *Door) create(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	a, err := d.prepare(r.Context(), r.Header, body, nil)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	switch {
	case a.background:
		d.createLater(w, r, a)
	case a.stream:
		d.stream(w, r, a)
	default:
		d.buffer(w, r, a)
	}
}

// prepare reads a request and finds the conversation that it goes on with: one that is
// kept, or the one before it on the same socket.
func (d *Door) prepare(ctx context.Context, h http.Header, body []byte, before *spoken) (*ask, error) {
	req, err := decode(body, d.bounds)
	if err != nil {
		return nil, err
	}
	a := &ask{
		request: req, id: responsePrefix + d.options.NewID(), created: d.options.Now().Unix(), owner: ownerOf(ctx, h),
		odds: req.logprobs(),
	}
	if err := d.converse(ctx, a, before); err != nil {
		return nil, err
	}
	if a.idle {
		return a, nil
	}
	a.in, err = req.compose(a.items, h, d.bounds, d.options.Gateway.Dialect() != llm.OpenAIChat)
	return a, err
}

// turn makes the turn of a request, and tells of what is left out.
func (d *Door) turn(ctx context.Context, a *ask, warn func(string)) (*gateway.Turn, error) {
	for _, warning := range a.warnings() {
		warn(warning)
	}
	if a.idle {
		return nil, nil
	}
	t, err := d.options.Gateway.Prepare(ctx, a.in)
	if err != nil {
		return nil, err
	}
	for _, warning := range t.Warnings() {
		warn(warning)
	}
	return t, nil
}

func warner(w http.ResponseWriter) func(string) {
	return func(warning string) { w.Header().Add(server.WarningHeader, warning) }
}

func (d *Door) stream(w http.ResponseWriter, r *http.Request, a *ask) {
	t, err := d.turn(r.Context(), a, warner(w))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	s := server.NewStream(w, d.keepAlive, server.Form{})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	var f frames
	e := newAnswer(a, f.event)
	out, err := d.run(r.Context(), t, e, func(more bool) error {
		b := f.take()
		if len(b) == 0 && (more || !s.Begun()) {
			return nil
		}
		return s.Write(b, !more)
	})
	if err != nil && !s.Begun() {
		_ = s.Close() // nothing was written, so nothing can fail
		d.Refuse(w, r, err)
		return
	}
	d.finish(r.Context(), e, out, err)
	err = s.Write(f.take(), true)
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

func (d *Door) buffer(w http.ResponseWriter, r *http.Request, a *ask) {
	t, err := d.turn(r.Context(), a, warner(w))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	e := newAnswer(a, func(string, []byte) {})
	out, err := d.run(r.Context(), t, e, func(bool) error { return nil })
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, d.finish(r.Context(), e, out, nil))
}

// run drives a turn; written is called when what came of a piece is encoded. A request that
// wants nothing generated has no turn.
func (d *Door) run(ctx context.Context, t *gateway.Turn, e *answer, written func(more bool) error) (turn.Outcome, error) {
	if t == nil {
		return turn.Outcome{Finish: llm.FinishStop}, nil
	}
	return t.Run(ctx, func(signal turn.Signal) error {
		if signal.Kind != turn.Delta {
			return nil
		}
		e.piece(signal.Round, signal.Piece)
		return written(signal.Piece.More)
	})
}

// finish tells how a response ended, once it is kept, and gives it. Clients go on from it
// as soon as they know.
func (d *Door) finish(ctx context.Context, e *answer, out turn.Outcome, err error) []byte {
	a := e.ask
	var s state
	if err == nil {
		s = e.end(out, d.options.Now().Unix())
	} else {
		s = e.fail(ended(ctx, err))
	}
	body := a.object(s)
	if a.store && !d.keep(ctx, a, s.status, output(s.items), body) {
		a.store = false
		body = a.object(s)
	}
	e.last(s.status, body)
	return body
}

// ended is the status of a response whose turn broke off, and why.
func ended(ctx context.Context, err error) (string, *fault.Error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, errCancelled) {
		return cancelled, faultOf(err)
	}
	if f, ok := errors.AsType[*fault.Error](cause); ok {
		return failed, f
	}
	f := faultOf(err)
	if f.Code == fault.Cancelled {
		return cancelled, f
	}
	return failed, f
}

// keep stores a response and reports whether it could. What was answered stands without it.
func (d *Door) keep(ctx context.Context, a *ask, status string, out, body []byte) bool {
	kept := store.Response{
		ID: a.id, Previous: a.previous, Session: a.session, Status: status, CreatedAt: unixTime(a.created),
		Request: a.body, Input: array(a.input), Output: out, Body: body,
	}
	if a.apart {
		kept.Previous, kept.Input = "", array(a.items)
	}
	// The client may be gone: what it asked for is kept all the same.
	err := d.store.PutResponse(context.WithoutCancel(ctx), a.owner, kept)
	if err != nil {
		d.options.Logger.WarnContext(ctx, "response not kept", "response", a.id, "error", err)
	}
	return err == nil
}

// array is a JSON array of values.
func array(values []jsontext.Value) jsontext.Value {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// frames writes events as a stream has them.
type frames struct{ out []byte }

func (f *frames) event(kind string, event []byte) { f.out = appendFrame(f.out, kind, event) }

func appendFrame(dst []byte, kind string, event []byte) []byte {
	dst = append(append(dst, "event: "...), kind...)
	return append(appendLine(append(dst, "\ndata: "...), event), "\n\n"...)
}

// take is what was written since the last time, valid until the next event.
func (f *frames) take() []byte {
	out := f.out
	f.out = f.out[:0]
	return out
}

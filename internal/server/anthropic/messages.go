package anthropic

import (
	"net/http"
	"strconv"

	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/telemetry"
	"github.com/metier-run/metier/internal/turn"
)

func (d *Door) messages(w http.ResponseWriter, r *http.Request) {
	d.name(w, r)
	req, err := d.decode(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	t, err := d.options.Gateway.Prepare(r.Context(), req.in)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	warn(w, req.warnings, t.Warnings())
	h := head{ID: "msg_" + d.options.NewID(), Model: req.Model, Thinking: shows(req.Request), Stop: req.Options.Stop}
	if req.Stream {
		d.stream(w, r, t, h)
		return
	}
	d.buffer(w, r, t, h)
}

func warn(w http.ResponseWriter, lists ...[]string) {
	for _, warnings := range lists {
		for _, warning := range warnings {
			w.Header().Add(server.WarningHeader, warning)
		}
	}
}

// silence is the vendor's own event for it: Claude Code gives up on a stream in which
// nothing came for a while, and comments do not count.
const silence = "event: ping\ndata: " + ping + "\n\n"

func (d *Door) stream(w http.ResponseWriter, r *http.Request, t *gateway.Turn, h head) {
	s := server.NewStream(w, d.keepAlive, server.Form{Silence: silence})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	var f frames
	e := newEncoder(h, f.event)
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind != turn.Delta {
			return nil
		}
		e.piece(signal.Round, signal.Piece)
		b := f.take()
		if len(b) == 0 && signal.Piece.More {
			return nil
		}
		return s.Write(b, !signal.Piece.More)
	})
	switch {
	case err == nil:
		e.end(out)
	case !s.Begun():
		_ = s.Close() // nothing was written, so nothing can fail
		d.Refuse(w, r, err)
		return
	default:
		f.event("error", streamError(err, telemetry.RequestID(r.Context())))
	}
	err = s.Write(f.take(), true)
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

func (d *Door) buffer(w http.ResponseWriter, r *http.Request, t *gateway.Turn, h head) {
	var c collector
	e := newEncoder(h, c.event)
	out, err := t.Run(r.Context(), func(signal turn.Signal) error {
		if signal.Kind == turn.Delta {
			e.piece(signal.Round, signal.Piece)
		}
		return nil
	})
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	e.end(out)
	server.WriteBody(w, http.StatusOK, c.whole(out))
}

// estimated says that nobody counted.
const estimated = "the upstream does not count tokens: the number is an estimate from the size of the request"

func (d *Door) count(w http.ResponseWriter, r *http.Request) {
	d.name(w, r)
	req, err := d.decode(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	c, err := d.options.Gateway.Count(r.Context(), req.in)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	warn(w, req.warnings, c.Warnings)
	if c.Estimated {
		warn(w, []string{estimated})
	}
	out := strconv.AppendInt([]byte(`{"input_tokens":`), c.Tokens, 10)
	server.WriteBody(w, http.StatusOK, append(out, '}'))
}

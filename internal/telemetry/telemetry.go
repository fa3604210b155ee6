// Package telemetry carries what a log line needs from end to end: the logger
// and the id of the request.
//
// It starts nothing and sends nothing anywhere.
//
// Start at [NewLogger].
package telemetry

import (
	"context"
	"io"
	"log/slog"

	"github.com/lmittmann/tint"
)

type requestKey struct{}

// WithRequestID is ctx with the id of the request that it serves.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestID is the id that ctx carries, or the empty string.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// Options set up a logger.
type Options struct {
	Level slog.Level
	// JSON writes one JSON object a line, for machines to read.
	JSON bool
	// Color marks levels with colours, for a terminal.
	Color bool
}

// NewLogger makes a logger that adds the request's id to each line that is
// logged with its context.
func NewLogger(w io.Writer, o Options) *slog.Logger {
	if o.JSON {
		return slog.New(handler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level})})
	}
	return slog.New(handler{tint.NewTextHandler(w, &tint.Options{Level: o.Level, NoColor: !o.Color, TimeFormat: "15:04:05.000"})})
}

// handler adds the request's id.
type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/skill"
)

// watcher gathers what the one wide log line of a turn tells.
type watcher struct {
	now   func() time.Time
	began time.Time
	first time.Duration // until the first piece that the client saw
	calls int
	reads []string
	// What continuity keeps: the text that the client saw, and the skills that
	// each round read.
	text   strings.Builder
	skills map[int][]string
	files  map[int]bool // rounds that worked in a workspace
}

// see notes a signal. A host's call is logged as it ends, for who wants to
// follow a turn (--log-level debug).
func (w *watcher) see(ctx context.Context, t *Turn, s turn.Signal) {
	if t.tools != nil {
		w.hears(s)
	}
	switch s.Kind {
	case turn.Delta:
		if w.first == 0 {
			w.first = max(w.now().Sub(w.began), 1)
		}
	case turn.CallEnded:
		w.calls++
		if s.Result.Skill != "" {
			w.reads = append(w.reads, s.Result.Skill+"/"+s.Result.Detail)
		}
		if logger := t.gateway.o.Logger; logger != nil {
			logger.LogAttrs(ctx, slog.LevelDebug, "call",
				slog.String("turn", t.id), slog.Int("round", s.Round), slog.String("tool", s.Call.Name),
				slog.String("skill", s.Result.Skill), slog.String("detail", s.Result.Detail),
				slog.Bool("ok", s.Result.OK), slog.Int("bytes", len(s.Result.Text)))
		}
	}
}

func (w *watcher) log(ctx context.Context, logger *slog.Logger, t *Turn, err error) {
	if logger == nil {
		return
	}
	out := &t.outcome
	attrs := []slog.Attr{
		slog.String("turn", t.id), slog.String("key", access.FromContext(ctx).ID), slog.String("model", t.request.Model), slog.String("outcome", string(out.Reason)),
		slog.String("finish", string(out.Finish)), slog.Int("rounds", out.Rounds), slog.Int("host_calls", w.calls),
		slog.Int("caller_calls", len(out.Waits)), slog.String("selected", strings.Join(names(t.plan.selected), ",")),
		slog.Int("advertised", len(t.plan.advertised)), slog.String("reads", strings.Join(w.reads, ",")),
		slog.Int("restored", t.memory.rounds), slog.Int("restored_dropped", t.memory.dropped), slog.Int("elided", out.Elided), slog.Bool("out_of_rounds", out.OutOfRounds),
		slog.Int64("tokens_in", out.Usage.Input), slog.Int64("tokens_out", out.Usage.Output), slog.Int64("tokens_cached", out.Usage.Cached),
		slog.Duration("first", w.first), slog.Duration("took", w.now().Sub(w.began)),
	}
	for _, warning := range t.warnings {
		attrs = append(attrs, slog.String("warning", warning))
	}
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		if e, ok := errors.AsType[*llm.StatusError](err); ok {
			attrs = append(attrs, slog.Int("upstream_status", e.Status))
		}
		if out.Reason == turn.Failed {
			level = slog.LevelWarn
		}
	}
	logger.LogAttrs(context.WithoutCancel(ctx), level, "turn", attrs...)
}

func names(skills []skill.Skill) []string {
	n := make([]string, len(skills))
	for i, s := range skills {
		n[i] = s.Name
	}
	return n
}

package egress

import (
	"context"
	"log/slog"
	"sync"
)

// tally is what one launch did. A launch decides how often it is refused, so only the
// first refusals have a line of their own in the log, and the rest is in the sums.
type tally struct {
	log *slog.Logger

	mu      sync.Mutex
	lines   int // that may still be written
	refused map[Code]int
	tunnels int
	up      int64
	down    int64
}

func newTally(log *slog.Logger, lines int) *tally {
	return &tally{log: log, lines: lines, refused: map[Code]int{}}
}

// refuse counts a refusal. The target is what the request asked for, if that is known.
func (t *tally) refuse(ctx context.Context, r *refusal, to string) {
	t.mu.Lock()
	t.refused[r.code]++
	speak := t.lines > 0
	t.lines--
	last := t.lines == 0
	t.mu.Unlock()
	if !speak {
		return
	}
	attrs := []any{"code", r.code, "reason", r.text}
	if to != "" {
		attrs = append(attrs, "target", to)
	}
	if r.cause != nil {
		attrs = append(attrs, "cause", r.cause.Error())
	}
	t.log.WarnContext(ctx, "egress: refused", attrs...)
	if last {
		t.log.WarnContext(ctx, "egress: further refusals of this launch are only counted")
	}
}

// tunnel counts a tunnel that has ended.
func (t *tally) tunnel(ctx context.Context, to target, up, down int64, why error) {
	t.mu.Lock()
	t.tunnels++
	t.up += up
	t.down += down
	t.mu.Unlock()
	attrs := []any{"host", to.host, "port", to.port, "up", up, "down", down}
	if why != nil {
		attrs = append(attrs, "end", why.Error())
	}
	t.log.DebugContext(ctx, "egress: tunnel closed", attrs...)
}

// end writes the sums, if anything happened.
func (t *tally) end(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tunnels == 0 && len(t.refused) == 0 {
		return
	}
	t.log.InfoContext(ctx, "egress: launch ended", "tunnels", t.tunnels, "up", t.up, "down", t.down, "refused", t.refused)
}

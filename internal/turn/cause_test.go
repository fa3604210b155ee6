package turn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

// endingTool ends the turn while it answers.
type endingTool struct {
	readTool
	end func()
}

func (e *endingTool) Invoke(ctx context.Context, _ llm.Call, _ tool.Env) (journal.Result, error) {
	e.end()
	return journal.Result{}, ctx.Err()
}

// TestCause: who ended a turn under a tool gets to be told, a server that stops
// for one.
func TestCause(t *testing.T) {
	stopping := errors.New("the server is stopping")
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	r := newRig(scenario{rounds: []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls))}})
	r.append(t, r.drafts()...)
	state := fold(t, r.log)
	d := &turn.Driver{
		Log: r.log, At: r.log.Take(), Provider: r.script, Host: &ids{n: 1000},
		Tools: &endingTool{end: func() { end(stopping) }},
	}
	if _, err := d.Run(ctx, &state, func(turn.Signal) error { return nil }); !errors.Is(err, stopping) {
		t.Error(err)
	}
}

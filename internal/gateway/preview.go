package gateway

import (
	"context"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// Preview is what the first generation of the turn asks the upstream, without
// asking it.
func (t *Turn) Preview(ctx context.Context) (*llm.Request, error) {
	log, _, state, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	d := &turn.Driver{Log: log, Provider: t.gateway.o.Provider, Tools: t.tools, Host: t.gateway.o.Host}
	return d.Preview(state), nil
}

// Messages is the conversation as the turn left it, hidden rounds included. A
// front end in this process sends them with its next request, so that a skill
// that was read stays read.
func (t *Turn) Messages() []llm.Message { return t.path.Messages() }

// open makes the turn's journal and folds what it begins with.
func (t *Turn) open(ctx context.Context) (*journal.Memory, journal.Position, turn.State, error) {
	var state turn.State
	log := journal.NewMemory(t.gateway.o.Now)
	at, err := log.Append(ctx, log.Take(), t.drafts()...)
	if err != nil {
		return nil, at, state, err
	}
	for e, err := range log.Read(ctx, 0) {
		if err != nil {
			return nil, at, state, err
		}
		state = state.Apply(e)
	}
	return log, at, state, nil
}

package gateway

import (
	"context"
	"net/http"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// Preview is what the first generation of the turn asks the upstream, without
// asking it.
func (t *Turn) Preview(ctx context.Context) (*llm.Request, error) {
	d, state, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return d.Preview(*state), nil
}

// Messages is the conversation as the turn left it, hidden rounds included. A
// front end in this process sends them with its next request, so that a skill
// that was read stays read.
func (t *Turn) Messages() []llm.Message { return t.state.Path().Messages() }

// open makes a journal in memory, folds what the turn begins with, and makes the driver
// that goes on from there.
func (t *Turn) open(ctx context.Context) (*turn.Driver, *turn.State, error) {
	o := t.gateway.o
	log := journal.NewMemory(o.Now)
	at, err := log.Append(ctx, log.Take(), t.drafts()...)
	if err != nil {
		return nil, nil, err
	}
	var state turn.State
	if err := fold(ctx, log, 0, &state); err != nil {
		return nil, nil, err
	}
	return t.driver(log, at), &state, nil
}

func (t *Turn) driver(log journal.Log, at journal.Position) *turn.Driver {
	o := t.gateway.o
	return &turn.Driver{
		Log: log, At: at, Provider: o.Provider, Tools: t.tools, Host: o.Host,
		Header: t.header(), Logger: o.Logger, Progress: t.request.Progress,
	}
}

// header is what goes upstream with each generation. A turn with tools of the host
// asks more than once, with other bodies, so one key for all would be wrong.
func (t *Turn) header() http.Header {
	if t.tools == nil {
		return t.request.Header
	}
	h := t.request.Header.Clone()
	h.Del("Idempotency-Key")
	return h
}

package admission

import (
	"context"
	"iter"

	"github.com/metier-run/metier/internal/llm"
)

// provider is an upstream behind a gate.
type provider struct {
	llm.Provider
	gate   *Gate
	caller func(context.Context) string
}

// Wrap is p behind a gate: a generation enters before anything is asked of the
// upstream, and leaves when its stream has ended, however it ends. caller names who
// asks; all that have the same name wait in one line.
func Wrap(p llm.Provider, g *Gate, caller func(context.Context) string) llm.Provider {
	return provider{Provider: p, gate: g, caller: caller}
}

// Unwrap is the provider behind the gate.
func (p provider) Unwrap() llm.Provider { return p.Provider }

// Stream waits at the gate and then asks for one generation.
func (p provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		leave, err := p.gate.Enter(ctx, p.caller(ctx))
		if err != nil {
			yield(llm.Piece{}, err)
			return
		}
		defer leave()
		p.Provider.Stream(ctx, r)(yield)
	}
}

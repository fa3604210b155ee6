package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// tokenCounter is an upstream that counts what it would read.
type tokenCounter interface {
	CountTokens(ctx context.Context, r *llm.Request) (int64, error)
}

// Count is how much the first generation of a turn would read.
type Count struct {
	Tokens int64
	// Estimated: nobody counted, so that Tokens is a guess from the number of bytes.
	Estimated bool
	// Warnings are those of the turn; see [Turn.Warnings].
	Warnings []string
}

// Count tells how many tokens a request takes, all that the host adds to it included, as
// its turn would send it. It asks for no generation. Its errors are those of
// [Gateway.Prepare] and the upstream's; one that cannot count is no error.
func (g *Gateway) Count(ctx context.Context, r Request) (Count, error) {
	t, err := g.Prepare(ctx, r)
	if err != nil {
		return Count{}, err
	}
	defer t.leave(ctx)
	asked, err := t.Preview(ctx)
	if err != nil {
		return Count{}, fmt.Errorf("count tokens: %w", err)
	}
	asked.Header = t.header()
	c := Count{Warnings: t.warnings}
	if counter, ok := llm.As[tokenCounter](g.o.Provider); ok {
		c.Tokens, err = counter.CountTokens(ctx, asked)
		if !cannotCount(err) {
			return c, err
		}
	}
	c.Tokens, c.Estimated = turn.Estimate(asked, t.request.expand), true
	return c, nil
}

// cannotCount reports whether an upstream says that it has no such question.
func cannotCount(err error) bool {
	e, ok := errors.AsType[*llm.StatusError](err)
	return ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented)
}

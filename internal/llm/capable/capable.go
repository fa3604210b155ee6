// Package capable tells what a model can carry: the operator's file first, then
// the upstream's own word, then what the provider supposes.
//
// It asks an upstream only questions that cost nothing, once for each model and
// with a bound on the time; when there is no answer, nothing is changed. It never
// judges a model by its name.
//
// Start at [Wrap].
package capable

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/llm"
)

// Word is what is said of a model. What is nil or 0 is not said.
type Word struct {
	Declares, Parsed, Results *bool
	// Context is the number of tokens of the window.
	Context int
	// Penalty is that of [llm.Capabilities].
	Penalty string
	// Passing: the model is not loaded, so that more may be known soon.
	Passing bool
}

// over is the word on top of what was known before.
func (w Word) over(c llm.Capabilities) llm.Capabilities {
	for _, f := range []struct {
		to   *bool
		said *bool
	}{{&c.Declares, w.Declares}, {&c.Parsed, w.Parsed}, {&c.Results, w.Results}} {
		if f.said != nil {
			*f.to = *f.said
		}
	}
	if w.Context > 0 {
		c.Context = w.Context
	}
	if w.Penalty != "" {
		c.Penalty = w.Penalty
	}
	return c
}

// Probe asks an upstream about a model. [ErrSilent] says that the upstream has
// no word about any.
type Probe func(ctx context.Context, model string) (Word, error)

// ErrSilent is the answer of an upstream of a kind that tells nothing.
var ErrSilent = errors.New("the upstream does not say what its models can carry")

// Options set up [Wrap].
type Options struct {
	// Models is the operator's word, by the name that requests use.
	Models map[string]Word
	// Probe asks the upstream; nil asks nobody.
	Probe Probe
	// Wait bounds one question. Keep is how long an answer is believed; after a
	// failure, or while a model is not loaded, it is asked again after Wait.
	Wait, Keep time.Duration
	// Most is the number of models that answers are kept for.
	Most   int
	Logger *slog.Logger
}

// Wrap is p with [llm.Provider.Capabilities] answered as the package comment says.
func Wrap(p llm.Provider, o Options) llm.Provider {
	return &provider{Provider: p, o: o, heard: map[string]*answer{}}
}

type provider struct {
	llm.Provider
	o  Options
	mu sync.Mutex
	// heard has an answer for each model that was asked about.
	heard map[string]*answer
}

// answer is one question to the upstream and what came of it.
type answer struct {
	done  chan struct{} // closed when the rest is set
	word  Word
	until time.Time
}

// over reports whether an answer is there and not believed any more.
func (a *answer) over(now time.Time) bool {
	select {
	case <-a.done:
		return now.After(a.until)
	default:
		return false
	}
}

// Unwrap is the provider whose capabilities are told.
func (p *provider) Unwrap() llm.Provider { return p.Provider }

// Capabilities tells what the named model can carry.
func (p *provider) Capabilities(ctx context.Context, model string) (llm.Capabilities, error) {
	c, err := p.Provider.Capabilities(ctx, model)
	if err != nil {
		return c, err
	}
	word, err := p.ask(ctx, model)
	if err != nil {
		return c, err
	}
	return p.o.Models[model].over(word.over(c)), nil
}

// complete reports whether nothing is left to ask about.
func (w Word) complete() bool {
	return w.Declares != nil && w.Parsed != nil && w.Results != nil && w.Context > 0
}

// ask gives the upstream's word. Those who ask about the same model at the same
// time wait for one question. It fails only when ctx ends.
func (p *provider) ask(ctx context.Context, model string) (Word, error) {
	if p.o.Probe == nil || p.o.Models[model].complete() {
		return Word{}, nil
	}
	p.mu.Lock()
	a := p.heard[model]
	first := a == nil || a.over(time.Now())
	if first {
		a = &answer{done: make(chan struct{})}
		p.keep(model, a)
	}
	p.mu.Unlock()
	if first {
		p.question(ctx, model, a)
	}
	select {
	case <-a.done:
		return a.word, nil
	case <-ctx.Done():
		return Word{}, context.Cause(ctx)
	}
}

// keep adds an answer. Names of models come from clients, so their number is
// bounded: the oldest answer goes first.
func (p *provider) keep(model string, a *answer) {
	if _, known := p.heard[model]; !known && len(p.heard) >= p.o.Most {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(p.heard)), func(a, b string) int {
			return p.heard[a].age().Compare(p.heard[b].age())
		})
		delete(p.heard, oldest)
	}
	p.heard[model] = a
}

// age is when an answer ends; one that is not there yet is the youngest.
func (a *answer) age() time.Time {
	select {
	case <-a.done:
		return a.until
	default:
		return time.Unix(1<<40, 0)
	}
}

// question asks the upstream. It goes on when the client who asked first is gone,
// since others may wait for the same answer.
func (p *provider) question(ctx context.Context, model string, a *answer) {
	defer close(a.done)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Wait)
	defer cancel()
	word, err := p.o.Probe(bounded, model)
	keep := p.o.Keep
	switch {
	case errors.Is(err, ErrSilent):
	case err != nil:
		keep = p.o.Wait
		p.o.Logger.DebugContext(ctx, "the upstream did not say what a model can carry", "model", model, "error", err)
	case word.Passing:
		keep = p.o.Wait
		fallthrough
	default:
		a.word = word
		p.o.Logger.DebugContext(ctx, "the upstream's word about a model", "model", model, "word", word)
	}
	a.until = time.Now().Add(keep)
}

// LogValue shows what is said.
func (w Word) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, f := range []struct {
		name string
		said *bool
	}{{"declares", w.Declares}, {"parsed", w.Parsed}, {"results", w.Results}} {
		if f.said != nil {
			attrs = append(attrs, slog.Bool(f.name, *f.said))
		}
	}
	return slog.GroupValue(append(attrs, slog.Int("context", w.Context))...)
}

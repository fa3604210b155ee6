// Package llmtest is the conformance suite of [llm.Provider]: what every
// provider must make of an upstream's answers, good ones and bad ones. It is
// used by tests only.
//
// It knows no wire format and starts no server: a provider's own test plays the
// scenario that [Run] names, in the provider's dialect, and hands the provider
// over. For OpenAI Chat Completions the scenarios of that name are files of
// llm/scripted. A provider that cannot be made to give a scenario's answer,
// such as one without an upstream, skips it.
//
// Start at [Run]; [Cases] is the table of what each scenario must yield.
package llmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm"
)

// Open makes a provider whose upstream plays the named scenario, and names the
// model to ask for. What it starts it ends with t.Cleanup, idle connections
// too: the suite looks for what is left.
type Open func(t *testing.T, scenario string) (p llm.Provider, model string)

// patience is how long one exchange may take. It only ends what would hang.
const patience = 20 * time.Second

// Run runs the suite. Its subtests are not parallel.
func Run(t *testing.T, open Open) {
	for _, c := range Cases() {
		single(t, c.Scenario, open, c.Scenario, func(ctx context.Context, p llm.Provider, model string) error {
			return c.Verify(ctx, p, model)
		})
	}
	single(t, "again after an early stop", open, Hello, stopThenAsk)
	single(t, "many at once", open, Hello, manyAtOnce)
	single(t, "describes its models", open, Hello, describes)
	single(t, "a retry after a slow load", open, SlowLoad, loadThenAnswer)
	single(t, "early stop releases", open, Hang, stopEarly)
	single(t, "cancel in the stream", open, Hang, cancelInStream)
	single(t, "deadline before the headers", open, HangHeaders, deadline)
}

func single(t *testing.T, name string, open Open, scenario string, check func(context.Context, llm.Provider, string) error) {
	t.Run(name, func(t *testing.T) {
		// Registered first, so it looks after whatever open cleans up.
		before := goleak.IgnoreCurrent()
		t.Cleanup(func() { goleak.VerifyNone(t, before) })
		p, model := open(t, scenario)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := check(ctx, p, model); err != nil {
			t.Error(err)
		}
	})
}

// Ask is the request that the suite sends: one user message and two tools.
func Ask(model string) *llm.Request {
	return &llm.Request{
		Model:    model,
		Messages: []llm.Message{llm.TextMessage(llm.User, "What do the skills say?")},
		Tools: []llm.Declaration{
			declare("skills_read", `{"type":"object","properties":{"skill":{"type":"string"},"path":{"type":"string"}},"required":["skill","path"]}`),
			declare("get_weather", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
	}
}

func declare(name, schema string) llm.Declaration {
	return llm.Declaration{Name: name, Description: "A tool of the suite.", Parameters: []byte(schema)}
}

// Heard is what a stream said.
type Heard struct {
	Text, Reasoning string
	// Choices holds the text of alternatives other than 0.
	Choices map[int]string
	Calls   []llm.Call
	Finish  llm.Finish
	Usage   *llm.Usage
	Pieces  int
	// Reply is that of the last piece.
	Reply *llm.Reply
	// order holds the indices of Calls as the pieces gave them.
	order []int
}

// Listen reads a whole stream and checks what holds of all of them: the last
// piece and no other has the reply, the reply is what the pieces said, a call
// begins with its id and name, ids differ and are not empty. The error of the
// stream itself comes back as it is.
func Listen(ctx context.Context, p llm.Provider, r *llm.Request) (Heard, error) {
	h := Heard{Choices: map[int]string{}}
	for piece, err := range p.Stream(ctx, r) {
		if err != nil {
			return h, err
		}
		if h.Reply != nil {
			return h, errors.New("a piece follows the one that has the reply")
		}
		if err := h.add(piece); err != nil {
			return h, err
		}
	}
	if h.Reply == nil {
		return h, errors.New("the stream ended with neither a reply nor an error")
	}
	return h, h.compare()
}

func (h *Heard) add(p llm.Piece) error {
	h.Pieces++
	if p.Choice != 0 {
		h.Choices[p.Choice] += p.Text
		return nil
	}
	h.Text += p.Text
	h.Reasoning += p.Reasoning
	if p.Finish != "" {
		h.Finish = p.Finish
	}
	if p.Usage != nil {
		u := *p.Usage
		h.Usage = &u
	}
	h.Reply = p.Reply
	for _, d := range p.Calls {
		i := slices.Index(h.order, d.Index)
		if i < 0 {
			if d.ID == "" || d.Name == "" {
				return fmt.Errorf("the first fragment of call %d has id %q and name %q: both must be there", d.Index, d.ID, d.Name)
			}
			h.order = append(h.order, d.Index)
			h.Calls = append(h.Calls, llm.Call{ID: d.ID, Name: d.Name, Arguments: d.Arguments})
			continue
		}
		h.Calls[i].Arguments += d.Arguments
	}
	return nil
}

// compare holds the reply against the pieces.
func (h *Heard) compare() error {
	m := h.Reply.Message
	var reasoning string
	for _, p := range m.Parts {
		if p.Kind == llm.Reasoning {
			reasoning += p.Text
		}
	}
	switch {
	case m.Role != llm.Assistant:
		return fmt.Errorf("the reply's role is %q, want assistant", m.Role)
	case m.Text() != h.Text:
		return fmt.Errorf("the reply's text is %q, the pieces said %q", m.Text(), h.Text)
	case reasoning != "" && reasoning != h.Reasoning:
		return fmt.Errorf("the reply's reasoning is %q, the pieces said %q", reasoning, h.Reasoning)
	case !slices.Equal(m.Calls, h.Calls):
		return fmt.Errorf("the reply's calls are %+v, the pieces said %+v", m.Calls, h.Calls)
	case h.Reply.Finish == "" || h.Reply.Finish != h.Finish:
		return fmt.Errorf("the reply's finish is %q, the pieces said %q", h.Reply.Finish, h.Finish)
	case h.Usage != nil && *h.Usage != h.Reply.Usage:
		return fmt.Errorf("the reply's usage is %+v, the pieces said %+v", h.Reply.Usage, *h.Usage)
	case h.Reply.Model == "":
		return errors.New("the reply does not name the model")
	}
	seen := map[string]bool{}
	for _, c := range m.Calls {
		if c.ID == "" || seen[c.ID] {
			return fmt.Errorf("the call id %q is empty or taken", c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// first reads the stream up to its first text and stops there.
func first(ctx context.Context, p llm.Provider, r *llm.Request) error {
	for piece, err := range p.Stream(ctx, r) {
		if err != nil {
			return fmt.Errorf("before the first text: %w", err)
		}
		if piece.Text != "" {
			return nil
		}
	}
	return errors.New("the stream has no text")
}

func stopThenAsk(ctx context.Context, p llm.Provider, model string) error {
	if err := first(ctx, p, Ask(model)); err != nil {
		return err
	}
	_, err := Listen(ctx, p, Ask(model))
	return err
}

// streams is how many run at the same time in manyAtOnce.
const streams = 16

func manyAtOnce(ctx context.Context, p llm.Provider, model string) error {
	errs := make([]error, streams)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = Listen(ctx, p, Ask(model)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func describes(ctx context.Context, p llm.Provider, model string) error {
	if _, err := p.Capabilities(ctx, model); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	list, err := p.Models(ctx)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if !slices.ContainsFunc(list, func(m llm.Model) bool { return m.ID == model }) {
		return fmt.Errorf("models: %q is not among them: %v", model, list)
	}
	return nil
}

func loadThenAnswer(ctx context.Context, p llm.Provider, model string) error {
	_, err := Listen(ctx, p, Ask(model))
	if status, ok := errors.AsType[*llm.StatusError](err); !ok || status.Status != 503 {
		return fmt.Errorf("while the model loads: got %v, want a StatusError with 503", err)
	}
	h, err := Listen(ctx, p, Ask(model))
	if err == nil && h.Text != "Loaded and ready." {
		return fmt.Errorf("after it has loaded: got %q", h.Text)
	}
	return err
}

func stopEarly(ctx context.Context, p llm.Provider, model string) error {
	return released(func() error { return first(ctx, p, Ask(model)) })
}

func cancelInStream(ctx context.Context, p llm.Provider, model string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return released(func() error {
		begun := false
		for piece, err := range p.Stream(ctx, Ask(model)) {
			if err != nil {
				return wants(err, context.Canceled)
			}
			if piece.Text != "" && !begun {
				begun = true
				cancel()
			}
		}
		return errors.New("the stream ended without an error, want context.Canceled")
	})
}

// shortly is long enough to be waiting for headers when it has passed.
const shortly = 50 * time.Millisecond

func deadline(ctx context.Context, p llm.Provider, model string) error {
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	return released(func() error {
		_, err := Listen(ctx, p, Ask(model))
		return wants(err, context.DeadlineExceeded)
	})
}

func wants(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return fmt.Errorf("got %v, want an error that is %v", err, target)
}

// released runs a stream that never ends by itself, and checks that nothing of
// it is left while the upstream still runs.
func released(f func() error) error {
	before := goleak.IgnoreCurrent()
	if err := f(); err != nil {
		return err
	}
	if err := goleak.Find(before); err != nil {
		return fmt.Errorf("the stream was not released: %w", err)
	}
	return nil
}

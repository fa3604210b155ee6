package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
)

// Host is what a driver needs of the process it runs in.
type Host interface {
	// NewID makes an id that no other call of any process returns.
	NewID() string
}

// Driver carries out what a state plans and records what happened. One driver
// runs one turn; its methods are not safe for concurrent use.
type Driver struct {
	Log      journal.Log
	At       journal.Position // where the state that Run gets was read up to
	Provider llm.Provider
	// Tools may be nil: then the host offers nothing and answers no call.
	Tools tool.Set
	Host  Host
	// Progress: watchers are also told of calls that are being written and of what
	// they say.
	Progress bool
	// Header goes to the provider with each generation and is never stored.
	Header http.Header
	// Logger takes faults of the host that a model is told of in other words.
	Logger *slog.Logger
}

// Run drives the turn until it ends or parks, and moves s on to the state it
// left.
// The error is the cause of a failed or cancelled turn; it is nil when the turn
// was answered or is parked. When ctx ends, or emit returns an error, the turn
// is cancelled: a turn that must outlive its watcher is run with a context of
// its own and an emit that never fails.
//
// emit is called from the goroutine of Run only.
func (d *Driver) Run(ctx context.Context, s *State, emit func(Signal) error) (Outcome, error) {
	// A turn waits for its upstream most of its life, a thousand at once: what
	// comes before and after the wait has frames of its own, so that a waiting
	// stack is small.
	r := &run{Driver: d, state: s, at: d.At, emit: emit}
	return r.end(ctx, r.loop(ctx))
}

// end records how the turn ended if the machine has not.
func (r *run) end(ctx context.Context, err error) (Outcome, error) {
	if err != nil && r.state.ended == nil && !lost(err) {
		reason := journal.Failed
		if ctx.Err() != nil || errors.As(err, new(*emitError)) {
			reason = journal.Cancelled
		}
		end := r.state.draft(journal.TurnEnded{Reason: reason, Error: err.Error()})
		// The turn's own context may be over; its end is recorded all the same.
		if recErr := r.record(context.WithoutCancel(ctx), end); recErr != nil {
			err = errors.Join(err, recErr)
		}
	}
	if err != nil && r.state.ended == nil {
		return *r.state.outcome(Failed), err
	}
	return *r.state.Next().End, err
}

// Preview is what a generation in the given state would ask the provider. It
// records and asks nothing.
func (d *Driver) Preview(s State) *llm.Request {
	r := &run{Driver: d, state: &s}
	for _, draft := range r.stamp(s.Next().Record) {
		*r.state = r.state.Apply(journal.Event{TurnID: draft.TurnID, Anchor: draft.Anchor, Data: draft.Data})
	}
	return r.state.Request()
}

// lost reports that the log belongs to somebody else, who will end the turn.
func lost(err error) bool {
	return errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrConflict)
}

// emitError is a watcher's refusal to hear more.
type emitError struct{ err error }

func (e *emitError) Error() string { return "turn: the client is gone: " + e.err.Error() }
func (e *emitError) Unwrap() error { return e.err }

// run is one call of Driver.Run.
type run struct {
	*Driver
	state *State
	at    journal.Position
	emit  func(Signal) error
}

func (r *run) loop(ctx context.Context) error {
	if err := r.resume(ctx); err != nil {
		return err
	}
	for {
		todo, ended, err := r.advance(ctx)
		if err != nil || ended {
			return err
		}
		if err := r.do(ctx, todo); err != nil {
			return err
		}
	}
}

// resume takes a turn over whose last driver is gone.
func (r *run) resume(ctx context.Context) error {
	if !r.state.InFlight() {
		return nil
	}
	return r.record(ctx, r.state.draft(journal.TurnResumed{}))
}

// advance records what the state's plan announces, and returns what is to be
// done then.
func (r *run) advance(ctx context.Context) (todo []Effect, ended bool, err error) {
	plan := r.state.Next()
	if len(plan.Record) > 0 {
		if err := r.record(ctx, r.stamp(plan.Record)...); err != nil {
			return nil, false, err
		}
	}
	return plan.Do, plan.End != nil, nil
}

func (r *run) signal(s Signal) error {
	if err := r.emit(s); err != nil {
		return &emitError{err}
	}
	return nil
}

// record appends drafts and folds what the log stored of them. What others appended
// behind them is not folded: it is not this driver's to go on from, and the next append
// fails.
func (r *run) record(ctx context.Context, drafts ...journal.Draft) error {
	before := r.at.Seq
	at, err := r.Log.Append(ctx, r.at, drafts...)
	if err != nil {
		return fmt.Errorf("turn: record %s: %w", drafts[0].Data.Kind(), err)
	}
	r.at = at
	for e, err := range r.Log.Read(context.WithoutCancel(ctx), before) {
		if err != nil {
			return fmt.Errorf("turn: read back what was recorded: %w", err)
		}
		if e.Seq > at.Seq {
			break
		}
		*r.state = r.state.Apply(e)
	}
	return nil
}

// stamp fills what a pure plan cannot know: ids, the offer, and replays.
func (r *run) stamp(drafts []journal.Draft) []journal.Draft {
	for i, draft := range drafts {
		switch d := draft.Data.(type) {
		case journal.MessagesAdded:
			for j := range d.Entries {
				if d.Entries[j].ID == "" {
					d.Entries[j].ID = journal.NodeID(r.Host.NewID())
				}
			}
		case journal.GenerateRequested:
			if d.ID == "" {
				d.ID = r.Host.NewID()
				d.Offer = r.newOffer()
			}
			drafts[i].Data = d
		case journal.InvokeRequested:
			if d.Replay == "" {
				d.Replay = journal.Never
				if r.Tools != nil {
					d.Replay = r.Tools.Replay(d.Call.Name)
				}
			}
			drafts[i].Data = d
		}
	}
	return drafts
}

// newOffer is what the toolset offers on the path, or nil when that is what
// the last generation recorded.
func (r *run) newOffer() *journal.Offer {
	if r.Tools == nil {
		return nil
	}
	offer := r.Tools.Offer(r.state.Path())
	callers := crew{callers: r.state.Callers()}
	// A caller's tool of our name wins it: ours is not declared beside it.
	offer.Declared = slices.DeleteFunc(slices.Clone(offer.Declared), func(d llm.Declaration) bool {
		return callers.handler(d.Name) == journal.Caller
	})
	same := slices.EqualFunc(offer.Declared, r.state.offer.Declared, func(a, b llm.Declaration) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Parameters) == string(b.Parameters)
	})
	if same {
		return nil
	}
	return &offer
}

func (r *run) do(ctx context.Context, effects []Effect) error {
	var calls []Invoke
	for _, e := range effects {
		switch e := e.(type) {
		case Generate:
			if err := r.generate(ctx, e); err != nil {
				return err
			}
		case Invoke:
			calls = append(calls, e)
		}
	}
	return r.invoke(ctx, calls)
}

// generate asks for one reply and lets the client see what it may.
func (r *run) generate(ctx context.Context, g Generate) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.signal(Signal{Kind: RoundStarted, Round: g.Round}); err != nil {
		return err
	}
	reply, err := r.stream(ctx, r.request(), r.newFilter(g), g)
	switch {
	case err == nil:
		return r.generated(ctx, g, reply)
	case ctx.Err() == nil && !errors.As(err, new(*emitError)):
		return r.failed(ctx, err)
	}
	return err
}

func (r *run) request() *llm.Request {
	req := r.state.Request()
	req.Header = r.Header
	return req
}

func (r *run) newFilter(g Generate) *filter {
	return newFilter(r.crew(), r.state.usage, g.Round > 1)
}

// crew is who may answer calls of the generation that is in flight.
func (r *run) crew() crew {
	c := crew{callers: r.state.Callers(), alone: r.Tools == nil}
	for _, d := range r.state.offer.Declared {
		c.hosts = append(c.hosts, d.Name)
	}
	return c
}

// generated records a reply.
func (r *run) generated(ctx context.Context, g Generate, reply *llm.Reply) error {
	ended := journal.GenerateEnded{
		ID: r.state.generation.ID, Node: journal.NodeID(r.Host.NewID()),
		Reply: *reply, Handlers: r.handlers(reply.Message.Calls),
	}
	if err := r.record(ctx, r.state.draft(ended)); err != nil {
		return err
	}
	if r.state.notice != "" {
		piece := llm.Piece{Text: noticeText(reply.Message, r.state.notice)}
		if err := r.signal(Signal{Kind: Delta, Round: g.Round, Piece: &piece}); err != nil {
			return err
		}
	}
	return r.signal(Signal{Kind: RoundEnded, Round: g.Round, Reply: reply})
}

// failed records that a generation gave nothing. It returns nil when the state
// knows something better than to fail.
func (r *run) failed(ctx context.Context, err error) error {
	d := journal.GenerateFailed{ID: r.state.generation.ID, Error: err.Error()}
	if o := overflow(err); o != nil {
		d.Overflow, d.Limit = true, o.Limit
	}
	if recErr := r.record(ctx, r.state.draft(d)); recErr != nil {
		return errors.Join(err, recErr)
	}
	if r.state.failure == "" {
		return nil
	}
	return err // Run records the end, with the same text
}

func overflow(err error) *llm.Overflow {
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		return e.Overflow
	}
	if e, ok := errors.AsType[*llm.StreamError](err); ok {
		return e.Overflow
	}
	return nil
}

func (r *run) stream(ctx context.Context, req *llm.Request, f *filter, g Generate) (*llm.Reply, error) {
	var piece llm.Piece // one for all: what a signal points to is valid until emit returns
	for p, err := range r.Provider.Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		piece = p
		if out, ok := f.pass(&piece); ok {
			if err := r.signal(Signal{Kind: Delta, Round: g.Round, Piece: out}); err != nil {
				return nil, err
			}
		}
		if err := r.written(f, g.Round); err != nil {
			return nil, err
		}
		if p.Reply != nil {
			return p.Reply, checkCalls(p.Reply.Message.Calls)
		}
	}
	return nil, &llm.StreamError{Message: "the stream ended without a reply"}
}

// checkCalls refuses a reply whose calls cannot be told apart: an answer would have no
// place.
func checkCalls(calls []llm.Call) error {
	for i, c := range calls {
		if c.ID == "" || slices.ContainsFunc(calls[:i], func(other llm.Call) bool { return other.ID == c.ID }) {
			return &llm.StreamError{Message: fmt.Sprintf("the calls of the reply are not told apart: the id %.80q is empty or there twice", c.ID)}
		}
	}
	return nil
}

// written tells of what came of the host's calls.
func (r *run) written(f *filter, round int) error {
	if !r.Progress {
		return nil
	}
	for _, d := range f.hosted {
		s := Signal{Kind: CallWriting, Round: round, Call: llm.Call{Name: d.Name}, Text: d.Arguments}
		if err := r.signal(s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) handlers(calls []llm.Call) []journal.Handler {
	if len(calls) == 0 {
		return nil
	}
	crew := r.crew()
	handlers := make([]journal.Handler, len(calls))
	for i, c := range calls {
		handlers[i] = crew.handler(c.Name)
	}
	return handlers
}

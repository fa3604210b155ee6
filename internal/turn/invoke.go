package turn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
)

// invoke has the calls answered side by side and records each answer as it
// comes. It returns when all of them have ended, whatever happens to ctx.
func (r *run) invoke(ctx context.Context, calls []Invoke) error {
	if len(calls) == 0 {
		return nil
	}
	for _, c := range calls {
		if err := r.signal(Signal{Kind: CallStarted, Round: r.state.round, Call: c.Call}); err != nil {
			return err
		}
	}
	type answer struct {
		call   llm.Call
		result journal.Result
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer, len(calls))
	env, said := r.env(len(calls)), newSayings()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var before <-chan struct{} // ends with the ordered call before
	for _, c := range calls {
		env := env
		if r.Progress {
			env.Progress = func(p []byte) { said.add(c.Call, p) }
		}
		wait, done := r.place(c.Call.Name, &before)
		group.Go(func() {
			defer done()
			wait()
			answers <- answer{c.Call, r.call(ctx, c, env)}
		})
	}
	for left := len(calls); left > 0; {
		var a answer
		select {
		case a = <-answers:
		case <-said.more:
			if err := said.tell(r); err != nil {
				return err
			}
			continue
		}
		left--
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := said.tell(r); err != nil {
			return err
		}
		ended := r.state.draft(journal.InvokeEnded{CallID: a.call.ID, Result: a.result})
		if err := r.record(ctx, ended); err != nil {
			return err
		}
		s := Signal{Kind: CallEnded, Round: r.state.round, Call: a.call, Result: a.result}
		if err := r.signal(s); err != nil {
			return err
		}
	}
	return nil
}

// place gives a call its place among the ordered ones: what it waits for, and what is
// done when it has ended.
func (r *run) place(name string, before *<-chan struct{}) (wait, done func()) {
	if r.Tools == nil || !r.Tools.Ordered(name) {
		return func() {}, func() {}
	}
	earlier, own := *before, make(chan struct{})
	*before = own
	return func() {
		if earlier != nil {
			<-earlier
		}
	}, func() { close(own) }
}

func (r *run) env(calls int) tool.Env {
	return tool.Env{
		TurnID: r.state.turnID, Round: r.state.round, Offer: r.state.offer,
		Path: r.state.Path(), Caller: r.state.Callers(), Room: r.state.room(calls),
	}
}

// call answers one call. A fault of the host, a panic included, becomes an
// answer too: the other calls and the turn go on.
func (r *run) call(ctx context.Context, c Invoke, env tool.Env) (result journal.Result) {
	env.Attempt = c.Attempt
	defer func() {
		if p := recover(); p != nil {
			result = r.fault(ctx, c.Call, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if r.Tools == nil {
		return tool.Unknown(c.Call.Name, env)
	}
	result, err := r.Tools.Invoke(ctx, c.Call, env)
	if err != nil {
		return r.fault(ctx, c.Call, err)
	}
	return fit(result, env.Room)
}

func (r *run) fault(ctx context.Context, c llm.Call, err error) journal.Result {
	if r.Logger != nil && ctx.Err() == nil {
		r.Logger.ErrorContext(ctx, "tool failed", "tool", c.Name, "call", c.ID, "error", err)
	}
	return journal.Result{Text: hostFault(c.Name)}
}

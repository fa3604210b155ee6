// Package admission bounds how many rounds an upstream works on at once, makes
// callers wait their turn fairly, and keeps the rounds of a turn on one slot of an
// upstream that has slots.
//
// A round comes in, waits or is turned away, and leaves. The package never cuts a
// round that is in, never turns away a later round of a turn that was let in
// before, and never makes a round wait for a slot: of a request it reads three
// members, and it adds one.
//
// Start at [NewGate] and [Wrap]; for slots at [Pin].
package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/fault"
)

// Gate lets a number of rounds in; the others wait. Callers take turns, and each
// caller's own rounds go in the order in which they came. It is safe for
// concurrent use.
//
// When the queue is full, a round of a caller who has fewer waiting than another
// takes the place of the newest one of whoever has most waiting, so that no caller
// can fill the queue against the others.
type Gate struct {
	rounds, queue int

	mu      sync.Mutex
	inside  int
	waiting int
	lines   []*line // those that wait, the next one first; none is empty
	pace    time.Duration
}

// line is one caller's waiting rounds, the oldest first.
type line struct {
	caller  string
	waiters []*waiter
}

// waiter is a round that waits.
type waiter struct {
	// told is sent one value: nil when the round is in, else why it is not.
	told chan error
	// kept is never turned away: its turn was let in before.
	kept bool
}

// NewGate makes a gate for one upstream: rounds in flight at once, and rounds
// that may wait in all.
func NewGate(rounds, queue int) *Gate { return &Gate{rounds: rounds, queue: queue} }

// Enter waits for a place and returns what gives it back, to be called once the
// round has ended; further calls do nothing. The error is [fault.Busy] with
// RetryAfter when too many wait, or the cause of ctx's end.
func (g *Gate) Enter(ctx context.Context, caller string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := turnOf(ctx)
	w, err := g.join(caller, t != nil && t.in.Load())
	if err != nil {
		return nil, err
	}
	if w != nil {
		if err := g.wait(ctx, w); err != nil {
			return nil, err
		}
	}
	if t != nil {
		t.in.Store(true)
	}
	return g.leaver(), nil
}

// join takes a place, or a place in the queue.
func (g *Gate) join(caller string, kept bool) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside < g.rounds {
		g.inside++
		return nil, nil
	}
	if g.waiting >= g.queue && !kept {
		if err := g.makeRoom(caller); err != nil {
			return nil, err
		}
	}
	w := &waiter{told: make(chan error, 1), kept: kept}
	g.waiting++
	for _, l := range g.lines {
		if l.caller == caller {
			l.waiters = append(l.waiters, w)
			return w, nil
		}
	}
	g.lines = append(g.lines, &line{caller: caller, waiters: []*waiter{w}})
	return w, nil
}

// makeRoom turns away the newest round of the longest line, if that is longer
// than the caller's will be.
func (g *Gate) makeRoom(caller string) error {
	var longest *line
	most, own := 0, 0
	for _, l := range g.lines {
		n := l.open()
		if l.caller == caller {
			own = n
		}
		if n > most {
			longest, most = l, n
		}
	}
	if most <= own+1 {
		return g.busy()
	}
	for i, w := range slices.Backward(longest.waiters) {
		if !w.kept {
			w.told <- g.busy()
			longest.waiters = slices.Delete(longest.waiters, i, i+1)
			g.waiting--
			return nil
		}
	}
	return g.busy()
}

// open counts the rounds that may be turned away.
func (l *line) open() int {
	n := 0
	for _, w := range l.waiters {
		if !w.kept {
			n++
		}
	}
	return n
}

// wait returns nil when the round is in.
func (g *Gate) wait(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.told:
		return err
	case <-ctx.Done():
	}
	g.mu.Lock()
	g.drop(w)
	g.mu.Unlock()
	select {
	case err := <-w.told: // it was told at the same moment
		if err == nil {
			g.release(0)
		}
	default:
	}
	return context.Cause(ctx)
}

// drop takes a round out of the queue, if it is still there.
func (g *Gate) drop(w *waiter) {
	for i, l := range g.lines {
		at := slices.Index(l.waiters, w)
		if at < 0 {
			continue
		}
		g.waiting--
		if l.waiters = slices.Delete(l.waiters, at, at+1); len(l.waiters) == 0 {
			g.lines = slices.Delete(g.lines, i, i+1)
		}
		return
	}
}

// leaver gives a place back once.
func (g *Gate) leaver() func() {
	began := time.Now()
	return sync.OnceFunc(func() { g.release(time.Since(began)) })
}

// release gives the place to the first round of the caller whose turn it is; the
// caller goes to the end of those that wait.
func (g *Gate) release(held time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.learn(held)
	if len(g.lines) == 0 {
		g.inside--
		return
	}
	l := g.lines[0]
	g.lines = slices.Delete(g.lines, 0, 1)
	w := l.waiters[0]
	if l.waiters = slices.Delete(l.waiters, 0, 1); len(l.waiters) > 0 {
		g.lines = append(g.lines, l)
	}
	g.waiting--
	w.told <- nil
}

// learn keeps a moving average of how long a round takes.
func (g *Gate) learn(held time.Duration) {
	const weight = 8
	switch {
	case held == 0:
	case g.pace == 0:
		g.pace = held
	default:
		g.pace += (held - g.pace) / weight
	}
}

// busy turns a round away.
func (g *Gate) busy() error {
	after := g.retryAfter()
	e := fault.New(fault.Busy, "the model is busy and %d requests wait for it already (limit upstream-queue): try again in %.0f seconds", g.waiting, after.Seconds())
	e.Detail, e.RetryAfter = "upstream_busy", after
	return e
}

// retryAfter supposes that the queue moves on as it did so far, in whole seconds.
func (g *Gate) retryAfter() time.Duration {
	const most = time.Minute // clients take a longer wait for a mistake
	whole := (g.pace*time.Duration(g.waiting+1)/time.Duration(g.rounds) + time.Second - 1).Truncate(time.Second)
	return min(max(whole, time.Second), most)
}

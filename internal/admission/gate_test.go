package admission_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard runs rounds against a gate and tells what became of each. It lives in a
// bubble, where synctest.Wait says that all have come to rest.
type yard struct {
	gate *admission.Gate
	mu   sync.Mutex
	seen []string // "in a1", "busy a2", "gone a3", in the order of what happened
	away map[string]func()
	end  map[string]context.CancelFunc
	last error
}

func newYard(rounds, queue int) *yard {
	return &yard{gate: admission.NewGate(rounds, queue), away: map[string]func(){}, end: map[string]context.CancelFunc{}}
}

// enter sends a round of the caller that its first letter names.
func (y *yard) enter(ctx context.Context, name string) {
	ctx, cancel := context.WithCancel(ctx)
	y.end[name] = cancel
	go func() {
		leave, err := y.gate.Enter(ctx, name[:1])
		y.mu.Lock()
		defer y.mu.Unlock()
		switch {
		case err == nil:
			y.seen, y.away[name] = append(y.seen, "in "+name), leave
		case errors.Is(err, context.Canceled):
			y.seen = append(y.seen, "gone "+name)
		default:
			y.seen, y.last = append(y.seen, "busy "+name), err
		}
	}()
	synctest.Wait()
}

func (y *yard) leave(name string) {
	y.mu.Lock()
	leave := y.away[name]
	y.mu.Unlock()
	leave()
	leave() // once is enough
	synctest.Wait()
}

func (y *yard) cancel(name string) {
	y.end[name]()
	synctest.Wait()
}

// close ends everything that is left.
func (y *yard) close() {
	for _, cancel := range y.end {
		cancel()
	}
	synctest.Wait()
}

// TestScenes: each step and what it leads to, in order.
func TestScenes(t *testing.T) {
	for name, c := range map[string]struct {
		rounds, queue int
		steps, want   string
	}{
		"free places":                    {2, 2, "+a1 +b1", "in a1, in b1"},
		"first come within one caller":   {1, 9, "+a1 +a2 +a3 -a1 -a2", "in a1, in a2, in a3"},
		"callers take turns":             {1, 9, "+a1 +a2 +a3 +a4 +b1 +b2 +c1 -a1 -a2 -b1 -c1 -a3 -b2", "in a1, in a2, in b1, in c1, in a3, in b2, in a4"},
		"the queue is full":              {1, 1, "+a1 +b1 +c1", "in a1, busy c1"},
		"no queue":                       {1, 0, "+a1 +b1", "in a1, busy b1"},
		"a full queue of one makes room": {1, 3, "+a1 +a2 +a3 +a4 +b1 -a1 -a2", "in a1, busy a4, in a2, in b1"},
		"and no more than half":          {1, 3, "+a1 +a2 +a3 +a4 +b1 +b2", "in a1, busy a4, busy b2"},
		"who fills it is turned away":    {1, 2, "+a1 +a2 +a3 +a4", "in a1, busy a4"},
		"who leaves the queue is gone":   {1, 2, "+a1 +a2 +b1 xa2 +c1 -a1 -b1", "in a1, gone a2, in b1, in c1"},
		"who is in stays in":             {1, 1, "+a1 xa1 +b1 -a1", "in a1, in b1"},
		"a place goes on after a cancel": {1, 2, "+a1 +a2 +a3 xa2 xa3 -a1 +b1", "in a1, gone a2, gone a3, in b1"},
		"two places, one caller":         {2, 9, "+a1 +a2 +a3 +a4 +b1 -a1 -a2", "in a1, in a2, in a3, in b1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(c.rounds, c.queue)
				for _, step := range strings.Fields(c.steps) {
					switch step[0] {
					case '+':
						y.enter(t.Context(), step[1:])
					case '-':
						y.leave(step[1:])
					case 'x':
						y.cancel(step[1:])
					}
				}
				if got := strings.Join(y.seen, ", "); got != c.want {
					t.Errorf("%s: %s, want %s", c.steps, got, c.want)
				}
				y.close()
			})
		})
	}
}

// TestBusy: who is turned away is told how long to wait, by how long rounds took.
func TestBusy(t *testing.T) {
	for hold, want := range map[time.Duration]time.Duration{
		0: time.Second, 300 * time.Millisecond: time.Second, 9 * time.Second: 18 * time.Second, time.Hour: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(1, 1)
			y.enter(t.Context(), "a0")
			<-time.After(hold)
			y.leave("a0")
			y.enter(t.Context(), "a1")
			y.enter(t.Context(), "b1")
			y.enter(t.Context(), "c1")
			e := fault.From(y.last)
			if e.Code != fault.Busy || e.Detail != "upstream_busy" || e.RetryAfter != want || !strings.Contains(e.Message, "limit upstream-queue") {
				t.Errorf("after a round of %s: %+v, want Busy with %s", hold, e, want)
			}
			y.close()
		})
	}
}

// turned is a context for a turn that has no end in the test.
func turned(ctx context.Context) context.Context {
	ctx, _ = admission.WithTurn(ctx, nil)
	return ctx
}

// TestTurnIsNotTurnedAway: a turn that was let in waits for its later rounds,
// however full the queue is, and nobody's pushing turns it out.
func TestTurnIsNotTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1, 1)
		one, two := turned(t.Context()), turned(t.Context())
		for i, turn := range []context.Context{one, two} {
			name := fmt.Sprintf("a%d", i)
			y.enter(turn, name)
			y.leave(name)
		}
		y.enter(t.Context(), "z1")
		y.enter(t.Context(), "z2") // the queue is full
		y.enter(one, "a3")
		y.enter(two, "a4")
		y.enter(turned(t.Context()), "c1") // a new turn is turned away
		y.leave("z1")
		y.leave("z2")
		y.leave("a3")
		want := "in a0, in a1, in z1, busy c1, in z2, in a3, in a4"
		if got := strings.Join(y.seen, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		y.close()
	})
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client went away")
	cancel(why)
	if _, err := admission.NewGate(1, 1).Enter(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("Enter: %v, want the cause", err)
	}
}

// naive is a gate as one would explain it: everybody who waits in the order in
// which they came, and the order of the callers' turns.
type naive struct {
	rounds, queue int
	in            int
	waits         []string // names
	turns         []string // callers that wait
	seen          []string
}

func (n *naive) of(caller string) (names []string) {
	for _, w := range n.waits {
		if w[:1] == caller {
			names = append(names, w)
		}
	}
	return names
}

func (n *naive) enter(name string) {
	caller := name[:1]
	switch {
	case n.in < n.rounds:
		n.in++
		n.seen = append(n.seen, "in "+name)
		return
	case len(n.waits) >= n.queue:
		longest := ""
		for _, c := range n.turns {
			if len(n.of(c)) > len(n.of(longest)) {
				longest = c
			}
		}
		if longest == "" || len(n.of(longest)) <= len(n.of(caller))+1 {
			n.seen = append(n.seen, "busy "+name)
			return
		}
		line := n.of(longest)
		n.quit("busy ", line[len(line)-1])
	}
	n.waits = append(n.waits, name)
	if !slices.Contains(n.turns, caller) {
		n.turns = append(n.turns, caller)
	}
}

func (n *naive) quit(word, name string) {
	n.waits = slices.DeleteFunc(n.waits, func(w string) bool { return w == name })
	if len(n.of(name[:1])) == 0 {
		n.turns = slices.DeleteFunc(n.turns, func(c string) bool { return c == name[:1] })
	}
	n.seen = append(n.seen, word+name)
}

func (n *naive) leave() {
	if len(n.turns) == 0 {
		n.in--
		return
	}
	caller := n.turns[0]
	name := n.of(caller)[0]
	n.turns = n.turns[1:]
	n.quit("in ", name)
	if len(n.of(caller)) > 0 && !slices.Contains(n.turns, caller) {
		n.turns = append(n.turns, caller)
	}
}

// TestModel runs random steps through the gate and through the naive one.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without its other methods: no deadline can be asked for in a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			rounds, queue := rapid.IntRange(1, 3).Draw(rt, "rounds"), rapid.IntRange(0, 6).Draw(rt, "queue")
			y, n := newYard(rounds, queue), &naive{rounds: rounds, queue: queue}
			defer y.close()
			var inside []string
			for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
				before := len(n.seen)
				switch rapid.IntRange(0, 4).Draw(rt, "step") {
				case 0, 1, 2:
					name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "caller") + fmt.Sprint(i)
					n.enter(name)
					y.enter(t.Context(), name)
				case 3:
					if len(inside) == 0 {
						continue
					}
					at := rapid.IntRange(0, len(inside)-1).Draw(rt, "who leaves")
					name := inside[at]
					inside = slices.Delete(inside, at, at+1)
					n.leave()
					y.leave(name)
				case 4:
					if len(n.waits) == 0 {
						continue
					}
					name := rapid.SampledFrom(n.waits).Draw(rt, "who gives up")
					n.quit("gone ", name)
					y.cancel(name)
				}
				for _, s := range n.seen[before:] {
					if name, in := strings.CutPrefix(s, "in "); in {
						inside = append(inside, name)
					}
				}
				if d := cmp.Diff(n.seen, y.seen); d != "" {
					rt.Fatalf("step %d: %s", i, d)
				}
				if len(inside) > rounds || len(n.waits) > queue {
					rt.Fatalf("step %d: %d in, %d wait", i, len(inside), len(n.waits))
				}
			}
		})
	})
}

// TestNobodyStarves: while one caller keeps the queue full, another gets every
// second place.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1, 8)
		next := map[string]int{}
		send := func(caller string) {
			next[caller]++
			y.enter(t.Context(), fmt.Sprintf("%s%d", caller, next[caller]))
		}
		for range 20 {
			send("a")
		}
		got := map[string]int{}
		for range 40 {
			send("b")
			for range 4 {
				send("a")
			}
			for name := range y.away {
				got[name[:1]]++
				y.leave(name)
				delete(y.away, name)
				break
			}
		}
		if got["b"] < 18 {
			t.Errorf("of 40 places b got %d: %v", got["b"], got)
		}
		y.close()
	})
}

// TestRace sends many rounds from all sides; all of them end, and never more
// than the bound are in.
func TestRace(t *testing.T) {
	const rounds, callers, each = 4, 8, 200
	g := admission.NewGate(rounds, 16)
	var mu sync.Mutex
	most, refused, cancelled, served := 0, 0, 0, 0
	var inside atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		for i := range 4 {
			wg.Go(func() {
				for k := range each / 4 {
					ctx, cancel := context.WithCancel(t.Context())
					if (k+i)%3 == 0 {
						go cancel()
					}
					leave, err := g.Enter(ctx, fmt.Sprint(c))
					mu.Lock()
					switch {
					case err == nil:
						served++
						most = max(most, int(inside.Add(1)))
					case errors.Is(err, context.Canceled):
						cancelled++
					default:
						refused++
					}
					mu.Unlock()
					if err == nil {
						runtime.Gosched() // stay a little
						inside.Add(-1)
						leave()
					}
					cancel()
				}
			})
		}
	}
	wg.Wait()
	if served+cancelled+refused != callers*each || served == 0 || most > rounds {
		t.Errorf("served %d, cancelled %d, refused %d, at most %d at once", served, cancelled, refused, most)
	}
	// Every place came back.
	for range rounds {
		if _, err := g.Enter(t.Context(), "z"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(ctx, "z"); err == nil {
		t.Error("there are more places than before")
	}
}

// TestTogether: a round that gives up in the moment in which it is let in passes
// its place on.
func TestTogether(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(1, 2)
			y.enter(t.Context(), "a1")
			y.enter(t.Context(), "a2")
			y.enter(t.Context(), "b1")
			y.end["a2"]()
			y.leave("a1")
			if got := strings.Join(y.seen, ", "); !slices.Contains(y.seen, "in b1") {
				t.Fatalf("b1 never got the place: %s", got)
			}
			y.close()
		})
	}
}

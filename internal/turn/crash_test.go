package turn_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

// errDead is what a process sees of the world once it is dead: nothing.
var errDead = errors.New("this process is dead")

// mortal is a process that dies at one of the steps it takes: before and after each
// append is stored, before a generation and at each of its pieces, before and after a
// tool does what it does. What it does after that never happens.
type mortal struct {
	journal.Log
	llm.Provider
	tool.Set

	mu    sync.Mutex
	die   int // the step at which it dies; 0 is never
	steps int
	last  string // the step it died at, in words
}

// step reports whether the process still lives.
func (m *mortal) step(what string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.die > 0 && m.steps >= m.die {
		return errDead
	}
	m.steps++
	if m.steps == m.die {
		m.last = what
		return errDead
	}
	return nil
}

func (m *mortal) Append(ctx context.Context, at journal.Position, drafts ...journal.Draft) (journal.Position, error) {
	kind := string(drafts[0].Data.Kind())
	if err := m.step("before storing " + kind); err != nil {
		return at, err
	}
	next, err := m.Log.Append(ctx, at, drafts...)
	if dead := m.step("after storing " + kind); dead != nil {
		return at, dead
	}
	return next, err
}

func (m *mortal) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		if err := m.step("before a generation"); err != nil {
			yield(llm.Piece{}, err)
			return
		}
		for p, err := range m.Provider.Stream(ctx, r) {
			if dead := m.step("inside a generation"); dead != nil {
				yield(llm.Piece{}, dead)
				return
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

func (m *mortal) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	if err := m.step("before a tool runs"); err != nil {
		return journal.Result{}, err
	}
	result, err := m.Set.Invoke(ctx, c, e)
	if dead := m.step("after a tool ran"); dead != nil {
		return journal.Result{}, dead
	}
	return result, err
}

// process runs a turn until it ends or the process dies, and returns it.
func (r *rig) process(t *testing.T, die int) (*mortal, turn.State, turn.Outcome, error) {
	t.Helper()
	m := &mortal{Log: r.log, Provider: r.script, Set: r.tools, die: die}
	for {
		d := &turn.Driver{Log: m, At: r.log.Take(), Provider: m, Tools: m, Host: &ids{n: int(1000 * r.log.Take().Fence)}}
		d.At = r.log.Take()
		state := fold(t, r.log)
		out, err := d.Run(t.Context(), &state, func(turn.Signal) error { return nil })
		if out.Reason != turn.Parked || len(r.late) == 0 {
			return m, state, out, err
		}
		for _, w := range out.Waits {
			r.append(t, journal.Draft{TurnID: "t1", Anchor: state.Path().Tip(), Data: journal.InvokeEnded{
				CallID: w.Call.ID, Result: journal.Result{Text: r.late[w.Call.ID], OK: true},
			}})
		}
	}
}

// crash runs a turn whose processes die at the given steps, one after the other, and then
// one that lives.
func crash(t *testing.T, s scenario, replay journal.Replay, dies ...int) (*rig, turn.State, turn.Outcome, []string) {
	t.Helper()
	r := newRig(s)
	r.tools.replay = replay
	r.append(t, r.drafts()...)
	var died []string
	for _, die := range dies {
		m, _, _, _ := r.process(t, die)
		died = append(died, m.last)
	}
	_, state, out, _ := r.process(t, 0)
	return r, state, out, died
}

// checkCrash compares a turn whose processes died with the one whose process lived.
func checkCrash(t *testing.T, s scenario, replay journal.Replay, want turn.State, wantOut turn.Outcome, dies ...int) {
	t.Helper()
	r, state, out, died := crash(t, s, replay, dies...)
	if diff := cmp.Diff(wantOut.Reason, out.Reason); diff != "" {
		t.Errorf("died %s, outcome:\n%s", died, diff)
	}
	ran := map[string]int{}
	for _, id := range r.tools.runs {
		ran[id]++
		if replay == journal.Never && ran[id] > 1 {
			t.Errorf("died %s: call %s ran twice", died, id)
		}
	}
	a, b := strings.Split(transcript(want.Path()), "\n"), strings.Split(transcript(state.Path()), "\n")
	if len(a) != len(b) {
		t.Fatalf("died %s, transcript:\n%s", died, cmp.Diff(a, b))
	}
	for i := range a {
		interrupted := replay == journal.Never && strings.Contains(b[i], "the host restarted while")
		if a[i] != b[i] && !interrupted {
			t.Errorf("died %s, line %d is %q, want %q", died, i, b[i], a[i])
		}
	}
	checkAnnounced(t, r, died)
}

// checkAnnounced: nothing ran that was not in the journal before, and an answer is that
// of a run, or says that nobody knows.
func checkAnnounced(t *testing.T, r *rig, died []string) {
	t.Helper()
	announced := map[string]int{}
	for _, e := range collect(t, r.log) {
		switch d := e.Data.(type) {
		case journal.InvokeRequested:
			announced[d.Call.ID]++
		case journal.InvokeEnded:
			if d.Result.OK && strings.HasPrefix(d.Result.Text, "page") && !slices.Contains(r.tools.runs, d.CallID) {
				t.Errorf("died %s: call %s is answered and never ran", died, d.CallID)
			}
		}
	}
	ran := map[string]int{}
	for _, id := range r.tools.runs {
		if ran[id]++; ran[id] > announced[id] {
			t.Errorf("died %s: call %s ran %d times and was announced %d times", died, id, ran[id], announced[id])
		}
	}
}

// crashScenarios are those whose end does not hang on a client that leaves.
func crashScenarios() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool { return s.cancelOn != "" })
}

// TestCrashAnywhere: a process that dies at any step of any turn, and the one after it
// goes on to the same end (DESIGN section 2, rule 2).
func TestCrashAnywhere(t *testing.T) {
	points := 0
	for _, s := range crashScenarios() {
		for _, replay := range []journal.Replay{journal.Again, journal.Never} {
			t.Run(s.name+"/"+string(replay), func(t *testing.T) {
				r := newRig(s)
				r.tools.replay = replay
				r.append(t, r.drafts()...)
				m, want, out, _ := r.process(t, 0)
				if m.steps < 3 {
					t.Fatalf("the turn has %d steps", m.steps)
				}
				for die := 1; die <= m.steps; die++ {
					checkCrash(t, s, replay, want, out, die)
					points++
				}
			})
		}
	}
	t.Logf("died at %d points of %d turns", points, len(crashScenarios()))
}

// TestCrashAgainAndAgain: the processes after it die too.
func TestCrashAgainAndAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := anyScenario(rt)
		replay := rapid.SampledFrom([]journal.Replay{journal.Again, journal.Never}).Draw(rt, "replay")
		r := newRig(s)
		r.tools.replay = replay
		r.append(t, r.drafts()...)
		m, want, out, _ := r.process(t, 0)
		dies := rapid.SliceOfN(rapid.IntRange(1, max(1, m.steps)), 1, 4).Draw(rt, "dies")
		checkCrash(t, s, replay, want, out, dies...)
		if t.Failed() {
			rt.Fatalf("dies %v", dies)
		}
	})
}

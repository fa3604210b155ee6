package turn_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// anyScenario draws a turn: rounds of text and calls to the host's tool, the
// caller's, or nobody's, cut or not, with bounds that they may break.
func anyScenario(t *rapid.T) scenario {
	s := scenario{
		caller: []string{"weather"}, late: map[string]string{},
		bounds:  journal.Bounds{Rounds: rapid.IntRange(1, 4).Draw(t, "rounds bound"), Calls: rapid.IntRange(1, 3).Draw(t, "calls bound")},
		options: llm.Options{Choice: rapid.SampledFrom([]llm.ChoiceMode{"", llm.ChoiceAuto, llm.ChoiceRequired}).Draw(t, "choice")},
		asUser:  rapid.Bool().Draw(t, "as user"),
	}
	n := rapid.IntRange(0, 8).Draw(t, "rounds")
	for i := range n {
		s.rounds = append(s.rounds, anyRound(t, i, s.late))
	}
	// Whatever came before, the model ends by itself at last.
	for range 4 {
		s.rounds = append(s.rounds, round(say("end"), finish(llm.FinishStop), tokens(1, 1)))
	}
	return s
}

func anyRound(t *rapid.T, i int, late map[string]string) llm.ScriptedRound {
	var pieces []llm.Piece
	if rapid.Bool().Draw(t, "text") {
		pieces = append(pieces, say(fmt.Sprintf("text %d ", i)))
	}
	calls := rapid.IntRange(0, 5).Draw(t, "calls")
	for k := range calls {
		id := fmt.Sprintf("c%d.%d", i, k)
		name := rapid.SampledFrom([]string{"read", "weather", "nobody"}).Draw(t, "tool")
		late[id] = "late " + id
		// Arguments come in two fragments.
		pieces = append(pieces, ask(k, id, name, "{"), llm.Piece{Calls: []llm.CallDelta{{Index: k, Arguments: "}"}}})
	}
	end := llm.FinishStop
	if calls > 0 {
		end = rapid.SampledFrom([]llm.Finish{llm.FinishCalls, llm.FinishCalls, llm.FinishCalls, llm.FinishLength}).Draw(t, "finish")
	}
	return round(append(pieces, finish(end), tokens(10, 2))...)
}

// TestAnyTurn: whatever a model does, the conversation stays one that an upstream
// accepts, the bounds hold, usage adds up, and a log cut anywhere goes on to the
// same end.
func TestAnyTurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := anyScenario(rt)
		r := newRig(s)
		r.append(t, r.drafts()...)
		state, out, err := r.run(t)
		if err != nil || out.Reason != turn.Answered {
			rt.Fatalf("outcome %+v, %v", out, err)
		}
		checkPairs(rt, state.Path(), s.asUser)
		checkBounds(rt, r, out)

		events := collect(t, r.log)
		at := rapid.IntRange(2, len(events)).Draw(rt, "cut")
		cut := newRig(s)
		cut.append(t, redraft(events[:at])...)
		again, outAgain, err := cut.run(t)
		if err != nil {
			rt.Fatalf("cut after %d of %d events: %v", at, len(events), err)
		}
		if diff := cmp.Diff(transcript(state.Path()), transcript(again.Path())); diff != "" {
			rt.Errorf("cut after %d of %d events (%s), transcript:\n%s", at, len(events), events[at-1].Data.Kind(), diff)
		}
		if diff := cmp.Diff(out, outAgain); diff != "" {
			rt.Errorf("cut after %d of %d events, outcome:\n%s", at, len(events), diff)
		}
	})
}

// checkPairs: each call of a message is answered once, at once and in order, and
// nothing is answered that was not called.
func checkPairs(t *rapid.T, p journal.Path, asUser bool) {
	messages := p.Messages()
	for i, m := range messages {
		for k, c := range m.Calls {
			if i+1+k >= len(messages) {
				t.Fatalf("call %s has no answer:\n%s", c.ID, transcript(p))
			}
			answer := messages[i+1+k]
			if asUser && answer.Role != llm.User || !asUser && (answer.Role != llm.Tool || answer.CallID != c.ID) {
				t.Fatalf("call %s is answered by %s %s:\n%s", c.ID, answer.Role, answer.CallID, transcript(p))
			}
		}
		if m.Role == llm.Tool && (i == 0 || messages[i-1].Role == llm.User || messages[i-1].Role == llm.System) {
			t.Fatalf("an answer without a call:\n%s", transcript(p))
		}
	}
	if last := messages[len(messages)-1]; last.Role != llm.Assistant || len(last.Calls) > 0 {
		t.Fatalf("the turn ended in the middle:\n%s", transcript(p))
	}
}

func checkBounds(t *rapid.T, r *rig, out turn.Outcome) {
	requests := r.script.Requests()
	if len(requests) != out.Rounds {
		t.Errorf("%d generations and %d rounds", len(requests), out.Rounds)
	}
	answered := map[int]int{}
	streak, round := 0, 0
	var want llm.Usage
	for e, err := range r.log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case journal.GenerateRequested:
			round = d.Round
			if d.Forced != (streak >= r.bounds.Rounds) {
				t.Errorf("round %d after %d rounds of the host's: forced %v with a bound of %d", d.Round, streak, d.Forced, r.bounds.Rounds)
			}
			if d.Forced != (d.Choice == llm.ChoiceNone) {
				t.Errorf("round %d: forced %v, choice %q", d.Round, d.Forced, d.Choice)
			}
		case journal.GenerateEnded:
			want = want.Add(d.Reply.Usage)
			host, caller := 0, 0
			for _, h := range d.Handlers {
				if h == journal.Host {
					host++
				} else {
					caller++
				}
			}
			if caller > 0 || host == 0 {
				streak = 0
			} else {
				streak++
			}
		case journal.InvokeRequested:
			answered[round]++
		}
	}
	for n, calls := range answered {
		if calls > r.bounds.Calls {
			t.Errorf("round %d ran %d calls, with a bound of %d", n, calls, r.bounds.Calls)
		}
	}
	if diff := cmp.Diff(want, out.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

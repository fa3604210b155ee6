package turn_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// TestSummaryAgreesWithTheTurn: after each event of any turn, cut anywhere and rewound or
// gone on with, the summary, which sees no tree, says what the state and its tree say.
func TestSummaryAgreesWithTheTurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := anyScenario(rt)
		r := newRig(s)
		r.append(t, r.drafts()...)
		r.process(t, rapid.IntRange(0, 40).Draw(rt, "die"))
		r.process(t, rapid.IntRange(0, 40).Draw(rt, "die again"))
		events := collect(t, r.log)
		if at := rapid.IntRange(0, len(events)).Draw(rt, "rewind after"); at > 0 {
			events = append(events[:at:at], journal.Event{Seq: int64(at + 1), Anchor: rewind().Anchor, Data: rewind().Data})
		}
		checkSummary(rt, events)
	})
}

func TestSummaryAgreesWithScenarios(t *testing.T) {
	for _, s := range crashScenarios() {
		r := newRig(s)
		r.append(t, r.drafts()...)
		r.process(t, 0)
		checkSummary(t, collect(t, r.log))
	}
}

func checkSummary(t rapid.TB, events []journal.Event) {
	t.Helper()
	var state turn.State
	var summary journal.Summary
	var usage llm.Usage
	turns := 0
	for _, e := range events {
		state, summary = state.Apply(e), summary.Apply(e)
		switch d := e.Data.(type) {
		case journal.TurnStarted:
			turns++
		case journal.GenerateEnded:
			usage = usage.Add(d.Reply.Usage)
		}
		if want := status(state, turns); summary.Status != want {
			t.Fatalf("after event %d, %s, the summary says %s, want %s", e.Seq, e.Data.Kind(), summary.Status, want)
		}
		if tip := state.Path().Tip(); summary.Head != tip || summary.Messages != state.Tree().Len() {
			t.Fatalf("after event %d, %s, the summary has head %s and %d messages, want %s and %d",
				e.Seq, e.Data.Kind(), summary.Head, summary.Messages, tip, state.Tree().Len())
		}
		if summary.Turns != turns || summary.Usage != usage {
			t.Fatalf("after event %d the summary has %d turns and usage %+v, want %d and %+v", e.Seq, summary.Turns, summary.Usage, turns, usage)
		}
	}
}

// status is what the words of [journal.Status] say of a state.
func status(s turn.State, turns int) journal.Status {
	plan := s.Next()
	switch {
	case s.Open() && plan.Wait != nil:
		return journal.Waiting
	case s.Open():
		return journal.Running
	case turns == 0 || plan.End.Reason == turn.Answered:
		return journal.Idle
	}
	return journal.Ended
}

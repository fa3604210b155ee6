package turn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// rewind moves the head to the first message.
func rewind() journal.Draft {
	return journal.Draft{TurnID: "other", Anchor: "in0", Data: journal.HeadMoved{To: "in0"}}
}

// TestRewindVoidsWhatIsInFlight: wherever a turn stands when its branch is left, it is
// over, nothing of it is planned any more, and another turn begins as if it had not been.
func TestRewindVoidsWhatIsInFlight(t *testing.T) {
	for _, s := range crashScenarios() {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(s)
			r.append(t, r.drafts()...)
			r.run(t) // some of these turns fail
			events := collect(t, r.log)
			var state turn.State
			for i, e := range events {
				state = state.Apply(e)
				if i > 0 {
					checkRewound(t, state, e)
				}
			}
		})
	}
}

func checkRewound(t *testing.T, before turn.State, last journal.Event) {
	t.Helper()
	moved := rewind()
	s := before.Apply(journal.Event{Seq: before.Seq() + 1, TurnID: moved.TurnID, Anchor: moved.Anchor, Data: moved.Data})
	plan := s.Next()
	if s.Open() || s.InFlight() || len(plan.Record) > 0 || len(plan.Do) > 0 || plan.Wait != nil || plan.End == nil {
		t.Fatalf("after %s and a rewind: open %v, in flight %v, plan %+v", last.Data.Kind(), s.Open(), s.InFlight(), plan)
	}
	if ended, ok := last.Data.(journal.TurnEnded); ok {
		if plan.End.Reason != turn.Reason(ended.Reason) {
			t.Errorf("a rewind made a turn that had ended %s end %s", ended.Reason, plan.End.Reason)
		}
	} else if plan.End.Reason != turn.Cancelled {
		t.Errorf("after %s and a rewind the turn is %s, want cancelled", last.Data.Kind(), plan.End.Reason)
	}
	if left := s.Answered(); len(left) > 0 {
		t.Errorf("after %s and a rewind, answers to the calls of the branch that was left are at hand: %v", last.Data.Kind(), left)
	}
	if tip := s.Path().Tip(); tip != "in0" {
		t.Errorf("after %s and a rewind the head is %q", last.Data.Kind(), tip)
	}
	next := s.Apply(journal.Event{Seq: s.Seq() + 1, TurnID: "t2", Anchor: "in0", Data: journal.TurnStarted{
		Model: "m", Bounds: journal.Bounds{Rounds: 8, Calls: 8},
	}})
	want := turn.Plan{
		Record: []journal.Draft{{TurnID: "t2", Anchor: "in0", Data: journal.GenerateRequested{Round: 1, Attempt: 1}}},
		Do:     []turn.Effect{turn.Generate{Round: 1, Attempt: 1}},
	}
	if diff := cmp.Diff(want, next.Next()); diff != "" {
		t.Errorf("after %s and a rewind a new turn begins with (-want +got):\n%s", last.Data.Kind(), diff)
	}
}

// overtaken is a log in which somebody else writes right behind the nth append.
type overtaken struct {
	*journal.Memory
	behind int
	take   bool // take the log over first, as another process does
	drafts []journal.Draft
}

func (o *overtaken) Append(ctx context.Context, at journal.Position, drafts ...journal.Draft) (journal.Position, error) {
	next, err := o.Memory.Append(ctx, at, drafts...)
	if o.behind--; o.behind != 0 || err != nil {
		return next, err
	}
	theirs := next
	if o.take {
		theirs = o.Take()
	}
	if _, err := o.Memory.Append(ctx, theirs, o.drafts...); err != nil {
		return next, err
	}
	return next, nil
}

// TestOvertakenDriverRecordsNothingMore: whoever moves the head, or begins another turn,
// while a driver is at work holds a newer position. Whatever the driver has in hand then
// is not recorded, and it says that the log is not its own.
func TestOvertakenDriverRecordsNothingMore(t *testing.T) {
	theirs := map[string][]journal.Draft{
		"a moved head": {rewind()},
		"another turn": {
			{TurnID: "t1", Anchor: "in0", Data: journal.TurnEnded{Reason: journal.Cancelled}},
			{TurnID: "t2", Anchor: "in0", Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "two", Message: llm.TextMessage(llm.User, "two")}}}},
			{TurnID: "t2", Anchor: "two", Data: journal.TurnStarted{Model: "m", Bounds: journal.Bounds{Rounds: 1, Calls: 1}}},
		},
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(crashScenarios()).Draw(rt, "scenario")
		s.late = nil
		what := rapid.SampledFrom([]string{"a moved head", "another turn"}).Draw(rt, "theirs")
		o := &overtaken{behind: rapid.IntRange(1, 8).Draw(rt, "behind"), take: rapid.Bool().Draw(rt, "take"), drafts: theirs[what]}
		r := newRig(s)
		r.append(t, r.drafts()...)
		o.Memory = r.log
		_, out, err := r.drive(t, o)
		events := collect(t, r.log)
		if o.behind > 0 {
			return // the turn was over before
		}
		if last := events[len(events)-1]; last.TurnID != theirs[what][len(theirs[what])-1].TurnID {
			rt.Fatalf("%s: the driver recorded %s of %s behind %s", s.name, last.Data.Kind(), last.TurnID, what)
		}
		mine := events[len(events)-len(o.drafts)-1]
		if _, over := mine.Data.(journal.TurnEnded); over || out.Reason == turn.Parked {
			return // it had nothing left to record
		}
		if !errors.Is(err, journal.ErrConflict) && !errors.Is(err, journal.ErrFenced) {
			rt.Fatalf("%s, %s behind %s: outcome %+v, %v, want an error of the log", s.name, what, mine.Data.Kind(), out, err)
		}
	})
}

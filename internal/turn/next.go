package turn

import (
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// Next is what is to be done in this state. It is a pure function: a state that
// was folded from a journal plans what the one that wrote it planned.
func (s State) Next() Plan {
	switch {
	case s.ended != nil:
		return Plan{End: s.outcome(Reason(s.ended.Reason))}
	case s.failure != "":
		return Plan{
			Record: []journal.Draft{s.draft(journal.TurnEnded{Reason: journal.Failed, Error: s.failure})},
			End:    s.outcome(Failed),
		}
	case s.start == nil:
		return Plan{End: s.outcome(Parked)}
	case s.generation != nil:
		return s.nextAttempt()
	case len(s.calls) > 0:
		return s.nextCalls()
	case s.replied:
		return Plan{
			Record: []journal.Draft{s.draft(journal.TurnEnded{Reason: journal.Answered})},
			End:    s.outcome(Answered),
		}
	}
	return s.nextRound()
}

func (s State) draft(d journal.Data) journal.Draft {
	return journal.Draft{TurnID: s.turnID, Anchor: s.Path().Tip(), Data: d}
}

func (s State) outcome(r Reason) *Outcome {
	o := &Outcome{
		Reason: r, Finish: s.finish, Rounds: s.round, Usage: s.usage, Model: s.model, Error: s.failure,
		OutOfRounds: s.notice != "", Elided: len(s.window.elided),
	}
	if s.ended != nil && o.Error == "" {
		o.Error = s.ended.Error
	}
	switch {
	case r == Parked:
		o.Finish = llm.FinishCalls
		o.Waits = s.waits()
	case o.Finish == llm.FinishCalls:
		// Every call of the round was the host's, and was dropped or answered.
		o.Finish = llm.FinishStop
	}
	return o
}

func (s State) waits() []Wait {
	var waits []Wait
	for _, c := range s.calls {
		if c.handler == journal.Caller && c.result == nil {
			waits = append(waits, Wait{Call: c.Call})
		}
	}
	return waits
}

// nextAttempt carries on with an announced generation. When whoever announced
// it is gone it is announced again: a generation has no effect but its reply.
func (s State) nextAttempt() Plan {
	g := s.generation.GenerateRequested
	plan := Plan{}
	if s.generation.stale {
		g.Attempt++
		g.Offer = nil // the one recorded with the first attempt holds
		plan.Record = []journal.Draft{s.draft(g)}
	}
	plan.Do = []Effect{Generate{Round: g.Round, Attempt: g.Attempt, Forced: g.Forced}}
	return plan
}

// nextCalls has the host's calls answered, up to the bound, and then either
// waits for the caller's or puts all results into the tree, in call order.
func (s State) nextCalls() Plan {
	var plan Plan
	answered := 0
	for _, c := range s.calls {
		if c.handler != journal.Host {
			continue
		}
		answered++
		switch {
		case c.result != nil:
		case answered > s.start.Bounds.Calls:
			plan.Record = append(plan.Record, s.draft(journal.InvokeEnded{
				CallID: c.ID, Result: journal.Result{Text: tooManyCalls(s.start.Bounds.Calls)},
			}))
		default:
			plan = s.planCall(plan, c)
		}
	}
	if len(plan.Record) > 0 || len(plan.Do) > 0 {
		return plan
	}
	if waits := s.waits(); len(waits) > 0 {
		return Plan{Wait: waits, End: s.outcome(Parked)}
	}
	return Plan{Record: []journal.Draft{s.draft(journal.MessagesAdded{Entries: s.results()})}}
}

func (s State) planCall(plan Plan, c call) Plan {
	attempt := 1
	if c.request != nil {
		attempt = c.request.Attempt
	}
	switch {
	case c.stale && c.request.Replay == journal.Never:
		plan.Record = append(plan.Record, s.draft(journal.InvokeEnded{
			CallID: c.ID, Result: journal.Result{Text: interrupted(c.Name)},
		}))
		return plan
	case c.stale:
		attempt++
		plan.Record = append(plan.Record, s.draft(journal.InvokeRequested{
			Call: c.Call, Attempt: attempt, Replay: c.request.Replay,
		}))
	case c.request == nil:
		plan.Record = append(plan.Record, s.draft(journal.InvokeRequested{Call: c.Call, Attempt: attempt}))
	}
	plan.Do = append(plan.Do, Invoke{Call: c.Call, Attempt: attempt})
	return plan
}

// results are the messages that answer the calls of the last reply.
func (s State) results() []journal.Entry {
	entries := make([]journal.Entry, len(s.calls))
	for i, c := range s.calls {
		entries[i] = journal.Entry{Message: s.result(c)}
	}
	return entries
}

func (s State) result(c call) llm.Message {
	if s.start.ResultsAsUser || c.Rescued {
		return llm.TextMessage(llm.User, resultAsUser(c.Call, c.result.Text))
	}
	m := llm.TextMessage(llm.Tool, c.result.Text)
	m.CallID = c.ID
	return m
}

// Answered lists the answers to those of the last reply's calls that have one,
// while others are waited for.
func (s State) Answered() []llm.Message {
	var messages []llm.Message
	for _, c := range s.calls {
		if c.result != nil {
			messages = append(messages, s.result(c))
		}
	}
	return messages
}

// nextRound asks for the next generation, or for the forced answer when the
// host has answered as many rounds in a row as it may.
func (s State) nextRound() Plan {
	forced := s.streak >= s.start.Bounds.Rounds
	if forced && !s.asked {
		ask := llm.TextMessage(llm.User, outOfRoundsRequest(s.start.Bounds.Rounds))
		return Plan{Record: []journal.Draft{s.draft(journal.MessagesAdded{Entries: []journal.Entry{{Message: ask}}})}}
	}
	if out := s.tooLong(); len(out) > 0 {
		return Plan{Record: []journal.Draft{s.draft(journal.ResultsElided{Results: out})}}
	}
	d := journal.GenerateRequested{Round: s.round + 1, Attempt: 1, Forced: forced, Choice: s.choice(forced)}
	if s.failed != nil {
		d = *s.failed
		d.ID, d.Offer = "", nil
		d.Attempt++
	}
	return Plan{
		Record: []journal.Draft{s.draft(d)},
		Do:     []Effect{Generate{Round: d.Round, Attempt: d.Attempt, Forced: d.Forced}},
	}
}

// choice is what the host says about tools in place of the client. The client's
// own wish to have a call holds for round 1 only: it was for one call.
func (s State) choice(forced bool) llm.ChoiceMode {
	if forced {
		return llm.ChoiceNone
	}
	wanted := s.start.Options.Choice
	if s.round > 0 && (wanted == llm.ChoiceRequired || wanted == llm.ChoiceNamed) {
		return llm.ChoiceAuto
	}
	return llm.ChoiceUnset
}

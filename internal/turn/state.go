// Package turn is the one agentic loop: a pure state machine that says what is
// to be done, and a driver that does it and writes down what happened.
//
// A [State] is a fold of journal events. It reads no clock, makes no id and
// calls nobody: the same events give the same state, and the same state gives
// the same [Plan]. The [Driver] appends what a plan announces before it does
// it, so a turn can be cut after any event and taken up again from the journal.
//
// The package knows no tool, no dialect and no HTTP. A second loop, anywhere
// else, is a defect (DESIGN section 2).
//
// Start at [State.Next], then [Driver.Run].
package turn

import (
	"slices"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// State is where a turn stands. It is a value: applying an event leaves the
// state before it usable. The zero State has seen no event.
type State struct {
	seq    int64
	tree   journal.Tree
	turnID string
	start  *journal.TurnStarted // nil until the turn has started; never changed
	offer  journal.Offer

	generation *generation // announced and not ended
	calls      []call      // of the last reply, until their results are in the tree

	round   int // generations announced in this turn, attempts not counted
	streak  int // rounds in a row that the host answered
	asked   bool
	replied bool
	notice  string

	window window
	failed *journal.GenerateRequested // to be asked again with less

	finish  llm.Finish
	usage   llm.Usage
	model   string
	failure string
	ended   *journal.TurnEnded
}

// generation is one that was announced. Stale means that whoever asked is gone.
type generation struct {
	journal.GenerateRequested
	stale bool
}

// call is one of the calls of the last reply.
type call struct {
	llm.Call
	handler journal.Handler
	request *journal.InvokeRequested // nil until announced
	stale   bool
	result  *journal.Result // nil until answered
}

// Seq is the sequence number of the last event applied.
func (s State) Seq() int64 { return s.seq }

// TurnID is the turn that the state is in.
func (s State) TurnID() string { return s.turnID }

// Open reports whether a turn has begun and not ended: somebody has to go on with it.
func (s State) Open() bool { return s.start != nil && s.ended == nil }

// Tree is all that was said, on every branch.
func (s State) Tree() journal.Tree { return s.tree }

// Path is the conversation as it stands.
func (s State) Path() journal.Path { return s.tree.Path() }

// Offer is the one that the last generation recorded.
func (s State) Offer() journal.Offer { return s.offer }

// Callers lists the names of the tools that the caller answers itself.
func (s State) Callers() []string {
	if s.start == nil {
		return nil
	}
	names := make([]string, len(s.start.Caller))
	for i, d := range s.start.Caller {
		names[i] = d.Name
	}
	return names
}

// InFlight reports whether an effect was announced and has not ended. A driver
// that finds such a state when it starts is taking over from one that is gone.
func (s State) InFlight() bool {
	if s.ended != nil {
		return false
	}
	if s.generation != nil && !s.generation.stale {
		return true
	}
	return slices.ContainsFunc(s.calls, func(c call) bool {
		return c.request != nil && c.result == nil && !c.stale
	})
}

// Apply folds one event into the state.
func (s State) Apply(e journal.Event) State {
	s.seq = e.Seq
	tree, err := s.tree.Apply(e)
	if err != nil {
		s.failure = err.Error()
		return s
	}
	s.tree = tree
	switch d := e.Data.(type) {
	case journal.TurnStarted:
		return State{seq: s.seq, tree: s.tree, offer: s.offer, turnID: e.TurnID, start: &d, window: s.window.start(d)}
	case journal.MessagesAdded:
		return s.messagesAdded(d)
	case journal.HeadMoved:
		return s.headMoved()
	case journal.TurnResumed:
		return s.resumed()
	case journal.GenerateRequested:
		return s.generateRequested(d)
	case journal.GenerateEnded:
		return s.generateEnded(e, d)
	case journal.GenerateFailed:
		return s.generateFailed(d)
	case journal.ResultsElided:
		s.window = s.window.elide(d)
	case journal.InvokeRequested:
		return s.withCall(d.Call.ID, func(c *call) { c.request, c.stale = &d, false })
	case journal.InvokeEnded:
		return s.withCall(d.CallID, func(c *call) { c.result = &d.Result })
	case journal.TurnEnded:
		s.ended = &d
		s.generation, s.calls = nil, nil
	}
	return s
}

// messagesAdded is either the answers to the open calls, or the request for a
// forced answer.
func (s State) messagesAdded(d journal.MessagesAdded) State {
	if len(s.calls) == 0 {
		s.asked = s.start != nil && s.streak >= s.start.Bounds.Rounds
		return s
	}
	s.window = s.window.added(s.calls, d)
	if !slices.ContainsFunc(s.calls, func(c call) bool { return !isHost(c) }) {
		s.streak++
	} else {
		// Somebody outside has answered too: the rounds are counted anew.
		s.streak, s.asked = 0, false
	}
	s.calls = nil
	s.replied = false
	return s
}

// headMoved voids what is in flight: it belongs to the branch that was left (B2 1.7).
func (s State) headMoved() State {
	if s.start != nil && s.ended == nil {
		s.ended = &journal.TurnEnded{Reason: journal.Cancelled, Error: branchLeft}
	}
	s.generation, s.calls, s.failed = nil, nil, nil
	return s
}

// branchLeft is why a turn ended whose branch was left.
const branchLeft = "the conversation went on from another message"

func (s State) resumed() State {
	if s.generation != nil {
		s.generation = &generation{GenerateRequested: s.generation.GenerateRequested, stale: true}
	}
	s.calls = slices.Clone(s.calls)
	for i := range s.calls {
		c := &s.calls[i]
		c.stale = c.request != nil && c.result == nil
	}
	return s
}

func (s State) generateRequested(d journal.GenerateRequested) State {
	if d.Offer != nil {
		s.offer = *d.Offer
	}
	s.round = d.Round
	s.replied = false
	s.failed = nil
	s.generation = &generation{GenerateRequested: d}
	return s
}

// generateEnded hangs the reply into the tree and opens its calls.
func (s State) generateEnded(e journal.Event, d journal.GenerateEnded) State {
	forced := s.generation != nil && s.generation.Forced
	s.window = s.window.measured(s.size(), d.Reply.Usage)
	s.generation = nil
	s.replied = true
	s.finish, s.model = d.Reply.Finish, d.Reply.Model
	s.usage = s.usage.Add(d.Reply.Usage)
	s.calls, s.notice = nil, ""

	m := d.Reply.Message
	open := openCalls(d)
	switch {
	case d.Reply.Finish == llm.FinishLength && len(open) > 0:
		// The last call was cut, so none of the round is run: what a model meant
		// by the others cannot be told from half a message.
		m, open = withoutCalls(m, nil, ""), nil
	case forced && slices.ContainsFunc(open, isHost):
		s.notice = outOfRoundsNotice(callNames(open, isHost))
		open = slices.DeleteFunc(open, isHost)
		m = withoutCalls(m, open, s.notice)
	}
	s.calls = open
	s.tree = s.tree.Add(journal.Entry{ID: d.Node, Message: m}, e)
	return s
}

func openCalls(d journal.GenerateEnded) []call {
	calls := d.Reply.Message.Calls
	open := make([]call, len(calls))
	for i, c := range calls {
		open[i] = call{Call: c, handler: journal.Host}
		if i < len(d.Handlers) {
			open[i].handler = d.Handlers[i]
		}
	}
	return open
}

func isHost(c call) bool { return c.handler == journal.Host }

// callNames lists the distinct names of the calls that match, in call order.
func callNames(calls []call, match func(call) bool) []string {
	var names []string
	for _, c := range calls {
		if match(c) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// withoutCalls is m with only the kept calls and with a notice behind its text.
// Its wire form is gone with the calls that it held.
func withoutCalls(m llm.Message, kept []call, notice string) llm.Message {
	out := llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
	for _, c := range kept {
		out.Calls = append(out.Calls, c.Call)
	}
	if notice != "" {
		out.Parts = append(out.Parts, llm.Part{Kind: llm.Text, Text: noticeText(m, notice)})
	}
	return out
}

// noticeText is the notice as it follows the text of m.
func noticeText(m llm.Message, notice string) string {
	if m.Text() == "" {
		return notice
	}
	return "\n\n" + notice
}

func (s State) withCall(id string, change func(*call)) State {
	i := slices.IndexFunc(s.calls, func(c call) bool { return c.ID == id })
	if i < 0 {
		return s
	}
	s.calls = slices.Clone(s.calls)
	change(&s.calls[i])
	return s
}

// Request is the generation that is in flight, as it goes to the provider. It
// is built from recorded facts only.
func (s State) Request() *llm.Request {
	r := &llm.Request{
		Model:    s.start.Model,
		Messages: leading(s.window.messages(s.Path()), s.start.Block),
		Options:  s.start.Options,
		Dialect:  s.start.Dialect,
		Rest:     s.start.Rest,
		Added:    s.start.Added,
	}
	if n := len(s.start.Caller) + len(s.offer.Declared); n > 0 {
		r.Tools = append(append(make([]llm.Declaration, 0, n), s.start.Caller...), s.offer.Declared...)
	}
	if s.generation != nil {
		r.Choice = s.generation.Choice
	}
	return r
}

// leading puts the host's block behind the leading system or developer message,
// or in front of the conversation when there is none: the one place that every
// chat template carries (seed 1, "Prompt injection and the KV prefix cache").
func leading(messages []llm.Message, block string) []llm.Message {
	if block == "" {
		return messages
	}
	if len(messages) > 0 && (messages[0].Role == llm.System || messages[0].Role == llm.Developer) {
		messages[0].Tail = block
		return messages
	}
	return slices.Insert(messages, 0, llm.TextMessage(llm.System, block))
}

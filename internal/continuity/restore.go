package continuity

import (
	"context"
	"slices"

	"github.com/metier-run/metier/internal/llm"
)

// Restored is a conversation with its hidden rounds back in place.
type Restored struct {
	Messages []llm.Message
	// Rounds counts the hidden rounds that were put back, Dropped those that were
	// left out because a skill that they read cannot be reached any more.
	Rounds, Dropped int

	mixed     []int  // where messages were put whose calls the host and the caller share
	workspace string // the one that is there

	names map[string]string // ids of calls as the client has them, and as the upstream has
}

// Restore puts the hidden rounds back into a client's messages. expand fills
// the parts and calls of a message that may hold only its wire form; reachable
// says whether a skill can be read in this request. workspace names the one that the
// request goes on with, if it does: what was done there is not gone. A failing store
// is a miss: the messages come back as they were, with the error for the log.
func Restore(ctx context.Context, s Store, scope Scope, messages []llm.Message, expand func(llm.Message) llm.Message, reachable func(string) bool, workspace string) (Restored, error) {
	plain := Restored{Messages: messages}
	if any, err := s.Any(ctx, scope.Owner()); err != nil || !any {
		return plain, err
	}
	out := Restored{Messages: make([]llm.Message, 0, len(messages)), workspace: workspace}
	mark := scope.Chain()
	for _, m := range messages {
		full := expand(m)
		told := scope.Told(full)
		before := mark
		mark = mark.Add(told)
		if m.Role != llm.Assistant {
			out.Messages = append(out.Messages, out.renamed(m))
			continue
		}
		e, found, err := s.Get(ctx, scope.Owner(), mark)
		if at, named := before.AddCalls(told); err == nil && !found && named {
			if e, found, err = s.Get(ctx, scope.Owner(), at); found {
				e.Last = e.Last.withCallsOf(m, full)
			}
		}
		switch {
		case err != nil:
			return plain, err
		case !found:
			out.Messages = append(out.Messages, m)
		default:
			out.put(e, m, reachable)
			if scope.Nameless {
				out.name(e.Last, full.Calls)
			}
		}
	}
	if out.Rounds == 0 && out.Dropped == 0 {
		return plain, nil
	}
	for _, i := range out.mixed {
		inCallOrder(out.Messages, i)
	}
	return out, nil
}

// name notes what the calls of the caller are called in the round that was put back, in
// their order.
func (r *Restored) name(last Round, visible []llm.Call) {
	i := 0
	for _, c := range last.Message.Calls {
		if slices.ContainsFunc(last.Results, func(m llm.Message) bool { return m.CallID == c.ID }) {
			continue // the host's
		}
		if i == len(visible) {
			return
		}
		if r.names == nil {
			r.names = map[string]string{}
		}
		r.names[visible[i].ID] = c.ID
		i++
	}
}

// renamed is a result with the id that its call has upstream.
func (r *Restored) renamed(m llm.Message) llm.Message {
	if id, ok := r.names[m.CallID]; ok && m.Role == llm.Tool {
		m.CallID = id
	}
	return m
}

// withCallsOf is the round with the caller's calls as the client sent them back:
// it may have meant to change them. visible is the message as it came, full the
// same with its calls filled.
func (r Round) withCallsOf(visible, full llm.Message) Round {
	if len(r.Results) == 0 {
		r.Message = visible
		return r
	}
	r.Message.Raw = llm.Raw{}
	r.Message.Calls = slices.Clone(r.Message.Calls)
	for i, c := range r.Message.Calls {
		if k := slices.IndexFunc(full.Calls, func(f llm.Call) bool { return f.ID == c.ID }); k >= 0 {
			r.Message.Calls[i].Arguments = full.Calls[k].Arguments
		}
	}
	return r
}

// put replaces a visible message by what stands behind it.
func (r *Restored) put(e Entry, visible llm.Message, reachable func(string) bool) {
	gone := -1 // the last message that told of files of a workspace
	for _, round := range e.Hidden {
		if slices.ContainsFunc(round.Skills, func(name string) bool { return !reachable(name) }) {
			r.Dropped++
			continue
		}
		r.Rounds++
		r.Messages = append(append(r.Messages, round.Message), round.Results...)
		if r.lost(round) {
			gone = len(r.Messages) - 1
		}
	}
	if slices.ContainsFunc(e.Last.Skills, func(name string) bool { return !reachable(name) }) {
		// The round also called the caller, whose calls must keep their message.
		r.Dropped++
		r.Messages = append(r.Messages, visible)
		r.tellGone(gone)
		return
	}
	if len(e.Last.Results) > 0 {
		r.Rounds++
		r.mixed = append(r.mixed, len(r.Messages))
	}
	r.Messages = append(append(r.Messages, e.Last.Message), e.Last.Results...)
	if r.lost(e.Last) {
		gone = len(r.Messages) - 1
	}
	r.tellGone(gone)
}

// lost reports whether a round tells of files that are not there any more.
func (r *Restored) lost(round Round) bool {
	return round.Workspace != "" && round.Workspace != r.workspace && len(round.Results) > 0
}

// tellGone adds to a message, if there is one, that the files which it tells of are
// gone. The line is the same in every round that follows.
func (r *Restored) tellGone(at int) {
	if at < 0 {
		return
	}
	r.Messages[at].Tail = filesGone
	if r.workspace != "" {
		r.Messages[at].Tail = roomGone
	}
}

// inCallOrder sorts the answers to a message's calls by the order of the calls,
// the host's and the caller's together (DESIGN section 2, rule 4).
func inCallOrder(messages []llm.Message, at int) {
	end := at + 1
	for end < len(messages) && messages[end].Role == llm.Tool {
		end++
	}
	place := func(m llm.Message) int {
		return slices.IndexFunc(messages[at].Calls, func(c llm.Call) bool { return c.ID == m.CallID })
	}
	slices.SortStableFunc(messages[at+1:end], func(a, b llm.Message) int { return place(a) - place(b) })
}

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// memory is what a turn remembers for the next one of the same conversation.
type memory struct {
	scope continuity.Scope
	// visible is what the client sent; the turn itself may begin with more.
	visible []llm.Message
	rounds  int // put back
	dropped int
}

// recall puts the hidden rounds of earlier turns back into the request.
func (g *Gateway) recall(ctx context.Context, r *Request, caller access.Caller, plan selection) memory {
	m := memory{
		scope: continuity.Scope{
			Tenant: caller.Tenant, Key: Owner(caller, r.Header), User: r.EndUser, Model: r.Model,
			Skills: names(plan.selected), Discovery: len(plan.advertised) > 0, Nameless: r.Nameless,
		},
		visible: r.Messages,
	}
	if !g.remembers(*r, plan) {
		return m
	}
	reachable := func(name string) bool {
		return slices.Contains(names(plan.selected), name) || slices.Contains(names(plan.advertised), name)
	}
	restored, err := continuity.Restore(ctx, g.o.Continuity, m.scope, r.Messages, r.expand, reachable, r.workspace())
	if err != nil {
		// Plain forwarding is what a client without memory gets anyway.
		g.o.Logger.WarnContext(ctx, "continuity not read", "error", err)
	}
	r.Messages, m.rounds, m.dropped = restored.Messages, restored.Rounds, restored.Dropped
	return m
}

// Owner tells callers apart: by their key of this server, or else by the key for
// the upstream that they bring. What one account's model read is not another's.
func Owner(caller access.Caller, header http.Header) string {
	presented := header.Get("Authorization")
	if caller.ID != "" || presented == "" {
		return caller.ID
	}
	sum := sha256.Sum256([]byte(presented))
	return "bearer:" + hex.EncodeToString(sum[:])
}

// remembers reports whether a turn of this kind can have hidden rounds.
func (g *Gateway) remembers(r Request, plan selection) bool {
	return g.o.Continuity != nil && (plan.code || plan.tools && plan.skills() > 0) && r.Options.Choices < 2
}

// expand fills a message's parts and calls.
func (r Request) expand(m llm.Message) llm.Message {
	if r.Expand == nil {
		return m
	}
	return r.Expand(m)
}

// remember keeps what the client did not see of a turn that went well.
func (t *Turn) remember(ctx context.Context, w *watcher) {
	g, out := t.gateway, &t.outcome
	ended := out.Reason == turn.Answered || out.Reason == turn.Parked
	if !ended || w.calls == 0 || !g.remembers(t.request, t.plan) {
		return
	}
	entry, ok := t.entry(w)
	if !ok {
		return
	}
	mark := t.memory.scope.Chain()
	for _, m := range t.memory.visible {
		mark = mark.Add(t.memory.scope.Told(t.request.expand(m)))
	}
	answer := llm.TextMessage(llm.Assistant, w.text.String())
	for _, wait := range out.Waits {
		answer.Calls = append(answer.Calls, wait.Call)
	}
	answer = t.memory.scope.Told(answer)
	marks := []continuity.Mark{mark.Add(answer)}
	if at, named := mark.AddCalls(answer); named {
		marks = append(marks, at)
	}
	for _, at := range marks {
		// The client may be gone already, and may still come back.
		if err := g.o.Continuity.Put(context.WithoutCancel(ctx), t.memory.scope.Owner(), at, entry); err != nil {
			g.o.Logger.WarnContext(ctx, "continuity not written", "error", err)
		}
	}
}

// entry is the turn's part of the conversation, round by round.
func (t *Turn) entry(w *watcher) (continuity.Entry, bool) {
	var rounds []continuity.Round
	for _, m := range t.state.Path().Messages()[len(t.request.Messages):] {
		if m.Role == llm.Assistant {
			rounds = append(rounds, t.round(m, w, len(rounds)+1))
			continue
		}
		if len(rounds) == 0 {
			return continuity.Entry{}, false
		}
		last := &rounds[len(rounds)-1]
		last.Results = append(last.Results, m)
	}
	if len(rounds) == 0 {
		return continuity.Entry{}, false
	}
	last := rounds[len(rounds)-1]
	if t.outcome.Reason == turn.Parked && slices.ContainsFunc(last.Message.Calls, func(c llm.Call) bool { return c.Rescued }) {
		// The caller answers calls that stand in the message as text only: what it
		// sends back is the better half.
		return continuity.Entry{}, false
	}
	last.Results = t.state.Answered()
	return continuity.Entry{Hidden: rounds[:len(rounds)-1], Last: last}, true
}

// round is what is kept of a round's message.
func (t *Turn) round(m llm.Message, w *watcher, n int) continuity.Round {
	r := continuity.Round{Message: m, Skills: w.skills[n]}
	if w.files[n] {
		r.Workspace = t.work.ID()
	}
	return r
}

// workspace names the one that the request goes on with; empty for one of its own.
func (r Request) workspace() string {
	if r.Conversation == nil {
		return ""
	}
	return r.Conversation.ID()
}

// hears notes what the client sees, and which skills each round read.
func (w *watcher) hears(s turn.Signal) {
	switch {
	case s.Kind == turn.Delta && s.Piece.Choice == 0:
		w.text.WriteString(s.Piece.Text)
	case s.Kind == turn.CallEnded && s.Result.Skill != "" && !slices.Contains(w.skills[s.Round], s.Result.Skill):
		if w.skills == nil {
			w.skills = map[int][]string{}
		}
		w.skills[s.Round] = append(w.skills[s.Round], s.Result.Skill)
	}
	if s.Kind == turn.CallEnded && s.Result.Workspace {
		if w.files == nil {
			w.files = map[int]bool{}
		}
		w.files[s.Round] = true
	}
}

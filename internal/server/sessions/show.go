package sessions

import (
	"context"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/turn"
)

// Session is a session with what was said in it.
type Session struct {
	Row
	// Messages are those of the active path, what clients never saw included.
	Messages []Message `json:"messages"`
	// Tree has every node of every branch, in the order in which they were added.
	Tree []Node `json:"message_tree"`
}

// Message is a message for people and programs to read.
type Message struct {
	ID     journal.NodeID `json:"id"`
	TurnID string         `json:"turn_id,omitzero"`
	Role   llm.Role       `json:"role"`
	Text   string         `json:"text,omitzero"`
	Calls  []Call         `json:"calls,omitzero"`
	// CallID is the call that the message answers.
	CallID string `json:"call_id,omitzero"`
}

// Call is a call that a model made.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Node is a message's place in the tree.
type Node struct {
	ID     journal.NodeID `json:"id"`
	Parent journal.NodeID `json:"parent,omitzero"`
	Role   llm.Role       `json:"role"`
	// Active nodes lie on the path to the head.
	Active bool `json:"active,omitzero"`
}

// Show reads a session. It fails with [store.ErrNoSession].
func Show(ctx context.Context, db *store.DB, tenant, id string) (Session, error) {
	s, err := db.Session(ctx, tenant, id)
	if err != nil {
		return Session{}, err
	}
	var state turn.State
	for e, err := range db.Log(tenant, id).Read(ctx, 0) {
		if err != nil {
			return Session{}, err
		}
		state = state.Apply(e)
	}
	out := Session{Row: Row{SessionID: s.ID, Seq: s.Seq, Summary: s.Summary}}
	active := map[*journal.Node]bool{}
	for _, n := range state.Path().Nodes() {
		active[n] = true
		out.Messages = append(out.Messages, messageOf(n))
	}
	for _, n := range state.Tree().Nodes() {
		node := Node{ID: n.ID, Role: n.Message.Role, Active: active[n]}
		if n.Parent != nil {
			node.Parent = n.Parent.ID
		}
		out.Tree = append(out.Tree, node)
	}
	return out, nil
}

func messageOf(n *journal.Node) Message {
	m := Message{ID: n.ID, TurnID: n.TurnID, Role: n.Message.Role, Text: n.Message.Text(), CallID: n.Message.CallID}
	for _, c := range n.Message.Calls {
		m.Calls = append(m.Calls, Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return m
}

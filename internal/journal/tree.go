package journal

import (
	"fmt"
	"slices"

	"github.com/metier-run/metier/internal/llm"
)

// Node is a message in the tree. Nodes never change.
type Node struct {
	ID      NodeID
	Parent  *Node // nil for a first message
	TurnID  string
	Seq     int64 // of the event that added it
	Message llm.Message

	depth   int
	earlier *Node // the node added before this one, on any branch
}

// Tree is the fold of a log's messages: every node, and the head that the
// active path leads to. A Tree is a value: folding one more event leaves the
// one before usable.
type Tree struct {
	head, last *Node
}

// Apply folds one event. It fails on an event that no writer of this package
// makes: one that hangs a message on an unknown node.
func (t Tree) Apply(e Event) (Tree, error) {
	d, ok := e.Data.(MessagesAdded)
	if !ok {
		return t, nil
	}
	parent, err := t.find(e.Anchor)
	if err != nil {
		return t, fmt.Errorf("journal: fold event %d: %w", e.Seq, err)
	}
	for _, m := range d.Entries {
		t = t.add(parent, m, e)
		parent = t.head
	}
	return t, nil
}

// Add is the tree with one more message under its head.
func (t Tree) Add(m Entry, e Event) Tree { return t.add(t.head, m, e) }

func (t Tree) add(parent *Node, m Entry, e Event) Tree {
	n := &Node{ID: m.ID, Parent: parent, TurnID: e.TurnID, Seq: e.Seq, Message: m.Message, earlier: t.last, depth: 1}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	return Tree{head: n, last: n}
}

// find looks from the newest node back: what an event is anchored to is almost
// always the head.
func (t Tree) find(id NodeID) (*Node, error) {
	if id == "" {
		return nil, nil
	}
	for n := t.last; n != nil; n = n.earlier {
		if n.ID == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no node %q in the tree", id)
}

// Path is the way from the root to the head.
func (t Tree) Path() Path { return Path{tip: t.head} }

// Path is a way from the root to a node: what a model sees.
type Path struct{ tip *Node }

// Tip is the id of the last node, or the empty id of an empty path.
func (p Path) Tip() NodeID {
	if p.tip == nil {
		return ""
	}
	return p.tip.ID
}

// Len is the number of messages.
func (p Path) Len() int {
	if p.tip == nil {
		return 0
	}
	return p.tip.depth
}

// Nodes lists the nodes from the root on.
func (p Path) Nodes() []*Node {
	nodes := make([]*Node, 0, p.Len())
	for n := p.tip; n != nil; n = n.Parent {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

// Messages lists the messages from the root on.
func (p Path) Messages() []llm.Message {
	messages := make([]llm.Message, p.Len())
	for n := p.tip; n != nil; n = n.Parent {
		messages[n.depth-1] = n.Message
	}
	return messages
}

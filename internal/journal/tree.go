package journal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	count   int   // nodes up to this one, on all branches
	earlier *Node // the node added before this one, on any branch
}

// Tree is the fold of a log's messages: every node, and the head that the
// active path leads to. A Tree is a value: folding one more event leaves the
// one before usable.
type Tree struct {
	head, last *Node
	index      *index
}

// Apply folds one event. It fails on an event that no writer of this package
// makes: one that hangs a message on an unknown node, or moves the head to one.
func (t Tree) Apply(e Event) (Tree, error) {
	switch d := e.Data.(type) {
	case HeadMoved:
		head, err := t.find(d.To)
		if err != nil {
			return t, fmt.Errorf("journal: fold event %d: %w", e.Seq, err)
		}
		t.head = head
	case MessagesAdded:
		parent, err := t.find(e.Anchor)
		if err != nil {
			return t, fmt.Errorf("journal: fold event %d: %w", e.Seq, err)
		}
		for _, m := range d.Entries {
			t = t.add(parent, m, e)
			parent = t.head
		}
	}
	return t, nil
}

// Add is the tree with one more message under its head.
func (t Tree) Add(m Entry, e Event) Tree { return t.add(t.head, m, e) }

func (t Tree) add(parent *Node, m Entry, e Event) Tree {
	n := &Node{ID: m.ID, Parent: parent, TurnID: e.TurnID, Seq: e.Seq, Message: m.Message, earlier: t.last, depth: 1, count: 1}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	if t.last != nil {
		n.count = t.last.count + 1
	}
	return Tree{head: n, last: n, index: t.index.with(n)}
}

// Len is the number of nodes, on all branches.
func (t Tree) Len() int {
	if t.last == nil {
		return 0
	}
	return t.last.count
}

// Nodes lists all nodes, on all branches, in the order in which they were added.
func (t Tree) Nodes() []*Node {
	nodes := make([]*Node, 0, t.Len())
	for n := t.last; n != nil; n = n.earlier {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

// Find is the node of an id. Where several events brought the same id it is the newest.
func (t Tree) Find(id NodeID) (*Node, bool) {
	n, err := t.find(id)
	return n, err == nil && n != nil
}

// find is the node of an id; nil for the root.
func (t Tree) find(id NodeID) (*Node, error) {
	if id == "" {
		return nil, nil
	}
	// What an event is anchored to is almost always the head or the node before it.
	n := t.last
	for range 4 {
		if n == nil {
			break
		}
		if n.ID == id {
			return n, nil
		}
		n = n.earlier
	}
	if n := t.index.find(t.last, id); n != nil {
		return n, nil
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

// index finds the nodes of a line of trees, each of which has one node more than the one
// before. All trees of the line share it and it only ever grows, so that trees stay
// values. A tree that leaves the line begins another, which learns the nodes that the two
// have in common when it is first asked: once, however it goes on.
type index struct {
	end atomic.Pointer[Node] // the newest node of the line

	mu    sync.Mutex
	known *Node // the newest node that byID has; nodes are taken in when somebody asks
	byID  map[NodeID]*Node
	twins map[*Node]*Node // the node of the same id before this one
}

// with is the index of a tree that has one node more: this one, if the line goes on there.
func (x *index) with(n *Node) *index {
	if x != nil && x.end.CompareAndSwap(n.earlier, n) {
		return x
	}
	x = &index{}
	x.end.Store(n)
	return x
}

// find is the newest node of an id among those of a tree of the line, of which last is the
// last.
func (x *index) find(last *Node, id NodeID) *Node {
	if x == nil {
		return nil // of the empty tree
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.takeIn(last)
	n := x.byID[id]
	for n != nil && n.count > last.count {
		n = x.twins[n]
	}
	return n
}

// takeIn makes the nodes up to one of the line known.
func (x *index) takeIn(last *Node) {
	have := 0
	if x.known != nil {
		have = x.known.count
	}
	if last.count <= have {
		return
	}
	fresh := make([]*Node, 0, last.count-have)
	for n := last; n != x.known; n = n.earlier {
		fresh = append(fresh, n)
	}
	if x.byID == nil {
		x.byID, x.twins = make(map[NodeID]*Node, len(fresh)), map[*Node]*Node{}
	}
	for _, n := range slices.Backward(fresh) {
		if twin := x.byID[n.ID]; twin != nil {
			x.twins[n] = twin
		}
		x.byID[n.ID] = n
	}
	x.known = last
}

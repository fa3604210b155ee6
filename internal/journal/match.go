package journal

import (
	"bytes"

	"github.com/metier-run/metier/internal/llm"
)

// Match is what makes a tree's path the conversation that a client sent whole, as clients
// do that keep it themselves and know no ids. Messages that stand in the tree as they were
// sent are not added again, whichever branch they are on; the first that does not begins a
// branch. A conversation that ends earlier moves the head there. The ids of new entries
// are empty.
//
// The host's own text behind a message ([llm.Message.Tail]) counts: a message that is to be
// read with other words is another message.
func (t Tree) Match(messages []llm.Message) []Draft {
	at, rest := t.matched(messages)
	var drafts []Draft
	switch {
	case len(rest) > 0:
		added := MessagesAdded{Entries: make([]Entry, len(rest))}
		for i, m := range rest {
			added.Entries[i].Message = m
		}
		drafts = append(drafts, Draft{Anchor: at.id(), Data: added})
	case at != t.head:
		drafts = append(drafts, Draft{Anchor: at.id(), Data: HeadMoved{To: at.id()}})
	}
	return drafts
}

// matched is the node down to which the messages stand in the tree, and those that do
// not.
func (t Tree) matched(messages []llm.Message) (*Node, []llm.Message) {
	active := t.Path().Nodes()
	var at *Node
	for i, m := range messages {
		if i < len(active) && active[i].Parent == at && sameMessage(active[i].Message, m) {
			at = active[i]
			continue
		}
		next := t.child(at, m)
		if next == nil {
			return at, messages[i:]
		}
		at = next
	}
	return at, nil
}

// child is the newest child of a node that holds a message.
func (t Tree) child(parent *Node, m llm.Message) *Node {
	for n := t.last; n != nil && (parent == nil || n.count > parent.count); n = n.earlier {
		if n.Parent == parent && sameMessage(n.Message, m) {
			return n
		}
	}
	return nil
}

// id is the node's, or that of the root for nil.
func (n *Node) id() NodeID {
	if n == nil {
		return ""
	}
	return n.ID
}

// sameMessage reports whether two messages are read alike. What stood on the wire decides
// where both have it.
func sameMessage(a, b llm.Message) bool {
	if a.Role != b.Role || a.CallID != b.CallID || a.Tail != b.Tail || !sameRaw(a.Raw, b.Raw) {
		return false
	}
	if len(a.Raw.Bytes) > 0 {
		return true
	}
	if len(a.Parts) != len(b.Parts) || len(a.Calls) != len(b.Calls) {
		return false
	}
	for i, p := range a.Parts {
		if q := b.Parts[i]; p.Kind != q.Kind || p.Text != q.Text || !sameRaw(p.Raw, q.Raw) {
			return false
		}
	}
	for i, c := range a.Calls {
		if c != b.Calls[i] {
			return false
		}
	}
	return true
}

func sameRaw(a, b llm.Raw) bool { return a.Dialect == b.Dialect && bytes.Equal(a.Bytes, b.Bytes) }

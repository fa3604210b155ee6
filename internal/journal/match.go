package journal

import (
	"bytes"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// Match is what makes a tree's path the conversation that a client sent whole, as clients
// do that keep it themselves and know no ids. Messages that stand in the tree as they were
// sent are not added again, whichever branch they are on; the first that does not begins a
// branch. A conversation that ends earlier moves the head there. The ids of new entries
// are empty. What a model said stays as it came: the client's copy of it is not sent again.
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
	var children map[*Node][]*Node // from where the active path was left; nil until it is
	for i, m := range messages {
		if i < len(active) && active[i].Parent == at && sameMessage(active[i].Message, m) {
			at = active[i]
			continue
		}
		if children == nil {
			children = t.childrenBelow(at)
		}
		next := slices.IndexFunc(children[at], func(n *Node) bool { return sameMessage(n.Message, m) })
		if next < 0 {
			return at, messages[i:]
		}
		at = children[at][next]
	}
	return at, nil
}

// childrenBelow are the children of a node and of all below it, newest first. What hangs
// below a node was added after it.
func (t Tree) childrenBelow(at *Node) map[*Node][]*Node {
	children := map[*Node][]*Node{}
	for n := t.last; n != nil && (at == nil || n.count > at.count); n = n.earlier {
		children[n.Parent] = append(children[n.Parent], n)
	}
	return children
}

// id is the node's, or that of the root for nil.
func (n *Node) id() NodeID {
	if n == nil {
		return ""
	}
	return n.ID
}

// sameMessage reports whether a message of the tree and one that a client sent are read
// alike. What a model said comes back in other words of the format than it came in, so
// there its text and its calls decide.
func sameMessage(a, b llm.Message) bool {
	if alike(a, b) {
		return true
	}
	return a.Role == llm.Assistant && b.Role == llm.Assistant && a.Tail == b.Tail &&
		strings.TrimSpace(a.Text()) == strings.TrimSpace(b.Text()) && slices.Equal(a.Calls, b.Calls)
}

// alike reports whether two messages are the same. What stood on the wire, if anything
// did, says all.
func alike(a, b llm.Message) bool {
	if a.Role != b.Role || a.CallID != b.CallID || a.Tail != b.Tail || !sameRaw(a.Raw, b.Raw) {
		return false
	}
	if len(a.Raw.Bytes) > 0 {
		return true
	}
	if len(a.Parts) != len(b.Parts) || !slices.Equal(a.Calls, b.Calls) {
		return false
	}
	for i, p := range a.Parts {
		if q := b.Parts[i]; p.Kind != q.Kind || p.Text != q.Text || !sameRaw(p.Raw, q.Raw) {
			return false
		}
	}
	return true
}

func sameRaw(a, b llm.Raw) bool { return a.Dialect == b.Dialect && bytes.Equal(a.Bytes, b.Bytes) }

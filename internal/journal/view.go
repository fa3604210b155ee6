package journal

// View is what makes a tree's path the conversation that a client that knows ids sent
// whole (B2 13.2, 13.3). Known ids at the start match, each as a child of the one before,
// whichever branch it is on; a known message that is sent again changes nothing, even if
// its text differs. The first entry that is new or has no id begins a branch, and all
// after it are new. A view that stops at an earlier node moves the head there.
//
// An id that is taken, by another node of the tree or by an entry before it in the view,
// is not given twice: that entry comes without one, and whoever appends gives it a fresh
// one.
func (t Tree) View(entries []Entry) []Draft {
	var at *Node
	rest := entries
	for len(rest) > 0 {
		n, ok := t.Find(rest[0].ID)
		if !ok || n.Parent != at {
			break
		}
		at, rest = n, rest[1:]
	}
	if len(rest) > 0 {
		return []Draft{{Anchor: at.id(), Data: MessagesAdded{Entries: t.fresh(rest)}}}
	}
	if at == t.head {
		return nil
	}
	return []Draft{{Anchor: at.id(), Data: HeadMoved{To: at.id()}}}
}

// Append is what hangs messages below the head. It never branches: an entry whose id is
// known is there already, and dropped (B2 13.1).
func (t Tree) Append(entries []Entry) []Draft {
	var unknown []Entry
	for _, e := range entries {
		if _, known := t.Find(e.ID); !known {
			unknown = append(unknown, e)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return []Draft{{Anchor: t.head.id(), Data: MessagesAdded{Entries: t.fresh(unknown)}}}
}

// fresh are the entries without the ids that are taken.
func (t Tree) fresh(entries []Entry) []Entry {
	out := make([]Entry, len(entries))
	seen := map[NodeID]bool{}
	for i, e := range entries {
		if _, known := t.Find(e.ID); known || seen[e.ID] {
			e.ID = ""
		}
		seen[e.ID] = true
		out[i] = e
	}
	return out
}

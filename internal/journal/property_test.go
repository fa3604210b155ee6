package journal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// model is a conversation kept in the plainest way: maps, lists, and no sharing.
type model struct {
	parent map[string]string
	text   map[string]string
	order  []string
	head   string
	set    []setting
}

type setting struct{ kind, anchor, value string }

func newModel() *model { return &model{parent: map[string]string{}, text: map[string]string{}} }

// path is the way from the root to the head.
func (m *model) path() []string {
	var ids []string
	for id := m.head; id != ""; id = m.parent[id] {
		ids = append([]string{id}, ids...)
	}
	return ids
}

func (m *model) add(parent, id, text string) {
	m.parent[id], m.text[id] = parent, text
	m.order = append(m.order, id)
	m.head = id
}

// value is the newest setting of a kind on the path.
func (m *model) value(kind string) string {
	path := append(m.path(), "")
	for _, s := range slices.Backward(m.set) {
		if s.kind == kind && slices.Contains(path, s.anchor) {
			return s.value
		}
	}
	return "none"
}

// known is whether a node has the id.
func (m *model) known(id string) bool { _, ok := m.text[id]; return ok }

// view does what B2 13.2 says of a view, step by step.
func (m *model) view(ids, texts []string, fresh func() string) {
	at := ""
	i := 0
	for i < len(ids) && m.known(ids[i]) && m.parent[ids[i]] == at {
		at = ids[i]
		i++
	}
	m.head = at
	for ; i < len(ids); i++ {
		id := ids[i]
		if id == "" || m.known(id) {
			id = fresh()
		}
		m.add(m.head, id, texts[i])
	}
}

// match does what [journal.Tree.Match] says, step by step: texts are all that tells
// messages apart here.
func (m *model) match(texts []string, fresh func() string) {
	at, active := "", m.path()
	i := 0
	for ; i < len(texts); i++ {
		next := ""
		if i < len(active) && m.parent[active[i]] == at && m.text[active[i]] == texts[i] {
			next = active[i]
		}
		for _, id := range m.order {
			if next == "" || !slices.Contains(active, next) {
				if m.parent[id] == at && m.text[id] == texts[i] {
					next = id
				}
			}
		}
		if next == "" {
			break
		}
		at = next
	}
	m.head = at
	for ; i < len(texts); i++ {
		m.add(m.head, fresh(), texts[i])
	}
}

// world runs a conversation twice: as a log that is folded, and as a model.
type world struct {
	*model
	log []journal.Event
	folds
	ids    int
	before []folds // what each event was folded into, and what the path was
	paths  [][]string
}

// folds are all that this package folds from a log.
type folds struct {
	tree    journal.Tree
	sets    journal.Versions
	summary journal.Summary
}

func (f folds) apply(t *rapid.T, e journal.Event) folds {
	tree, err := f.tree.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	return folds{tree, f.sets.Apply(e), f.summary.Apply(e)}
}

func (w *world) fresh() string { w.ids++; return fmt.Sprint("n", w.ids) }

// record stamps drafts as a driver does, folds them, and keeps them.
func (w *world) record(t *rapid.T, ids func() string, drafts ...journal.Draft) {
	for _, d := range drafts {
		if added, ok := d.Data.(journal.MessagesAdded); ok {
			for i := range added.Entries {
				if added.Entries[i].ID == "" {
					added.Entries[i].ID = journal.NodeID(ids())
				}
			}
		}
		e := journal.Event{Seq: int64(len(w.log) + 1), Schema: journal.Schema, Anchor: d.Anchor, Data: d.Data}
		w.log = append(w.log, e)
		w.before, w.paths = append(w.before, w.folds), append(w.paths, pathOf(w.tree))
		w.folds = w.apply(t, e)
	}
}

func pathOf(tree journal.Tree) []string {
	var ids []string
	for _, n := range tree.Path().Nodes() {
		ids = append(ids, string(n.ID))
	}
	return ids
}

// replay gives ids in an order that was recorded.
func replay(ids []string) func() string {
	return func() string {
		id := ids[0]
		ids = ids[1:]
		return id
	}
}

// step draws one thing that people and programs do to a conversation.
func (w *world) step(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"message", "fork", "append", "view", "view", "regenerate", "match", "match", "rewind", "set", "set"}).Draw(t, "step")
	text := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text") }
	var made []string
	note := func() string { id := w.fresh(); made = append(made, id); return id }
	switch kind {
	case "message":
		id, words := w.fresh(), text()
		w.record(t, nil, journal.Draft{Anchor: journal.NodeID(w.head), Data: journal.MessagesAdded{Entries: []journal.Entry{entry(id, words)}}})
		w.add(w.head, id, words)
	case "fork": // below any node, several messages at once
		at, a, b := rapid.SampledFrom(append([]string{""}, w.order...)).Draw(t, "below"), w.fresh(), w.fresh()
		w.record(t, nil, journal.Draft{Anchor: journal.NodeID(at), Data: journal.MessagesAdded{Entries: []journal.Entry{entry(a, "fork"), entry(b, "fork")}}})
		w.add(at, a, "fork")
		w.add(a, b, "fork")
	case "regenerate": // B2 13.3: the last message again, beside the one that there is
		path := w.path()
		if len(path) == 0 {
			return
		}
		id, words := w.fresh(), text()
		var entries []journal.Entry
		for _, known := range path[:len(path)-1] {
			entries = append(entries, entry(known, "not what it said"))
		}
		w.record(t, nil, w.tree.View(append(entries, entry(id, words)))...)
		w.add(w.parent[w.head], id, words)
	case "append":
		ids, texts := w.someIDs(t), []string(nil)
		var entries []journal.Entry
		for _, id := range ids {
			texts = append(texts, text())
			entries = append(entries, entry(id, texts[len(texts)-1]))
		}
		drafts := w.tree.Append(entries)
		seen := map[string]bool{}
		for i, id := range ids {
			if w.known(id) && !seen[id] {
				continue // it was there before
			}
			if id == "" || seen[id] {
				id = note()
			}
			seen[ids[i]] = true
			w.add(w.head, id, texts[i])
		}
		w.record(t, replay(made), drafts...)
	case "view":
		ids := append(w.prefix(t), w.someIDs(t)...)
		var texts []string
		var entries []journal.Entry
		for _, id := range ids {
			texts = append(texts, text())
			entries = append(entries, entry(id, texts[len(texts)-1]))
		}
		drafts := w.tree.View(entries)
		w.view(ids, texts, note)
		w.record(t, replay(made), drafts...)
	case "match":
		var texts []string
		for _, id := range w.prefix(t) {
			texts = append(texts, w.text[id])
		}
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			texts = append(texts, text())
		}
		var messages []llm.Message
		for _, x := range texts {
			messages = append(messages, llm.TextMessage(llm.User, x))
		}
		drafts := w.tree.Match(messages)
		w.match(texts, note)
		w.record(t, replay(made), drafts...)
	case "rewind":
		to := rapid.SampledFrom(append([]string{""}, w.order...)).Draw(t, "to")
		w.record(t, nil, journal.Draft{Anchor: journal.NodeID(to), Data: journal.HeadMoved{To: journal.NodeID(to)}})
		w.head = to
	case "set":
		anchor := rapid.SampledFrom(append([]string{"", w.head}, w.order...)).Draw(t, "anchor")
		value := fmt.Sprintf("%q", w.fresh())
		what := rapid.SampledFrom([]string{"config", "state"}).Draw(t, "what")
		var d journal.Data = journal.ConfigSet{Value: jsontext.Value(value)}
		if what == "state" {
			d = journal.StateSet{Value: jsontext.Value(value)}
		}
		w.record(t, nil, journal.Draft{Anchor: journal.NodeID(anchor), Data: d})
		w.set = append(w.set, setting{what, anchor, value})
	}
}

// prefix is the beginning of the path of some node, on any branch.
func (w *world) prefix(t *rapid.T) []string {
	at := rapid.SampledFrom(append([]string{w.head, w.head, ""}, w.order...)).Draw(t, "branch")
	var ids []string
	for ; at != ""; at = w.parent[at] {
		ids = append([]string{at}, ids...)
	}
	return ids[:rapid.IntRange(0, len(ids)).Draw(t, "keep")]
}

// someIDs are ids of new messages: none, new ones, and ones that are taken.
func (w *world) someIDs(t *rapid.T) []string {
	var ids []string
	for range rapid.IntRange(0, 3).Draw(t, "new") {
		id := rapid.SampledFrom(append([]string{"", "new", "new"}, w.order...)).Draw(t, "id")
		if id == "new" {
			id = w.fresh()
		}
		if len(ids) > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
			id = ids[0]
		}
		ids = append(ids, id)
	}
	return ids
}

func entry(id, text string) journal.Entry {
	return journal.Entry{ID: journal.NodeID(id), Message: llm.TextMessage(llm.User, text)}
}

func (w *world) check(t *rapid.T) {
	t.Helper()
	if diff := cmp.Diff(w.path(), pathOf(w.tree)); diff != "" {
		t.Fatalf("path (-model +tree):\n%s", diff)
	}
	var all []string
	for _, n := range w.tree.Nodes() {
		all = append(all, string(n.ID))
		parent := ""
		if n.Parent != nil {
			parent = string(n.Parent.ID)
		}
		if w.parent[string(n.ID)] != parent || w.text[string(n.ID)] != n.Message.Text() {
			t.Fatalf("node %s hangs below %q and says %q", n.ID, parent, n.Message.Text())
		}
	}
	if diff := cmp.Diff(w.order, all); diff != "" || w.tree.Len() != len(w.order) {
		t.Fatalf("nodes (-model +tree):\n%s", diff)
	}
	for kind, get := range map[string]func(journal.Path) (jsontext.Value, bool){"config": w.sets.Config, "state": w.sets.State} {
		got := "none"
		if v, ok := get(w.tree.Path()); ok {
			got = string(v)
		}
		if want := w.value(kind); got != want {
			t.Fatalf("%s is %s, want %s", kind, got, want)
		}
	}
	title := ""
	if len(w.order) > 0 {
		title = w.text[w.order[0]]
	}
	if s := w.summary; string(s.Head) != w.head || s.Messages != len(w.order) || s.Title != title {
		t.Fatalf("summary %+v, want head %q, %d messages and the title %q", s, w.head, len(w.order), title)
	}
}

// TestAnyConversation: whatever is done to a conversation, the folds are what a plain
// model says; they are the same from what was stored; and no fold changes one before it.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{model: newModel()}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step(t)
			w.check(t)
		}
		for i, f := range w.before {
			if diff := cmp.Diff(w.paths[i], pathOf(f.tree)); diff != "" {
				t.Fatalf("the tree before event %d changed:\n%s", i+1, diff)
			}
		}
		w.refold(t)
		w.branchOff(t)
		w.goOn(t)
	})
}

// refold folds what was stored.
func (w *world) refold(t *rapid.T) {
	other := world{model: w.model}
	for _, e := range w.log {
		b, err := journal.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := journal.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		other.folds = other.apply(t, again)
	}
	other.check(t)
}

// goOn folds the end of the log into what its beginning was folded into before.
func (w *world) goOn(t *rapid.T) {
	if len(w.log) == 0 {
		return
	}
	at := rapid.IntRange(0, len(w.log)-1).Draw(t, "go on from")
	other := world{model: w.model, folds: w.before[at]}
	for _, e := range w.log[at:] {
		other.folds = other.apply(t, e)
	}
	other.check(t)
	for _, n := range other.tree.Nodes() {
		if found, ok := other.tree.Find(n.ID); !ok || found != n {
			t.Fatalf("gone on from event %d, %s is found as another node", at+1, n.ID)
		}
	}
}

// branchOff goes on from a tree of before: that is a line of its own.
func (w *world) branchOff(t *rapid.T) {
	if len(w.before) == 0 {
		return
	}
	at := rapid.IntRange(0, len(w.before)-1).Draw(t, "branch off")
	tree := w.before[at].tree
	const side = 8
	for i := range side {
		next, err := tree.Apply(journal.Event{Anchor: tree.Path().Tip(), Data: journal.MessagesAdded{Entries: []journal.Entry{entry(fmt.Sprint("side", i), "x")}}})
		if err != nil {
			t.Fatal(err)
		}
		tree = next
		for k := range i + 1 {
			id := journal.NodeID(fmt.Sprint("side", k))
			if n, ok := tree.Find(id); !ok || n.ID != id {
				t.Fatalf("%s is not found on the side line of %d", id, i+1)
			}
			if _, ok := w.tree.Find(id); ok {
				t.Fatalf("%s of the side line is found on the main one", id)
			}
		}
		for _, known := range w.paths[at] {
			if _, ok := tree.Find(journal.NodeID(known)); !ok {
				t.Fatalf("%s is not found on the side line", known)
			}
		}
	}
	for _, id := range w.order {
		if _, ok := w.tree.Find(journal.NodeID(id)); !ok {
			t.Fatalf("%s is not found any more", id)
		}
	}
}

const many = 10_000

// chain is a log of many events, each below the one before or, as forks, below any.
func chain(anchor func(i int) int) []journal.Event {
	events := []journal.Event{added("", "n0")}
	for i := 1; i < many; i++ {
		events = append(events, added(fmt.Sprint("n", anchor(i)), fmt.Sprint("n", i)))
	}
	return events
}

func before(i int) int    { return i - 1 }
func somewhere(i int) int { return i * 7919 % i }

func BenchmarkFold10000(b *testing.B) {
	for _, c := range []struct {
		name   string
		anchor func(int) int
		aside  bool // another line leaves early, and is asked first
	}{
		{"line", before, false},
		{"forks", somewhere, false},
		{"forks beside another line", somewhere, true},
	} {
		events := chain(c.anchor)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var tree journal.Tree
				for i, e := range events {
					if c.aside && i == 100 {
						aside := apply(b, tree, added("n0", "x1", "x2", "x3", "x4", "x5"))
						aside.Find("n1")
					}
					tree = apply(b, tree, e)
				}
			}
		})
	}
}

// BenchmarkMatch10000 finds a whole conversation again: on the active path, and on a
// branch that was left.
func BenchmarkMatch10000(b *testing.B) {
	var line journal.Tree
	for _, e := range chain(before) {
		line = apply(b, line, e)
	}
	messages := line.Path().Messages()
	for name, tree := range map[string]journal.Tree{"path": line, "branch": apply(b, line, added("", "other"))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := tree.Match(messages); len(d) > 1 {
					b.Fatal(d)
				}
			}
		})
	}
}

func apply(t testing.TB, tree journal.Tree, e journal.Event) journal.Tree {
	t.Helper()
	tree, err := tree.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

package journal_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// grove is a tree of two branches, a-b-c and a-d-e, with the head at e.
func grove(t *testing.T) journal.Tree {
	t.Helper()
	tree := apply(t, journal.Tree{}, added("", "a", "b", "c"))
	return apply(t, tree, added("a", "d", "e"))
}

// words says what drafts do, one each: "b+x,?" hangs x and one without id below b, and
// "to b" moves the head there.
func words(drafts []journal.Draft) string {
	var out []string
	for _, d := range drafts {
		switch x := d.Data.(type) {
		case journal.MessagesAdded:
			var ids []string
			for _, e := range x.Entries {
				if e.ID == "" {
					e.ID = "?"
				}
				ids = append(ids, string(e.ID))
			}
			out = append(out, string(d.Anchor)+"+"+strings.Join(ids, ","))
		case journal.HeadMoved:
			if d.Anchor != x.To {
				out = append(out, "anchored at "+string(d.Anchor))
			}
			out = append(out, "to "+string(x.To))
		}
	}
	return strings.Join(out, "; ")
}

// entries are entries of ids in which "?" is none.
func entries(ids string) []journal.Entry {
	var list []journal.Entry
	for _, id := range strings.Fields(ids) {
		if id == "?" {
			list = append(list, entry("", "new"))
		} else {
			list = append(list, entry(id, "other words"))
		}
	}
	return list
}

func TestView(t *testing.T) {
	for _, c := range []struct{ name, view, want string }{
		{"the path as it is", "a d e", ""},
		{"one message more", "a d e x", "e+x"},
		{"more without ids", "a d e ? ?", "e+?,?"},
		{"regenerated: the last is dropped and comes anew", "a d x", "d+x"},
		{"edited in the middle: what followed is dropped", "a x", "a+x"},
		{"a rewind", "a d", "to d"},
		{"a rewind to nothing", "", "to "},
		{"the other branch", "a b c", "to c"},
		{"the other branch, earlier", "a b", "to b"},
		{"the other branch and more", "a b c x", "c+x"},
		{"known, but not below the one before", "a e", "a+?"},
		{"a known id is not given again after the first new one", "a d x e b", "d+x,?,?"},
		{"known behind one without id", "a ? d", "a+?,?"},
		{"begins with one of the middle", "d e", "+?,?"},
		{"an id twice, new", "a d e x x", "e+x,?"},
		{"an id twice, known", "a d d", "d+?"},
		{"an id twice, apart", "a d e x y x", "e+x,y,?"},
		{"nothing known", "x y", "+x,y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := grove(t)
			if got := words(tree.View(entries(c.view))); got != c.want {
				t.Errorf("View(%s) = %q, want %q", c.view, got, c.want)
			}
		})
	}
	if got := words(journal.Tree{}.View(nil)); got != "" {
		t.Errorf("an empty view of an empty tree does %q", got)
	}
	view := entries("a d e d")
	grove(t).View(view)
	if view[3].ID != "d" {
		t.Error("View changed what it was given")
	}
}

func TestAppend(t *testing.T) {
	for _, c := range []struct{ entries, want string }{
		{"", ""},
		{"x y", "e+x,y"},
		{"? ?", "e+?,?"},
		{"a d e", ""},    // all there
		{"a x e", "e+x"}, // known ones are dropped, and nothing branches
		{"b x", "e+x"},   // also those of another branch
		{"x x", "e+x,?"}, // two messages
	} {
		if got := words(grove(t).Append(entries(c.entries))); got != c.want {
			t.Errorf("Append(%s) = %q, want %q", c.entries, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ name, texts, want string }{
		{"the path as it is", "a d e", ""},
		{"one message more", "a d e x", "e+?"},
		{"edited", "a x e", "a+?,?"},
		{"the first edited", "x d e", "+?,?,?"},
		{"fewer", "a d", "to d"},
		{"none", "", "to "},
		{"back to the other branch", "a b c", "to c"},
		{"back to the other branch, and on", "a b c x", "c+?"},
		{"the words of another branch", "a d c", "d+?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var messages []llm.Message
			for _, text := range strings.Fields(c.texts) {
				messages = append(messages, llm.TextMessage(llm.User, text))
			}
			if got := words(grove(t).Match(messages)); got != c.want {
				t.Errorf("Match(%s) = %q, want %q", c.texts, got, c.want)
			}
		})
	}
}

// TestMatchTellsMessagesApart: whatever a model would read otherwise makes another message.
func TestMatchTellsMessagesApart(t *testing.T) {
	message := func(change func(*llm.Message)) llm.Message {
		m := llm.Message{
			Role: llm.User, CallID: "c0", Tail: "tail",
			Parts: []llm.Part{{Kind: llm.Text, Text: "hi", Raw: raw("1")}},
			Calls: []llm.Call{{ID: "c1", Name: "n", Arguments: "{}"}},
		}
		change(&m)
		return m
	}
	same := func(*llm.Message) {}
	tree := apply(t, journal.Tree{}, journal.Event{Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "a", Message: message(same)}}}})
	if got := words(tree.Match([]llm.Message{message(same)})); got != "" {
		t.Fatalf("the same message does %q", got)
	}
	for name, change := range map[string]func(*llm.Message){
		"role":          func(m *llm.Message) { m.Role = llm.Assistant },
		"call id":       func(m *llm.Message) { m.CallID = "" },
		"tail":          func(m *llm.Message) { m.Tail = "" },
		"raw":           func(m *llm.Message) { m.Raw = raw("2") },
		"text":          func(m *llm.Message) { m.Parts[0].Text = "ho" },
		"kind":          func(m *llm.Message) { m.Parts[0].Kind = llm.Reasoning },
		"raw of a part": func(m *llm.Message) { m.Parts[0].Raw = raw("2") },
		"fewer parts":   func(m *llm.Message) { m.Parts = nil },
		"arguments":     func(m *llm.Message) { m.Calls[0].Arguments = "{ }" },
		"call":          func(m *llm.Message) { m.Calls[0].ID = "c2" },
		"fewer calls":   func(m *llm.Message) { m.Calls = nil },
	} {
		if got := words(tree.Match([]llm.Message{message(change)})); got != "+?" {
			t.Errorf("another %s does %q, want a branch", name, got)
		}
	}
}

// TestMatchAnswers: what a model said is known again by its text and its calls, however a
// client writes it down.
func TestMatchAnswers(t *testing.T) {
	call := []llm.Call{{ID: "c1", Name: "n", Arguments: "{}"}}
	said := llm.Message{
		Role: llm.Assistant, Calls: call, Raw: raw(`{"role":"assistant","content":"hi\n","reasoning":"hm"}`),
		Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}, {Kind: llm.Text, Text: "hi\n"}},
	}
	tree := apply(t, journal.Tree{}, journal.Event{Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "a", Message: said}}}})
	for _, c := range []struct {
		name    string
		message llm.Message
		want    string
	}{
		{"as clients send it", llm.Message{Role: llm.Assistant, Calls: call, Raw: raw(`{"role":"assistant","content":"hi"}`), Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}}, ""},
		{"edited", llm.Message{Role: llm.Assistant, Calls: call, Parts: []llm.Part{{Kind: llm.Text, Text: "ho"}}}, "+?"},
		{"without its calls", llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}}, "+?"},
		{"with other words of the host", llm.Message{Role: llm.Assistant, Calls: call, Tail: "gone", Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}}, "+?"},
		{"said by the user", llm.Message{Role: llm.User, Calls: call, Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}}, "+?"},
	} {
		if got := words(tree.Match([]llm.Message{c.message})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func raw(value string) llm.Raw {
	return llm.Raw{Dialect: llm.OpenAIChat, Bytes: jsontext.Value(value)}
}

func TestHeadMoved(t *testing.T) {
	moved := func(to string) journal.Event {
		return journal.Event{Seq: 7, Data: journal.HeadMoved{To: journal.NodeID(to)}}
	}
	tree := grove(t)
	for to, want := range map[string]string{"b": "a b ", "e": "a d e ", "": ""} {
		next := apply(t, tree, moved(to))
		if got := path(next); got != want || next.Len() != 5 {
			t.Errorf("moved to %q, the path is %q of %d nodes, want %q of 5", to, got, next.Len(), want)
		}
	}
	next, err := tree.Apply(moved("nowhere"))
	if err == nil || !strings.Contains(err.Error(), "event 7") || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("moved nowhere: %v, want an error that names the event and the node", err)
	}
	if diff := cmp.Diff(path(tree), path(next)); diff != "" {
		t.Errorf("a move that failed changed the path:\n%s", diff)
	}
}

// TestFind: a tree finds its own nodes, the newest of an id, whatever was added to it or
// beside it since, and whoever was asked first.
func TestFind(t *testing.T) {
	old := apply(t, journal.Tree{}, added("", "a", "b", "c", "d", "e", "f"))
	twin := apply(t, old, added("f", "g", "h", "a", "i", "j", "k", "l", "m"))
	beside := apply(t, old, added("f", "o", "p", "a", "q", "r", "s", "t", "u"))
	empty := journal.Tree{}
	for _, c := range []struct {
		name  string
		tree  journal.Tree
		id    journal.NodeID
		below string // "none": not found
	}{
		{"the newer twin", twin, "a", "h"},
		{"in the tree of before, the older one", old, "a", ""},
		{"on the line beside, its own", beside, "a", "p"},
		{"what both have", beside, "b", "a"},
		{"what only the other has", beside, "g", "none"},
		{"what only the first has", twin, "o", "none"},
		{"what comes later", old, "g", "none"},
		{"the root is no node", twin, "", "none"},
		{"in an empty tree", empty, "a", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ok := c.tree.Find(c.id)
			below := "none"
			if ok && n.Parent != nil {
				below = string(n.Parent.ID)
			} else if ok {
				below = ""
			}
			if below != c.below {
				t.Errorf("%q is found below %q, want %q", c.id, below, c.below)
			}
		})
	}
}

func TestSummaryTitle(t *testing.T) {
	long := strings.Repeat("ä", 79)
	for _, c := range []struct{ name, text, want string }{
		{"plain", "Merge these files", "Merge these files"},
		{"lines", "\n Merge\n\tthese  files \r\n", "Merge these files"},
		{"control characters", "a\x1b[31mb\x00c\x7f \u0085 \u202ed", "a[31mbc d"},
		{"bytes that are no text", "a\xffb", "ab"},
		{"as long as may be", long + "x", long + "x"},
		{"longer", long + "xy", long + "x…"},
		{"cut between words", long + " y", long + "…"},
		{"only what cannot be shown", "\u200b\u202e", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := func(role llm.Role, text string) journal.Event {
				return journal.Event{Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "n", Message: llm.TextMessage(role, text)}}}}
			}
			s := journal.Summary{}.Apply(said(llm.System, "You are kind")).Apply(said(llm.User, c.text))
			if s.Title != c.want {
				t.Errorf("title %q, want %q", s.Title, c.want)
			}
			if again := s.Apply(said(llm.User, "And now?")); c.want != "" && again.Title != c.want {
				t.Errorf("a second question made the title %q", again.Title)
			}
		})
	}
}

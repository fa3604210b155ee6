package turn_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// journals are files that earlier builds wrote. Each build must fold all of them to what
// stands beside them, for ever: there are databases full of such events. Neither is ever
// written again. A new version of the facts gets a folder of its own.
const journals = "testdata/journals"

// TestJournalsFoldForEver: what was stored is read as it was meant.
func TestJournalsFoldForEver(t *testing.T) {
	if updating() {
		writeMissing(t)
	}
	files, err := filepath.Glob(filepath.Join(journals, "v*", "*.jsonl"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d journals, %v", len(files), err)
	}
	kinds := map[journal.Kind]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			events := load(t, file)
			for _, e := range events {
				kinds[e.Data.Kind()] = true
			}
			golden := strings.TrimSuffix(file, ".jsonl") + ".fold"
			got := folded(t, events)
			want, err := os.ReadFile(golden)
			if errors.Is(err, fs.ErrNotExist) && updating() {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("it folds to something else than it did (-then +now):\n%s", diff)
			}
		})
	}
	for _, k := range journal.Kinds() {
		if !kinds[k] {
			t.Errorf("no journal has the kind %s: add one that does", k)
		}
	}
}

// updating reports whether what is missing is to be written.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func load(t *testing.T, file string) []journal.Event {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []journal.Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e, err := journal.Decode(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

// folded is all that events fold to, for people to read.
func folded(t *testing.T, events []journal.Event) string {
	t.Helper()
	var s turn.State
	var v journal.Versions
	var summary journal.Summary
	var b strings.Builder
	for _, e := range events {
		s, v, summary = s.Apply(e), v.Apply(e), summary.Apply(e)
		fmt.Fprintf(&b, "%d %s: %s\n", e.Seq, e.Data.Kind(), planned(s))
	}
	b.WriteString("\ntree\n")
	for _, n := range s.Tree().Nodes() {
		parent := "root"
		if n.Parent != nil {
			parent = string(n.Parent.ID)
		}
		fmt.Fprintf(&b, "%s below %s: %s %s\n", n.ID, parent, n.Message.Role, n.Message.Text())
	}
	fmt.Fprintf(&b, "\npath\n%s", transcript(s.Path()))
	config, _ := v.Config(s.Path())
	state, _ := v.State(s.Path())
	fmt.Fprintf(&b, "\nconfig %s\nstate %s\n", config, state)
	j, err := json.Marshal(summary, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "\nsummary\n%s\n", j)
	return b.String()
}

// planned is what is to be done in a state, in words.
func planned(s turn.State) string {
	p := s.Next()
	var words []string
	for _, d := range p.Record {
		words = append(words, "record "+string(d.Data.Kind()))
	}
	for _, e := range p.Do {
		words = append(words, fmt.Sprintf("do %T", e))
	}
	for _, w := range p.Wait {
		words = append(words, "wait for "+w.Call.ID)
	}
	if p.End != nil {
		words = append(words, fmt.Sprintf("end %s %s %s", p.End.Reason, p.End.Finish, p.End.Error))
	}
	return strings.TrimSpace(strings.Join(words, ", "))
}

// writeMissing writes journals of this build that are not there.
func writeMissing(t *testing.T) {
	t.Helper()
	for name, events := range samples(t) {
		file := filepath.Join(journals, fmt.Sprint("v", journal.Schema), name+".jsonl")
		if _, err := os.Stat(file); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i, e := range events {
			e.Seq, e.Schema, e.At = int64(i+1), journal.Schema, time.Date(2026, 12, 1, 9, 0, i, 0, time.UTC)
			line, err := journal.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(line)
			b.WriteByte('\n')
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// samples are journals of this build: each scripted turn, one that was taken over in the
// middle, one that made room, one whose branch was left, and a conversation with branches
// and versions.
func samples(t *testing.T) map[string][]journal.Event {
	t.Helper()
	all := map[string][]journal.Event{"branches": branches(), "rewound-in-the-middle": rewound()}
	for _, s := range crashScenarios() {
		r := newRig(s)
		r.append(t, r.drafts()...)
		m, _, _, _ := r.process(t, 0)
		name := strings.Map(func(c rune) rune {
			if c == ' ' {
				return '-'
			}
			if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz", c) {
				return c
			}
			return -1
		}, s.name)
		all[name] = collect(t, r.log)
		if s.name == "a host call is answered and not shown" {
			cut, _, _, _ := crash(t, s, journal.Never, m.steps/2)
			all["taken-over"] = collect(t, cut.log)
		}
	}
	all["made-room"] = []journal.Event{
		{TurnID: "t1", Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: "n1", Message: llm.TextMessage(llm.User, "question")}}}},
		{TurnID: "t1", Anchor: "n1", Data: journal.TurnStarted{Model: "m", Bounds: journal.Bounds{Rounds: 8, Calls: 8}, Context: 4096}},
		{TurnID: "t1", Anchor: "n1", Data: journal.GenerateRequested{ID: "g1", Round: 1, Attempt: 1}},
		{TurnID: "t1", Anchor: "n1", Data: journal.GenerateFailed{ID: "g1", Error: "too long", Overflow: true, Limit: 2048}},
		{TurnID: "t1", Anchor: "n1", Data: journal.ResultsElided{Results: []journal.Elided{{Node: "n1", Text: "[left out]"}}}},
	}
	return all
}

func branches() []journal.Event {
	message := func(anchor, id, text string, role llm.Role) journal.Event {
		m := llm.TextMessage(role, text)
		m.Raw = llm.Raw{Dialect: llm.OpenAIChat, Bytes: jsontext.Value(`{"role" : "` + string(role) + `", "content":"` + text + `"}`)}
		return journal.Event{TurnID: "t1", Anchor: journal.NodeID(anchor), Data: journal.MessagesAdded{Entries: []journal.Entry{{ID: journal.NodeID(id), Message: m}}}}
	}
	return []journal.Event{
		{Data: journal.SessionCreated{Agent: "support", Owner: "ann", Origin: "web"}},
		{Data: journal.ConfigSet{Value: jsontext.Value(`{"model": "m"}`)}},
		message("", "n1", "hello", llm.User),
		{Anchor: "n1", Data: journal.StateSet{Value: jsontext.Value(`1`)}},
		message("n1", "n2", "hi", llm.Assistant),
		{Anchor: "n2", Data: journal.ConfigSet{Value: jsontext.Value(`{"model": "n"}`)}},
		{Anchor: "n2", Data: journal.StateSet{Value: jsontext.Value(`2`)}},
		{Anchor: "n1", Data: journal.HeadMoved{To: "n1"}},
		message("n1", "n3", "hi again", llm.Assistant),
		message("", "n4", "hello there", llm.User),
		{Anchor: "n3", Data: journal.HeadMoved{To: "n3"}},
	}
}

// rewound is a turn that waits for its host and its caller at once when its branch is
// left, and one that is forced to answer after it, and waits for its caller.
func rewound() []journal.Event {
	at := func(turn, anchor string, d journal.Data) journal.Event {
		return journal.Event{TurnID: turn, Anchor: journal.NodeID(anchor), Data: d}
	}
	ours, theirs := llm.Call{ID: "c1", Name: "read", Arguments: "{}"}, llm.Call{ID: "c2", Name: "weather", Arguments: "{}"}
	both := []journal.Handler{journal.Host, journal.Caller}
	reply := func(text string, calls ...llm.Call) llm.Reply {
		m := llm.TextMessage(llm.Assistant, text)
		m.Calls = calls
		return llm.Reply{Message: m, Finish: llm.FinishCalls, Model: "m", Usage: llm.Usage{Input: 5, Output: 2, Total: 7}}
	}
	start := journal.TurnStarted{Model: "m", Caller: []llm.Declaration{{Name: "weather"}}, Bounds: journal.Bounds{Rounds: 1, Calls: 8}}
	offer := &journal.Offer{Declared: []llm.Declaration{{Name: "read"}}}
	return []journal.Event{
		at("t1", "", journal.MessagesAdded{Entries: []journal.Entry{{ID: "n1", Message: llm.TextMessage(llm.User, "question")}}}),
		at("t1", "n1", start),
		at("t1", "n1", journal.GenerateRequested{ID: "g1", Round: 1, Attempt: 1, Offer: offer}),
		at("t1", "n1", journal.GenerateEnded{ID: "g1", Node: "n2", Reply: reply("both", ours, theirs), Handlers: both}),
		at("t1", "n2", journal.InvokeRequested{Call: ours, Attempt: 1, Replay: journal.Again}),
		at("t2", "n1", journal.HeadMoved{To: "n1"}),
		at("t2", "n1", start),
		at("t2", "n1", journal.GenerateRequested{ID: "g2", Round: 1, Attempt: 1}),
		at("t2", "n1", journal.GenerateEnded{ID: "g2", Node: "n3", Reply: reply("ours", ours), Handlers: both[:1]}),
		at("t2", "n3", journal.InvokeRequested{Call: ours, Attempt: 1, Replay: journal.Again}),
		at("t2", "n3", journal.InvokeEnded{CallID: "c1", Result: journal.Result{Text: "page", OK: true}}),
		at("t2", "n3", journal.MessagesAdded{Entries: []journal.Entry{{ID: "n4", Message: llm.Message{Role: llm.Tool, CallID: "c1", Parts: []llm.Part{{Kind: llm.Text, Text: "page"}}}}}}),
		at("t2", "n4", journal.MessagesAdded{Entries: []journal.Entry{{ID: "n5", Message: llm.TextMessage(llm.User, "answer now")}}}),
		at("t2", "n5", journal.GenerateRequested{ID: "g3", Round: 2, Attempt: 1, Forced: true, Choice: llm.ChoiceNone}),
		at("t2", "n5", journal.GenerateEnded{ID: "g3", Node: "n6", Reply: reply("both again", ours, theirs), Handlers: both}),
	}
}

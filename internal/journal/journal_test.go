package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/journal/journaltest"
	"github.com/metier-run/metier/internal/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Subject {
		m := journal.NewMemory(time.Now)
		return journaltest.Subject{Log: m, Take: m.Take, Again: func() journal.Log { return m }}
	})
}

// every is one fact of each kind, with every field set.
func every() []journal.Data {
	call := llm.Call{ID: "c1", Name: "skills_read", Arguments: `{"skill":"pdf"}`, Rescued: true}
	raw := llm.Raw{Dialect: llm.OpenAIChat, Bytes: jsontext.Value(`{"role":"user"}`)}
	message := llm.Message{
		Role: llm.Assistant, CallID: "c0",
		Parts: []llm.Part{
			{Kind: llm.Text, Text: "hi", Raw: raw},
			{Kind: llm.File, Media: &llm.Media{Type: "text/plain", Name: "a.txt", Data: "aGk=", URL: "https://files.test/a"}},
		},
		Calls: []llm.Call{call}, Raw: raw, Tail: "tail", Joined: true,
	}
	tool := llm.Declaration{Name: "n", Description: "d", Parameters: jsontext.Value(`{"type":"object"}`), Special: true, Raw: raw}
	whole, number, many, yes := 1.0, 40, int64(7), true
	return []journal.Data{
		journal.MessagesAdded{Entries: []journal.Entry{{ID: "n1", Message: message}}},
		journal.TurnStarted{
			Model: "m", Dialect: llm.OpenAIChat, Rest: []llm.Member{{Name: "stop", Value: jsontext.Value(`["x"]`), Neutral: true}},
			Options: llm.Options{
				Choice: llm.ChoiceNamed, Function: "f", Structured: true, Schema: jsontext.Value(`{"type": "object"}`), MaxTokens: 512, Choices: 2,
				Temperature: &whole, TopP: &whole, TopK: &number, Seed: &many, Stop: []string{"x"},
				FrequencyPenalty: &whole, PresencePenalty: &whole, RepeatPenalty: &whole, Parallel: &yes, Effort: "low",
			},
			Added:  []llm.Member{{Name: "id_slot", Value: jsontext.Value("3"), Neutral: true}},
			Caller: []llm.Declaration{tool}, Block: "b", Bounds: journal.Bounds{Rounds: 8, Calls: 7},
			ResultsAsUser: true, Context: 8192, Snapshot: "s",
		},
		journal.TurnResumed{},
		journal.TurnEnded{Reason: journal.Failed, Error: "e"},
		journal.GenerateRequested{
			ID: "g", Round: 2, Attempt: 3, Forced: true, Choice: llm.ChoiceNone,
			Offer: &journal.Offer{Declared: []llm.Declaration{tool}},
		},
		journal.GenerateEnded{
			ID: "g", Node: "n2", Handlers: []journal.Handler{journal.Host, journal.Caller},
			Reply: llm.Reply{
				Message: message, Finish: llm.FinishCalls, Model: "m",
				Usage: llm.Usage{Input: 1, Output: 2, Total: 3, Cached: 4, Written: 6, Reasoning: 5},
			},
		},
		journal.GenerateFailed{ID: "g", Error: "e", Overflow: true, Limit: 4096},
		journal.ResultsElided{Results: []journal.Elided{{Node: "n", Text: "t"}}},
		journal.InvokeRequested{Call: call, Attempt: 1, Replay: journal.Never},
		journal.InvokeEnded{CallID: "c1", Result: journal.Result{
			Text: "t", OK: true, Skill: "s", Detail: "d", Workspace: true, Files: []journal.File{{Name: "f", Bytes: 1, URL: "u"}},
		}},
		journal.SessionCreated{Agent: "a", Owner: "o", Origin: "run"},
		journal.HeadMoved{To: "n1"},
		journal.ConfigSet{Value: jsontext.Value(`{"a": 1, "a": 2}`)},
		journal.StateSet{Value: jsontext.Value(`[]`)},
	}
}

func TestCodecKeepsEveryFact(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 5, time.UTC)
	for i, d := range every() {
		want := journal.Event{Seq: int64(i + 1), Schema: journal.Schema, At: at, TurnID: "t", Anchor: "a", Data: d}
		b, err := journal.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := journal.Decode(b)
		if err != nil {
			t.Fatalf("Decode(%s): %v", b, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.Kind(), diff)
		}
	}
}

// TestEveryKind: the facts of these tests are all that there are.
func TestEveryKind(t *testing.T) {
	var kinds []journal.Kind
	for _, d := range every() {
		kinds = append(kinds, d.Kind())
	}
	slices.Sort(kinds)
	want := slices.Sorted(slices.Values(journal.Kinds()))
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, in := range []string{
		``, `null`, `{"seq":1,"schema":1,"kind":"nobody.knows","data":{}}`,
		`{"seq":1,"schema":99,"at":"2026-01-01T00:00:00Z","kind":"turn.resumed","data":{}}`,
		`{"seq":1,"schema":1,"at":"2026-01-01T00:00:00Z","kind":"turn.ended","data":[]}`,
	} {
		if e, err := journal.Decode([]byte(in)); err == nil {
			t.Errorf("Decode(%q) = %+v, want an error", in, e)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for i, d := range every() {
		b, err := journal.Encode(journal.Event{Seq: int64(i), Schema: 1, Data: d})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := journal.Decode(b)
		if err != nil {
			return
		}
		again, err := journal.Encode(e)
		if err != nil {
			t.Fatalf("cannot encode what was decoded from %q: %v", b, err)
		}
		if _, err := journal.Decode(again); err != nil {
			t.Fatalf("cannot decode %q again: %v", again, err)
		}
	})
}

func added(anchor string, ids ...string) journal.Event {
	var d journal.MessagesAdded
	for _, id := range ids {
		d.Entries = append(d.Entries, journal.Entry{ID: journal.NodeID(id), Message: llm.TextMessage(llm.User, id)})
	}
	return journal.Event{Anchor: journal.NodeID(anchor), Data: d}
}

func path(tree journal.Tree) string {
	var s string
	for _, n := range tree.Path().Nodes() {
		s += string(n.ID) + " "
	}
	return s
}

func TestTree(t *testing.T) {
	var tree journal.Tree
	steps := []struct {
		event journal.Event
		want  string
	}{
		{added("", "a", "b"), "a b "},
		{added("b", "c"), "a b c "},
		{added("a", "d"), "a d "},          // a fork below a
		{added("b", "e", "f"), "a b e f "}, // a second fork, from the branch left
		{added("", "g"), "g "},             // a second root
		{journal.Event{Data: journal.TurnResumed{}}, "g "},
	}
	for i, s := range steps {
		before := tree
		next, err := tree.Apply(s.event)
		if err != nil {
			t.Fatal(err)
		}
		if got := path(next); got != s.want {
			t.Errorf("step %d: path %q, want %q", i, got, s.want)
		}
		// Another branch from the same value must not disturb the first.
		if _, err := before.Apply(added(string(before.Path().Tip()), "other")); err != nil {
			t.Fatal(err)
		}
		if got := path(next); got != s.want {
			t.Errorf("step %d: a second fold changed the path to %q", i, got)
		}
		tree = next
	}
	if got := tree.Path().Len(); got != 1 {
		t.Errorf("Len = %d, want 1", got)
	}
	if _, err := tree.Apply(added("nowhere", "x")); err == nil {
		t.Error("a message under an unknown node was taken")
	}
}

package continuity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/continuity/continuitytest"
	"github.com/metier-run/metier/internal/llm"
)

func TestMemory(t *testing.T) {
	continuitytest.Run(t, func(*testing.T) continuitytest.Subject {
		now := time.Unix(1_000_000, 0)
		return continuitytest.Subject{
			Store:   continuity.NewMemory(continuitytest.Bounds(), func() time.Time { return now }),
			Advance: func(d time.Duration) { now = now.Add(d) },
		}
	})
}

func call(id, args string) llm.Message {
	return llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: id, Name: "f", Arguments: args}}}
}

// TestCanonical: what SDKs change does not count, what a person changes does.
func TestCanonical(t *testing.T) {
	same := [][2]llm.Message{
		{llm.TextMessage(llm.Assistant, "hi\n"), llm.TextMessage(llm.Assistant, "  hi")},
		{call("c", `{"a":1,"b":[ 2 ]}`), call("c", ` {"b":[2],"a":1.0} `)},
		{call("c", ``), call("c", `{}`)},
		{llm.TextMessage(llm.User, "ab"), {Role: llm.User, Parts: []llm.Part{{Kind: llm.Text, Text: "a"}, {Kind: llm.Text, Text: "b"}}}},
		{llm.TextMessage(llm.Assistant, "x"), {Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}, {Kind: llm.Text, Text: "x"}}}},
		{
			{Role: llm.User, Parts: []llm.Part{{Kind: llm.Other, Raw: llm.Raw{Bytes: []byte(`{"type":"image_url","image_url":{"url":"u","detail":"low"}}`)}}}},
			{Role: llm.User, Parts: []llm.Part{{Kind: llm.Other, Raw: llm.Raw{Bytes: []byte(`{"image_url":{"detail":"low","url":"u"}, "type":"image_url"}`)}}}},
		},
	}
	for _, pair := range same {
		if diff := cmp.Diff(continuity.Canonical(pair[0]), continuity.Canonical(pair[1])); diff != "" {
			t.Errorf("%+v and %+v are told apart:\n%s", pair[0], pair[1], diff)
		}
	}
	differ := []llm.Message{
		llm.TextMessage(llm.User, "hi"), llm.TextMessage(llm.Assistant, "hi"), llm.TextMessage(llm.User, "hi there"),
		llm.TextMessage(llm.User, "h i"), call("c", `{"a":1}`), call("c", `{"a":2}`), call("d", `{"a":1}`), call("c", `broken {`),
		{Role: llm.Tool, CallID: "c", Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}},
		{Role: llm.Tool, CallID: "d", Parts: []llm.Part{{Kind: llm.Text, Text: "hi"}}},
	}
	seen := map[continuity.Mark]llm.Message{}
	for _, m := range differ {
		at := continuity.Scope{}.Chain().Add(m)
		if other, ok := seen[at]; ok {
			t.Errorf("%+v and %+v are the same", other, m)
		}
		seen[at] = m
	}
}

// TestScope: nothing of the scope may differ.
func TestScope(t *testing.T) {
	base := continuity.Scope{Tenant: "t", Key: "k", User: "u", Model: "m", Skills: []string{"a", "b"}, Discovery: true}
	order := base
	order.Skills = []string{"b", "a"}
	if base.Chain() != order.Chain() {
		t.Error("the order of the selection counts")
	}
	for name, change := range map[string]func(*continuity.Scope){
		"tenant": func(s *continuity.Scope) { s.Tenant = "t2" }, "key": func(s *continuity.Scope) { s.Key = "k2" },
		"user": func(s *continuity.Scope) { s.User = "u2" }, "model": func(s *continuity.Scope) { s.Model = "m2" },
		"selection": func(s *continuity.Scope) { s.Skills = []string{"a"} }, "discovery": func(s *continuity.Scope) { s.Discovery = false },
		"shifted": func(s *continuity.Scope) { s.Key, s.User = "ku", "" }, "ids of calls": func(s *continuity.Scope) { s.Nameless = true },
	} {
		other := base
		change(&other)
		if base.Chain() == other.Chain() {
			t.Errorf("the %s does not count", name)
		}
	}
}

func text(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Role) + ":" + m.CallID + m.Text() + " ")
	}
	return b.String()
}

func TestRestore(t *testing.T) {
	store := continuity.NewMemory(continuitytest.Bounds(), time.Now)
	scope := continuity.Scope{Key: "k"}
	u1, a1, u2 := llm.TextMessage(llm.User, "q"), llm.TextMessage(llm.Assistant, "seen"), llm.TextMessage(llm.User, "q2")
	result := func(id string) llm.Message {
		m := llm.TextMessage(llm.Tool, "")
		m.CallID = id
		return m
	}
	mixed := llm.TextMessage(llm.Assistant, "both")
	mixed.Calls = []llm.Call{{ID: "c1"}, {ID: "c2"}, {ID: "c3"}}
	plain := continuity.Entry{
		Hidden: []continuity.Round{
			{Message: llm.TextMessage(llm.Assistant, "h1"), Results: []llm.Message{result("h")}, Skills: []string{"pdf"}},
			{Message: llm.TextMessage(llm.Assistant, "h2"), Results: []llm.Message{result("i")}, Skills: []string{"gone"}},
		},
		Last: continuity.Round{Message: llm.TextMessage(llm.Assistant, "real")},
	}
	parked := continuity.Entry{Last: continuity.Round{Message: mixed, Results: []llm.Message{result("c2")}, Skills: []string{"pdf"}}}
	seenMixed := llm.TextMessage(llm.Assistant, "both")
	seenMixed.Calls = []llm.Call{{ID: "c1"}, {ID: "c3"}}
	rewritten := llm.TextMessage(llm.Assistant, "both")
	rewritten.Calls = []llm.Call{{ID: "c1", Arguments: `{"unit":"C"}`}, {ID: "c3"}}
	byName, _ := scope.Chain().Add(u2).AddCalls(seenMixed)
	for at, e := range map[continuity.Mark]continuity.Entry{
		scope.Chain().Add(u1).Add(a1): plain, scope.Chain().Add(u2).Add(seenMixed): parked, byName: parked,
	} {
		if err := store.Put(t.Context(), scope.Owner(), at, e); err != nil {
			t.Fatal(err)
		}
	}
	all := func(string) bool { return true }
	for _, c := range []struct {
		name      string
		scope     continuity.Scope
		messages  []llm.Message
		reachable func(string) bool
		want      string
		rounds    int
	}{
		{"next turn", scope, []llm.Message{u1, a1, u2}, all, "user:q assistant:h1 tool:h assistant:h2 tool:i assistant:real user:q2 ", 2},
		{"a skill that is gone", scope, []llm.Message{u1, a1, u2}, func(s string) bool { return s != "gone" }, "user:q assistant:h1 tool:h assistant:real user:q2 ", 1},
		{"another conversation", scope, []llm.Message{u2, a1, u2}, all, "user:q2 assistant:seen user:q2 ", 0},
		{"another answer", scope, []llm.Message{u1, u2}, all, "user:q user:q2 ", 0},
		{"another owner", continuity.Scope{Key: "k2"}, []llm.Message{u1, a1}, all, "user:q assistant:seen ", 0},
		{"caller's results, in call order", scope, []llm.Message{u2, seenMixed, result("c3"), result("c1")}, all, "user:q2 assistant:both tool:c1 tool:c2 tool:c3 ", 1},
		{"rewritten arguments", scope, []llm.Message{u2, rewritten, result("c3"), result("c1")}, all, "user:q2 assistant:both tool:c1 tool:c2 tool:c3 ", 1},
		{"mixed and gone", scope, []llm.Message{u2, seenMixed, result("c3"), result("c1")}, func(string) bool { return false }, "user:q2 assistant:both tool:c3 tool:c1 ", 0},
	} {
		got, err := continuity.Restore(t.Context(), store, c.scope, c.messages, func(m llm.Message) llm.Message { return m }, c.reachable, "")
		if err != nil || text(got.Messages) != c.want || got.Rounds != c.rounds {
			t.Errorf("%s: %q, %d rounds, %v, want %q and %d", c.name, text(got.Messages), got.Rounds, err, c.want, c.rounds)
		}
	}
}

// TestRewrittenCalls: a call that the client changed stays as the client has it,
// between the host's own.
func TestRewrittenCalls(t *testing.T) {
	store := continuity.NewMemory(continuitytest.Bounds(), time.Now)
	scope := continuity.Scope{Key: "k"}
	u := llm.TextMessage(llm.User, "q")
	real := llm.Message{Role: llm.Assistant, Raw: llm.Raw{Bytes: []byte("{}")}, Calls: []llm.Call{
		{ID: "h", Name: "skills_read", Arguments: "{ }"}, {ID: "c", Name: "f", Arguments: `{"a":1,"b":2}`},
	}}
	result := llm.TextMessage(llm.Tool, "r")
	result.CallID = "h"
	sent := llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "c", Name: "f", Arguments: `{"a":1}`}}}
	at, ok := scope.Chain().Add(u).AddCalls(sent)
	if !ok {
		t.Fatal("a message with calls has no mark of calls")
	}
	entry := continuity.Entry{Last: continuity.Round{Message: real, Results: []llm.Message{result}}}
	if err := store.Put(t.Context(), scope.Owner(), at, entry); err != nil {
		t.Fatal(err)
	}
	got, err := continuity.Restore(t.Context(), store, scope, []llm.Message{u, sent}, func(m llm.Message) llm.Message { return m }, func(string) bool { return true }, "")
	if err != nil || len(got.Messages) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := []llm.Call{{ID: "h", Name: "skills_read", Arguments: "{ }"}, {ID: "c", Name: "f", Arguments: `{"a":1}`}}
	if diff := cmp.Diff(want, got.Messages[1].Calls); diff != "" || len(got.Messages[1].Raw.Bytes) > 0 {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if entry.Last.Message.Calls[1].Arguments != `{"a":1,"b":2}` {
		t.Error("the stored entry was changed")
	}
}

// TestNameless: a client that keeps no ids of calls finds its rounds again, and its results
// the calls that they answer, by their order.
func TestNameless(t *testing.T) {
	store := continuity.NewMemory(continuitytest.Bounds(), time.Now)
	scope := continuity.Scope{Key: "k", Nameless: true}
	u := llm.TextMessage(llm.User, "q")
	message := func(ids ...string) llm.Message {
		m := llm.TextMessage(llm.Assistant, "a")
		for _, id := range ids {
			m.Calls = append(m.Calls, llm.Call{ID: id, Name: "f", Arguments: "{}"})
		}
		return m
	}
	result := func(id string) llm.Message {
		m := llm.TextMessage(llm.Tool, "r")
		m.CallID = id
		return m
	}
	shown := message("c1", "c3")
	entry := continuity.Entry{Last: continuity.Round{Message: message("c1", "c2", "c3"), Results: []llm.Message{result("c2")}}}
	if err := store.Put(t.Context(), scope.Owner(), scope.Chain().Add(scope.Told(u)).Add(scope.Told(shown)), entry); err != nil {
		t.Fatal(err)
	}
	if shown.Calls[0].ID != "c1" {
		t.Error("the message was changed")
	}
	as := func(m llm.Message) llm.Message { return m }
	for name, c := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"by place":   {[]llm.Message{u, message("call_1_0", "call_1_1"), result("call_1_1"), result("call_1_0")}, "user:q assistant:a tool:c1r tool:c2r tool:c3r "},
		"with ids":   {[]llm.Message{u, shown, result("c1"), result("c3")}, "user:q assistant:a tool:c1r tool:c2r tool:c3r "},
		"one call":   {[]llm.Message{u, message("call_1_0"), result("call_1_0")}, "user:q assistant:a tool:call_1_0r "},
		"a stranger": {[]llm.Message{u, shown, result("x")}, "user:q assistant:a tool:xr tool:c2r "},
	} {
		got, err := continuity.Restore(t.Context(), store, scope, c.messages, as, func(string) bool { return true }, "")
		if err != nil || text(got.Messages) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, text(got.Messages), err, c.want)
		}
	}
}

// broken is a store that fails.
type broken struct{ continuity.Store }

func (broken) Any(context.Context, continuity.Owner) (bool, error) { return true, nil }

func (broken) Get(context.Context, continuity.Owner, continuity.Mark) (continuity.Entry, bool, error) {
	return continuity.Entry{}, false, errors.New("disk")
}

func TestBrokenStoreIsAMiss(t *testing.T) {
	messages := []llm.Message{llm.TextMessage(llm.User, "q"), llm.TextMessage(llm.Assistant, "a")}
	got, err := continuity.Restore(t.Context(), broken{}, continuity.Scope{}, messages, func(m llm.Message) llm.Message { return m }, nil, "")
	if err == nil || text(got.Messages) != text(messages) {
		t.Errorf("Restore = %q, %v, want the messages as they were and the error", text(got.Messages), err)
	}
}

// TestFilesGone: the last message that tells of files says that they are gone, in
// every request that follows alike; but for what was done in the workspace that is
// there.
func TestFilesGone(t *testing.T) {
	store, scope := continuity.NewMemory(continuitytest.Bounds(), time.Now), continuity.Scope{Key: "k"}
	u, a := llm.TextMessage(llm.User, "q"), llm.TextMessage(llm.Assistant, "done")
	b, parked := llm.TextMessage(llm.User, "r"), llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "c", Name: "theirs"}}}
	round := func(name, workspace string) continuity.Round {
		m := llm.TextMessage(llm.Tool, "ran")
		m.CallID = name
		return continuity.Round{Message: llm.TextMessage(llm.Assistant, name), Results: []llm.Message{m}, Workspace: workspace}
	}
	last := round("p", "here")
	last.Message.Calls = []llm.Call{{ID: "p", Name: "shell"}, {ID: "c", Name: "theirs"}}
	for at, entry := range map[continuity.Mark]continuity.Entry{
		scope.Chain().Add(u).Add(a): {
			Hidden: []continuity.Round{round("w1", "its own"), round("w2", "there"), round("w3", "here"), round("read", "")},
			Last:   continuity.Round{Message: a},
		},
		scope.Chain().Add(b).Add(parked): {Last: last},
	} {
		if err := store.Put(t.Context(), scope.Owner(), at, entry); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		at       string
		messages []llm.Message
		want     string
	}{
		{"", []llm.Message{u, a, u}, "w3: [The files of the working directory up to here are gone: each request begins with an empty one. Make again what you still need.]"},
		{"", []llm.Message{u, a, u}, "w3: [The files of the working directory up to here are gone: each request begins with an empty one. Make again what you still need.]"},
		{"here", []llm.Message{u, a, u}, "w2: [The files of the working directory up to here are gone: it was emptied since. Make again what you still need.]"},
		{"new", []llm.Message{u, a, u}, "w3: [The files of the working directory up to here are gone: it was emptied since. Make again what you still need.]"},
		{"", []llm.Message{b, parked}, "p: [The files of the working directory up to here are gone: each request begins with an empty one. Make again what you still need.]"},
		{"here", []llm.Message{b, parked}, ""},
	} {
		got, err := continuity.Restore(t.Context(), store, scope, c.messages, func(m llm.Message) llm.Message { return m }, func(string) bool { return true }, c.at)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, m := range got.Messages {
			if m.Tail != "" {
				told = append(told, m.CallID+": "+m.Tail)
			}
		}
		if got := strings.Join(told, "; "); got != c.want {
			t.Errorf("in workspace %q told %q, want %q", c.at, got, c.want)
		}
	}
}

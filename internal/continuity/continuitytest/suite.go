// Package continuitytest is the conformance suite of [continuity.Store]: what
// the gateway relies on, run by every implementation.
//
// It starts no model and no server; entries are made up.
//
// Start at [Run].
package continuitytest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/llm"
)

// Subject is a store under test and the hand on its clock.
type Subject struct {
	Store   continuity.Store
	Advance func(time.Duration)
	// Settle, if set, waits until what has to go is gone.
	Settle func()
}

// Bounds are those that a subject must be opened with.
func Bounds() continuity.Bounds {
	return continuity.Bounds{Bytes: 100_000, Entries: 50, Age: time.Hour}
}

// Run checks an implementation. open makes a new, empty store for each test,
// with [Bounds].
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"keeps", keeps},
		{"owners are apart", ownersApart},
		{"replaces", replaces},
		{"oldest use goes first", oldestGoes},
		{"most entries", mostEntries},
		{"age", age},
		{"too large alone", tooLarge},
		{"many at once", manyAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func entry(text string) continuity.Entry {
	m := llm.TextMessage(llm.Assistant, text)
	m.Calls = []llm.Call{{ID: "c", Name: "n", Arguments: "{}"}}
	m.Raw = llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"role":"assistant","content":"x"}`)}
	return continuity.Entry{
		Hidden: []continuity.Round{{Message: m, Results: []llm.Message{llm.TextMessage(llm.Tool, "r")}, Skills: []string{"pdf"}}},
		Last:   continuity.Round{Message: llm.TextMessage(llm.Assistant, "end")},
	}
}

func mark(n int) continuity.Mark {
	return continuity.Scope{Key: fmt.Sprint(n)}.Chain()
}

func put(t *testing.T, s Subject, owner string, n int, e continuity.Entry) {
	t.Helper()
	if err := s.Store.Put(t.Context(), owned(owner), mark(n), e); err != nil {
		t.Fatal(err)
	}
}

func owned(name string) continuity.Owner { return continuity.Owner{Tenant: "t", Key: name} }

func (s Subject) settle() {
	if s.Settle != nil {
		s.Settle()
	}
}

func has(t *testing.T, s Subject, owner string, n int) bool {
	t.Helper()
	_, ok, err := s.Store.Get(t.Context(), owned(owner), mark(n))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func any(t *testing.T, s Subject, owner string) bool {
	t.Helper()
	ok, err := s.Store.Any(t.Context(), owned(owner))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func keeps(t *testing.T, s Subject) {
	if any(t, s, "a") || has(t, s, "a", 1) {
		t.Error("an empty store has something")
	}
	put(t, s, "a", 1, entry("one"))
	got, ok, err := s.Store.Get(t.Context(), owned("a"), mark(1))
	if err != nil || !ok {
		t.Fatalf("Get: %v, %v", ok, err)
	}
	if diff := cmp.Diff(entry("one"), got); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	if !any(t, s, "a") {
		t.Error("Any does not see it")
	}
}

func ownersApart(t *testing.T, s Subject) {
	put(t, s, "a", 1, entry("one"))
	if any(t, s, "b") || has(t, s, "b", 1) {
		t.Error("one owner sees what another has")
	}
	for _, o := range []continuity.Owner{{Tenant: "u", Key: "a"}, {Tenant: "", Key: "t/a"}, {Tenant: "ta", Key: ""}} {
		if _, ok, err := s.Store.Get(t.Context(), o, mark(1)); ok || err != nil {
			t.Errorf("%+v sees what another tenant has: %v", o, err)
		}
	}
}

func replaces(t *testing.T, s Subject) {
	for range 1000 {
		put(t, s, "a", 1, entry(strings.Repeat("x", 50_000)))
	}
	put(t, s, "a", 2, entry("two"))
	if !has(t, s, "a", 1) || !has(t, s, "a", 2) {
		t.Error("putting one entry again counted its bytes again")
	}
}

func oldestGoes(t *testing.T, s Subject) {
	for n := range 3 {
		put(t, s, "a", n, entry(strings.Repeat("x", 30_000)))
		s.Advance(time.Second)
	}
	has(t, s, "a", 0) // used now, so the second is the oldest
	s.Advance(time.Second)
	put(t, s, "a", 3, entry(strings.Repeat("x", 30_000)))
	s.settle()
	for n, want := range []bool{true, false, true, true} {
		if got := has(t, s, "a", n); got != want {
			t.Errorf("entry %d is there: %v, want %v", n, got, want)
		}
	}
	put(t, s, "b", 9, entry(strings.Repeat("x", 90_000)))
	if !has(t, s, "a", 3) {
		t.Error("one owner's bytes pushed out another's")
	}
}

func mostEntries(t *testing.T, s Subject) {
	for n := range 60 {
		put(t, s, "a", n, entry("x"))
		s.Advance(time.Second)
	}
	s.settle()
	for n, want := range map[int]bool{0: false, 9: false, 10: true, 59: true} {
		if got := has(t, s, "a", n); got != want {
			t.Errorf("entry %d of 60 is there: %v, want %v", n, got, want)
		}
	}
}

func age(t *testing.T, s Subject) {
	put(t, s, "a", 1, entry("one"))
	s.Advance(50 * time.Minute)
	if !has(t, s, "a", 1) {
		t.Fatal("gone before its age")
	}
	s.Advance(50 * time.Minute) // the use above counts
	if !has(t, s, "a", 1) {
		t.Fatal("gone although it was used")
	}
	s.Advance(61 * time.Minute)
	if has(t, s, "a", 1) || any(t, s, "a") {
		t.Error("there after its age")
	}
}

func tooLarge(t *testing.T, s Subject) {
	put(t, s, "a", 1, entry(strings.Repeat("x", 200_000)))
	if has(t, s, "a", 1) {
		t.Error("an entry above the bound was kept")
	}
}

func manyAtOnce(t *testing.T, s Subject) {
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for n := range 100 { // more than fit
				put(t, s, fmt.Sprint("o", g%3), n, entry(strings.Repeat("x", n*10)))
				has(t, s, fmt.Sprint("o", g%3), n)
				any(t, s, fmt.Sprint("o", g%3))
			}
		})
	}
	group.Wait()
}

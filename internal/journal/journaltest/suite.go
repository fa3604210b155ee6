// Package journaltest is the conformance suite of [journal.Log]: what the
// machine relies on, run by every implementation.
//
// It tests behaviour, never speed, and needs nothing but a way to open a log.
//
// Start at [Run].
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// Subject is a log under test.
type Subject struct {
	Log journal.Log
	// Take makes the caller the writer and returns the position to append at.
	Take func() journal.Position
	// Again opens the same log once more, as another process does.
	Again func() journal.Log
}

// Run checks an implementation. open makes a new, empty log for each test.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"append and read", appendAndRead},
		{"all or none", allOrNone},
		{"conflict", conflict},
		{"fence", fence},
		{"a read is of one moment", readIsSnapshot},
		{"one writer wins", oneWriterWins},
		{"cancelled", cancelled},
		{"follow", follow},
		{"follow from anywhere", followFrom},
		{"followers hear of others", followOthers},
		{"many followers of many writers", followMany},
		{"a slow follower keeps nobody waiting", followSlowly},
		{"follow ends", followEnds},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func draft(text string) journal.Draft {
	m := llm.TextMessage(llm.User, text)
	return journal.Draft{TurnID: "t1", Anchor: "a", Data: journal.MessagesAdded{
		Entries: []journal.Entry{{ID: journal.NodeID(text), Message: m}},
	}}
}

func read(t *testing.T, l journal.Log, after int64) []journal.Event {
	t.Helper()
	var events []journal.Event
	for e, err := range l.Read(t.Context(), after) {
		if err != nil {
			t.Fatalf("Read(%d): %v", after, err)
		}
		events = append(events, e)
	}
	return events
}

func mustAppend(t *testing.T, l journal.Log, at journal.Position, drafts ...journal.Draft) journal.Position {
	t.Helper()
	at, err := l.Append(t.Context(), at, drafts...)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return at
}

func appendAndRead(t *testing.T, s Subject) {
	at := s.Take()
	if at.Seq != 0 {
		t.Errorf("an empty log stands at %d, want 0", at.Seq)
	}
	at = mustAppend(t, s.Log, at, draft("one"))
	at = mustAppend(t, s.Log, at, draft("two"), draft("three"))
	if at.Seq != 3 {
		t.Errorf("after three events the log stands at %d, want 3", at.Seq)
	}
	events := read(t, s.Log, 0)
	for i, want := range []string{"one", "two", "three"} {
		e := events[i]
		d := draft(want)
		got := journal.Draft{TurnID: e.TurnID, Anchor: e.Anchor, Data: e.Data}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i+1, diff)
		}
		if e.Seq != int64(i+1) || e.Schema != journal.Schema || e.At.IsZero() {
			t.Errorf("event %d has seq %d, schema %d, time %v", i+1, e.Seq, e.Schema, e.At)
		}
	}
	if got := read(t, s.Log, 2); len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("Read(2) = %d events, want the third only", len(got))
	}
	if got := read(t, s.Log, 99); len(got) != 0 {
		t.Errorf("Read past the end = %d events, want none", len(got))
	}
}

func allOrNone(t *testing.T, s Subject) {
	at := s.Take()
	stale := at
	mustAppend(t, s.Log, at, draft("one"))
	if _, err := s.Log.Append(t.Context(), stale, draft("two"), draft("three")); err == nil {
		t.Fatal("Append at an old position succeeded")
	}
	if got := len(read(t, s.Log, 0)); got != 1 {
		t.Errorf("a refused append left %d events, want 1", got)
	}
}

func conflict(t *testing.T, s Subject) {
	at := s.Take()
	ahead := journal.Position{Seq: at.Seq + 5, Fence: at.Fence}
	if _, err := s.Log.Append(t.Context(), ahead, draft("x")); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("Append ahead of the log: %v, want ErrConflict", err)
	}
	next := mustAppend(t, s.Log, at, draft("one"))
	got, err := s.Log.Append(t.Context(), at, draft("two"))
	if !errors.Is(err, journal.ErrConflict) {
		t.Errorf("Append behind the log: %v, want ErrConflict", err)
	}
	if got != at {
		t.Errorf("a refused append moved the position from %v to %v", at, got)
	}
	mustAppend(t, s.Log, next, draft("two"))
}

func fence(t *testing.T, s Subject) {
	old := mustAppend(t, s.Log, s.Take(), draft("one"))
	fresh := s.Take()
	if fresh.Seq != old.Seq || fresh.Fence <= old.Fence {
		t.Fatalf("Take after %v gave %v, want the same place and a higher fence", old, fresh)
	}
	if _, err := s.Log.Append(t.Context(), old, draft("late")); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Append of a writer that was taken over: %v, want ErrFenced", err)
	}
	mustAppend(t, s.Log, fresh, draft("two"))
}

func readIsSnapshot(t *testing.T, s Subject) {
	at := mustAppend(t, s.Log, s.Take(), draft("one"))
	seq := s.Log.Read(t.Context(), 0)
	n := 0
	for _, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if n == 1 {
			at = mustAppend(t, s.Log, at, draft("two"))
		}
	}
	if n != 1 {
		t.Errorf("a read saw %d events, want the one that was stored when it began", n)
	}
	for range s.Log.Read(t.Context(), 0) {
		break // a reader may stop early
	}
}

func oneWriterWins(t *testing.T, s Subject) {
	at := s.Take()
	const writers = 8
	var won sync.Map
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			_, err := s.Log.Append(t.Context(), at, draft(fmt.Sprint("w", i)))
			if err == nil {
				won.Store(i, true)
			} else if !errors.Is(err, journal.ErrConflict) {
				t.Errorf("writer %d: %v, want ErrConflict", i, err)
			}
		})
	}
	group.Wait()
	n := 0
	won.Range(func(any, any) bool { n++; return true })
	if n != 1 || len(read(t, s.Log, 0)) != 1 {
		t.Errorf("%d of %d writers at one position won and the log has %d events, want 1 and 1", n, writers, len(read(t, s.Log, 0)))
	}
}

func cancelled(t *testing.T, s Subject) {
	at := s.Take()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Log.Append(ctx, at, draft("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: %v, want context.Canceled", err)
	}
	if got := len(read(t, s.Log, 0)); got != 0 {
		t.Errorf("a cancelled append left %d events", got)
	}
}

// follow: what is stored comes first, then what is appended, each once.
func follow(t *testing.T, s Subject) {
	at := mustAppend(t, s.Log, s.Take(), draft("one"), draft("two"))
	next, stop := iter.Pull2(s.Log.Follow(t.Context(), 0))
	defer stop()
	for seq := int64(1); seq <= 6; seq++ {
		if seq > 2 {
			at = mustAppend(t, s.Log, at, draft("more"))
		}
		e, err, ok := next()
		if !ok || err != nil || e.Seq != seq {
			t.Fatalf("heard of event %d, %v, %v, want %d", e.Seq, err, ok, seq)
		}
	}
}

func followFrom(t *testing.T, s Subject) {
	at := mustAppend(t, s.Log, s.Take(), draft("one"), draft("two"), draft("three"))
	next, stop := iter.Pull2(s.Log.Follow(t.Context(), 2))
	defer stop()
	if e, err, _ := next(); err != nil || e.Seq != 3 {
		t.Fatalf("heard of event %d, %v, want the third first", e.Seq, err)
	}
	// One who is ahead of the log waits for what it has not seen.
	ahead, stopAhead := iter.Pull2(s.Log.Follow(t.Context(), 4))
	defer stopAhead()
	mustAppend(t, s.Log, at, draft("four"), draft("five"))
	if e, err, _ := ahead(); err != nil || e.Seq != 5 {
		t.Fatalf("one who has seen four heard of event %d, %v, want the fifth", e.Seq, err)
	}
}

// followOthers: an append through one handle is heard through another.
func followOthers(t *testing.T, s Subject) {
	at := s.Take()
	next, stop := iter.Pull2(s.Again().Follow(t.Context(), 0))
	defer stop()
	for seq := int64(1); seq <= 3; seq++ {
		at = mustAppend(t, s.Log, at, draft("x"))
		if e, err, _ := next(); err != nil || e.Seq != seq {
			t.Fatalf("heard of event %d, %v, want %d", e.Seq, err, seq)
		}
	}
}

// followMany: nothing is lost, doubled or turned round while writers and followers race.
// One follower is in step with the writer, and so waits anew after each append.
func followMany(t *testing.T, s Subject) {
	const events, followers = 200, 16
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan int64, events)
	for i := range followers {
		l := s.Log
		if i%2 == 1 {
			l = s.Again()
		}
		group.Go(func() {
			want := int64(1)
			for e, err := range l.Follow(ctx, 0) {
				if err != nil || e.Seq != want {
					t.Errorf("follower %d heard of event %d, %v, want %d", i, e.Seq, err, want)
					cancel()
					return
				}
				if i == 0 {
					heard <- e.Seq
				}
				if want++; want > events {
					return
				}
			}
		})
	}
	at := s.Take()
	for n := 0; n < events; {
		more := min(1+n%3, events-n)
		at = mustAppend(t, s.Log, at, slices.Repeat([]journal.Draft{draft("x")}, more)...)
		n += more
		for seq := int64(0); seq < at.Seq; {
			select {
			case seq = <-heard:
			case <-ctx.Done():
				return
			}
		}
	}
	group.Wait() // before they are told to stop
}

// followSlowly: writers go on while a follower stands still, in the middle of what is
// stored and of what comes, and it hears of everything once it goes on.
func followSlowly(t *testing.T, s Subject) {
	at := mustAppend(t, s.Log, s.Take(), draft("one"), draft("two"))
	next, stop := iter.Pull2(s.Again().Follow(t.Context(), 0))
	defer stop()
	seq := int64(0)
	hear := func() {
		t.Helper()
		seq++
		if e, err, ok := next(); !ok || err != nil || e.Seq != seq {
			t.Fatalf("heard of event %d, %v, %v, want %d", e.Seq, err, ok, seq)
		}
	}
	const burst = 700 // more than any page or queue of a log should hold
	for range 2 {
		hear()
		for range burst / 7 {
			at = mustAppend(t, s.Log, at, slices.Repeat([]journal.Draft{draft("x")}, 7)...)
		}
	}
	for seq < at.Seq {
		hear()
	}
}

// followEnds: the end of the context is the last element, and a consumer may stop.
func followEnds(t *testing.T, s Subject) {
	mustAppend(t, s.Log, s.Take(), draft("one"))
	ctx, cancel := context.WithCancel(t.Context())
	next, stop := iter.Pull2(s.Log.Follow(ctx, 0))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err, ok := next(); !ok || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v, %v, want context.Canceled", err, ok)
	}
	if _, _, ok := next(); ok {
		t.Error("something came after the error")
	}
	for range s.Log.Follow(t.Context(), 0) {
		break
	}
}

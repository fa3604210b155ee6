package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/continuity/continuitytest"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/journal/journaltest"
	"github.com/metier-run/metier/internal/store"
)

func TestJournal(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db, other := p.open(t), p.open(t) // two processes, as it were
		journaltest.Run(t, func(t *testing.T) journaltest.Subject {
			id := newID()
			l, err := db.CreateSession(t.Context(), tenant, id)
			if err != nil {
				t.Fatal(err)
			}
			return journaltest.Subject{
				Log:   l,
				Take:  func() journal.Position { return take(t, l) },
				Again: func() journal.Log { return other.Log(tenant, id) },
			}
		})
	})
}

func TestContinuity(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		continuitytest.Run(t, func(t *testing.T) continuitytest.Subject {
			db := p.open(t)
			c := db.NewContinuity(continuitytest.Bounds())
			t.Cleanup(c.Close)
			if err := db.Exec(t.Context(), "DELETE FROM continuity"); err != nil {
				t.Fatal(err)
			}
			return continuitytest.Subject{Store: c, Advance: p.clock.advance, Settle: func() { c.Settle(t.Context()) }}
		})
	})
}

// TestContinuityIsShared: what one process remembers another finds, and a restart too.
func TestContinuityIsShared(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		owner, at := continuity.Owner{Tenant: tenant, Key: "k"}, continuity.Scope{Key: "k"}.Chain()
		entry := continuity.Entry{Last: continuity.Round{Skills: []string{"pdf"}}}
		one := p.open(t).NewContinuity(continuitytest.Bounds())
		two := p.open(t).NewContinuity(continuitytest.Bounds())
		defer two.Close()
		if err := one.Put(t.Context(), owner, at, entry); err != nil {
			t.Fatal(err)
		}
		one.Close()
		got, ok, err := two.Get(t.Context(), owner, at)
		if diff := cmp.Diff(entry, got); diff != "" || !ok || err != nil {
			t.Errorf("found %v, %v:\n%s", ok, err, diff)
		}
	})
}

// TestCreateSession: ids are one's own within a tenant, and nothing else can be one.
func TestCreateSession(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		create(t, db, "s1")
		if _, err := db.CreateSession(t.Context(), tenant, "s1"); !errors.Is(err, store.ErrExists) {
			t.Errorf("a second session of the same id: %v, want ErrExists", err)
		}
		if _, err := db.CreateSession(t.Context(), "another", "s1"); err != nil {
			t.Errorf("a session of the same id of another tenant: %v", err)
		}
		for _, id := range []string{"", strings.Repeat("x", 129), "a\nb", "a\x00"} {
			if _, err := db.CreateSession(t.Context(), tenant, id); err == nil {
				t.Errorf("the id %q was taken", id)
			}
		}
		if _, err := db.Session(t.Context(), tenant, "none"); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("a session that is not there: %v, want ErrNoSession", err)
		}
		none := db.Log(tenant, "none")
		if _, err := none.Take(t.Context()); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("taking it: %v, want ErrNoSession", err)
		}
		if _, err := none.Append(t.Context(), journal.Position{}, added("", "n1", "x")); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("appending to it: %v, want ErrNoSession", err)
		}
		for _, err := range none.Follow(t.Context(), 0) {
			if !errors.Is(err, store.ErrNoSession) {
				t.Errorf("following it: %v, want ErrNoSession", err)
			}
		}
	})
}

// TestTenantsApart: a session, its events and its blobs are one tenant's.
func TestTenantsApart(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		mustAppend(t, l, take(t, l), added("", "n1", strings.Repeat("secret ", 1000)))
		other := db.Log("another", "s1")
		for _, err := range other.Read(t.Context(), 0) {
			if !errors.Is(err, store.ErrNoSession) {
				t.Errorf("reading another tenant's session: %v, want ErrNoSession", err)
			}
		}
		if found, _, err := db.Sessions(t.Context(), store.Query{Tenant: "another", Limit: 10}); err != nil || len(found) > 0 {
			t.Errorf("listed %v, %v for another tenant", found, err)
		}
		digest, err := db.PutBlob(t.Context(), tenant, []byte("bytes"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := db.Blob(t.Context(), tenant, digest); err != nil || string(b) != "bytes" {
			t.Errorf("blob %q, %v", b, err)
		}
		if _, err := db.Blob(t.Context(), "another", digest); !errors.Is(err, store.ErrNoBlob) {
			t.Errorf("another tenant's blob: %v, want ErrNoBlob", err)
		}
	})
}

// TestLargeEvents: what is large is kept once, and comes back as it was.
func TestLargeEvents(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		large := strings.Repeat("large ", 10_000)
		at := mustAppend(t, l, take(t, l), added("", "n1", large), added("n1", "n2", "small"))
		at = mustAppend(t, l, at, added("n2", "n1", large))
		mustAppend(t, l, at, added("n2", "n1", large), added("n2", "n1", large))
		for _, e := range read(t, l, 1) {
			d := e.Data.(journal.MessagesAdded)
			want := large
			if e.Seq == 3 {
				want = "small"
			}
			if got := d.Entries[0].Message.Text(); got != want {
				t.Errorf("event %d has %d bytes of text, want %d", e.Seq, len(got), len(want))
			}
		}
		if n, err := db.Count(t.Context(), "blobs"); n != 1 || err != nil {
			t.Errorf("%d blobs for one text, want 1: %v", n, err)
		}
	})
}

// TestDeleteSession: nothing of it is left but what others have too, and its writer is
// told.
func TestDeleteSession(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l, other := create(t, db, "s1"), create(t, db, "s2")
		shared, own := strings.Repeat("shared ", 1000), strings.Repeat("own ", 1000)
		at := mustAppend(t, l, take(t, l), added("", "n1", shared), added("n1", "n2", own))
		mustAppend(t, other, take(t, other), added("", "n1", shared))
		if err := db.DeleteSession(t.Context(), "another", "s1"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := db.DeleteSession(t.Context(), tenant, "s1"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Session(t.Context(), tenant, "s1"); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("the session: %v, want ErrNoSession", err)
		}
		if _, err := l.Append(t.Context(), at, added("n2", "n3", "x")); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("its writer: %v, want ErrNoSession", err)
		}
		if got := len(read(t, other, 0)); got != 2 {
			t.Errorf("the other session has %d events, want 2", got)
		}
		if n, err := db.Count(t.Context(), "blobs"); n != 1 || err != nil {
			t.Errorf("%d blobs are left, want the one that is shared: %v", n, err)
		}
	})
}

// TestFollowRemoved: who follows a session that is removed learns it, in whichever process.
func TestFollowRemoved(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db, other := p.open(t), p.open(t)
		create(t, db, "s1")
		var group sync.WaitGroup
		heard := make(chan struct{}, 2)
		for _, d := range []*store.DB{db, other} {
			group.Go(func() {
				var last error
				for _, err := range d.Log(tenant, "s1").Follow(t.Context(), 0) {
					if last = err; err == nil {
						heard <- struct{}{}
					}
				}
				if !errors.Is(last, store.ErrNoSession) {
					t.Errorf("a follower ends with %v, want ErrNoSession", last)
				}
			})
		}
		<-heard
		<-heard
		if err := db.DeleteSession(t.Context(), tenant, "s1"); err != nil {
			t.Fatal(err)
		}
		group.Wait()
	})
}

// TestDeleteIsWhole: a deletion that nobody waits for any more has removed all or nothing.
func TestDeleteIsWhole(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for n := range 12 {
			id := fmt.Sprint("s", n)
			var drafts []journal.Draft
			for i := range 40 {
				drafts = append(drafts, added("", fmt.Sprint("n", i), strings.Repeat(fmt.Sprint(id, " said ", i, " "), 300)))
			}
			if _, err := db.CreateSession(t.Context(), tenant, id, drafts...); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
			err := db.DeleteSession(ctx, tenant, id)
			stop()
			want := 0
			if _, there := db.Session(t.Context(), tenant, id); there == nil {
				want = 40
			}
			if got, countErr := db.Count(t.Context(), "blobs"); got != want || countErr != nil || err == nil && want > 0 {
				t.Errorf("deletion %d: %v, and %d blobs are left, want %d: %v", n, err, got, want, countErr)
			}
			if err := db.DeleteSession(t.Context(), tenant, id); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSweep: bytes that nothing refers to go when they are a day old, and no others.
func TestSweep(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for i := range 120 {
			if _, err := db.PutBlob(t.Context(), []string{tenant, "another"}[i%2], fmt.Append(nil, "bytes ", i)); err != nil {
				t.Fatal(err)
			}
		}
		l := create(t, db, "s1")
		mustAppend(t, l, take(t, l), added("", "n1", strings.Repeat("large ", 1000)))
		p.clock.advance(25 * time.Hour)
		for _, text := range []string{"bytes 0", "new"} { // the first is put again
			if _, err := db.PutBlob(t.Context(), tenant, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := db.Sweep(t.Context()); n != 119 || err != nil {
			t.Errorf("swept %d blobs, want 119: %v", n, err)
		}
		if n, err := db.Count(t.Context(), "blobs"); n != 3 || err != nil {
			t.Errorf("%d blobs are left, want 3: %v", n, err)
		}
		if got := len(read(t, l, 0)); got != 2 {
			t.Errorf("the session has %d events, want 2", got)
		}
	})
}

// hundred are as many drafts.
func hundred() []journal.Draft {
	var drafts []journal.Draft
	for i := range 100 {
		drafts = append(drafts, added("", fmt.Sprint("n", i), "x"))
	}
	return drafts
}

// TestFollowMany: more events at once than are kept at hand reach a follower all the same.
func TestFollowMany(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		at, want := take(t, l), int64(1)
		for e, err := range l.Follow(t.Context(), 0) {
			if err != nil || e.Seq != want {
				t.Fatalf("event %d, %v, want event %d", e.Seq, err, want)
			}
			if want++; want == 202 {
				break
			}
			if e.Seq == 1 || e.Seq == 101 {
				at = mustAppend(t, l, at, hundred()...)
			}
		}
	})
}

// TestReadRemoved: who reads a session while it is removed learns that, and of no damage.
func TestReadRemoved(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for _, way := range []string{"read", "follow", "behind"} {
			drafts := slices.Repeat(hundred(), 3) // more than a page
			l := create(t, db, way)
			at := take(t, l)
			if way != "behind" {
				mustAppend(t, l, at, drafts...)
			}
			events := l.Follow(t.Context(), 0)
			if way == "read" {
				events = l.Read(t.Context(), 0)
			}
			var last error
			for e, err := range events {
				if last = err; e.Seq != 1 {
					continue
				}
				if way == "behind" {
					mustAppend(t, l, at, drafts...)
				}
				if err := db.DeleteSession(t.Context(), tenant, way); err != nil {
					t.Fatal(err)
				}
			}
			if !errors.Is(last, store.ErrNoSession) {
				t.Errorf("%s: %v, want ErrNoSession", way, last)
			}
		}
	})
}

// TestMissing: events that are gone by themselves are damage.
func TestMissing(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		mustAppend(t, l, take(t, l), hundred()...)
		if err := db.Exec(t.Context(), "DELETE FROM events WHERE seq > 50"); err != nil {
			t.Fatal(err)
		}
		var last error
		for e, err := range l.Read(t.Context(), 0) {
			if last = err; e.Seq > 50 {
				t.Errorf("event %d was read", e.Seq)
			}
		}
		if last == nil || !strings.Contains(last.Error(), "events after 50 are missing: the database is damaged") {
			t.Errorf("it ends with %v", last)
		}
	})
}

// TestWrongWord: word of events that there are not makes a follower look, and no more.
func TestWrongWord(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		at := take(t, l)
		events := make(chan journal.Event)
		go func() {
			defer close(events)
			for e, err := range l.Follow(t.Context(), 0) {
				if err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
				if err != nil {
					return
				}
				if events <- e; e.Seq == 4 {
					return
				}
			}
		}()
		for e := range events {
			db.Heard(tenant, "s1", 99)
			if at.Seq == e.Seq {
				at = mustAppend(t, l, at, added("", "n", "x"))
			}
		}
		if at.Seq != 5 {
			t.Errorf("the follower heard of events up to %d, want 4", at.Seq-1)
		}
	})
}

// TestSummaryIsACache: what is kept beside the log follows from the log alone.
func TestSummaryIsACache(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		at := mustAppend(t, l, take(t, l), added("", "n1", "How do we write release notes?"))
		mustAppend(t, l, at, journal.Draft{TurnID: "t1", Anchor: "n1", Data: journal.TurnStarted{Model: "m"}})
		before, err := db.Session(t.Context(), tenant, "s1")
		if err != nil {
			t.Fatal(err)
		}
		err = db.Exec(t.Context(), "UPDATE sessions SET summary = ?, status = 'nonsense', agent = 'nonsense', form = 0", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		db = p.open(t)
		after, err := db.Session(t.Context(), tenant, "s1")
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("%v (-before +after):\n%s", err, diff)
		}
		if after.Status != journal.Running || !strings.Contains(after.Title, "release notes") {
			t.Errorf("summary %+v", after.Summary)
		}
		found, _, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Status: journal.Running, Limit: 10})
		if err != nil || len(found) != 1 {
			t.Errorf("found %v, %v by status", found, err)
		}
	})
}

// TestOneUnfoldable: a session that this build cannot fold keeps no database closed, and no
// other session from being folded.
func TestOneUnfoldable(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for _, id := range []string{"a", "bad", "c"} {
			create(t, db, id)
		}
		for _, s := range []string{"UPDATE events SET kind = 'unheard.of' WHERE session = 'bad'", "UPDATE sessions SET agent = 'nonsense', form = 0"} {
			if err := db.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			found, _, err := p.open(t).Sessions(t.Context(), store.Query{Tenant: tenant, Agent: "nonsense", Limit: 10})
			if err != nil || len(found) != 1 || found[0].ID != "bad" {
				t.Errorf("not folded are %+v, %v, want the bad one", found, err)
			}
		}
	})
}

// TestUnstorable: what one of the databases cannot hold neither takes.
func TestUnstorable(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		at := take(t, l)
		for _, bad := range []string{"a\x00", "a\xff"} {
			for _, d := range []journal.Draft{
				{TurnID: bad, Data: journal.TurnStarted{Model: "m"}},
				{Anchor: journal.NodeID(bad), Data: journal.TurnStarted{Model: "m"}},
				{Data: journal.SessionCreated{Agent: bad}},
			} {
				if _, err := l.Append(t.Context(), at, d); err == nil || !strings.Contains(err.Error(), "must be text") {
					t.Errorf("%+v: %v", d, err)
				}
				if _, err := db.CreateSession(t.Context(), tenant, "s2", d); err == nil || !strings.Contains(err.Error(), "must be text") {
					t.Errorf("a session that begins with %+v: %v", d, err)
				}
			}
		}
		mustAppend(t, l, at, added("", "n", "a\x00")) // what is in an event is JSON
	})
}

// TestList: pages have every session once, the latest change first.
func TestList(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for i := range 7 {
			create(t, db, fmt.Sprint("s", i))
			if i%2 == 0 {
				p.clock.advance(time.Second)
			}
		}
		l := db.Log(tenant, "s0")
		mustAppend(t, l, take(t, l), added("", "n", "again"))
		var ids []string
		for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
			found, next, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Limit: 3, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range found {
				ids = append(ids, s.ID)
			}
			cursor = next
		}
		if len(ids) != 7 || ids[0] != "s0" {
			t.Errorf("listed %v, want seven and s0 first", ids)
		}
		if found, _, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Limit: math.MaxInt}); err != nil || len(found) != 7 {
			t.Errorf("a page without bounds has %d sessions, want 7: %v", len(found), err)
		}
		for _, bad := range []string{"x", "!!", "YWJj"} {
			if _, _, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Limit: 3, Cursor: bad}); err == nil {
				t.Errorf("the cursor %q was taken", bad)
			}
		}
	})
}

// TestHold: one turn at a time has a session, of whatever process; a process that dies
// lets go of it, and can write no more when it comes back.
func TestHold(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		one, two := p.open(t), p.open(t)
		create(t, one, "s1")
		first, err := one.Log(tenant, "s1").Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, db := range []*store.DB{one, two} {
			if _, err := db.Log(tenant, "s1").Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
				t.Errorf("holding a session that is held: %v, want ErrHeld", err)
			}
		}
		if s, err := two.Session(t.Context(), tenant, "s1"); err != nil || !s.Held {
			t.Errorf("session %+v, %v, want it held", s, err)
		}
		p.clock.advance(time.Minute) // the first is dead, or asleep
		second, err := two.Log(tenant, "s1").Hold(t.Context())
		if err != nil {
			t.Fatalf("a session whose process is dead: %v", err)
		}
		if _, err := one.Log(tenant, "s1").Append(t.Context(), first.At, added("", "n1", "late")); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("the first awoke and wrote: %v, want ErrFenced", err)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := one.Log(tenant, "s1").Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("the first let go of what the second has: %v, want ErrHeld", err)
		}
		mustAppend(t, two.Log(tenant, "s1"), second.At, added("", "n1", "x"))
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		third, err := one.Log(tenant, "s1").Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := third.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOrphans: a running turn that nobody has is found, one that somebody has is not.
func TestOrphans(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		create(t, db, "idle")
		l := create(t, db, "running")
		h, err := l.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, h.At, journal.Draft{TurnID: "t1", Data: journal.TurnStarted{Model: "m"}})
		if found, err := db.Orphans(t.Context(), store.Session{}, 10); err != nil || len(found) != 0 {
			t.Errorf("orphans %v, %v while the turn is held", found, err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.clock.advance(time.Second)
		found, err := db.Orphans(t.Context(), store.Session{}, 10)
		if err != nil || len(found) != 1 || found[0].ID != "running" {
			t.Errorf("orphans %v, %v, want the running one", found, err)
		}
	})
}

// TestWritesTogether: many writers of many sessions at once, of two processes, and each
// event is there once and in order.
func TestWritesTogether(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		dbs := []*store.DB{p.open(t), p.open(t)}
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				db := dbs[i%2]
				l := create(t, db, fmt.Sprint("s", i))
				at := take(t, l)
				for n := range 20 {
					at = mustAppend(t, l, at, added("", fmt.Sprint("n", n), "x"), added("", fmt.Sprint("m", n), "y"))
				}
			})
		}
		group.Wait()
		for i := range 16 {
			if got := len(read(t, dbs[0].Log(tenant, fmt.Sprint("s", i)), 0)); got != 41 {
				t.Errorf("session %d has %d events, want 41", i, got)
			}
		}
	})
}

// TestClosed: a closed database says so and hangs on nobody.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db, err := store.Open(t.Context(), p.options(t))
		if err != nil {
			t.Fatal(err)
		}
		l := create(t, db, "s1")
		at := take(t, l)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), at, added("", "n", "x")); err == nil {
			t.Error("an append to a closed database succeeded")
		}
	})
}

// TestFileIsPrivate: what people say to models is for its owner's eyes.
func TestFileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	p := place{filepath.Join(dir, "deep", "odd ?#%&name.db"), &clock{}}
	l := create(t, p.open(t), "s1")
	mustAppend(t, l, take(t, l), added("", "n", "x"))
	found, err := filepath.Glob(filepath.Join(dir, "deep", "*"))
	if err != nil || len(found) < 2 {
		t.Fatalf("files %v, %v", found, err)
	}
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

// TestCancelledWrite: a write that nobody waits for any more is not done, or is reported
// as done.
func TestCancelledWrite(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		l := create(t, db, "s1")
		at := take(t, l)
		for n := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			next, err := l.Append(ctx, at, added("", fmt.Sprint("n", n), "x"))
			cancel()
			stored := int64(len(read(t, l, 0)))
			switch {
			case err == nil && stored != next.Seq:
				t.Fatalf("reported %d events, stored %d", next.Seq, stored)
			case err != nil && stored != at.Seq:
				t.Fatalf("reported %v, and stored", err)
			}
			at = next
		}
	})
}

package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		if found, err := db.Orphans(t.Context(), 10); err != nil || len(found) != 0 {
			t.Errorf("orphans %v, %v while the turn is held", found, err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.clock.advance(time.Second)
		found, err := db.Orphans(t.Context(), 10)
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

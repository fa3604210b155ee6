package store_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
)

// clean checks that an error says what is wrong, and what to do.
func clean(t *testing.T, err error, words string) {
	t.Helper()
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Code != fault.Unavailable || !strings.Contains(e.Message, words) {
		t.Errorf("error %v, want one that says %q", err, words)
	}
}

// TestDamaged: what is no database is not touched.
func TestDamaged(t *testing.T) {
	p := place{filepath.Join(t.TempDir(), "metier.db"), &clock{}}
	text := strings.Repeat("this is a diary, and no database\n", 100)
	if err := os.WriteFile(p.url, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), p.options(t))
	clean(t, err, "damaged or no database")
	if b, err := os.ReadFile(p.url); err != nil || string(b) != text {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestFull: what does not fit is not stored, and what comes later is.
func TestFull(t *testing.T) {
	p := place{filepath.Join(t.TempDir(), "metier.db"), &clock{}}
	db := p.open(t)
	l := create(t, db, "s1")
	at := take(t, l)
	if err := db.Exec(t.Context(), "PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 20_000)
	var err error
	for n := 0; err == nil; n++ {
		if n > 100 {
			t.Fatal("the disk never gets full")
		}
		var next journal.Position
		if next, err = l.Append(t.Context(), at, added("", "n", large+string(rune('a'+n)))); err == nil {
			at = next
		}
	}
	clean(t, err, "is full")
	if got := int64(len(read(t, l, 0))); got != at.Seq {
		t.Errorf("%d events are stored, want the %d that were acknowledged", got, at.Seq)
	}
	if err := db.Exec(t.Context(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, at, added("", "n", large))
}

// TestPostgresReadOnly: a server that takes no writes says so.
func TestPostgresReadOnly(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	l := create(t, p.open(t), "s1")
	at := take(t, l)
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "on")
	u.RawQuery = q.Encode()
	replica := place{u.String(), p.clock}.open(t)
	if got := len(read(t, replica.Log(tenant, "s1"), 0)); got != 1 {
		t.Errorf("a replica shows %d events, want 1", got)
	}
	_, err = replica.Log(tenant, "s1").Append(t.Context(), at, added("", "n", "x"))
	clean(t, err, "read-only")
}

// TestPostgresUnreachable: nobody learns the password from an error.
func TestPostgresUnreachable(t *testing.T) {
	for _, address := range []string{"postgres://me:hunter2hunter2@127.0.0.1:1/db", "postgres://me:hunter2hunter2@127.0.0.1:port/db", "postgres://me:hunter2hunter2@%zz/db"} {
		p := place{address, &clock{}}
		_, err := store.Open(t.Context(), p.options(t))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestPostgresRestarts: connections that are cut are made anew, and a follower misses
// nothing.
func TestPostgresRestarts(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	db, other := p.open(t), p.open(t)
	l := create(t, db, "s1")
	at := take(t, l)
	heard := make(chan journal.Event)
	go func() {
		defer close(heard)
		// A connection may be cut while it is read from: then one follows again from where
		// one was, as clients of a stream do.
		for after := int64(1); after < 21 && t.Context().Err() == nil; {
			for e, err := range other.Log(tenant, "s1").Follow(t.Context(), after) {
				if err != nil {
					break
				}
				heard <- e
				if after = e.Seq; after == 21 {
					break
				}
			}
		}
	}()
	for n := range 20 {
		if n%5 == 2 {
			p.cut(t)
		}
		for try := 0; ; try++ {
			next, err := l.Append(t.Context(), at, added("", "n", "x"))
			if err == nil {
				at = next
				break
			}
			if try > 50 {
				t.Fatal(err)
			}
			if errors.Is(err, journal.ErrConflict) { // it was stored, and word of it was lost
				at.Seq++
				break
			}
		}
	}
	want := int64(2)
	for e := range heard {
		if e.Seq != want {
			t.Fatalf("heard of event %d, want %d", e.Seq, want)
		}
		want++
	}
	if want != 22 {
		t.Errorf("the follower heard of events up to %d, want 21", want-1)
	}
}

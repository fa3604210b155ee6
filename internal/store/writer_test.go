package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
)

// openTest opens a file's engine.
func openTest(t *testing.T) *sqlite {
	t.Helper()
	s, err := openSQLite(t.Context(), Options{
		URL: config.NewSecret(filepath.Join(t.TempDir(), "metier.db")), Now: time.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestDurability: each write waits for the disk, or does not, as it asks; one that asks is
// not let down by those that share its transaction.
func TestDurability(t *testing.T) {
	s := openTest(t)
	for _, want := range []durability{lasting, passing, lasting, passing, passing, lasting} {
		level := -1
		err := s.write(t.Context(), want, func(ctx context.Context, q queries) error {
			return q.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level)
		})
		if err != nil {
			t.Fatal(err)
		}
		if wanted := map[durability]int{lasting: 2, passing: 1}[want]; level != wanted {
			t.Errorf("a write of durability %v runs at level %d, want %d", want, level, wanted)
		}
	}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			want, level := durability(i%5 == 0), -1
			err := s.write(t.Context(), want, func(ctx context.Context, q queries) error {
				return q.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level)
			})
			if err != nil || want == lasting && level != 2 {
				t.Errorf("write %d runs at level %d, %v", i, level, err)
			}
		})
	}
	group.Wait()
}

// TestOneFailsAlone: of writes that share a transaction one that fails takes no other
// down, whatever its error is.
func TestOneFailsAlone(t *testing.T) {
	s := openTest(t)
	if err := s.write(t.Context(), lasting, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, "CREATE TABLE t (x INTEGER PRIMARY KEY)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	failures := []string{
		"INSERT INTO t VALUES (1000)", // there already
		"INSERT INTO nowhere VALUES (1)", "nonsense", "ROLLBACK",
	}
	insert := func(x int) error {
		return s.write(t.Context(), passing, func(ctx context.Context, q queries) error {
			_, err := q.ExecContext(ctx, "INSERT INTO t VALUES (?)", x)
			return err
		})
	}
	if err := insert(1000); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			if i%4 == 3 {
				text := failures[i%len(failures)]
				err := s.write(t.Context(), lasting, func(ctx context.Context, q queries) error {
					if _, err := q.ExecContext(ctx, text); err != nil {
						return err
					}
					return fmt.Errorf("%s went through", text)
				})
				if err == nil {
					t.Errorf("%s succeeded", text)
				}
				return
			}
			if err := insert(i); err != nil {
				t.Errorf("insert %d: %v", i, err)
			}
		})
	}
	group.Wait()
	var n int
	if err := s.read().QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil || n != 76 {
		t.Errorf("%d rows, %v, want 76", n, err)
	}
}

// TestTopic: followers get what is at hand without gaps, in whatever order it is told.
func TestTopic(t *testing.T) {
	h := newHub(time.Hour, openTest(t), slog.New(slog.DiscardHandler))
	defer h.close()
	k := key{"t", "s"}
	f := h.join(k)
	defer f.leave()
	event := func(seq int64) journal.Event { return journal.Event{Seq: seq} }
	check := func(after, first, last int64) {
		t.Helper()
		events, newest, _ := f.next(after)
		got := int64(0)
		if len(events) > 0 {
			got = events[0].Seq
		}
		if got != first || newest != last {
			t.Errorf("after %d there is %d first and %d last, want %d and %d", after, got, newest, first, last)
		}
	}
	h.tell(k, []journal.Event{event(1), event(2)})
	check(0, 1, 2)
	check(1, 2, 2)
	check(2, 0, 2)
	h.tell(k, []journal.Event{event(5)}) // 3 and 4 are another's
	check(2, 0, 5)
	check(4, 5, 5)
	h.tell(k, []journal.Event{event(4)}) // told late
	check(3, 4, 5)
	check(4, 0, 5)
	check(5, 0, 5)
	h.heard(k, 9)
	check(5, 0, 9)
	check(8, 0, 9)
	for seq := int64(10); seq < 200; seq++ {
		h.tell(k, []journal.Event{event(seq)})
	}
	check(9, 0, 199)
	check(150, 151, 199)
	events, _, _ := f.next(150)
	if len(events) != 49 {
		t.Errorf("%d events at hand after 150, want 49", len(events))
	}
	many := make([]journal.Event, 100)
	for i := range many {
		many[i] = event(int64(200 + i))
	}
	h.tell(k, many) // more than are kept, at once
	check(234, 0, 299)
	check(235, 236, 299)
	h.tell(k, []journal.Event{event(300)})
	check(235, 0, 300)
	check(236, 237, 300)
	h.heard(k, 999) // which is wrong
	f.ends(300, 999)
	check(300, 0, 300)
}

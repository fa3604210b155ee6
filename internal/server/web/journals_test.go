package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metier-run/metier/internal/gateway"
)

// books are journals whose making waits until it is told how it ends.
type books struct {
	begun   chan string // the ids of those that are to be made
	end     chan error
	removed []string
}

func (b *books) Begin(ctx context.Context, id, _ string) error {
	b.begun <- id
	select {
	case err := <-b.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (*books) Has(context.Context, string, string) (bool, error) { return false, nil }
func (*books) Journal(string, string) gateway.Journal            { return nil }

func (b *books) Remove(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.removed = append(b.removed, id)
	return nil
}

func newBooks() (*books, *Sessions) {
	b, id := &books{begun: make(chan string, 10), end: make(chan error)}, &ids{}
	return b, NewSessions(SessionOptions{Journals: b, Now: time.Now, NewID: id.NewID, Logger: slog.New(slog.DiscardHandler)})
}

// TestFirstTogether: of the first requests of a caller one makes its session, and all wait
// until that has its journal.
func TestFirstTogether(t *testing.T) {
	broken := errors.New("the database is not there")
	for name, c := range map[string]struct {
		end  error // of the first making; nil for one that goes well
		left bool  // the first one's client leaves
		want []string
	}{
		"made":       {nil, false, []string{"id1", "id1", "id1"}},
		"not made":   {broken, false, []string{broken.Error(), broken.Error(), broken.Error()}},
		"given up":   {nil, true, []string{context.Canceled.Error(), "id2", "id2"}},
		"given up 2": {context.DeadlineExceeded, false, []string{context.DeadlineExceeded.Error(), "id2", "id2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newBooks()
				defer s.Close()
				got := make([]string, 3)
				first, leave := context.WithCancel(t.Context())
				defer leave()
				for i := range got {
					ctx := t.Context()
					if i == 0 {
						ctx = first
					}
					go func() {
						x, err := s.enter(ctx, owner{caller: "ann"}, "")
						if got[i] = fmt.Sprint(err); err == nil {
							got[i] = x.id
							s.leave(x)
						}
					}()
					synctest.Wait()
				}
				for i, text := range got {
					if text != "" {
						t.Errorf("request %d did not wait: %s", i, text)
					}
				}
				if c.left {
					leave()
				} else {
					b.end <- c.end
				}
				synctest.Wait()
				if len(b.begun) > 1 { // another one makes it
					b.end <- nil
					synctest.Wait()
				}
				for i, want := range c.want {
					if got[i] != want {
						t.Errorf("request %d: %s, want %s", i, got[i], want)
					}
				}
			})
		})
	}
}

// TestWaitLeft: who waits for a session that another request makes may leave.
func TestWaitLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBooks()
		defer s.Close()
		go func() {
			if x, err := s.enter(t.Context(), owner{caller: "ann"}, ""); err == nil {
				s.leave(x)
			}
		}()
		<-b.begun
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.enter(ctx, owner{caller: "ann"}, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		b.end <- nil
		synctest.Wait()
	})
}

// TestRemovedAnyway: what was kept of a session goes with it, also when the client that ends
// it leaves before its turn has ended.
func TestRemovedAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBooks()
		defer s.Close()
		ann := owner{caller: "ann"}
		go func() { b.end <- nil }()
		id, err := s.begin(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.enter(t.Context(), ann, id)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if err := s.end(ctx, owner{caller: "bob"}, id); err == nil || len(b.removed) > 0 {
			t.Errorf("another caller removed %v: %v", b.removed, err)
		}
		if err := s.end(ctx, ann, id); !errors.Is(err, context.Canceled) || len(b.removed) != 1 {
			t.Errorf("removed are %v, %v", b.removed, err)
		}
		s.leave(x)
	})
}

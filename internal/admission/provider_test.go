package admission_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
)

// slow is a provider whose streams wait for a word before they end.
type slow struct {
	llm.Provider
	asked int
	goOn  chan struct{}
	err   error
}

func (s *slow) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Piece, error] {
	s.asked++
	return func(yield func(llm.Piece, error) bool) {
		if !yield(llm.Piece{Text: "a"}, nil) {
			return
		}
		select {
		case <-s.goOn:
		case <-ctx.Done():
		}
		if s.err != nil {
			yield(llm.Piece{}, s.err)
			return
		}
		yield(llm.Piece{Reply: &llm.Reply{}}, nil)
	}
}

// TestWrap: a place is held from before the upstream is asked to the end of the
// stream, and comes back when the consumer stops, when it fails, and when it ends.
func TestWrap(t *testing.T) {
	failed := errors.New("failed")
	for name, end := range map[string]func(s *slow, stop func()){
		"ends":          func(s *slow, _ func()) { s.goOn <- struct{}{} },
		"fails":         func(s *slow, _ func()) { s.err = failed; s.goOn <- struct{}{} },
		"client leaves": func(_ *slow, stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{goOn: make(chan struct{})}
				p := admission.Wrap(s, admission.NewGate(1, 0), func(context.Context) string { return "a" })
				first := make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() {
					var last error
					for _, err := range p.Stream(ctx, nil) {
						last = err
					}
					first <- last
				}()
				synctest.Wait()
				for _, err := range p.Stream(t.Context(), nil) {
					if fault.From(err).Code != fault.Busy {
						t.Errorf("a second round: %v, want Busy", err)
					}
				}
				if s.asked != 1 {
					t.Errorf("the upstream was asked %d times, want once", s.asked)
				}
				end(s, stop)
				if err := <-first; (name == "fails") != errors.Is(err, failed) {
					t.Errorf("the stream's error: %v", err)
				}
				for piece, err := range p.Stream(t.Context(), nil) {
					if err != nil || piece.Text != "a" {
						t.Errorf("the place did not come back: %v", err)
					}
					break // and this one's, too
				}
				for _, err := range p.Stream(t.Context(), nil) {
					if err != nil {
						t.Errorf("after a consumer that stopped early: %v", err)
					}
					break
				}
			})
		})
	}
}

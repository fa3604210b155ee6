package openai_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metier-run/metier/internal/llm"
)

// broken is a provider with a bug.
type broken struct{ llm.Script }

func (b *broken) Stream(context.Context, *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		if yield(llm.Piece{Text: "so far"}, nil) {
			panic("a bug")
		}
	}
}

// TestPanicEndsTheStream: what is left of a turn with a bug in it writes nothing once its
// handler is gone. A keep-alive that did once took the process down.
func TestPanicEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		house := newHouse(t, rigOptions{noSkills: true, provider: &broken{}}, &syncBuffer{})
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("the handler ended with %v", p)
				}
			}()
			house.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/chat/completions",
				strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)))
		}()
		said := w.Body.String()
		if !strings.Contains(said, "so far") {
			t.Errorf("the stream had not begun: %s", said)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if now := w.Body.String(); now != said {
			t.Errorf("written after the handler returned: %q", strings.TrimPrefix(now, said))
		}
	})
}

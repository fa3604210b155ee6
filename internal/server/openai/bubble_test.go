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

// slow is an upstream that thinks before each piece.
type slow struct {
	llm.Script
	pause time.Duration
}

func (s *slow) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		for p, err := range s.Script.Stream(ctx, r) {
			select {
			case <-time.After(s.pause):
			case <-ctx.Done():
				yield(llm.Piece{}, ctx.Err())
				return
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// TestSlowRounds runs a stream of over two minutes in a bubble: the client hears
// every 15 seconds that somebody is there, through the hidden round too, and the
// answer is whole.
func TestSlowRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := llm.CallDelta{ID: "c1", Name: "skills_read", Arguments: `{"skill":"release-notes"}`}
		provider := &slow{pause: 25 * time.Second, Script: llm.Script{
			Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true},
			Rounds: []llm.ScriptedRound{
				{Pieces: []llm.Piece{{Calls: []llm.CallDelta{read}}, {Finish: llm.FinishCalls}}},
				{Pieces: []llm.Piece{{Text: "Tickets stand "}, {Text: "in brackets."}, {Finish: llm.FinishStop}}},
			},
		}}
		house := newHouse(t, rigOptions{provider: provider}, &syncBuffer{})
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(request("m", `,"stream":true`)))
		r.Host = "localhost"
		begin := time.Now()
		house.ServeHTTP(w, r)
		if took := time.Since(begin); took != 7*25*time.Second {
			t.Errorf("the stream took %s of the bubble's time, want 175 s", took)
		}
		c := readStream(t, w.Body.String())
		if c.Text != "Tickets stand in brackets." || c.Finish != "stop" || c.done != 1 || c.roles != 1 {
			t.Errorf("the stream said %+v", c)
		}
		// Each pause of 25 s has one silence of 15 s, and the five before the
		// first text are one of 75 s.
		if got := strings.Count(w.Body.String(), ": keep-alive"); got < 7 {
			t.Errorf("%d keep-alives, want one in each 15 s of silence:\n%s", got, w.Body)
		}
	})
}

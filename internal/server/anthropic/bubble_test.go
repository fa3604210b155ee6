package anthropic_test

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

// slow is an upstream that thinks before each piece, and in the end has a bug.
type slow struct {
	llm.Script
	pause time.Duration
	bug   bool
}

func (s *slow) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		for p, err := range s.Script.Stream(ctx, r) {
			<-time.After(s.pause)
			if s.bug && p.Finish != "" {
				panic("a bug")
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// TestSlowRounds runs a stream of minutes in a bubble: the client hears pings, which alone
// count for Claude Code, through the hidden round too, and the answer is whole. A bug at
// its end stops them.
func TestSlowRounds(t *testing.T) {
	for _, bug := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			read := llm.CallDelta{ID: "c1", Name: "skills_read", Arguments: `{"skill":"release-notes"}`}
			last := []llm.Piece{{Text: "Tickets stand "}, {Text: "in brackets."}, {Finish: llm.FinishStop}}
			provider := &slow{pause: 25 * time.Second, Script: llm.Script{
				Caps:   llm.Capabilities{Declares: true, Parsed: true, Results: true},
				Rounds: []llm.ScriptedRound{{Pieces: []llm.Piece{{Calls: []llm.CallDelta{read}}, {Finish: llm.FinishCalls}}}, {Pieces: last}},
			}}
			if provider.bug = bug; bug {
				provider.Rounds = []llm.ScriptedRound{{Pieces: last}}
			}
			house := newHouse(t, rigOptions{provider: provider}, &syncBuffer{})
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(request("m", streamed)))
			r.Header.Set(version, "2026-10-21")
			func() {
				defer func() {
					if p := recover(); (p != nil) != bug {
						t.Errorf("the handler ended with %v", p)
					}
				}()
				house.ServeHTTP(w, r)
			}()
			body := w.Body.String()
			if pings := strings.Count(body, silenceFrame); pings < 3 || !bug && pings < 8 {
				t.Errorf("%d pings, want one in each 15 s of silence:\n%s", pings, body)
			}
			if !bug {
				if h := listen(t, body); textOf(h.message) != "Tickets stand in brackets." || h.message["stop_reason"] != "end_turn" {
					t.Errorf("the stream said %v", h.message)
				}
			}
			<-time.After(time.Hour)
			if now := w.Body.String(); now != body {
				t.Errorf("written after the handler returned: %q", strings.TrimPrefix(now, body))
			}
		})
	}
}

const silenceFrame = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

package turn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

// TestOrdered: ordered calls of a message run one after the other, as they are
// written; others beside them.
func TestOrdered(t *testing.T) {
	var rounds []llm.Piece
	for i := range 6 {
		rounds = append(rounds, ask(i, fmt.Sprint("c", i), "read", fmt.Sprint(i)))
	}
	rounds = append(rounds, ask(6, "other", "unordered", "6"), finish(llm.FinishCalls))
	r := newRig(scenario{rounds: []llm.ScriptedRound{round(rounds...), round(say("done"), finish(llm.FinishStop))}})
	var inside atomic.Int32
	var order []string
	beside := make(chan struct{})
	r.tools.ordered = func(_ context.Context, c llm.Call, _ tool.Env) {
		if c.Name != "read" {
			close(beside)
			return
		}
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d ordered calls at once", n)
		}
		order = append(order, c.ID)
		<-beside // the other one does not wait for these
		inside.Add(-1)
	}
	r.append(t, r.drafts()...)
	if _, out, err := r.run(t); err != nil || out.Reason != turn.Answered {
		t.Fatal(out, err)
	}
	if want := []string{"c0", "c1", "c2", "c3", "c4", "c5"}; !slices.Equal(order, want) {
		t.Errorf("ran in the order %s", order)
	}
}

// TestProgress: a watcher is told of a call while it is written, while it runs and
// when it has ended, in this order, and only if it asks.
func TestProgress(t *testing.T) {
	for _, asks := range []bool{true, false} {
		r := newRig(scenario{rounds: []llm.ScriptedRound{
			round(ask(0, "c1", "re", ""), ask(0, "", "ad", ""), ask(0, "", "", `{"a":`), ask(0, "", "", "1}"), finish(llm.FinishCalls)),
			round(say("done"), finish(llm.FinishStop)),
		}})
		r.tools.ordered = func(_ context.Context, _ llm.Call, e tool.Env) {
			if (e.Progress != nil) != asks {
				t.Errorf("asked %t, progress %t", asks, e.Progress != nil)
			}
			if e.Progress != nil {
				e.Progress([]byte("line 1\n"))
				e.Progress([]byte(strings.Repeat("x", 1<<20)))
			}
		}
		r.append(t, r.drafts()...)
		d := &turn.Driver{Log: r.log, At: r.log.Take(), Provider: r.script, Tools: r.tools, Host: &ids{n: 1000}, Progress: asks}
		state := fold(t, r.log)
		var seen []string
		said := 0
		_, err := d.Run(t.Context(), &state, func(s turn.Signal) error {
			switch s.Kind {
			case turn.CallWriting:
				seen = append(seen, "writing "+s.Call.Name+" "+s.Text)
			case turn.CallStarted:
				seen = append(seen, "started "+s.Call.ID)
			case turn.CallRunning:
				if said == 0 {
					seen = append(seen, "running "+s.Call.ID+" "+s.Text[:6])
				}
				said += len(s.Text)
			case turn.CallEnded:
				seen = append(seen, "ended "+s.Call.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"started c1", "ended c1"}
		if asks {
			want = []string{"writing read ", "writing read ", `writing read {"a":`, "writing read 1}", "started c1", "running c1 line 1", "ended c1"}
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		if said > 64<<10 {
			t.Errorf("%d bytes wait for a watcher", said)
		}
	}
}

package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

func repeat(n int, r llm.ScriptedRound, then ...llm.ScriptedRound) []llm.ScriptedRound {
	var rounds []llm.ScriptedRound
	for i := range n {
		pieces := append([]llm.Piece(nil), r.Pieces...)
		for j := range pieces {
			pieces[j].Calls = append([]llm.CallDelta(nil), pieces[j].Calls...)
			for k := range pieces[j].Calls {
				pieces[j].Calls[k].ID += fmt.Sprint(".", i+1)
			}
		}
		rounds = append(rounds, llm.ScriptedRound{Pieces: pieces})
	}
	return append(rounds, then...)
}

func manyCalls(n int) llm.ScriptedRound {
	var pieces []llm.Piece
	for i := range n {
		pieces = append(pieces, ask(i, fmt.Sprint("c", i+1), "read", fmt.Sprint(i+1)))
	}
	return round(append(pieces, finish(llm.FinishCalls))...)
}

func waits(calls ...llm.Call) []turn.Wait {
	var w []turn.Wait
	for _, c := range calls {
		w = append(w, turn.Wait{Call: c})
	}
	return w
}

// scenarios is every rule and bound of DESIGN section 2 and B1 section 7 that
// the machine itself keeps.
func scenarios() []scenario {
	answer := round(say("the "), say("answer"), finish(llm.FinishStop), tokens(7, 3))
	return []scenario{
		{
			name: "plain answer", rounds: []llm.ScriptedRound{answer},
			want:    "user: question\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 1, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name:    "a host call is answered and not shown",
			rounds:  []llm.ScriptedRound{round(say("let me see "), ask(0, "c1", "read", "1"), finish(llm.FinishCalls), tokens(5, 2)), answer},
			want:    "user: question\nassistant: let me see  c1=read(1)\ntool c1: page 1\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 12, Output: 5, Total: 17}},
			visible: "let me see the answer<stop><12+5>",
		},
		{
			name:    "results return in call order",
			rounds:  []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), ask(1, "c2", "read", "2"), finish(llm.FinishCalls)), answer},
			want:    "user: question\nassistant:  c1=read(1) c2=read(2)\ntool c1: page 1\ntool c2: page 2\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name: "the caller's call parks the turn", caller: []string{"weather"},
			rounds:  []llm.ScriptedRound{round(ask(0, "c1", "weather", "{}"), finish(llm.FinishCalls), tokens(5, 2))},
			want:    "user: question\nassistant:  c1=weather({})\n",
			outcome: turn.Outcome{Reason: turn.Parked, Finish: llm.FinishCalls, Rounds: 1, Usage: llm.Usage{Input: 5, Output: 2, Total: 7}, Waits: waits(llm.Call{ID: "c1", Name: "weather", Arguments: "{}"})},
			visible: "<tool_calls><5+2> [0:weather{}]",
		},
		{
			name: "a mixed round answers ours and parks", caller: []string{"weather"},
			rounds: []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), ask(1, "c2", "weather", "{}"), ask(2, "c3", "weather", "[]"), finish(llm.FinishCalls), tokens(5, 2))},
			want:   "user: question\nassistant:  c1=read(1) c2=weather({}) c3=weather([])\n",
			outcome: turn.Outcome{
				Reason: turn.Parked, Finish: llm.FinishCalls, Rounds: 1, Usage: llm.Usage{Input: 5, Output: 2, Total: 7},
				Waits: waits(llm.Call{ID: "c2", Name: "weather", Arguments: "{}"}, llm.Call{ID: "c3", Name: "weather", Arguments: "[]"}),
			},
			visible: " [0:weather{} 1:weather[]]",
		},
		{
			name: "late results return together with ours", caller: []string{"weather"},
			late:    map[string]string{"c2": "sunny"},
			rounds:  []llm.ScriptedRound{round(ask(0, "c2", "weather", "{}"), ask(1, "c1", "read", "1"), finish(llm.FinishCalls)), answer},
			want:    "user: question\nassistant:  c2=weather({}) c1=read(1)\ntool c2: sunny\ntool c1: page 1\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3> [0:weather{}]",
		},
		{
			name: "a caller's tool of our name is the caller's", caller: []string{"READ"},
			rounds:  []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls))},
			want:    "user: question\nassistant:  c1=read(1)\n",
			outcome: turn.Outcome{Reason: turn.Parked, Finish: llm.FinishCalls, Rounds: 1, Waits: waits(llm.Call{ID: "c1", Name: "read", Arguments: "1"})},
			visible: "<tool_calls> [0:read1]",
		},
		{
			name: "an unknown tool is answered", caller: []string{"weather"},
			rounds: []llm.ScriptedRound{round(ask(0, "c1", "teleport", "{}"), finish(llm.FinishCalls)), answer},
			want: "user: question\nassistant:  c1=teleport({})\n" +
				"tool c1: Error: no tool is called \"teleport\", so nothing ran. The tools are: read, weather. Call one of them, or answer without.\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name: "calls above the bound are refused", bounds: journal.Bounds{Calls: 2},
			rounds: []llm.ScriptedRound{manyCalls(4), answer},
			want: "user: question\nassistant:  c1=read(1) c2=read(2) c3=read(3) c4=read(4)\ntool c1: page 1\ntool c2: page 2\n" +
				"tool c3: Error: not run. Only the first 2 calls of a message are answered. If you still need this one, make it again on its own.\n" +
				"tool c4: Error: not run. Only the first 2 calls of a message are answered. If you still need this one, make it again on its own.\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name: "out of rounds, the answer is forced", bounds: journal.Bounds{Rounds: 2},
			rounds: repeat(2, round(ask(0, "c", "read", "1"), finish(llm.FinishCalls)), answer),
			want: "user: question\nassistant:  c.1=read(1)\ntool c.1: page 1\nassistant:  c.2=read(1)\ntool c.2: page 1\n" +
				"user: You have used all 2 rounds of tool calls for this request. Answer now from what you have already read. Say which part you could not check.\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 3, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name: "calls of a forced answer are dropped and said", bounds: journal.Bounds{Rounds: 1}, caller: []string{"weather"},
			rounds: repeat(1, round(ask(0, "c", "read", "1"), finish(llm.FinishCalls)),
				round(say("so far"), ask(0, "d1", "read", "2"), ask(1, "d2", "hover", "{}"), finish(llm.FinishCalls), tokens(9, 9))),
			want: "user: question\nassistant:  c.1=read(1)\ntool c.1: page 1\n" +
				"user: You have used all 1 rounds of tool calls for this request. Answer now from what you have already read. Say which part you could not check.\n" +
				"assistant: so far\n\n(I ran out of tool calls for this request before I could use read, hover. Ask me to continue and I will carry on from here.)\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 9, Output: 9, Total: 18}, OutOfRounds: true},
			visible: "so far\n\n(I ran out of tool calls for this request before I could use read, hover. Ask me to continue and I will carry on from here.)",
		},
		{
			name: "a forced answer may still call the caller", bounds: journal.Bounds{Rounds: 1}, caller: []string{"weather"},
			rounds: repeat(1, round(ask(0, "c", "read", "1"), finish(llm.FinishCalls)),
				round(ask(0, "d1", "weather", "{}"), finish(llm.FinishCalls))),
			want: "user: question\nassistant:  c.1=read(1)\ntool c.1: page 1\n" +
				"user: You have used all 1 rounds of tool calls for this request. Answer now from what you have already read. Say which part you could not check.\nassistant:  d1=weather({})\n",
			outcome: turn.Outcome{Reason: turn.Parked, Finish: llm.FinishCalls, Rounds: 2, Waits: waits(llm.Call{ID: "d1", Name: "weather", Arguments: "{}"})},
			visible: "<tool_calls> [0:weather{}]",
		},
		{
			name:    "max_tokens in the middle of a host call ends the turn",
			rounds:  []llm.ScriptedRound{round(say("hm "), ask(0, "c1", "read", `{"pa`), finish(llm.FinishLength), tokens(4, 4))},
			want:    "user: question\nassistant: hm \n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishLength, Rounds: 1, Usage: llm.Usage{Input: 4, Output: 4, Total: 8}},
			visible: "hm ",
		},
		{
			name: "max_tokens in the middle of a caller's call is shown as it is", caller: []string{"weather"},
			rounds:  []llm.ScriptedRound{round(ask(0, "c1", "weather", `{"ci`), finish(llm.FinishLength), tokens(4, 4))},
			want:    "user: question\nassistant: \n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishLength, Rounds: 1, Usage: llm.Usage{Input: 4, Output: 4, Total: 8}},
			visible: `<length><4+4> [0:weather{"ci]`,
		},
		{
			name: "results as user turns", asUser: true,
			rounds:  []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls)), answer},
			want:    "user: question\nassistant:  c1=read(1)\nuser: Result of your call to read with 1:\n\npage 1\nassistant: the answer\n",
			outcome: turn.Outcome{Reason: turn.Answered, Finish: llm.FinishStop, Rounds: 2, Usage: llm.Usage{Input: 7, Output: 3, Total: 10}},
			visible: "the answer<stop><7+3>",
		},
		{
			name:     "cancelled while the model speaks",
			cancelOn: "half", rounds: []llm.ScriptedRound{
				round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls)),
				{Pieces: []llm.Piece{say("half")}, Block: true},
			},
			want:    "user: question\nassistant:  c1=read(1)\ntool c1: page 1\n",
			outcome: turn.Outcome{Reason: turn.Cancelled, Finish: llm.FinishStop, Rounds: 2, Error: "context canceled"},
			visible: "half",
		},
		{
			name:    "an upstream's failure fails the turn",
			rounds:  []llm.ScriptedRound{{Pieces: []llm.Piece{say("half")}, Err: errBoom}},
			want:    "user: question\n",
			outcome: turn.Outcome{Reason: turn.Failed, Rounds: 1, Error: "boom"},
			visible: "half",
		},
	}
}

func TestTurn(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(s)
			r.append(t, r.drafts()...)
			state, out, err := r.run(t)
			if (err != nil) != (s.outcome.Reason == turn.Failed || s.outcome.Reason == turn.Cancelled) {
				t.Errorf("Run: error %v with outcome %s", err, out.Reason)
			}
			if diff := cmp.Diff(s.want, transcript(state.Path())); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s.outcome, out); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s.visible, r.visibleText()); diff != "" {
				t.Errorf("visible (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCut is the proof that the loop is one machine on one log: whatever event
// the log is cut after, folding what is left gives the same next plan, and a
// new driver brings the turn to the same transcript and outcome.
func TestCut(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			whole := newRig(s)
			whole.append(t, whole.drafts()...)
			_, wantOut, _ := whole.run(t)
			events := collect(t, whole.log)

			var live turn.State
			var states []turn.State
			var plans []turn.Plan
			for _, e := range events {
				live = live.Apply(e)
				states = append(states, live)
				plans = append(plans, live.Next())
			}
			for i := range events {
				stored := refold(t, events[:i+1])
				if diff := cmp.Diff(plans[i], stored.Next()); diff != "" {
					t.Fatalf("after event %d (%s) the stored log plans otherwise (-live +stored):\n%s", i+1, events[i].Data.Kind(), diff)
				}
				if diff := cmp.Diff(plans[i], states[i].Next()); diff != "" {
					t.Fatalf("the state after event %d changed when later events were folded:\n%s", i+1, diff)
				}
				if i < 1 {
					continue // the turn has not started
				}
				cut := newRig(s)
				cut.append(t, redraft(events[:i+1])...)
				state, out, _ := cut.run(t)
				if diff := cmp.Diff(s.want, transcript(state.Path())); diff != "" {
					t.Errorf("cut after event %d (%s): transcript (-want +got):\n%s", i+1, events[i].Data.Kind(), diff)
				}
				if diff := cmp.Diff(wantOut, out); diff != "" {
					t.Errorf("cut after event %d (%s): outcome (-want +got):\n%s", i+1, events[i].Data.Kind(), diff)
				}
			}
		})
	}
}

func collect(t *testing.T, l journal.Log) []journal.Event {
	t.Helper()
	var events []journal.Event
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// refold folds events that went through their stored form.
func refold(t *testing.T, events []journal.Event) turn.State {
	t.Helper()
	var s turn.State
	for _, e := range events {
		s = s.Apply(restored(t, e))
	}
	return s
}

// restored is an event that went through its stored form.
func restored(t *testing.T, e journal.Event) journal.Event {
	t.Helper()
	b, err := journal.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = journal.Decode(b); err != nil {
		t.Fatal(err)
	}
	return e
}

func redraft(events []journal.Event) []journal.Draft {
	var drafts []journal.Draft
	for _, e := range events {
		drafts = append(drafts, journal.Draft{TurnID: e.TurnID, Anchor: e.Anchor, Data: e.Data})
	}
	return drafts
}

// TestRequest holds what a generation is asked with, round by round.
func TestRequest(t *testing.T) {
	call := func(id string) llm.ScriptedRound { return round(ask(0, id, "read", "1"), finish(llm.FinishCalls)) }
	end := round(say("done"), finish(llm.FinishStop))
	for _, c := range []struct {
		name    string
		client  llm.ChoiceMode
		rounds  []llm.ScriptedRound
		bound   int
		choices []llm.ChoiceMode
	}{
		{"unset stays unset", llm.ChoiceUnset, []llm.ScriptedRound{call("a"), end}, 8, []llm.ChoiceMode{"", ""}},
		{"required holds for round 1", llm.ChoiceRequired, []llm.ScriptedRound{call("a"), call("b"), end}, 8, []llm.ChoiceMode{"", "auto", "auto"}},
		{"a named function holds for round 1", llm.ChoiceNamed, []llm.ScriptedRound{call("a"), end}, 8, []llm.ChoiceMode{"", "auto"}},
		{"auto is the client's", llm.ChoiceAuto, []llm.ScriptedRound{call("a"), end}, 8, []llm.ChoiceMode{"", ""}},
		{"the forced answer is none", llm.ChoiceRequired, []llm.ScriptedRound{call("a"), end}, 1, []llm.ChoiceMode{"", "none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(scenario{
				rounds: c.rounds, options: llm.Options{Choice: c.client}, caller: []string{"weather"},
				bounds: journal.Bounds{Rounds: c.bound}, block: "BLOCK",
				history: []llm.Message{llm.TextMessage(llm.System, "be brief")},
			})
			r.append(t, r.drafts()...)
			if _, _, err := r.run(t); err != nil {
				t.Fatal(err)
			}
			var got []llm.ChoiceMode
			for _, q := range r.script.Requests() {
				got = append(got, q.Choice)
				if m := q.Messages[0]; m.Tail != "BLOCK" || m.Text() != "be brief" {
					t.Errorf("leading message %+v, want the client's with the block behind it", m)
				}
				if len(q.Tools) != 2 || q.Tools[0].Name != "weather" || q.Tools[1].Name != "read" {
					t.Errorf("tools %v, want the caller's and then the host's", q.Tools)
				}
				if q.Options.Choice != c.client {
					t.Errorf("the client's own choice became %q", q.Options.Choice)
				}
			}
			if diff := cmp.Diff(c.choices, got); diff != "" {
				t.Errorf("choice by round (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockWithoutLeadingMessage(t *testing.T) {
	r := newRig(scenario{rounds: []llm.ScriptedRound{round(say("x"), finish(llm.FinishStop))}, block: "BLOCK"})
	r.append(t, r.drafts()...)
	if _, _, err := r.run(t); err != nil {
		t.Fatal(err)
	}
	m := r.script.Requests()[0].Messages
	if len(m) != 2 || m[0].Role != llm.System || m[0].Text() != "BLOCK" {
		t.Errorf("messages %+v, want a system message of the block in front", m)
	}
}

func TestHostFaultIsAnAnswer(t *testing.T) {
	for _, tools := range []*readTool{{fail: errBoom}, {panics: true}} {
		r := newRig(scenario{rounds: []llm.ScriptedRound{
			round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls)), round(say("ok"), finish(llm.FinishStop)),
		}})
		r.tools = tools
		r.append(t, r.drafts()...)
		state, out, err := r.run(t)
		if err != nil || out.Reason != turn.Answered {
			t.Fatalf("outcome %+v, %v", out, err)
		}
		got := transcript(state.Path())
		if !strings.Contains(got, "failed inside the host") || strings.Contains(got, "boom") || strings.Contains(got, "fell over") {
			t.Errorf("transcript tells the wrong thing of a host fault:\n%s", got)
		}
	}
}

// tornLog loses its connection when a given kind of fact is to be stored.
type tornLog struct {
	journal.Log
	kind journal.Kind
}

func (l tornLog) Append(ctx context.Context, at journal.Position, drafts ...journal.Draft) (journal.Position, error) {
	for _, d := range drafts {
		if d.Data.Kind() == l.kind {
			return at, errBoom
		}
	}
	return l.Log.Append(ctx, at, drafts...)
}

// TestReplay: a call that ran and was not recorded is run again or answered as
// interrupted, as its tool says.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		replay journal.Replay
		runs   int
		want   string
	}{
		{journal.Again, 2, "tool c1: page 1"},
		{journal.Never, 1, "tool c1: Error: the host restarted while read was running"},
	} {
		t.Run(string(c.replay), func(t *testing.T) {
			r := newRig(scenario{rounds: []llm.ScriptedRound{
				round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls)), round(say("ok"), finish(llm.FinishStop)),
			}})
			r.tools.replay = c.replay
			r.append(t, r.drafts()...)
			if _, _, err := r.drive(t, tornLog{r.log, journal.KindInvokeEnded}); !errors.Is(err, errBoom) {
				t.Fatalf("the first driver ended with %v", err)
			}
			// The first driver could still say that the turn failed; a killed one
			// could not.
			cut := newRig(r.scenario)
			cut.tools = r.tools
			events := collect(t, r.log)
			cut.append(t, redraft(events[:len(events)-1])...)
			state, out, err := cut.run(t)
			if err != nil || out.Reason != turn.Answered {
				t.Fatalf("outcome %+v, %v", out, err)
			}
			if got := transcript(state.Path()); !strings.Contains(got, c.want) {
				t.Errorf("transcript lacks %q:\n%s", c.want, got)
			}
			if got := len(r.tools.runs); got != c.runs {
				t.Errorf("the tool ran %d times, want %d", got, c.runs)
			}
			attempts := 0
			for _, e := range collect(t, cut.log) {
				if d, ok := e.Data.(journal.InvokeRequested); ok {
					attempts = d.Attempt
				}
			}
			if attempts != c.runs {
				t.Errorf("the last attempt on record is %d, want %d", attempts, c.runs)
			}
		})
	}
}

// TestTwinCalls: a reply whose calls cannot be told apart is the upstream's fault, and no
// turn goes round for ever with it.
func TestTwinCalls(t *testing.T) {
	for _, id := range []string{"c1", ""} {
		r := newRig(scenario{rounds: []llm.ScriptedRound{round(ask(0, id, "read", "1"), ask(1, id, "read", "2"), finish(llm.FinishCalls))}})
		r.append(t, r.drafts()...)
		_, out, err := r.run(t)
		if out.Reason != turn.Failed || err == nil || !strings.Contains(err.Error(), "not told apart") {
			t.Errorf("ids %q: outcome %+v, %v, want a failure", id, out, err)
		}
		if n := len(r.tools.runs); n != 0 {
			t.Errorf("ids %q: %d calls ran", id, n)
		}
	}
}

// TestFenced: a driver that was taken over stops and leaves the turn alone.
func TestFenced(t *testing.T) {
	r := newRig(scenario{rounds: []llm.ScriptedRound{round(say("x"), finish(llm.FinishStop))}})
	r.append(t, r.drafts()...)
	at := r.log.Take()
	r.log.Take() // somebody else
	d := &turn.Driver{Log: r.log, At: at, Provider: r.script, Host: &ids{}}
	state := fold(t, r.log)
	out, err := d.Run(t.Context(), &state, func(turn.Signal) error { return nil })
	if !errors.Is(err, journal.ErrFenced) || out.Reason != turn.Failed {
		t.Errorf("Run = %+v, %v, want ErrFenced", out, err)
	}
	if n := len(collect(t, r.log)); n != 2 {
		t.Errorf("the log has %d events, want the 2 from before", n)
	}
	if n := len(r.script.Requests()); n != 0 {
		t.Errorf("%d generations were asked for before their announcement was stored", n)
	}
}

// TestRecordedBeforeDone: when an announcement cannot be stored, nothing is done.
func TestRecordedBeforeDone(t *testing.T) {
	rounds := []llm.ScriptedRound{round(ask(0, "c1", "read", "1"), finish(llm.FinishCalls)), round(say("ok"), finish(llm.FinishStop))}
	for _, c := range []struct {
		kind        journal.Kind
		generations int
		runs        int
	}{
		{journal.KindGenerateRequested, 0, 0},
		{journal.KindInvokeRequested, 1, 0},
	} {
		r := newRig(scenario{rounds: rounds})
		r.append(t, r.drafts()...)
		if _, _, err := r.drive(t, tornLog{r.log, c.kind}); !errors.Is(err, errBoom) {
			t.Errorf("%s: Run ended with %v", c.kind, err)
		}
		if g, n := len(r.script.Requests()), len(r.tools.runs); g != c.generations || n != c.runs {
			t.Errorf("%s could not be stored, and yet there were %d generations and %d runs, want %d and %d", c.kind, g, n, c.generations, c.runs)
		}
	}
}

// TestGoneWatcher: emit's refusal cancels the turn.
func TestGoneWatcher(t *testing.T) {
	r := newRig(scenario{rounds: []llm.ScriptedRound{round(say("x"), say("y"), finish(llm.FinishStop))}})
	r.append(t, r.drafts()...)
	d := &turn.Driver{Log: r.log, At: r.log.Take(), Provider: r.script, Host: &ids{}}
	state := fold(t, r.log)
	out, err := d.Run(t.Context(), &state, func(s turn.Signal) error {
		if s.Kind == turn.Delta {
			return errBoom
		}
		return nil
	})
	if !errors.Is(err, errBoom) || out.Reason != turn.Cancelled {
		t.Errorf("Run = %+v, %v, want a cancelled turn", out, err)
	}
}

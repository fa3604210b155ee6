package turn_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

// small is a model with a window: it reads a page a round until it is told to
// answer, and refuses what does not fit, at four bytes a token.
type small struct {
	llm.Script
	window int
	says   int // the limit that it tells of; 0 tells nothing
	rounds int // after which it answers by itself
	counts bool

	asked, refused int
	largest        int
}

func bytesOf(r *llm.Request) int {
	n := 0
	for _, m := range r.Messages {
		n += len(m.Text()) + len(m.Tail)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, d := range r.Tools {
		n += len(d.Description) + len(d.Parameters)
	}
	return n
}

func (s *small) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		s.asked++
		tokens := bytesOf(r) / 4
		if tokens > s.window {
			s.refused++
			yield(llm.Piece{}, &llm.StatusError{Status: 400, Message: "too long", Overflow: &llm.Overflow{Limit: s.says}})
			return
		}
		s.largest = max(s.largest, tokens)
		m := llm.Message{Role: llm.Assistant}
		reply := &llm.Reply{Finish: llm.FinishStop}
		if s.counts {
			reply.Usage = llm.Usage{Input: int64(tokens), Output: 10}
		}
		if s.rounds > 0 && r.Choice != llm.ChoiceNone {
			s.rounds--
			m.Calls = []llm.Call{{ID: fmt.Sprint("c", s.asked), Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, s.asked)}}
			reply.Finish = llm.FinishCalls
		} else {
			m.Parts = []llm.Part{{Kind: llm.Text, Text: "done"}}
		}
		reply.Message = m
		yield(llm.Piece{Reply: reply}, nil)
	}
}

// pages answers each call with as much as there is room for.
type pages struct {
	readTool
	size int
	room []int
}

func (p *pages) Invoke(_ context.Context, _ llm.Call, e tool.Env) (journal.Result, error) {
	p.room = append(p.room, e.Room)
	return journal.Result{Text: strings.Repeat("é", p.size/2), OK: true}, nil
}

// TestWindow: a turn of 24 rounds, each reading 6 KB, ends with an answer in a
// window of 8k tokens, whether the window is known, told, or neither.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name    string
		known   int
		model   *small
		refusal bool // whether the model may have to refuse first
	}{
		{"known and counted", 8192, &small{window: 8192, counts: true}, false},
		{"known", 8192, &small{window: 8192}, false},
		{"told by the upstream", 0, &small{window: 8192, says: 8192, counts: true}, true},
		{"never told", 0, &small{window: 8192}, true},
		{"known wrongly", 32768, &small{window: 8192, counts: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := c.model
			model.rounds = 24
			r := newRig(scenario{bounds: journal.Bounds{Rounds: 24}})
			drafts := r.drafts()
			start := drafts[1].Data.(journal.TurnStarted)
			start.Context = c.known
			drafts[1].Data = start
			r.append(t, drafts...)
			set := &pages{size: 6000}
			set.replay = journal.Again
			d := &turn.Driver{Log: r.log, At: r.log.Take(), Provider: model, Tools: set, Host: &ids{n: 1000}}
			state := fold(t, r.log)
			out, err := d.Run(t.Context(), &state, func(turn.Signal) error { return nil })
			if err != nil || out.Reason != turn.Answered {
				t.Fatalf("outcome %+v, %v", out, err)
			}
			if out.Rounds != 25 || len(set.room) != 24 {
				t.Errorf("%d rounds and %d reads, want 25 and 24", out.Rounds, len(set.room))
			}
			if out.Elided == 0 {
				t.Error("nothing was left out, so the test shows nothing")
			}
			if !c.refusal && model.refused > 0 {
				t.Errorf("the model had to refuse %d times although its window was known", model.refused)
			}
			if got := transcript(state.Path()); strings.Contains(got, "Left out to save room") {
				t.Error("the results are gone from the tree too")
			}
			if last := state.Request(); !strings.Contains(last.Messages[2].Text(), `[Left out to save room: the result of read with {"page":1}, 6000 bytes. Call it again if you still need it.]`) {
				t.Errorf("the model is not told what was left out: %q", last.Messages[2].Text())
			}
			// A cut log plans the same here too.
			var live, stored turn.State
			for i, e := range collect(t, r.log) {
				live = live.Apply(e)
				stored = stored.Apply(restored(t, e))
				if diff := cmp.Diff(live.Next(), stored.Next()); diff != "" {
					t.Fatalf("after event %d the stored log plans otherwise:\n%s", i+1, diff)
				}
			}
		})
	}
}

// TestRoom: a result is told its room, and cut when it takes more.
func TestRoom(t *testing.T) {
	model := &small{window: 4096, rounds: 1, counts: true}
	r := newRig(scenario{})
	drafts := r.drafts()
	start := drafts[1].Data.(journal.TurnStarted)
	start.Context = 4096
	drafts[1].Data = start
	r.append(t, drafts...)
	set := &pages{size: 100_000}
	d := &turn.Driver{Log: r.log, At: r.log.Take(), Provider: model, Tools: set, Host: &ids{n: 1000}}
	state := fold(t, r.log)
	out, err := d.Run(t.Context(), &state, func(turn.Signal) error { return nil })
	if err != nil || out.Reason != turn.Answered {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	if room := set.room[0]; room < 4000 || room > 4096*4 {
		t.Errorf("room %d bytes in a window of 4096 tokens", room)
	}
	got := state.Path().Messages()[2].Text()
	if len(got) > 4096*4 || !strings.Contains(got, "[Cut to fit: ") || !strings.HasSuffix(got, "of 100000 bytes are shown. Ask for less at a time.]") {
		t.Errorf("a result of %d bytes reached the model: …%s", len(got), got[len(got)-100:])
	}
	if strings.ContainsRune(got, '\uFFFD') || !strings.HasPrefix(got, "éé") {
		t.Error("the cut split a character")
	}
}

// TestOverflowWithoutResults: what nobody can shorten fails as it came.
func TestOverflowWithoutResults(t *testing.T) {
	model := &small{window: 1}
	r := newRig(scenario{})
	r.append(t, r.drafts()...)
	d := &turn.Driver{Log: r.log, At: r.log.Take(), Provider: model, Host: &ids{n: 1000}}
	r.scenario.history = []llm.Message{llm.TextMessage(llm.User, strings.Repeat("x", 100))}
	state := fold(t, r.log)
	out, err := d.Run(t.Context(), &state, func(turn.Signal) error { return nil })
	if err == nil || out.Reason != turn.Failed || model.asked != 1 {
		t.Errorf("outcome %+v after %d requests, %v", out, model.asked, err)
	}
}

package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read is the one host tool of these tests; again says what its replay is.
type readTool struct {
	replay journal.Replay
	fail   error
	panics bool
	// ordered, if set, is what a call does that is one of the ordered ones.
	ordered func(ctx context.Context, c llm.Call, e tool.Env)

	mu   sync.Mutex
	runs []string
}

func (s *readTool) Offer(journal.Path) journal.Offer {
	return journal.Offer{Declared: []llm.Declaration{{
		Name: "read", Description: "Read a page.", Parameters: jsontext.Value(`{"type":"object","properties":{},"required":[]}`),
	}}}
}

func (s *readTool) Ordered(name string) bool { return s.ordered != nil && name == "read" }

func (s *readTool) Replay(string) journal.Replay { return s.replay }

func (s *readTool) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	if s.ordered != nil {
		s.ordered(ctx, c, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, c.ID)
	switch {
	case s.panics:
		panic("read fell over")
	case s.fail != nil:
		return journal.Result{}, s.fail
	case c.Name != "read":
		return tool.Unknown(c.Name, e), nil
	}
	return journal.Result{Text: "page " + c.Arguments, OK: true}, nil
}

type ids struct{ n int }

func (i *ids) NewID() string { i.n++; return fmt.Sprint("id", i.n) }

// scenario is one turn, as a table row.
type scenario struct {
	name    string
	history []llm.Message // before the user's question
	caller  []string
	options llm.Options
	bounds  journal.Bounds
	block   string
	asUser  bool
	rounds  []llm.ScriptedRound
	late    map[string]string // the caller's results, by call id, that come when the turn has parked
	// cancelOn ends the turn's context when a delta with this text is seen.
	cancelOn string

	want    string // transcript
	outcome turn.Outcome
	visible string // what the client saw
}

// rig runs a scenario on a log that may already hold a part of it.
type rig struct {
	scenario
	tools  *readTool
	script *llm.Script
	log    *journal.Memory

	text  strings.Builder
	calls []string
}

func newRig(s scenario) *rig {
	if s.bounds.Rounds == 0 {
		s.bounds.Rounds = 8
	}
	if s.bounds.Calls == 0 {
		s.bounds.Calls = 8
	}
	return &rig{
		scenario: s, tools: &readTool{replay: journal.Again},
		script: &llm.Script{Rounds: s.rounds}, log: journal.NewMemory(time.Now),
	}
}

func (r *rig) drafts() []journal.Draft {
	var added journal.MessagesAdded
	for i, m := range append(slices.Clone(r.history), llm.TextMessage(llm.User, "question")) {
		added.Entries = append(added.Entries, journal.Entry{ID: journal.NodeID(fmt.Sprint("in", i)), Message: m})
	}
	start := journal.TurnStarted{
		Model: "m", Options: r.options, Bounds: r.bounds, Block: r.block, ResultsAsUser: r.asUser,
	}
	for _, name := range r.caller {
		start.Caller = append(start.Caller, llm.Declaration{Name: name})
	}
	tip := added.Entries[len(added.Entries)-1].ID
	return []journal.Draft{{TurnID: "t1", Data: added}, {TurnID: "t1", Anchor: tip, Data: start}}
}

// fold reads the whole log.
func fold(t *testing.T, l journal.Log) turn.State {
	t.Helper()
	var s turn.State
	for e, err := range l.Read(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		s = s.Apply(e)
	}
	return s
}

func (r *rig) append(t *testing.T, drafts ...journal.Draft) {
	t.Helper()
	if _, err := r.log.Append(context.Background(), r.log.Take(), drafts...); err != nil {
		t.Fatal(err)
	}
}

// run drives what the log holds to the end, bringing late results.
func (r *rig) run(t *testing.T) (turn.State, turn.Outcome, error) {
	t.Helper()
	for {
		s, out, err := r.drive(t, r.log)
		if out.Reason != turn.Parked || len(r.late) == 0 {
			return s, out, err
		}
		for _, w := range out.Waits {
			r.append(t, journal.Draft{TurnID: "t1", Anchor: s.Path().Tip(), Data: journal.InvokeEnded{
				CallID: w.Call.ID, Result: journal.Result{Text: r.late[w.Call.ID], OK: true},
			}})
		}
	}
}

func (r *rig) drive(t *testing.T, log journal.Log) (turn.State, turn.Outcome, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &turn.Driver{Log: log, At: r.log.Take(), Provider: r.script, Tools: r.tools, Host: &ids{n: 1000}}
	state := fold(t, r.log)
	out, err := d.Run(ctx, &state, func(s turn.Signal) error {
		if s.Kind != turn.Delta || s.Piece.Choice != 0 {
			return nil
		}
		r.text.WriteString(s.Piece.Text)
		for _, c := range s.Piece.Calls {
			r.calls = append(r.calls, fmt.Sprintf("%d:%s%s", c.Index, c.Name, c.Arguments))
		}
		if s.Piece.Finish != "" {
			fmt.Fprintf(&r.text, "<%s>", s.Piece.Finish)
		}
		if s.Piece.Usage != nil {
			fmt.Fprintf(&r.text, "<%d+%d>", s.Piece.Usage.Input, s.Piece.Usage.Output)
		}
		if r.cancelOn != "" && strings.Contains(s.Piece.Text, r.cancelOn) {
			cancel()
		}
		return nil
	})
	return state, out, err
}

func (r *rig) visibleText() string {
	if len(r.calls) == 0 {
		return r.text.String()
	}
	return r.text.String() + " [" + strings.Join(r.calls, " ") + "]"
}

// transcript is the conversation, a line a message, without ids of nodes.
func transcript(p journal.Path) string {
	var b strings.Builder
	for _, m := range p.Messages() {
		b.WriteString(string(m.Role))
		if m.CallID != "" {
			b.WriteString(" " + m.CallID)
		}
		b.WriteString(": " + m.Text())
		for _, c := range m.Calls {
			fmt.Fprintf(&b, " %s=%s(%s)", c.ID, c.Name, c.Arguments)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Pieces of scripted rounds.

func say(text string) llm.Piece { return llm.Piece{Text: text} }

func ask(index int, id, name, args string) llm.Piece {
	return llm.Piece{Calls: []llm.CallDelta{{Index: index, ID: id, Name: name, Arguments: args}}}
}

func finish(f llm.Finish) llm.Piece { return llm.Piece{Finish: f} }

func tokens(in, out int64) llm.Piece {
	return llm.Piece{Usage: &llm.Usage{Input: in, Output: out, Total: in + out}}
}

func round(pieces ...llm.Piece) llm.ScriptedRound { return llm.ScriptedRound{Pieces: pieces} }

var errBoom = errors.New("boom")

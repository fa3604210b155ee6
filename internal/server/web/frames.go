package web

import (
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// agentID is the agent whose calls are told: there are no children yet.
const agentID = "/root"

// frames makes the frames of one turn (B1 17.4 to 17.6). Text is always what came since
// the frame before: whoever shows a whole adds it up.
type frames struct {
	session string
	now     func() time.Time
	began   time.Time
	writing map[string]time.Time // when a call of a tool began to come, by name
	running map[string]time.Time // when a call began to run, by id
	out     []byte               // reused
}

func newFrames(session string, now func() time.Time) *frames {
	return &frames{session: session, now: now, began: now(), writing: map[string]time.Time{}, running: map[string]time.Time{}}
}

// stepFrame tells of a call of the host that has ended.
type stepFrame struct {
	Step   string `json:"skill_step"` // the tool
	Agent  string `json:"agent_id"`
	Skill  string `json:"skill"`
	Detail string `json:"detail"`
	OK     bool   `json:"ok"`
	Round  int    `json:"round"`
	Files  []file `json:"files,omitzero"`
}

// file is one that a call has made.
type file struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"`
}

// The phases of a call.
const (
	writing  = "writing"
	running  = "running"
	finished = "finished"
)

// progressFrame tells how a call goes that takes its time. Detail says at its end what
// it was about.
type progressFrame struct {
	Phase   string  `json:"tool_progress"`
	Tool    string  `json:"tool"`
	Text    string  `json:"text"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail"`
	// Agents is null while there are no children.
	Agents *struct{} `json:"agents"`
	Files  []file    `json:"files,omitzero"`
}

// doneFrame is the last one. The names that begin with kv are those of seed 1: tokens
// that the upstream has read from its cache.
type doneFrame struct {
	Done         bool    `json:"done"`
	Tokens       int64   `json:"tokenCount"`
	Elapsed      float64 `json:"elapsed"`
	Rate         float64 `json:"tokPerSec"`
	Aborted      bool    `json:"aborted"`
	Truncated    bool    `json:"truncated"`
	Error        *string `json:"error"`
	Session      string  `json:"sessionId"`
	Prompt       int64   `json:"promptTokens"`
	Reused       int64   `json:"kvReusedTokens"`
	ReusePercent float64 `json:"kvReusePercent"`
}

// signal is the frames for a signal of the turn, ready to send; empty when there are
// none. The result is valid until the next call.
func (f *frames) signal(s turn.Signal) []byte {
	f.out = f.out[:0]
	switch s.Kind {
	case turn.Delta:
		f.piece(s.Piece)
	case turn.CallWriting:
		f.write(s)
	case turn.RoundEnded:
		clear(f.writing)
	case turn.CallStarted:
		f.running[s.Call.ID] = f.now()
		f.progress(running, s)
	case turn.CallRunning:
		f.progress(running, s)
	case turn.CallEnded:
		f.progress(finished, s)
		f.step(s)
		delete(f.running, s.Call.ID)
	}
	return f.out
}

func (f *frames) piece(p *llm.Piece) {
	if p.Choice != 0 {
		return
	}
	if p.Reasoning != "" {
		f.text("thinking", p.Reasoning)
	}
	if p.Text != "" {
		f.text("token", p.Text)
	}
}

func (f *frames) text(name, text string) {
	b := append(wire.AppendString([]byte("{"), name), ':')
	f.event(append(wire.AppendString(b, text), '}'))
}

func (f *frames) event(data []byte) { f.out = wire.AppendEvent(f.out, data) }

// frame adds a frame of a struct. What models and commands write may be any bytes.
func (f *frames) frame(v any) {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return // a struct of texts and numbers has none
	}
	f.event(b)
}

func (f *frames) write(s turn.Signal) {
	if _, ok := f.writing[s.Call.Name]; !ok {
		f.writing[s.Call.Name] = f.now()
	}
	f.progress(writing, s)
}

// progress tells how a call goes; nothing of one that is over at once.
func (f *frames) progress(phase string, s turn.Signal) {
	tool := canonical(s.Call.Name)
	if tool == toolskill.ListName || tool == toolskill.ReadName {
		return
	}
	since := f.running[s.Call.ID]
	if phase == writing {
		since = f.writing[s.Call.Name]
	}
	p := progressFrame{Phase: phase, Tool: tool, Text: s.Text, Seconds: seconds(f.now().Sub(since))}
	if phase == finished {
		p.Detail, p.Files = s.Result.Detail, filesOf(s.Result)
	}
	f.frame(p)
}

func (f *frames) step(s turn.Signal) {
	f.frame(stepFrame{
		Step: canonical(s.Call.Name), Agent: agentID, Skill: s.Result.Skill, Detail: s.Result.Detail,
		OK: s.Result.OK, Round: s.Round, Files: filesOf(s.Result),
	})
}

func filesOf(r journal.Result) []file {
	var made []file
	for _, f := range r.Files {
		made = append(made, file(f))
	}
	return made
}

// canonical is the tool that a model means by a name (B1 4.1).
func canonical(name string) string {
	if tool := code.Canonical(name); tool != name {
		return tool
	}
	if tool := toolskill.Canonical(name); tool != "" {
		return tool
	}
	return name
}

// end is the last frames of a turn: the caller's calls, if it has to answer some, and
// how it ended. err is why it did not go well.
func (f *frames) end(o turn.Outcome, err error) []byte {
	f.out = f.out[:0]
	if o.Reason == turn.Parked && err == nil {
		f.calls(o.Waits)
	}
	elapsed := f.now().Sub(f.began)
	d := doneFrame{
		Done: true, Tokens: o.Usage.Output, Elapsed: seconds(elapsed), Session: f.session,
		Aborted: o.Reason == turn.Cancelled, Truncated: openai.FinishReason(o.Finish) == llm.FinishLength,
		Prompt: o.Usage.Input, Reused: o.Usage.Cached,
	}
	if elapsed > 0 {
		d.Rate = round(float64(o.Usage.Output)/elapsed.Seconds(), 1)
	}
	if o.Usage.Input > 0 {
		d.ReusePercent = round(100*float64(o.Usage.Cached)/float64(o.Usage.Input), 1)
	}
	if err != nil {
		message := server.FaultOf(err).Message
		d.Error = &message
	}
	f.frame(d)
	return f.out
}

func (f *frames) calls(waits []turn.Wait) {
	b := []byte(`{"tool_calls":[`)
	for i, w := range waits {
		if i > 0 {
			b = append(b, ',')
		}
		b = openai.AppendCall(b, w.Call)
	}
	f.event(append(b, "]}"...))
}

// seconds are rounded to thousandths.
func seconds(d time.Duration) float64 { return round(d.Seconds(), 3) }

func round(x float64, places int) float64 {
	p := math.Pow10(places)
	return math.Round(x*p) / p
}

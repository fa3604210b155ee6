package ollama

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// encoder makes one answer of all the rounds of a turn: pieces of text as they come, the
// caller's calls whole and together, one end with the counts of the whole.
type encoder struct {
	model    string
	generate bool // in the form of /api/generate
	now      func() time.Time
	began    time.Time
	first    time.Time // when the first piece came

	calls          []llm.Call
	text, thinking strings.Builder // of an answer in one piece
	last           jsontext.Value  // the upstream's own line that ends its last message
	out            []byte          // reused
}

// piece encodes what a client sees of one piece: a line, or nothing. The result is valid
// until the next call.
func (e *encoder) piece(p *llm.Piece) []byte {
	if p.Choice != 0 {
		return nil // the dialect has one answer
	}
	e.hear(p)
	e.out = e.out[:0]
	switch {
	case p.Text == "" && p.Reasoning == "":
		return nil
	case p.Raw.Is(llm.Ollama) && p.Finish == "" && !e.generate:
		e.line(p.Raw.Bytes)
		return e.out
	}
	e.open(p.Text, p.Reasoning)
	e.out = append(e.shut(), `,"done":false}`...)
	e.out = append(e.out, '\n')
	return e.out
}

// line adds a line of the upstream's: it must hold no line break.
func (e *encoder) line(v []byte) {
	for _, b := range v {
		if b != '\n' && b != '\r' {
			e.out = append(e.out, b)
		}
	}
	e.out = append(e.out, '\n')
}

// hear notes what is told at the end.
func (e *encoder) hear(p *llm.Piece) {
	if e.first.IsZero() {
		e.first = e.now()
	}
	if p.Finish != "" && p.Raw.Is(llm.Ollama) {
		e.last = bytes.Clone(p.Raw.Bytes)
	}
	for _, d := range p.Calls {
		for d.Index >= len(e.calls) {
			e.calls = append(e.calls, llm.Call{})
		}
		c := &e.calls[d.Index]
		c.ID, c.Name, c.Arguments = c.ID+d.ID, c.Name+d.Name, c.Arguments+d.Arguments
	}
}

// collect takes a piece of an answer in one.
func (e *encoder) collect(p *llm.Piece) {
	if p.Choice != 0 {
		return
	}
	e.hear(p)
	e.text.WriteString(p.Text)
	e.thinking.WriteString(p.Reasoning)
}

// open begins an answer's object up to the inside of its message.
func (e *encoder) open(text, thinking string) {
	e.out = append(e.out, `{"model":`...)
	e.out = wire.AppendString(e.out, e.model)
	e.out = append(e.out, `,"created_at":"`...)
	e.out = e.now().UTC().AppendFormat(e.out, time.RFC3339Nano)
	content := `","message":{"role":"assistant","content":`
	if e.generate {
		content = `","response":`
	}
	e.out = append(e.out, content...)
	e.out = wire.AppendString(e.out, text)
	if thinking != "" {
		e.out = append(e.out, `,"thinking":`...)
		e.out = wire.AppendString(e.out, thinking)
	}
}

// shut closes the message, if it has one of its own.
func (e *encoder) shut() []byte {
	if e.generate {
		return e.out
	}
	return append(e.out, '}')
}

func (e *encoder) toolCalls() {
	if len(e.calls) == 0 {
		return
	}
	e.out = append(e.out, `,"tool_calls":[`...)
	for i, c := range e.calls {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = ollama.AppendCall(e.out, i, c)
		e.out = append(e.out, `,"id":`...)
		e.out = append(wire.AppendString(e.out, c.ID), '}')
	}
	e.out = append(e.out, ']')
}

// end encodes the calls, and the line that ends a stream.
func (e *encoder) end(o turn.Outcome) []byte {
	e.out = e.out[:0]
	e.mend(o)
	if len(e.calls) > 0 {
		e.open("", "")
		e.toolCalls()
		e.out = append(e.shut(), `,"done":false}`...)
		e.out = append(e.out, '\n')
	}
	e.open("", "")
	e.out = e.ending(e.shut(), o)
	return append(e.out, '\n')
}

// whole is an answer in one piece.
func (e *encoder) whole(o turn.Outcome) []byte {
	e.mend(o)
	e.open(e.text.String(), e.thinking.String())
	e.toolCalls()
	return e.ending(e.shut(), o)
}

// mend takes the arguments of calls as the turn has them: it may have mended them.
func (e *encoder) mend(o turn.Outcome) {
	for i, c := range e.calls {
		if k := slices.IndexFunc(o.Waits, func(w turn.Wait) bool { return w.Call.ID == c.ID }); k >= 0 {
			e.calls[i].Arguments = o.Waits[k].Call.Arguments
		}
	}
}

// ending closes the last object: why the answer ended, how long it took in nanoseconds, and
// the tokens of all rounds. Of what the upstream says of its own last message what is new
// to us stays.
func (e *encoder) ending(dst []byte, o turn.Outcome) []byte {
	dst = append(dst, `,"done":true,"done_reason":`...)
	dst = wire.AppendString(dst, reasonOf(o.Finish))
	end := e.now()
	first := e.first
	if first.IsZero() {
		first = end
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"total_duration", end.Sub(e.began).Nanoseconds()},
		{"load_duration", number(e.last, "load_duration")},
		{"prompt_eval_count", o.Usage.Input},
		{"prompt_eval_duration", first.Sub(e.began).Nanoseconds()},
		{"eval_count", o.Usage.Output},
		{"eval_duration", end.Sub(first).Nanoseconds()},
	} {
		dst = append(append(append(dst, `,"`...), f.name...), `":`...)
		dst = strconv.AppendInt(dst, f.value, 10)
	}
	for c := wire.Object(e.last); c.Next(); {
		if name, _ := wire.Unquote(c.Name); !known(name) {
			dst = append(wire.AppendString(append(dst, ','), name), ':')
			dst = append(dst, c.Value...)
		}
	}
	return append(dst, '}')
}

// known reports whether a member of a last line is one that the host writes itself.
func known(name string) bool {
	return slices.Contains([]string{
		"model", "created_at", "message", "response", "thinking", "done", "done_reason", "total_duration", "load_duration",
		"prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
	}, name)
}

func number(v jsontext.Value, name string) int64 {
	n, err := strconv.ParseInt(string(wire.Member(v, name)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// reasonOf is why an answer ended, as the dialect has it.
func reasonOf(f llm.Finish) string {
	switch f {
	case llm.FinishLength, "model_context_window_exceeded":
		return "length"
	}
	return "stop"
}

// idle answers a request without messages: one to load the model, or to let go of it. The
// upstream does either by itself.
func (e *encoder) idle(req *ollama.Request) []byte {
	reason := "load"
	for _, m := range req.Rest {
		if v := strings.Trim(string(m.Value), `"`); m.Name == "keep_alive" && strings.Trim(v, "0smh") == "" && strings.HasPrefix(v, "0") {
			reason = "unload"
		}
	}
	e.open("", "")
	e.out = append(e.shut(), `,"done":true,"done_reason":"`...)
	return append(append(e.out, reason...), `"}`...)
}

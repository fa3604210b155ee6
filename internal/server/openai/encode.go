package openai

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// encoder makes one well-formed stream of all the rounds of a turn: one id, one
// role, usage of the whole, one end. Chunks of an upstream of the same dialect
// go through as they came wherever that holds.
type encoder struct {
	head         openai.Head
	includeUsage bool
	own          bool // the upstream speaks this dialect

	id, created, model []byte // JSON of the first chunk's, or of head
	role               bool   // the role has been said
	verbatim           bool   // the last chunk went through as it came
	finish             bool
	usage              bool
	out                []byte // reused
}

func newEncoder(head openai.Head, includeUsage, own bool) *encoder {
	return &encoder{head: head, includeUsage: includeUsage, own: own}
}

// piece encodes what a client sees of one piece: an event, or nothing. The
// result is valid until the next call.
func (e *encoder) piece(round int, p *llm.Piece) []byte {
	if p.Text == "" && p.Reasoning == "" && len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil && len(p.Raw.Bytes) == 0 {
		return nil // the reply as a whole
	}
	e.out = append(e.out[:0], "data: "...)
	from := len(e.out)
	verbatim := e.verbatim
	e.verbatim = false
	if p.Repeats && verbatim {
		e.out = append(append(e.out, p.Raw.Bytes...), "\n\n"...)
		e.verbatim = true
		return e.out
	}
	if p.Raw.Is(llm.OpenAIChat) {
		e.raw(round, p)
	} else {
		e.neutral(p)
	}
	if len(e.out) == from {
		return nil
	}
	if p.Finish != "" {
		e.finish = true
	}
	e.out = append(e.out, "\n\n"...)
	return e.out
}

// raw passes a chunk on, changed only where the turn needs it.
func (e *encoder) raw(round int, p *llm.Piece) {
	v := p.Raw.Bytes
	usageOnly := p.Usage != nil && len(firstElement(wire.Member(v, "choices"))) == 0
	if usageOnly && !e.includeUsage {
		return
	}
	e.usage = e.usage || p.Usage != nil
	e.know(v)
	hasRole := saysRole(v, p.Choice)
	if p.Choice != 0 || (round == 1 && (usageOnly || hasRole != e.role)) {
		// Alternatives beside the first each say their role themselves.
		e.role = e.role || (hasRole && p.Choice == 0)
		e.append(v)
		e.verbatim = !hasRole && !broken(v)
		return
	}
	empty := p.Text == "" && p.Reasoning == "" && len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil
	if empty && e.role && hasRole {
		return // it said nothing but the role again
	}
	e.rewrite(v, p)
}

// append adds a chunk on one line: an event's data must hold no line break.
func (e *encoder) append(v []byte) {
	if !broken(v) {
		e.out = append(e.out, v...)
		return
	}
	for _, b := range v {
		if b != '\n' && b != '\r' {
			e.out = append(e.out, b)
		}
	}
}

// broken reports whether JSON stands on more than one line. A lone CR ends a line
// of an event as well as LF does.
func broken(v []byte) bool {
	return bytes.IndexByte(v, '\n') >= 0 || bytes.IndexByte(v, '\r') >= 0
}

// saysRole reports whether the delta of a choice names its role. The word alone
// may be a token of the text.
func saysRole(v jsontext.Value, choice int) bool {
	if !bytes.Contains(v, []byte(`"role"`)) {
		return false
	}
	for c := wire.Array(wire.Member(v, "choices")); c.Next(); {
		index, _ := strconv.Atoi(string(wire.Member(c.Value, "index"))) // none is 0
		role, _ := wire.Contents(wire.Member(wire.Member(c.Value, "delta"), "role"))
		if index == choice && len(role) > 0 {
			return true
		}
	}
	return false
}

// know takes the completion's names from its first chunk.
func (e *encoder) know(v jsontext.Value) {
	if e.id != nil {
		return
	}
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("id"):
			e.id = bytes.Clone(c.Value)
		case c.Is("created"):
			e.created = bytes.Clone(c.Value)
		case c.Is("model"):
			e.model = bytes.Clone(c.Value)
		}
	}
	e.fill()
}

// fill names the completion where an upstream did not.
func (e *encoder) fill() {
	if wire.IsNull(e.id) || string(e.id) == `""` {
		e.id = wire.AppendString(nil, e.head.ID)
	}
	if wire.IsNull(e.created) {
		e.created = strconv.AppendInt(nil, e.head.Created, 10)
	}
	if wire.IsNull(e.model) {
		e.model = wire.AppendString(nil, e.head.Model)
	}
}

// rewrite copies a chunk member by member, with the completion's own id, with
// the role said once, and with the usage of all rounds.
func (e *encoder) rewrite(v jsontext.Value, p *llm.Piece) {
	e.open()
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("id"):
			e.member(c.Name, e.id)
		case c.Is("created"):
			e.member(c.Name, e.created)
		case c.Is("usage"):
			if p.Usage == nil {
				e.member(c.Name, c.Value)
				continue
			}
			e.member(c.Name, nil)
			e.out = openai.AppendUsage(e.out, *p.Usage)
		case c.Is("choices"):
			e.member(c.Name, nil)
			e.choices(c.Value)
		default:
			e.member(c.Name, c.Value)
		}
	}
	e.out = append(e.out, '}')
}

func (e *encoder) choices(v jsontext.Value) {
	e.out = append(e.out, '[')
	first := true
	for a := wire.Array(v); a.Next(); {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.open()
		for c := wire.Object(a.Value); c.Next(); {
			if !c.Is("delta") {
				e.member(c.Name, c.Value)
				continue
			}
			e.member(c.Name, nil)
			e.delta(c.Value)
		}
		e.out = append(e.out, '}')
	}
	e.out = append(e.out, ']')
}

func (e *encoder) delta(v jsontext.Value) {
	e.open()
	if !e.role {
		e.role = true
		e.out = append(e.out, `"role":"assistant"`...)
	}
	for c := wire.Object(v); c.Next(); {
		if !c.Is("role") {
			e.member(c.Name, c.Value)
		}
	}
	e.out = append(e.out, '}')
}

// open and member write an object.
func (e *encoder) open() { e.out = append(e.out, '{') }

func (e *encoder) member(name, value []byte) {
	if e.out[len(e.out)-1] != '{' {
		e.out = append(e.out, ',')
	}
	e.out = append(append(append(e.out, '"'), name...), '"', ':')
	e.append(value)
}

// neutral writes a chunk of a piece that has no wire form of this dialect. Its usage is told
// at the end: it may come before the last text, and again.
func (e *encoder) neutral(p *llm.Piece) {
	if p.Text == "" && p.Reasoning == "" && len(p.Calls) == 0 && p.Finish == "" {
		return
	}
	e.chunk(p.Choice)
	if p.Reasoning != "" {
		e.member([]byte("reasoning_content"), nil)
		e.out = wire.AppendString(e.out, p.Reasoning)
	}
	if p.Text != "" {
		e.member([]byte("content"), nil)
		e.out = wire.AppendString(e.out, p.Text)
	}
	if len(p.Calls) > 0 {
		e.member([]byte("tool_calls"), nil)
		e.calls(p.Calls)
	}
	e.endChunk(p.Finish)
}

func (e *encoder) calls(calls []llm.CallDelta) {
	e.out = append(e.out, '[')
	for i, d := range calls {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		index := strconv.AppendInt(nil, int64(d.Index), 10)
		if d.Raw != nil {
			e.append(wire.Set(d.Raw, "index", index))
			continue
		}
		e.out = append(append(e.out, `{"index":`...), index...)
		if d.ID != "" {
			e.out = append(e.out, `,"id":`...)
			e.out = wire.AppendString(e.out, d.ID)
			e.out = append(e.out, `,"type":"function"`...)
		}
		e.out = append(e.out, `,"function":{`...)
		if d.Name != "" {
			e.out = append(e.out, `"name":`...)
			e.out = append(wire.AppendString(e.out, d.Name), ',')
		}
		e.out = append(e.out, `"arguments":`...)
		e.out = append(wire.AppendString(e.out, d.Arguments), "}}"...)
	}
	e.out = append(e.out, ']')
}

// chunk opens a chunk up to the inside of its delta.
func (e *encoder) chunk(choice int) {
	e.start()
	e.out = append(e.out, `,"choices":[{"index":`...)
	e.out = strconv.AppendInt(e.out, int64(choice), 10)
	e.out = append(e.out, `,"delta":{`...)
	if !e.role && choice == 0 {
		e.role = true
		e.out = append(e.out, `"role":"assistant"`...)
	}
}

func (e *encoder) start() {
	e.fill()
	e.out = append(e.out, `{"id":`...)
	e.append(e.id)
	e.out = append(e.out, `,"object":"chat.completion.chunk","created":`...)
	e.append(e.created)
	e.out = append(e.out, `,"model":`...)
	e.append(e.model)
}

func (e *encoder) endChunk(finish llm.Finish) {
	e.out = append(e.out, `},"finish_reason":`...)
	switch {
	case finish == "":
		e.out = append(e.out, "null"...)
	case e.own:
		e.out = wire.AppendString(e.out, string(finish))
	default:
		e.out = wire.AppendString(e.out, string(openai.FinishReason(finish)))
	}
	e.out = append(e.out, "}]}"...)
}

func (e *encoder) usageChunk(u llm.Usage) {
	e.start()
	e.out = append(e.out, `,"choices":[],"usage":`...)
	e.out = append(openai.AppendUsage(e.out, u), '}')
}

// end encodes what is still missing when the turn has ended, and the end mark.
func (e *encoder) end(o turn.Outcome) []byte {
	e.out = e.out[:0]
	if !e.finish {
		e.out = append(e.out, "data: "...)
		e.chunk(0)
		e.endChunk(o.Finish)
		e.out = append(e.out, "\n\n"...)
	}
	if e.includeUsage && !e.usage {
		e.out = append(e.out, "data: "...)
		e.usageChunk(o.Usage)
		e.out = append(e.out, "\n\n"...)
	}
	e.out = append(e.out, "data: [DONE]\n\n"...)
	return e.out
}

// fail encodes an error that came when the answer had begun. There is no end
// mark: the answer is not whole.
func (e *encoder) fail(body []byte) []byte {
	e.out = append(e.out[:0], "data: "...)
	e.append(body)
	e.out = append(e.out, "\n\n"...)
	return e.out
}

func firstElement(v jsontext.Value) jsontext.Value {
	c := wire.Array(v)
	c.Next()
	return c.Value
}

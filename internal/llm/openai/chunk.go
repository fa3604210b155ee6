package openai

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// parseChunk reads the fields of a chunk that the machine acts on, and its
// delta. calls is reused for the fragments.
func parseChunk(v jsontext.Value, calls []llm.CallDelta) (p llm.Piece, delta jsontext.Value) {
	p.Raw = llm.Raw{Dialect: llm.OpenAIChat, Bytes: v}
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("choices"):
			if choice := firstChoice(c.Value); choice != nil {
				delta = parseChoice(&p, choice, calls)
				if delta == nil {
					delta = jsontext.Value(noDelta)
				}
			}
		case c.Is("usage"):
			p.Usage = parseUsage(c.Value)
		}
	}
	return p, delta
}

// noDelta is what a choice without a delta adds.
const noDelta = "{}"

// template is the last text-only chunk but for its text. Nearly every chunk of a
// stream is the one before with other text: then nothing need be parsed.
type template struct{ before, after []byte }

// match is the text of a chunk that differs from the template in nothing else,
// and whose text stands in JSON as it is.
func (t *template) match(v jsontext.Value) ([]byte, bool) {
	if t.before == nil || len(v) < len(t.before)+len(t.after) ||
		!bytes.HasPrefix(v, t.before) || !bytes.HasSuffix(v, t.after) {
		return nil, false
	}
	text := v[len(t.before) : len(v)-len(t.after)]
	for _, b := range text {
		if b == '"' || b == '\\' || b < ' ' {
			return nil, false
		}
	}
	return text, utf8.Valid(text)
}

// learn makes a template of a chunk of one choice, 0, that says nothing but the
// content of its delta. Whatever else a choice holds, its log probabilities
// above all, is something to collect even where it is as it was before.
func (t *template) learn(v jsontext.Value) {
	t.before = nil
	choices, at := member(v, "choices", 0)
	choice := wire.Array(choices)
	if !choice.Next() {
		return
	}
	at += choice.Offset()
	element := choice.Value
	if choice.Next() || !textOnly(element) {
		return
	}
	delta, at := member(element, "delta", at)
	content := wire.Object(delta)
	if !content.Next() || !content.Is("content") {
		return
	}
	at += content.Offset()
	text, ok := wire.Contents(content.Value)
	if !ok || content.Next() {
		return
	}
	t.before = append(t.before[:0], v[:at+1]...)
	t.after = append(t.after[:0], v[at+1+len(text):]...)
}

// textOnly reports whether a choice has one delta and, but for its index,
// nothing beside.
func textOnly(choice jsontext.Value) bool {
	deltas := 0
	for c := wire.Object(choice); c.Next(); {
		switch {
		case c.Is("delta"):
			deltas++
		case c.Is("index"), wire.IsNull(c.Value):
		default:
			return false
		}
	}
	return deltas == 1
}

// member is the named member of an object, and where it begins when the object
// begins at the given place.
func member(v jsontext.Value, name string, at int) (jsontext.Value, int) {
	for c := wire.Object(v); c.Next(); {
		if c.Is(name) {
			return c.Value, at + c.Offset()
		}
	}
	return nil, 0
}

// firstChoice is the alternative 0 of a chunk, or else the first one there.
func firstChoice(v jsontext.Value) jsontext.Value {
	var first jsontext.Value
	for c := wire.Array(v); c.Next(); {
		if number(wire.Member(c.Value, "index")) == 0 {
			return c.Value
		}
		if first == nil {
			first = c.Value
		}
	}
	return first
}

func parseChoice(p *llm.Piece, v jsontext.Value, calls []llm.CallDelta) jsontext.Value {
	var delta jsontext.Value
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("index"):
			p.Choice = int(number(c.Value))
		case c.Is("finish_reason"):
			finish, _ := wire.String(c.Value)
			p.Finish = llm.Finish(finish)
		case c.Is("delta"):
			delta = c.Value
			parseDelta(p, delta, calls)
		}
	}
	return delta
}

func parseDelta(p *llm.Piece, v jsontext.Value, calls []llm.CallDelta) {
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("content"):
			p.Text, _ = wire.String(c.Value)
		case c.Is("reasoning_content"), c.Is("reasoning"):
			p.Reasoning, _ = wire.String(c.Value)
		case c.Is("tool_calls"):
			for t := wire.Array(c.Value); t.Next(); {
				calls = append(calls, parseCallDelta(t.Value))
			}
			p.Calls = calls
		}
	}
}

func parseCallDelta(v jsontext.Value) llm.CallDelta {
	d := llm.CallDelta{Raw: v}
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("index"):
			d.Index = int(number(c.Value))
		case c.Is("id"):
			d.ID, _ = wire.String(c.Value)
		case c.Is("function"):
			d.Name, _ = wire.String(wire.Member(c.Value, "name"))
			d.Arguments = argumentText(wire.Member(c.Value, "arguments"))
		}
	}
	return d
}

// number is a whole JSON number, or 0.
func number(v jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// parseUsage reads a usage object; null gives nil.
func parseUsage(v jsontext.Value) *llm.Usage {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	u := &llm.Usage{}
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("prompt_tokens"):
			u.Input = number(c.Value)
		case c.Is("completion_tokens"):
			u.Output = number(c.Value)
		case c.Is("total_tokens"):
			u.Total = number(c.Value)
		case c.Is("prompt_tokens_details"):
			u.Cached = number(wire.Member(c.Value, "cached_tokens"))
		case c.Is("completion_tokens_details"):
			u.Reasoning = number(wire.Member(c.Value, "reasoning_tokens"))
		}
	}
	return u
}

// AppendUsage writes a usage object. Not every upstream says what its parts come to.
func AppendUsage(dst []byte, u llm.Usage) []byte {
	if u.Total == 0 {
		u.Total = llm.Usage{Total: u.Input}.Add(llm.Usage{Total: u.Output}).Total
	}
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.Input, 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.Total, 10)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, u.Cached, 10)
	dst = append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, u.Reasoning, 10)
	return append(dst, "}}"...)
}

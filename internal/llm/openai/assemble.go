package openai

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// Assembly puts the deltas of one choice together into a message object. Texts
// are joined as they were written, escapes and all, so that the message goes
// back upstream byte for byte and a character that was cut in two is whole
// again. The zero Assembly is ready.
type Assembly struct {
	fields fields
	calls  []assembledCall
}

type assembledCall struct {
	index     int
	members   fields // id, type and whatever else the upstream sends
	name      []byte
	arguments []byte
	extra     fields // unknown members of function
}

// Delta takes a delta object, calls left out.
func (a *Assembly) Delta(v jsontext.Value) {
	for c := wire.Object(v); c.Next(); {
		if c.Is("role") || c.Is("tool_calls") || wire.IsNull(c.Value) {
			continue
		}
		a.fields.merge(c.Name, c.Value)
	}
}

// Text takes text that came without a wire form.
func (a *Assembly) Text(name, text string) {
	if text != "" {
		a.fields.merge([]byte(name), wire.AppendString(nil, text))
	}
}

// Plain takes text of the content that needs no escapes.
func (a *Assembly) Plain(text []byte) {
	f := a.fields.named([]byte("content"))
	f.kind = '"'
	f.text = append(f.text, text...)
}

// Call takes a fragment of a call whose index was made dense.
func (a *Assembly) Call(d llm.CallDelta) {
	i := slices.IndexFunc(a.calls, func(c assembledCall) bool { return c.index == d.Index })
	if i < 0 {
		i = len(a.calls)
		a.calls = append(a.calls, assembledCall{index: d.Index})
	}
	call := &a.calls[i]
	if d.Raw == nil {
		call.neutral(d)
		return
	}
	for c := wire.Object(d.Raw); c.Next(); {
		switch {
		case c.Is("index") || wire.IsNull(c.Value):
		case c.Is("function"):
			call.function(c.Value)
		case c.Is("id") || c.Is("type"):
			if s, _ := wire.Contents(c.Value); len(s) > 0 {
				call.members.replace(c.Name, c.Value)
			}
		default:
			call.members.replace(c.Name, c.Value)
		}
	}
}

// neutral takes a fragment that has no wire form of this dialect.
func (c *assembledCall) neutral(d llm.CallDelta) {
	if d.ID != "" {
		c.members.replace([]byte("id"), wire.AppendString(nil, d.ID))
	}
	name, _ := wire.Contents(wire.AppendString(nil, d.Name))
	c.name = append(c.name, name...)
	arguments, _ := wire.Contents(wire.AppendString(nil, d.Arguments))
	c.arguments = append(c.arguments, arguments...)
}

func (c *assembledCall) function(v jsontext.Value) {
	for m := wire.Object(v); m.Next(); {
		switch {
		case wire.IsNull(m.Value):
		case m.Is("name"):
			name, _ := wire.Contents(m.Value)
			c.name = append(c.name, name...)
		case m.Is("arguments"):
			text, ok := wire.Contents(m.Value)
			if !ok { // the object itself, where a string that holds it belongs
				text, _ = wire.Contents(wire.AppendString(nil, string(m.Value)))
			}
			c.arguments = append(c.arguments, text...)
		default:
			c.extra.merge(m.Name, m.Value)
		}
	}
}

func (c assembledCall) append(dst []byte) []byte {
	dst = append(dst, '{')
	typed := false
	for _, f := range c.members.list {
		typed = typed || f.name == "type"
		dst = f.append(append(append(append(dst, '"'), f.name...), '"', ':'))
		dst = append(dst, ',')
	}
	if !typed {
		dst = append(dst, `"type":"function",`...)
	}
	dst = append(dst, `"function":{"name":"`...)
	dst = append(dst, c.name...)
	dst = append(dst, `","arguments":"`...)
	dst = append(dst, c.arguments...)
	dst = append(dst, '"')
	for _, f := range c.extra.list {
		dst = f.append(append(append(append(dst, ',', '"'), f.name...), '"', ':'))
	}
	return append(dst, "}}"...)
}

// Message is the assistant message as the upstream would have written it whole.
func (a *Assembly) Message() jsontext.Value {
	out := []byte(`{"role":"assistant"`)
	if a.fields.get("content") == nil {
		out = append(out, `,"content":null`...)
	}
	for _, f := range a.fields.list {
		out = f.append(append(append(append(out, ',', '"'), f.name...), '"', ':'))
	}
	if len(a.calls) > 0 {
		out = append(out, `,"tool_calls":[`...)
		for i, c := range a.calls {
			if i > 0 {
				out = append(out, ',')
			}
			out = c.append(out)
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

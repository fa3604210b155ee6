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
	fields []field
	calls  []assembledCall
}

// field is a member of the message, in order of first appearance.
type field struct {
	name string
	// text collects the contents of JSON strings; values the elements of arrays;
	// last is any other value.
	text, values []byte
	last         jsontext.Value
	kind         jsontext.Kind
}

type assembledCall struct {
	index     int
	members   []field // id, type and whatever else the upstream sends
	name      []byte
	arguments []byte
	extra     []field // unknown members of function
}

// Delta takes a delta object, calls left out.
func (a *Assembly) Delta(v jsontext.Value) {
	for c := wire.Object(v); c.Next(); {
		if c.Is("role") || c.Is("tool_calls") || wire.IsNull(c.Value) {
			continue
		}
		a.fields = merge(a.fields, c.Name, c.Value)
	}
}

// Text takes text that came without a wire form.
func (a *Assembly) Text(name, text string) {
	if text != "" {
		a.fields = merge(a.fields, []byte(name), wire.AppendString(nil, text))
	}
}

// Plain takes text of the content that needs no escapes.
func (a *Assembly) Plain(text []byte) {
	i := slices.IndexFunc(a.fields, func(f field) bool { return f.name == "content" })
	if i < 0 {
		i = len(a.fields)
		a.fields = append(a.fields, field{name: "content"})
	}
	a.fields[i].kind = '"'
	a.fields[i].text = append(a.fields[i].text, text...)
}

func merge(fields []field, name []byte, v jsontext.Value) []field {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == string(name) })
	if i < 0 {
		i = len(fields)
		fields = append(fields, field{name: string(name)})
	}
	f := &fields[i]
	f.kind = v.Kind()
	switch f.kind {
	case '"':
		text, _ := wire.Contents(v)
		f.text = append(f.text, text...)
	case '[':
		for c := wire.Array(v); c.Next(); {
			if len(f.values) > 0 {
				f.values = append(f.values, ',')
			}
			f.values = append(f.values, c.Value...)
		}
	default:
		f.last = slices.Clone(v)
	}
	return fields
}

func (f field) append(dst []byte) []byte {
	switch f.kind {
	case '"':
		return append(append(append(dst, '"'), f.text...), '"')
	case '[':
		return append(append(append(dst, '['), f.values...), ']')
	}
	return append(dst, f.last...)
}

// Call takes a fragment of a call whose index was made dense.
func (a *Assembly) Call(d llm.CallDelta) {
	i := slices.IndexFunc(a.calls, func(c assembledCall) bool { return c.index == d.Index })
	if i < 0 {
		i = len(a.calls)
		a.calls = append(a.calls, assembledCall{index: d.Index})
	}
	call := &a.calls[i]
	for c := wire.Object(d.Raw); c.Next(); {
		switch {
		case c.Is("index") || wire.IsNull(c.Value):
		case c.Is("function"):
			call.function(c.Value)
		case c.Is("id") || c.Is("type"):
			if s, _ := wire.Contents(c.Value); len(s) > 0 {
				call.members = replace(call.members, string(c.Name), c.Value)
			}
		default:
			call.members = replace(call.members, string(c.Name), c.Value)
		}
	}
}

// replace is merge for members that are repeated rather than continued.
func replace(fields []field, name string, v jsontext.Value) []field {
	fields = slices.DeleteFunc(fields, func(f field) bool { return f.name == name })
	return merge(fields, []byte(name), v)
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
			c.extra = merge(c.extra, m.Name, m.Value)
		}
	}
}

func (c assembledCall) append(dst []byte) []byte {
	dst = append(dst, '{')
	typed := false
	for _, f := range c.members {
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
	for _, f := range c.extra {
		dst = f.append(append(append(append(dst, ',', '"'), f.name...), '"', ':'))
	}
	return append(dst, "}}"...)
}

// Message is the assistant message as the upstream would have written it whole.
func (a *Assembly) Message() jsontext.Value {
	out := []byte(`{"role":"assistant"`)
	if !slices.ContainsFunc(a.fields, func(f field) bool { return f.name == "content" }) {
		out = append(out, `,"content":null`...)
	}
	for _, f := range a.fields {
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

package anthropic

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// collector makes one buffered message of the events of a stream.
type collector struct {
	message jsontext.Value // as it began
	blocks  []*collected
	ending  jsontext.Value // the event with the reason to stop
}

// collected is one block of content.
type collected struct {
	start jsontext.Value
	// grown are the members that deltas add to, in the order in which they came.
	grown []grown
	lists []grown // members that are arrays, each with its elements
	input []byte  // of a call
	typed bool    // deltas have said something of the input
}

// grown is a member as far as it has come: a string's contents, or an array's elements.
type grown struct {
	name  string
	value []byte
}

func (c *collector) event(kind string, event []byte) {
	v := jsontext.Value(event)
	switch kind {
	case "message_start":
		c.message = slices.Clone(wire.Member(v, "message"))
	case "content_block_start":
		c.blocks = append(c.blocks, &collected{start: slices.Clone(wire.Member(v, "content_block"))})
	case "content_block_delta":
		c.blocks[len(c.blocks)-1].delta(wire.Member(v, "delta"))
	case "message_delta":
		c.ending = slices.Clone(v)
	}
}

// delta adds what an event says to its block. Kinds that are newer than this code add to
// members of the same name, as those do that it knows.
func (c *collected) delta(v jsontext.Value) {
	kind, _ := wire.String(wire.Member(v, "type"))
	if kind == "input_json_delta" {
		text, _ := wire.String(wire.Member(v, "partial_json"))
		c.input, c.typed = append(c.input, text...), true
		return
	}
	for m := wire.Object(v); m.Next(); {
		name, _ := wire.Unquote(m.Name)
		switch contents, isText := wire.Contents(m.Value); {
		case name == "type", wire.IsNull(m.Value):
		case kind == "citations_delta":
			c.grow(&c.lists, name+"s", m.Value, ",")
		case isText:
			c.grow(&c.grown, name, contents, "")
		default:
			c.start = wire.Set(c.start, name, m.Value)
		}
	}
}

func (c *collected) grow(list *[]grown, name string, more []byte, gap string) {
	i := slices.IndexFunc(*list, func(g grown) bool { return g.name == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, grown{name: name})
	}
	g := &(*list)[i]
	if len(g.value) > 0 {
		g.value = append(g.value, gap...)
	}
	g.value = append(g.value, more...)
}

// value is the block as it is at its end. mended gives the arguments of a call that are no
// JSON as a turn mended them.
func (c *collected) value(mended func(id string) string) jsontext.Value {
	v := c.start
	for _, g := range c.grown {
		own, _ := wire.Contents(wire.Member(v, g.name))
		v = wire.Set(v, g.name, slices.Concat([]byte{'"'}, own, g.value, []byte{'"'}))
	}
	for _, g := range c.lists {
		var own []byte
		for a := wire.Array(wire.Member(v, g.name)); a.Next(); {
			own = append(append(own, a.Value...), ',')
		}
		v = wire.Set(v, g.name, slices.Concat([]byte{'['}, own, g.value, []byte{']'}))
	}
	if !c.typed || len(c.input) == 0 {
		return v
	}
	if isObject(c.input) {
		return wire.Set(v, "input", c.input)
	}
	id, _ := wire.String(wire.Member(v, "id"))
	if input := jsontext.Value(mended(id)); isObject(input) {
		return wire.Set(v, "input", input)
	}
	return v // it was cut off: half an input is none
}

// whole is the message.
func (c *collector) whole(o turn.Outcome) []byte {
	mended := func(id string) string {
		for _, w := range o.Waits {
			if w.Call.ID == id {
				return w.Call.Arguments
			}
		}
		return ""
	}
	content := []byte{'['}
	for i, b := range c.blocks {
		if i > 0 {
			content = append(content, ',')
		}
		content = append(content, b.value(mended)...)
	}
	message := wire.Set(c.message, "content", append(content, ']'))
	for m := wire.Object(c.ending); m.Next(); {
		switch {
		case m.Is("type"):
		case m.Is("delta"):
			message = with(message, m.Value)
		case m.Is("usage"):
			message = wire.Set(message, "usage", with(wire.Member(message, "usage"), m.Value))
		default:
			message = set(message, m.Name, m.Value)
		}
	}
	return message
}

// with is an object with the members of another over its own. A null says nothing.
func with(own, over jsontext.Value) jsontext.Value {
	if own.Kind() != '{' {
		return over
	}
	for m := wire.Object(over); m.Next(); {
		if !wire.IsNull(m.Value) {
			own = set(own, m.Name, m.Value)
		}
	}
	return own
}

func set(v jsontext.Value, name, value []byte) jsontext.Value {
	text, ok := wire.Unquote(name)
	if !ok {
		return v
	}
	return wire.Set(v, text, value)
}

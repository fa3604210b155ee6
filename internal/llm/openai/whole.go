package openai

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// chunks are the events that a completion would have been as a stream: one with
// all of its choices and, if it has a usage, one with that.
func (r *reply) chunks(body jsontext.Value) []jsontext.Value {
	answer, usage := []byte{'{'}, []byte{'{'}
	used := false
	for c := wire.Object(body); c.Next(); {
		switch {
		case c.Is("object"):
			answer = appendMember(answer, c.Name, []byte(`"chat.completion.chunk"`))
			usage = appendMember(usage, c.Name, []byte(`"chat.completion.chunk"`))
		case c.Is("choices"):
			answer = appendMember(answer, c.Name, r.deltas(c.Value))
			usage = appendMember(usage, c.Name, []byte("[]"))
		case c.Is("usage"):
			used = used || !wire.IsNull(c.Value)
			usage = appendMember(usage, c.Name, c.Value)
		default:
			answer = appendMember(answer, c.Name, c.Value)
			usage = appendMember(usage, c.Name, c.Value)
		}
	}
	answer, usage = append(answer, '}'), append(usage, '}')
	if !used {
		return []jsontext.Value{answer}
	}
	return []jsontext.Value{answer, usage}
}

// deltas are the choices of a completion with deltas in place of messages.
func (r *reply) deltas(choices jsontext.Value) []byte {
	out := []byte{'['}
	at := int64(0)
	for c := wire.Array(choices); c.Next(); at++ {
		if at > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		if wire.Member(c.Value, "index") == nil {
			out = appendMember(out, []byte("index"), strconv.AppendInt(nil, at, 10))
		}
		for m := wire.Object(c.Value); m.Next(); {
			if m.Is("message") {
				out = appendMember(out, []byte("delta"), r.delta(m.Value))
				continue
			}
			out = appendMember(out, m.Name, m.Value)
		}
		out = append(out, '}')
	}
	return append(out, ']')
}

// delta is a message whose calls are numbered and have ids of their own, as the
// fragments of a stream are and have.
func (r *reply) delta(message jsontext.Value) []byte {
	out := []byte{'{'}
	for m := wire.Object(message); m.Next(); {
		if !m.Is("tool_calls") || m.Value.Kind() != '[' {
			out = appendMember(out, m.Name, m.Value)
			continue
		}
		calls := []byte{'['}
		taken := map[string]bool{}
		for c := wire.Array(m.Value); c.Next(); {
			if len(taken) > 0 {
				calls = append(calls, ',')
			}
			call := wire.Set(c.Value, "index", strconv.AppendInt(nil, int64(len(taken)), 10))
			id, _ := wire.String(wire.Member(call, "id"))
			if id == "" || taken[id] {
				id = "call_" + r.newID()
				call = wire.Set(call, "id", wire.AppendString(nil, id))
			}
			taken[id] = true
			calls = append(calls, call...)
		}
		out = appendMember(out, m.Name, append(calls, ']'))
	}
	return append(out, '}')
}

func appendMember(dst, name, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), '"', ':')
	return append(dst, value...)
}

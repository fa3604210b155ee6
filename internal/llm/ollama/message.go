package ollama

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// PassHeader is the part of a client's header that an upstream may see.
func PassHeader(client http.Header) http.Header {
	h := http.Header{}
	for _, name := range passesOn() {
		if v := client.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	return h
}

func decodeMessages(v jsontext.Value, bounds codec.Bounds, full bool) ([]llm.Message, error) {
	if v.Kind() != '[' {
		return nil, &codec.Error{Param: "messages", Message: `"messages" must be an array of message objects`}
	}
	var messages []llm.Message
	var open []waiting
	for c := wire.Array(v); c.Next(); {
		n := len(messages)
		at := "messages[" + strconv.Itoa(n) + "]"
		if n == bounds.Messages {
			return nil, bounds.TooManyMessages()
		}
		if c.Value.Kind() != '{' {
			return nil, &codec.Error{Param: at, Message: at + " must be an object with role and content"}
		}
		role, _ := wire.String(wire.Member(c.Value, "role"))
		if role == "" {
			return nil, &codec.Error{Param: at + ".role", Message: at + " has no role"}
		}
		m := llm.Message{Role: llm.Role(role), Raw: raw(c.Value)}
		switch m.Role {
		case llm.Assistant:
			// Its calls are always read: results, which have no ids, are theirs.
			m.Calls, open = callsOf(c.Value, n)
		case llm.Tool:
			m.CallID, open = answered(c.Value, open)
		}
		if full {
			m.Parts = partsOf(m.Role, c.Value)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// waiting is a call of the last assistant's that has no result yet. One that came without
// an id is named by its place.
type waiting struct {
	id, name string
	placed   bool
}

// callsOf are the calls of the n-th message, which all wait for their results.
func callsOf(v jsontext.Value, n int) (calls []llm.Call, open []waiting) {
	for c := wire.Array(wire.Member(v, "tool_calls")); c.Next(); {
		call := callOf(c.Value)
		placed := call.ID == ""
		if placed {
			call.ID = fmt.Sprintf("call_%d_%d", n, len(calls))
		}
		calls = append(calls, call)
		open = append(open, waiting{call.ID, call.Name, placed})
	}
	return calls, open
}

func callOf(v jsontext.Value) llm.Call {
	function := wire.Member(v, "function")
	var call llm.Call
	call.ID, _ = wire.String(wire.Member(v, "id"))
	call.Name, _ = wire.String(wire.Member(function, "name"))
	arguments := wire.Member(function, "arguments")
	if text, ok := wire.String(arguments); ok { // as other dialects have them
		call.Arguments = text
	} else if !wire.IsNull(arguments) {
		call.Arguments = string(arguments)
	}
	return call
}

// answered finds the call that a result answers, by its id, else the first of its name,
// else the first, and returns the calls that are left. An id that no call has stands for
// one that lost its own on the way: ollama-python's types drop them.
func answered(v jsontext.Value, open []waiting) (id string, left []waiting) {
	id, _ = wire.String(wire.Member(v, "tool_call_id"))
	name, _ := wire.String(wire.Member(v, "tool_name"))
	fits := func(w waiting) bool { return id == "" || w.placed }
	i := slices.IndexFunc(open, func(w waiting) bool { return id != "" && w.id == id })
	if i < 0 && name != "" {
		i = slices.IndexFunc(open, func(w waiting) bool { return fits(w) && w.name == name })
	}
	if i < 0 {
		i = slices.IndexFunc(open, fits)
	}
	if i < 0 {
		return id, open
	}
	return open[i].id, slices.Delete(slices.Clone(open), i, i+1)
}

// partsOf is the content of a message.
func partsOf(role llm.Role, v jsontext.Value) []llm.Part {
	var parts []llm.Part
	if text, _ := wire.String(wire.Member(v, "thinking")); text != "" {
		parts = append(parts, llm.Part{Kind: llm.Reasoning, Text: text})
	}
	if text, _ := wire.String(wire.Member(v, "content")); text != "" || role != llm.Assistant {
		parts = append(parts, llm.Part{Kind: llm.Text, Text: text})
	}
	for c := wire.Array(wire.Member(v, "images")); c.Next(); {
		data, _ := wire.String(c.Value)
		parts = append(parts, llm.Part{Kind: llm.Image, Media: &llm.Media{Type: imageType(data), Data: data}})
	}
	return parts
}

// imageType guesses what a picture is by how its base64 begins. The dialect does not say,
// and others must.
func imageType(data string) string {
	for begin, media := range imageTypes() {
		if len(data) >= len(begin) && data[:len(begin)] == begin {
			return media
		}
	}
	return "image/png"
}

func imageTypes() map[string]string {
	return map[string]string{"/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp", "iVBO": "image/png"}
}

// Expand fills the parts of a message that holds only its wire form.
func Expand(m llm.Message) llm.Message {
	if !m.Raw.Is(llm.Ollama) || len(m.Parts) > 0 {
		return m
	}
	m.Parts = partsOf(m.Role, m.Raw.Bytes)
	return m
}

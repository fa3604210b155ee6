package anthropic

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// systemOf is the system prompt as a message. Its wire form is the value of the member, a
// string or an array of blocks, which tells it from a message object.
func (d *decoder) systemOf(v jsontext.Value) ([]llm.Message, error) {
	if v.Kind() != '"' && v.Kind() != '[' {
		return nil, &codec.Error{Param: "system", Message: `"system" must be a string, or an array of text blocks`}
	}
	m := llm.Message{Role: llm.System, Raw: raw(v)}
	if d.full {
		m.Parts = contentOf(v)
	}
	return []llm.Message{m}, nil
}

func raw(v jsontext.Value) llm.Raw { return llm.Raw{Dialect: llm.Anthropic, Bytes: v} }

func (d *decoder) messages(v jsontext.Value) error {
	if v.Kind() != '[' {
		return &codec.Error{Param: "messages", Message: `"messages" must be an array of message objects`}
	}
	n := 0
	for c := wire.Array(v); c.Next(); n++ {
		at := "messages[" + strconv.Itoa(n) + "]"
		if n == d.bounds.Messages {
			return d.bounds.TooManyMessages()
		}
		if c.Value.Kind() != '{' {
			return &codec.Error{Param: at, Message: at + " must be an object with role and content"}
		}
		role, _ := wire.String(wire.Member(c.Value, "role"))
		switch llm.Role(role) {
		case llm.User, llm.Assistant, llm.System:
		case "":
			return &codec.Error{Param: at + ".role", Message: at + " has no role"}
		default:
			return &codec.Error{Param: at + ".role", Message: fmt.Sprintf("%s: the role is user or assistant, not %.40q", at, role)}
		}
		d.request.Messages = append(d.request.Messages, split(c.Value, llm.Role(role), d.full)...)
	}
	return nil
}

// split is a message object as messages: results of calls, which stand in a user's message
// on the wire, are each one of their own.
func split(v jsontext.Value, role llm.Role, full bool) []llm.Message {
	content := wire.Member(v, "content")
	if role != llm.User || !hasResults(content) {
		m := llm.Message{Role: role, Raw: raw(v)}
		if full {
			m = Expand(m)
		}
		return []llm.Message{m}
	}
	var out []llm.Message
	var rest []byte
	for c := wire.Array(content); c.Next(); {
		if !isBlock(c.Value, "tool_result") {
			if rest != nil {
				rest = append(rest, ',')
			}
			rest = append(rest, c.Value...)
			continue
		}
		m := llm.Message{Role: llm.Tool, Raw: raw(c.Value), Joined: len(out) > 0}
		m.CallID, _ = wire.String(wire.Member(c.Value, "tool_use_id"))
		if full {
			m.Parts = contentOf(wire.Member(c.Value, "content"))
		}
		out = append(out, m)
	}
	if rest != nil {
		m := llm.Message{Role: llm.User, Raw: raw(fmt.Appendf(nil, `{"role":"user","content":[%s]}`, rest)), Joined: true}
		if full {
			m = Expand(m)
		}
		out = append(out, m)
	}
	return out
}

func hasResults(content jsontext.Value) bool {
	for c := wire.Array(content); c.Next(); {
		if isBlock(c.Value, "tool_result") {
			return true
		}
	}
	return false
}

func isBlock(v jsontext.Value, kind string) bool {
	own, _ := wire.String(wire.Member(v, "type"))
	return own == kind
}

// Expand fills the parts and calls of a message that holds only its wire form.
func Expand(m llm.Message) llm.Message {
	if !m.Raw.Is(llm.Anthropic) || len(m.Parts) > 0 || len(m.Calls) > 0 {
		return m
	}
	v := m.Raw.Bytes
	switch {
	case v.Kind() != '{': // the system prompt
		m.Parts = contentOf(v)
	case m.Role == llm.Assistant:
		m.Parts, m.Calls = assistantOf(wire.Member(v, "content"))
	default:
		m.Parts = contentOf(wire.Member(v, "content"))
	}
	return m
}

// contentOf reads content: a string, or an array of blocks.
func contentOf(v jsontext.Value) []llm.Part {
	if text, ok := wire.String(v); ok {
		return []llm.Part{{Kind: llm.Text, Text: text}}
	}
	var parts []llm.Part
	for c := wire.Array(v); c.Next(); {
		parts = append(parts, partOf(c.Value))
	}
	return parts
}

func partOf(v jsontext.Value) llm.Part {
	kind, _ := wire.String(wire.Member(v, "type"))
	p := llm.Part{Kind: llm.Other, Raw: raw(v)}
	switch kind {
	case "text":
		text, _ := wire.String(wire.Member(v, "text"))
		return llm.Part{Kind: llm.Text, Text: text}
	case "thinking":
		p.Kind = llm.Reasoning
		p.Text, _ = wire.String(wire.Member(v, "thinking"))
	case "redacted_thinking":
		p.Kind = llm.Reasoning
	case "image", "document":
		if media, ok := mediaOf(v); ok {
			p.Kind, p.Media = llm.File, &media
			if kind == "image" {
				p.Kind = llm.Image
			}
			return p
		}
		if text, ok := plainText(v); ok {
			return llm.Part{Kind: llm.Text, Text: text}
		}
	}
	return p
}

// mediaOf is the file of an image or a document block.
func mediaOf(v jsontext.Value) (llm.Media, bool) {
	source := wire.Member(v, "source")
	var m llm.Media
	m.Name, _ = wire.String(wire.Member(v, "title"))
	switch kind, _ := wire.String(wire.Member(source, "type")); kind {
	case "base64":
		m.Type, _ = wire.String(wire.Member(source, "media_type"))
		m.Data, _ = wire.String(wire.Member(source, "data"))
		return m, true
	case "url":
		m.URL, _ = wire.String(wire.Member(source, "url"))
		return m, true
	}
	return m, false
}

// plainText is the text of a document that is text.
func plainText(v jsontext.Value) (string, bool) {
	source := wire.Member(v, "source")
	switch kind, _ := wire.String(wire.Member(source, "type")); kind {
	case "text":
		return wire.String(wire.Member(source, "data"))
	case "content":
		m := llm.Message{Parts: contentOf(wire.Member(source, "content"))}
		return m.Text(), len(m.Parts) > 0
	}
	return "", false
}

// assistantOf reads what a model wrote.
func assistantOf(v jsontext.Value) (parts []llm.Part, calls []llm.Call) {
	if text, ok := wire.String(v); ok {
		return []llm.Part{{Kind: llm.Text, Text: text}}, nil
	}
	for c := wire.Array(v); c.Next(); {
		if !isBlock(c.Value, "tool_use") {
			parts = append(parts, partOf(c.Value))
			continue
		}
		var call llm.Call
		call.ID, _ = wire.String(wire.Member(c.Value, "id"))
		call.Name, _ = wire.String(wire.Member(c.Value, "name"))
		call.Arguments = string(wire.Member(c.Value, "input"))
		calls = append(calls, call)
	}
	return parts, calls
}

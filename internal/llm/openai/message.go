package openai

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// decodeMessage reads the fields that the machine needs of a message object.
// With full it also reads content and calls, for a provider of another dialect.
func decodeMessage(v jsontext.Value, full bool) llm.Message {
	m := llm.Message{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: v}}
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("role"):
			role, _ := wire.String(c.Value)
			m.Role = llm.Role(role)
		case c.Is("tool_call_id"):
			m.CallID, _ = wire.String(c.Value)
		case full && c.Is("content"):
			m.Parts = append(m.Parts, decodeContent(c.Value)...)
		case full && c.Is("tool_calls"):
			m.Calls = decodeCalls(c.Value)
		}
	}
	if !full || m.Role != llm.Assistant {
		return m
	}
	if reasoning := reasoningText(v); reasoning != "" {
		m.Parts = slices.Insert(m.Parts, 0, llm.Part{Kind: llm.Reasoning, Text: reasoning})
	}
	return m
}

// reasoningText is what the model thought: servers name it in two ways, and some in both.
func reasoningText(m jsontext.Value) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text, _ := wire.String(wire.Member(m, name)); text != "" {
			return text
		}
	}
	return ""
}

// Expand fills the parts and calls of a message that holds only its wire form.
func Expand(m llm.Message) llm.Message {
	if !m.Raw.Is(llm.OpenAIChat) || len(m.Parts) > 0 || len(m.Calls) > 0 {
		return m
	}
	tail := m.Tail
	m = decodeMessage(m.Raw.Bytes, true)
	m.Tail = tail
	return m
}

// decodeContent reads a content member: a string, or an array of parts.
func decodeContent(v jsontext.Value) []llm.Part {
	if text, ok := wire.String(v); ok {
		return []llm.Part{{Kind: llm.Text, Text: text}}
	}
	var parts []llm.Part
	for c := wire.Array(v); c.Next(); {
		kind, _ := wire.String(wire.Member(c.Value, "type"))
		if text, ok := wire.String(wire.Member(c.Value, "text")); ok && kind == "text" {
			parts = append(parts, llm.Part{Kind: llm.Text, Text: text})
			continue
		}
		part := llm.Part{Kind: llm.Other, Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: c.Value}}
		if media, ok := decodeMedia(kind, wire.Member(c.Value, kind)); ok {
			part.Kind, part.Media = llm.File, &media
			if kind == "image_url" {
				part.Kind = llm.Image
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// decodeMedia is the file of a part of that kind. One that only has an id is the
// dialect's own.
func decodeMedia(kind string, v jsontext.Value) (llm.Media, bool) {
	switch kind {
	case "image_url":
		if v.Kind() == '{' { // some clients leave the object out
			v = wire.Member(v, "url")
		}
		address, ok := wire.String(v)
		return llm.ParseDataURL(address), ok
	case "input_audio":
		format, _ := wire.String(wire.Member(v, "format"))
		data, ok := wire.String(wire.Member(v, "data"))
		return llm.Media{Type: "audio/" + format, Data: data}, ok
	case "file":
		name, _ := wire.String(wire.Member(v, "filename"))
		data, ok := wire.String(wire.Member(v, "file_data"))
		media := llm.ParseDataURL(data)
		if media.URL != "" && !isLink(media.URL) {
			media = llm.Media{Data: data}
		}
		media.Name = name
		return media, ok
	}
	return llm.Media{}, false
}

func decodeCalls(v jsontext.Value) []llm.Call {
	var calls []llm.Call
	for c := wire.Array(v); c.Next(); {
		var call llm.Call
		call.ID, _ = wire.String(wire.Member(c.Value, "id"))
		function := wire.Member(c.Value, "function")
		call.Name, _ = wire.String(wire.Member(function, "name"))
		call.Arguments = argumentText(wire.Member(function, "arguments"))
		calls = append(calls, call)
	}
	return calls
}

// argumentText is a call's arguments as text. Some servers send the object
// itself where the format wants a string that holds it.
func argumentText(v jsontext.Value) string {
	if s, ok := wire.String(v); ok {
		return s
	}
	if wire.IsNull(v) {
		return ""
	}
	return string(v)
}

// appendMessage writes a message: its own bytes where it has them, with the
// host's tail behind its text.
func appendMessage(dst []byte, m llm.Message) []byte {
	switch {
	case !m.Raw.Is(llm.OpenAIChat):
		return appendNeutral(dst, m)
	case m.Tail == "":
		return append(dst, m.Raw.Bytes...)
	}
	return append(dst, withTail(m.Raw.Bytes, m.Tail)...)
}

// tailGap stands between a message's own text and the host's.
const tailGap = "\n\n"

// withTail is a message object with text added behind its content. Text that is
// an array of parts gets one more part; trailing white space of the last text
// goes, so that the gap is the same whatever the client sent (B1 2.1).
func withTail(v jsontext.Value, tail string) jsontext.Value {
	content := wire.Member(v, "content")
	if len(content) > 0 && content[0] == '[' {
		return wire.Set(v, "content", appendPart(content, tail))
	}
	own, _ := wire.Contents(content)
	own = trimEscapedSpace(own)
	if len(own) == 0 {
		return wire.Set(v, "content", wire.AppendString(nil, tail))
	}
	added := wire.AppendString(nil, tailGap+tail)
	joined := append([]byte{'"'}, own...)
	return wire.Set(v, "content", append(joined, added[1:]...))
}

// appendPart adds a text part to an array of parts. A cache marker stays on the
// part that the client put it on, so the host's text falls behind it (B1 2.3).
func appendPart(array jsontext.Value, tail string) []byte {
	end := bytes.LastIndexByte(array, ']')
	out := append([]byte(nil), array[:end]...)
	gap := ""
	if c := wire.Array(array); c.Next() {
		out = append(out, ',')
		gap = tailGap
	}
	out = append(out, `{"type":"text","text":`...)
	out = wire.AppendString(out, gap+tail)
	return append(out, "}]"...)
}

// trimEscapedSpace cuts white space from the end of a JSON string's contents,
// plain or escaped.
func trimEscapedSpace(b []byte) []byte {
	for {
		t := bytes.TrimRight(b, " ")
		for _, esc := range []string{`\n`, `\r`, `\t`} {
			if bytes.HasSuffix(t, []byte(esc)) && !escapedBackslash(t[:len(t)-1]) {
				t = t[:len(t)-2]
				break
			}
		}
		if len(t) == len(b) {
			return b
		}
		b = t
	}
}

// escapedBackslash reports whether the backslash at the end of b is itself
// escaped.
func escapedBackslash(b []byte) bool {
	n := len(b) - len(bytes.TrimRight(b, `\`))
	return n%2 == 0
}

// AppendCall writes a call as an element of tool_calls.
func AppendCall(dst []byte, c llm.Call) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendString(dst, c.ID)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = wire.AppendString(dst, c.Name)
	dst = append(dst, `,"arguments":`...)
	dst = wire.AppendString(dst, c.Arguments)
	return append(dst, "}}"...)
}

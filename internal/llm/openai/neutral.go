package openai

import (
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// carry is what the dialect has a form for. OpenAI itself refuses a member that it does
// not know; local servers have more, and leave out what they do not.
func carry(vendor bool) llm.Carry {
	c := llm.Carry{Parts: []llm.PartKind{llm.Image, llm.File}, NoOptions: []string{"repeat_penalty"}}
	if vendor {
		c.NoOptions = append(c.NoOptions, "top_k")
	}
	return c
}

// Lost names what of a request of another dialect has no form in this one.
func (p *Provider) Lost(r *llm.Request) []string {
	if r.Dialect == llm.OpenAIChat {
		return nil
	}
	return r.Lost(carry(p.vendor))
}

// neutralMembers are the members of a request of another dialect.
func neutralMembers(r *llm.Request, vendor bool) []llm.Member {
	o := r.Options
	members := []llm.Member{{Name: "model", Value: wire.AppendString(nil, r.Model)}, {Name: "messages"}}
	add := func(name string, value []byte) { members = append(members, llm.Member{Name: name, Value: value}) }
	float := func(name string, f *float64) {
		if f != nil {
			add(name, strconv.AppendFloat(nil, *f, 'g', -1, 64))
		}
	}
	tools := declares(r)
	if tools {
		add("tools", nil)
	}
	if choice := appendChoice(nil, o); tools && len(choice) > 0 {
		add("tool_choice", choice)
	}
	if o.MaxTokens > 0 {
		name := "max_tokens"
		if vendor {
			name = "max_completion_tokens" // its newer models refuse the older name
		}
		add(name, strconv.AppendInt(nil, int64(o.MaxTokens), 10))
	}
	float("temperature", o.Temperature)
	float("top_p", o.TopP)
	if o.TopK != nil && !vendor {
		add("top_k", strconv.AppendInt(nil, int64(*o.TopK), 10))
	}
	if o.Seed != nil {
		add("seed", strconv.AppendInt(nil, *o.Seed, 10))
	}
	float("frequency_penalty", o.FrequencyPenalty)
	float("presence_penalty", o.PresencePenalty)
	if len(o.Stop) > 0 {
		add("stop", appendStrings(nil, o.Stop))
	}
	if o.Structured {
		add("response_format", appendFormat(nil, o))
	}
	if o.Parallel != nil && tools {
		add("parallel_tool_calls", strconv.AppendBool(nil, *o.Parallel))
	}
	if o.Effort != "" {
		add("reasoning_effort", wire.AppendString(nil, o.Effort))
	}
	return members
}

// appendChoice is the client's tool choice; nothing when it has none.
func appendChoice(dst []byte, o llm.Options) []byte {
	switch o.Choice {
	case llm.ChoiceAuto, llm.ChoiceNone, llm.ChoiceRequired:
		return wire.AppendString(dst, string(o.Choice))
	case llm.ChoiceNamed:
		dst = append(dst, `{"type":"function","function":{"name":`...)
		return append(wire.AppendString(dst, o.Function), "}}"...)
	}
	return dst
}

func appendFormat(dst []byte, o llm.Options) []byte {
	if len(o.Schema) == 0 {
		return append(dst, `{"type":"json_object"}`...)
	}
	dst = append(dst, `{"type":"json_schema","json_schema":{"name":"answer","schema":`...)
	return append(append(dst, o.Schema...), "}}"...)
}

func appendStrings(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, t := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, t)
	}
	return append(dst, ']')
}

// appendNeutral writes a message that has no bytes of this dialect.
func appendNeutral(dst []byte, m llm.Message) []byte {
	dst = append(dst, `{"role":`...)
	dst = wire.AppendString(dst, string(m.Role))
	if m.CallID != "" {
		dst = append(dst, `,"tool_call_id":`...)
		dst = wire.AppendString(dst, m.CallID)
	}
	dst = append(dst, `,"content":`...)
	dst = appendContent(dst, m)
	if len(m.Calls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range m.Calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCall(dst, c)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendContent is text as a string, and an array where there is more: every server takes
// the string, and not every one the array.
func appendContent(dst []byte, m llm.Message) []byte {
	if m.Role == llm.User && hasMedia(m) {
		return appendParts(dst, m)
	}
	text := m.Text()
	if m.Tail != "" {
		if text != "" {
			text += tailGap
		}
		text += m.Tail
	}
	if text == "" && len(m.Calls) > 0 {
		return append(dst, "null"...)
	}
	return wire.AppendString(dst, text)
}

// shownBy are the files of a result of another dialect, with a line that says whose they
// are. In this one a result is text alone; they follow in a message of the user.
func shownBy(m llm.Message) []llm.Part {
	if m.Role != llm.Tool || m.Raw.Is(llm.OpenAIChat) || !hasMedia(m) {
		return nil
	}
	parts := []llm.Part{{Kind: llm.Text, Text: filesOfResult(m.CallID)}}
	for _, p := range m.Parts {
		if p.Media != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func hasMedia(m llm.Message) bool {
	for _, p := range m.Parts {
		if p.Media != nil {
			return true
		}
	}
	return false
}

func appendParts(dst []byte, m llm.Message) []byte {
	dst = append(dst, '[')
	n := 0
	part := func(opening string) {
		if n > 0 {
			dst = append(dst, ',')
		}
		n++
		dst = append(dst, opening...)
	}
	for _, p := range m.Parts {
		switch {
		case p.Kind == llm.Text:
			part(`{"type":"text","text":`)
			dst = append(wire.AppendString(dst, p.Text), '}')
		case p.Media == nil:
		case p.Kind == llm.Image:
			part(`{"type":"image_url","image_url":{"url":`)
			dst = append(wire.AppendString(dst, p.Media.DataURL()), "}}"...)
		default:
			part("")
			dst = appendFile(dst, *p.Media)
		}
	}
	if m.Tail != "" {
		part(`{"type":"text","text":`)
		dst = append(wire.AppendString(dst, tailGap+m.Tail), '}')
	}
	return append(dst, ']')
}

// appendFile is a sound or a document. A link to one has no form of its own, so the model
// is told of it.
func appendFile(dst []byte, f llm.Media) []byte {
	if format, ok := strings.CutPrefix(f.Type, "audio/"); ok && f.Data != "" {
		dst = append(dst, `{"type":"input_audio","input_audio":{"data":`...)
		dst = wire.AppendString(dst, f.Data)
		dst = append(dst, `,"format":`...)
		return append(wire.AppendString(dst, strings.TrimPrefix(format, "x-")), "}}"...)
	}
	if f.Data == "" {
		dst = append(dst, `{"type":"text","text":`...)
		return append(wire.AppendString(dst, linkedFile(f)), '}')
	}
	dst = append(dst, `{"type":"file","file":{`...)
	if f.Name != "" {
		dst = append(dst, `"filename":`...)
		dst = append(wire.AppendString(dst, f.Name), ',')
	}
	dst = append(dst, `"file_data":`...)
	return append(wire.AppendString(dst, f.DataURL()), "}}"...)
}

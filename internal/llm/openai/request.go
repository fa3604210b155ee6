package openai

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// Request is a client's Chat Completions request.
type Request struct {
	*llm.Request
	// Stream and IncludeUsage are how the client wants its answer; upstream is
	// always asked for a stream with usage.
	Stream       bool
	IncludeUsage bool
}

// DecodeRequest reads a request body. Values are slices of body, which must not
// change afterwards. Members of other hosts' extensions stay in Rest, where
// [Request.Take] finds them. With full, messages are decoded for a provider of
// another dialect. The error is a [*codec.Error].
func DecodeRequest(body []byte, bounds codec.Bounds, full bool) (*Request, error) {
	if err := wire.Check(body); err != nil {
		return nil, &codec.Error{Message: "the body is not valid JSON: " + err.Error()}
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, &codec.Error{Message: "the body must be a JSON object with the members model and messages"}
	}
	r := &Request{Request: &llm.Request{Dialect: llm.OpenAIChat}}
	for c := wire.Object(body); c.Next(); {
		if err := r.member(&c, bounds, full); err != nil {
			return nil, err
		}
	}
	if r.Model == "" {
		return nil, &codec.Error{Param: "model", Message: `"model" is missing: name one that GET /v1/models lists`}
	}
	if len(r.Messages) == 0 {
		return nil, &codec.Error{Param: "messages", Message: `"messages" is missing or empty: give at least one message`}
	}
	return r, nil
}

func (r *Request) member(c *wire.Cursor, bounds codec.Bounds, full bool) error {
	name, err := codec.Name(c.Name, known())
	if err != nil {
		return err
	}
	value := c.Value
	switch name {
	case "messages":
		r.Messages, err = decodeMessages(value, bounds, full)
		value = nil
	case "tools":
		if wire.IsNull(value) {
			break
		}
		r.Tools, err = decodeTools(value, bounds)
		value = nil
	case "model":
		r.Model, err = bounds.ModelName(value)
	case "stream":
		r.Stream, err = codec.Boolean(name, value, false)
	case "stream_options":
		r.IncludeUsage = string(wire.Member(value, "include_usage")) == "true"
	case "n":
		r.Options.Choices, err = integer(name, value)
	default:
		r.Rest = append(r.Rest, llm.Member{Name: name, Value: value, Neutral: setOption(&r.Options, name, value)})
		return nil
	}
	r.Rest = append(r.Rest, llm.Member{Name: name, Value: value, Neutral: true})
	return err
}

// known are the members that the host reads.
func known() []string {
	return []string{
		"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens",
		"response_format", "skills", "skills_discovery", "multi_agent", "user", "safety_identifier",
	}
}

// setOption takes a setting that other dialects have too, and reports whether it could. A
// value of a wrong type is for the upstream to refuse, so it is no error here.
func setOption(o *llm.Options, name string, v jsontext.Value) bool {
	switch name {
	case "max_tokens", "max_completion_tokens":
		o.MaxTokens = int(max(number(v), 0))
		return true
	case "tool_choice":
		o.Choice, o.Function = decodeChoice(v)
		return o.Choice != llm.ChoiceOther
	case "response_format":
		return setFormat(o, v)
	case "temperature":
		return setFloat(&o.Temperature, v)
	case "top_p":
		return setFloat(&o.TopP, v)
	case "frequency_penalty":
		return setFloat(&o.FrequencyPenalty, v)
	case "presence_penalty":
		return setFloat(&o.PresencePenalty, v)
	case "repeat_penalty":
		return setFloat(&o.RepeatPenalty, v)
	case "top_k":
		n, err := strconv.Atoi(string(v))
		if err == nil {
			o.TopK = &n
		}
		return err == nil
	case "seed":
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err == nil {
			o.Seed = &n
		}
		return err == nil
	case "parallel_tool_calls":
		on, err := codec.Boolean(name, v, false)
		if err == nil && !wire.IsNull(v) {
			o.Parallel = &on
		}
		return err == nil
	case "stop":
		return setStop(o, v)
	case "reasoning_effort":
		effort, ok := wire.String(v)
		o.Effort = effort
		return ok
	}
	return false
}

func setFloat(to **float64, v jsontext.Value) bool {
	f, err := strconv.ParseFloat(string(v), 64)
	if err == nil {
		*to = &f
	}
	return err == nil
}

func setStop(o *llm.Options, v jsontext.Value) bool {
	if one, ok := wire.String(v); ok {
		o.Stop = []string{one}
		return true
	}
	for c := wire.Array(v); c.Next(); {
		one, ok := wire.String(c.Value)
		if !ok {
			return false
		}
		o.Stop = append(o.Stop, one)
	}
	return true
}

// setFormat takes the form of the reply. The name and the strictness of a schema have no
// counterpart elsewhere and no meaning of their own.
func setFormat(o *llm.Options, v jsontext.Value) bool {
	kind, _ := wire.String(wire.Member(v, "type"))
	o.Structured = kind == "json_schema" || kind == "json_object"
	if kind == "json_schema" {
		o.Schema = wire.Member(wire.Member(v, "json_schema"), "schema")
	}
	return o.Structured || kind == "text"
}

func integer(name string, v jsontext.Value) (int, error) {
	if wire.IsNull(v) {
		return 0, nil
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 1 {
		return 0, &codec.Error{Param: name, Message: fmt.Sprintf("%q must be a whole number from 1 on", name)}
	}
	return n, nil
}

func decodeMessages(v jsontext.Value, bounds codec.Bounds, full bool) ([]llm.Message, error) {
	if v.Kind() != '[' {
		return nil, &codec.Error{Param: "messages", Message: `"messages" must be an array of message objects`}
	}
	var messages []llm.Message
	for c := wire.Array(v); c.Next(); {
		at := "messages[" + strconv.Itoa(len(messages)) + "]"
		if len(messages) == bounds.Messages {
			return nil, bounds.TooManyMessages()
		}
		if c.Value.Kind() != '{' {
			return nil, &codec.Error{Param: at, Message: at + " must be an object with role and content"}
		}
		m := decodeMessage(c.Value, full)
		if m.Role == "" {
			return nil, &codec.Error{Param: at + ".role", Message: at + " has no role"}
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func decodeTools(v jsontext.Value, bounds codec.Bounds) ([]llm.Declaration, error) {
	if v.Kind() != '[' {
		return nil, &codec.Error{Param: "tools", Message: `"tools" must be an array`}
	}
	var tools []llm.Declaration
	for c := wire.Array(v); c.Next(); {
		if len(tools) == bounds.Tools {
			return nil, bounds.TooManyTools()
		}
		d := llm.Declaration{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: c.Value}, Special: wire.Member(c.Value, "function") == nil}
		// Custom tools have their definition under another member.
		for _, kind := range []string{"function", "custom"} {
			if f := wire.Member(c.Value, kind); f != nil {
				d.Name, _ = wire.String(wire.Member(f, "name"))
				d.Description, _ = wire.String(wire.Member(f, "description"))
				d.Parameters = wire.Member(f, "parameters")
			}
		}
		tools = append(tools, d)
	}
	return tools, nil
}

func decodeChoice(v jsontext.Value) (mode llm.ChoiceMode, function string) {
	if wire.IsNull(v) {
		return llm.ChoiceUnset, ""
	}
	if s, ok := wire.String(v); ok {
		switch m := llm.ChoiceMode(s); m {
		case llm.ChoiceAuto, llm.ChoiceNone, llm.ChoiceRequired:
			return m, ""
		}
		return llm.ChoiceOther, ""
	}
	switch kind, _ := wire.String(wire.Member(v, "type")); kind {
	case "function", "custom":
		name, _ := wire.String(wire.Member(wire.Member(v, kind), "name"))
		return llm.ChoiceNamed, name
	}
	return llm.ChoiceOther, ""
}

// encodeRequest is the body for an upstream: the client's members in their
// order, with what the host changes, and a stream with usage asked for. Of a request of
// another dialect it has the neutral fields, as far as [carry] says; vendor says that the
// upstream is OpenAI itself.
func encodeRequest(r *llm.Request, vendor bool) []byte {
	rest := r.Rest
	if r.Dialect != llm.OpenAIChat {
		rest = neutralMembers(r, vendor)
	}
	size := 256
	for _, m := range r.Messages {
		size += len(m.Raw.Bytes) + len(m.Tail) + 64
	}
	for _, d := range r.Tools {
		size += len(d.Raw.Bytes) + len(d.Parameters) + len(d.Description) + 64
	}
	e := &encoder{out: append(make([]byte, 0, size), '{'), request: r}
	for _, m := range rest {
		e.member(m)
	}
	e.missing()
	return append(e.out, '}')
}

// encoder writes one request body.
type encoder struct {
	out     []byte
	request *llm.Request
	wrote   struct{ messages, tools, stream, options, choice bool }
}

func (e *encoder) name(name string) {
	if len(e.out) > 1 {
		e.out = append(e.out, ',')
	}
	e.out = append(wire.AppendString(e.out, name), ':')
}

func (e *encoder) value(m llm.Member) {
	e.name(m.Name)
	e.out = append(e.out, m.Value...)
}

func (e *encoder) member(m llm.Member) {
	switch m.Name {
	case "messages":
		e.messages()
	case "tools":
		if m.Value == nil {
			e.tools()
			return
		}
		// The client wrote null: that is nothing once there are tools.
		if len(e.request.Tools) == 0 {
			e.value(m)
		}
	case "stream":
		e.stream()
	case "stream_options":
		e.options(m.Value)
	case "tool_choice":
		if e.request.Choice == llm.ChoiceUnset {
			e.value(m)
			e.wrote.choice = true
			return
		}
		e.choice()
	default:
		// A null leaves the value to others, and the host has one.
		if !wire.IsNull(m.Value) || !named(e.request.Added, m.Name) {
			e.value(m)
		}
	}
}

// named reports whether a member is there, whatever the case of its name.
func named(members []llm.Member, name string) bool {
	return slices.ContainsFunc(members, func(m llm.Member) bool { return strings.EqualFold(m.Name, name) })
}

// missing writes what the client did not send and the host needs.
func (e *encoder) missing() {
	if !e.wrote.messages {
		e.messages()
	}
	tools := declares(e.request)
	if !e.wrote.tools && tools {
		e.tools()
	}
	if !e.wrote.choice && e.request.Choice != llm.ChoiceUnset && tools {
		e.choice()
	}
	if !e.wrote.stream {
		e.stream()
	}
	if !e.wrote.options {
		e.options(nil)
	}
	own := e.request.Dialect == llm.OpenAIChat
	for _, m := range e.request.Added {
		said := func(o llm.Member) bool { return strings.EqualFold(o.Name, m.Name) && !wire.IsNull(o.Value) }
		if !own || !slices.ContainsFunc(e.request.Rest, said) {
			e.value(m)
		}
	}
}

func (e *encoder) messages() {
	e.wrote.messages = true
	e.name("messages")
	e.out = append(e.out, '[')
	var shown []llm.Part // files of results, for which a result has no place
	for i, m := range e.request.Messages {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = appendMessage(e.out, m)
		last := i+1 == len(e.request.Messages) || e.request.Messages[i+1].Role != llm.Tool
		if shown = append(shown, shownBy(m)...); last && len(shown) > 0 {
			e.out = appendNeutral(append(e.out, ','), llm.Message{Role: llm.User, Parts: shown})
			shown = nil
		}
	}
	e.out = append(e.out, ']')
}

func (e *encoder) tools() {
	e.wrote.tools = true
	e.name("tools")
	e.out = append(e.out, '[')
	first := true
	for _, d := range e.request.Tools {
		if !carries(d) {
			continue
		}
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = appendDeclaration(e.out, d)
	}
	e.out = append(e.out, ']')
}

// carries reports whether the dialect can declare a tool.
func carries(d llm.Declaration) bool { return !d.Special || d.Raw.Is(llm.OpenAIChat) }

// declares reports whether it can declare any of a request.
func declares(r *llm.Request) bool { return slices.ContainsFunc(r.Tools, carries) }

func appendDeclaration(dst []byte, d llm.Declaration) []byte {
	if d.Raw.Is(llm.OpenAIChat) {
		return append(dst, d.Raw.Bytes...)
	}
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = wire.AppendString(dst, d.Name)
	dst = append(dst, `,"description":`...)
	dst = wire.AppendString(dst, d.Description)
	dst = append(dst, `,"parameters":`...)
	if len(d.Parameters) == 0 {
		return append(dst, `{"type":"object","properties":{}}}}`...)
	}
	dst = append(dst, d.Parameters...)
	return append(dst, "}}"...)
}

func (e *encoder) stream() {
	e.wrote.stream = true
	e.name("stream")
	e.out = append(e.out, "true"...)
}

func (e *encoder) options(client jsontext.Value) {
	e.wrote.options = true
	if wire.IsNull(client) || client.Kind() != '{' {
		client = jsontext.Value("{}")
	}
	e.name("stream_options")
	e.out = append(e.out, wire.Set(client, "include_usage", []byte("true"))...)
}

func (e *encoder) choice() {
	e.wrote.choice = true
	e.name("tool_choice")
	e.out = wire.AppendString(e.out, string(e.request.Choice))
}

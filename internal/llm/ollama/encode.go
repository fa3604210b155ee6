package ollama

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// encodeRequest is the body for an upstream: the client's members in their order, with
// what the host changes, and a stream asked for.
func encodeRequest(r *llm.Request) []byte {
	rest := r.Rest
	if r.Dialect != llm.Ollama {
		rest = neutralMembers(r)
	}
	e := &encoder{out: []byte{'{'}, request: r}
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
	wrote   struct{ messages, tools, stream, options bool }
}

func (e *encoder) name(name string) {
	if len(e.out) > 1 {
		e.out = append(e.out, ',')
	}
	e.out = append(wire.AppendString(e.out, name), ':')
}

func (e *encoder) value(name string, v []byte) {
	e.name(name)
	e.out = append(e.out, v...)
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
		if len(e.request.Tools) == 0 {
			e.value(m.Name, m.Value)
		}
	case "stream":
		e.stream()
	case "options":
		e.options(m.Value)
	default:
		e.value(m.Name, m.Value)
	}
}

func (e *encoder) missing() {
	if !e.wrote.messages {
		e.messages()
	}
	if !e.wrote.tools {
		e.tools()
	}
	if !e.wrote.stream {
		e.stream()
	}
	if !e.wrote.options && len(e.request.Added) > 0 {
		e.options(nil)
	}
}

func (e *encoder) stream() {
	e.wrote.stream = true
	e.value("stream", []byte("true"))
}

// options writes the client's settings, with the host's where the client says nothing.
func (e *encoder) options(own jsontext.Value) {
	e.wrote.options = true
	if own.Kind() != '{' {
		own = jsontext.Value("{}")
	}
	for _, m := range e.request.Added {
		if wire.IsNull(wire.Member(own, m.Name)) {
			own = wire.Set(own, m.Name, m.Value)
		}
	}
	e.value("options", own)
}

// silent reports whether no tool may be called: the dialect has no word for it but to
// name none.
func silent(r *llm.Request) bool {
	return r.Choice == llm.ChoiceNone || r.Choice == llm.ChoiceUnset && r.Options.Choice == llm.ChoiceNone
}

func carries(d llm.Declaration) bool { return !d.Special || d.Raw.Is(llm.Ollama) }

func (e *encoder) tools() {
	e.wrote.tools = true
	if silent(e.request) || !slices.ContainsFunc(e.request.Tools, carries) {
		return
	}
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

func appendDeclaration(dst []byte, d llm.Declaration) []byte {
	if d.Raw.Is(llm.Ollama) {
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
	return append(append(dst, d.Parameters...), "}}"...)
}

func (e *encoder) messages() {
	e.wrote.messages = true
	e.name("messages")
	e.out = append(e.out, '[')
	names := map[string]string{} // of the tools that calls are of
	for i, m := range e.request.Messages {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		e.out = appendMessage(e.out, m, names[m.CallID])
	}
	e.out = append(e.out, ']')
}

// tailGap stands between a message's own text and the host's.
const tailGap = "\n\n"

func appendMessage(dst []byte, m llm.Message, tool string) []byte {
	switch {
	case !m.Raw.Is(llm.Ollama):
		return appendNeutral(dst, m, tool)
	case m.Tail == "":
		return append(dst, m.Raw.Bytes...)
	}
	own, _ := wire.Contents(wire.Member(m.Raw.Bytes, "content"))
	gap := tailGap
	if len(own) == 0 {
		gap = ""
	}
	added := wire.AppendString(nil, gap+m.Tail)
	return append(dst, wire.Set(m.Raw.Bytes, "content", slices.Concat([]byte{'"'}, own, added[1:]))...)
}

// appendNeutral writes a message that has no bytes of this dialect.
func appendNeutral(dst []byte, m llm.Message, tool string) []byte {
	role := m.Role
	if role == llm.Developer {
		role = llm.System
	}
	text := m.Text()
	if m.Tail != "" {
		if text != "" {
			text += tailGap
		}
		text += m.Tail
	}
	dst = append(dst, `{"role":`...)
	dst = wire.AppendString(dst, string(role))
	dst = append(dst, `,"content":`...)
	dst = wire.AppendString(dst, text)
	dst = appendThinking(dst, m)
	dst = appendImages(dst, m)
	if m.Role == llm.Tool && tool != "" {
		dst = append(dst, `,"tool_name":`...)
		dst = wire.AppendString(dst, tool)
	}
	if len(m.Calls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range m.Calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendCall(dst, i, c), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendThinking(dst []byte, m llm.Message) []byte {
	var text strings.Builder
	for _, p := range m.Parts {
		if p.Kind == llm.Reasoning {
			text.WriteString(p.Text)
		}
	}
	if text.Len() == 0 {
		return dst
	}
	return wire.AppendString(append(dst, `,"thinking":`...), text.String())
}

func appendImages(dst []byte, m llm.Message) []byte {
	open := false
	for _, p := range m.Parts {
		if p.Kind != llm.Image || p.Media == nil || p.Media.Data == "" {
			continue
		}
		if open {
			dst = append(dst, ',')
		} else {
			dst, open = append(dst, `,"images":[`...), true
		}
		dst = wire.AppendString(dst, p.Media.Data)
	}
	if open {
		dst = append(dst, ']')
	}
	return dst
}

// AppendCall writes a call as an element of tool_calls, but for its closing brace. The
// dialect takes nothing but an object as arguments: what is none is put into one, so that
// the model sees what it wrote.
func AppendCall(dst []byte, index int, c llm.Call) []byte {
	dst = append(dst, `{"function":{"index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"name":`...)
	dst = wire.AppendString(dst, c.Name)
	dst = append(dst, `,"arguments":`...)
	input := jsontext.Value(strings.TrimSpace(c.Arguments))
	switch {
	case len(input) == 0:
		dst = append(dst, "{}"...)
	case input.Kind() == '{' && wire.Check(input) == nil:
		dst = append(dst, input...)
	default:
		dst = append(dst, `{"arguments":`...)
		dst = append(wire.AppendString(dst, c.Arguments), '}')
	}
	return append(dst, '}')
}

// noEffort is the wish that a model does not think.
const noEffort = "none"

// neutralMembers are the members of a request of another dialect.
func neutralMembers(r *llm.Request) []llm.Member {
	o := r.Options
	members := []llm.Member{{Name: "model", Value: wire.AppendString(nil, r.Model)}, {Name: "messages"}, {Name: "tools"}}
	if options := appendOptions(nil, o); len(options) > 2 {
		members = append(members, llm.Member{Name: "options", Value: options})
	}
	switch {
	case o.Structured && len(o.Schema) > 0:
		members = append(members, llm.Member{Name: "format", Value: o.Schema})
	case o.Structured:
		members = append(members, llm.Member{Name: "format", Value: jsontext.Value(`"json"`)})
	}
	// A model that cannot think refuses to be asked for it, and one that can does so
	// unasked: only the wish that it does not is carried, see [Provider.Lost].
	if o.Effort == noEffort {
		members = append(members, llm.Member{Name: "think", Value: jsontext.Value("false")})
	}
	return members
}

func appendOptions(dst []byte, o llm.Options) []byte {
	dst = append(dst, '{')
	add := func(name string, value []byte) {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(wire.AppendString(dst, name), ':'), value...)
	}
	float := func(name string, f *float64) {
		if f != nil {
			add(name, strconv.AppendFloat(nil, *f, 'g', -1, 64))
		}
	}
	float("temperature", o.Temperature)
	float("top_p", o.TopP)
	if o.TopK != nil {
		add("top_k", strconv.AppendInt(nil, int64(*o.TopK), 10))
	}
	if o.Seed != nil {
		add("seed", strconv.AppendInt(nil, *o.Seed, 10))
	}
	float("frequency_penalty", o.FrequencyPenalty)
	float("presence_penalty", o.PresencePenalty)
	float("repeat_penalty", o.RepeatPenalty)
	if o.MaxTokens > 0 {
		add("num_predict", strconv.AppendInt(nil, int64(o.MaxTokens), 10))
	}
	if len(o.Stop) > 0 {
		stops := []byte{'['}
		for i, s := range o.Stop {
			if i > 0 {
				stops = append(stops, ',')
			}
			stops = wire.AppendString(stops, s)
		}
		add("stop", append(stops, ']'))
	}
	return append(dst, '}')
}

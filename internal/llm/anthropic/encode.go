package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// encodeRequest is the body for an upstream that speaks a version of the API: the client's
// members in their order, with what the host changes, and a stream asked for.
func encodeRequest(r *llm.Request, version string) []byte {
	rest := r.Rest
	if r.Dialect != llm.Anthropic {
		rest = neutralMembers(r, version)
	}
	size := 512
	for _, m := range r.Messages {
		size += len(m.Raw.Bytes) + len(m.Tail) + 64
	}
	for _, d := range r.Tools {
		size += len(d.Raw.Bytes) + len(d.Parameters) + len(d.Description) + 64
	}
	e := &encoder{out: append(make([]byte, 0, size), '{'), request: r, version: version}
	e.system, e.messages = leading(r.Messages)
	for _, m := range rest {
		e.member(m)
	}
	e.missing()
	return append(e.out, '}')
}

// leading parts the messages that are the system prompt from the conversation. A message
// object of that role stands in the conversation, and stays there.
func leading(messages []llm.Message) (system, rest []llm.Message) {
	n := 0
	for n < len(messages) && isSystem(messages[n]) && messages[n].Raw.Bytes.Kind() != '{' {
		n++
	}
	return messages[:n], messages[n:]
}

func isSystem(m llm.Message) bool { return m.Role == llm.System || m.Role == llm.Developer }

// encoder writes one request body.
type encoder struct {
	out              []byte
	request          *llm.Request
	version          string
	system, messages []llm.Message
	wrote            struct{ system, messages, tools, stream, choice bool }
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
		e.conversation()
	case "system":
		e.prompt()
	case "tools":
		if m.Value == nil {
			e.tools()
			return
		}
		// The client wrote null: that is nothing once there are tools.
		if !declares(e.request) {
			e.value(m)
		}
	case "stream":
		e.stream()
	case "tool_choice":
		e.choice(m)
	default:
		if !wire.IsNull(m.Value) || !added(e.request, m.Name) {
			e.value(m)
		}
	}
}

func added(r *llm.Request, name string) bool {
	return slices.ContainsFunc(r.Added, func(m llm.Member) bool { return m.Name == name })
}

// missing writes what the client did not send and the host needs.
func (e *encoder) missing() {
	if !e.wrote.system && len(e.system) > 0 {
		e.prompt()
	}
	if !e.wrote.messages {
		e.conversation()
	}
	tools := declares(e.request)
	if !e.wrote.tools && tools {
		e.tools()
	}
	if !e.wrote.choice && e.request.Choice != llm.ChoiceUnset && tools {
		e.choice(llm.Member{})
	}
	if !e.wrote.stream {
		e.stream()
	}
	for _, m := range e.request.Added {
		// The one setting of the host's that the API has, in the version that has it, and
		// not beside thinking, where it may not be changed.
		said := slices.ContainsFunc(e.request.Rest, func(o llm.Member) bool { return o.Name == m.Name && !wire.IsNull(o.Value) })
		if m.Name == "temperature" && samples(e.request, e.version) && !(said && e.request.Dialect == llm.Anthropic) {
			e.value(m)
		}
	}
}

// samples reports whether a request may say how tokens are picked.
func samples(r *llm.Request, version string) bool {
	return version == Version2023 && (r.Options.Effort == "" || r.Options.Effort == "none")
}

func (e *encoder) stream() {
	e.wrote.stream = true
	e.name("stream")
	e.out = append(e.out, "true"...)
}

// choice writes the client's wish about tools, or the host's in its place. That calls come
// one at a time stays.
func (e *encoder) choice(client llm.Member) {
	e.wrote.choice = true
	switch e.request.Choice {
	case llm.ChoiceUnset:
		e.value(client)
	case llm.ChoiceNone:
		e.name("tool_choice")
		e.out = append(e.out, `{"type":"none"}`...)
	default:
		e.name("tool_choice")
		e.out = append(e.out, `{"type":"auto"`...)
		if alone := wire.Member(client.Value, "disable_parallel_tool_use"); alone != nil {
			e.out = append(append(e.out, `,"disable_parallel_tool_use":`...), alone...)
		}
		e.out = append(e.out, '}')
	}
}

// carries reports whether the dialect can declare a tool.
func carries(d llm.Declaration) bool { return !d.Special || d.Raw.Is(llm.Anthropic) }

func declares(r *llm.Request) bool { return slices.ContainsFunc(r.Tools, carries) }

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

func appendDeclaration(dst []byte, d llm.Declaration) []byte {
	if d.Raw.Is(llm.Anthropic) {
		return append(dst, d.Raw.Bytes...)
	}
	dst = append(dst, `{"name":`...)
	dst = wire.AppendString(dst, d.Name)
	dst = append(dst, `,"description":`...)
	dst = wire.AppendString(dst, d.Description)
	dst = append(dst, `,"input_schema":`...)
	if len(d.Parameters) == 0 {
		return append(dst, `{"type":"object","properties":{}}}`...)
	}
	return append(append(dst, d.Parameters...), '}')
}

// tailGap stands between a message's own text and the host's, for servers that join
// blocks.
const tailGap = "\n\n"

// prompt writes the system prompt: the client's blocks first and as they came, so that what
// an upstream has cached of them is found again (spec skills-apis 2.8).
func (e *encoder) prompt() {
	e.wrote.system = true
	if len(e.system) == 0 {
		return
	}
	e.name("system")
	if one := e.system[0]; len(e.system) == 1 && (one.Tail == "" || len(one.Raw.Bytes) == 0) {
		if one.Raw.Is(llm.Anthropic) {
			e.out = append(e.out, one.Raw.Bytes...)
			return
		}
		e.out = wire.AppendString(e.out, joined(one.Text(), one.Tail))
		return
	}
	e.out = append(e.out, '[')
	b := blocks{out: e.out}
	for _, m := range e.system {
		b.own(m.Raw.Bytes, m)
		b.tail(m)
	}
	e.out = append(b.out, ']')
}

func joined(text, tail string) string {
	if text != "" && tail != "" {
		return text + tailGap + tail
	}
	return text + tail
}

// conversation writes the messages. Results of calls and what a user says behind them are
// one message on the wire.
func (e *encoder) conversation() {
	e.wrote.messages = true
	e.name("messages")
	e.out = append(e.out, '[')
	for i := 0; i < len(e.messages); {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		i += e.turn(e.messages[i:])
	}
	e.out = append(e.out, ']')
}

// turn writes the wire message that begins with the first of messages, and returns how
// many of them it took.
func (e *encoder) turn(messages []llm.Message) int {
	first := messages[0]
	if first.Role != llm.Tool && first.Raw.Is(llm.Anthropic) && first.Tail == "" {
		e.out = append(e.out, first.Raw.Bytes...)
		return 1
	}
	if first.Raw.Is(llm.Anthropic) && first.Role != llm.Tool {
		e.extended(first)
		return 1
	}
	role := roleOf(first)
	e.out = append(e.out, `{"role":"`...)
	e.out = append(append(e.out, role...), `","content":[`...)
	b := blocks{out: e.out}
	n := 0
	for n < len(messages) && (n == 0 || follows(messages[n], first, role)) {
		b.message(messages[n])
		n++
	}
	if b.n == 0 {
		b.text(nothing)
	}
	e.out = append(b.out, "]}"...)
	return n
}

// follows reports whether a message goes into the wire message of those before it: it is
// of the same side, and of the host's making or one with them from the start.
func follows(m, first llm.Message, role string) bool {
	if roleOf(m) != role {
		return false
	}
	if m.Role == llm.Tool || m.Joined {
		return first.Role == llm.Tool
	}
	return !m.Raw.Is(llm.Anthropic)
}

func roleOf(m llm.Message) string {
	if m.Role == llm.Assistant {
		return "assistant"
	}
	return "user"
}

// extended writes a message of the client with the host's text behind its content.
func (e *encoder) extended(m llm.Message) {
	b := blocks{out: []byte{'['}}
	b.own(wire.Member(m.Raw.Bytes, "content"), m)
	b.tail(m)
	e.out = append(e.out, wire.Set(m.Raw.Bytes, "content", append(b.out, ']'))...)
}

// blocks writes the elements of a content array.
type blocks struct {
	out []byte
	n   int
}

func (b *blocks) raw(v []byte) {
	if b.n > 0 {
		b.out = append(b.out, ',')
	}
	b.n++
	b.out = append(b.out, v...)
}

// text writes a block of text, which may not be empty.
func (b *blocks) text(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	b.raw([]byte(`{"type":"text","text":`))
	b.out = append(wire.AppendString(b.out, text), '}')
}

func (b *blocks) tail(m llm.Message) {
	if m.Tail != "" {
		b.text(tailGap + m.Tail)
	}
}

// own writes content of the client's as it came, or the text of a message without any.
func (b *blocks) own(content jsontext.Value, m llm.Message) {
	switch {
	case content.Kind() == '[':
		for c := wire.Array(content); c.Next(); {
			b.raw(c.Value)
		}
	case content.Kind() == '"':
		b.raw([]byte(`{"type":"text","text":`))
		b.out = append(append(b.out, content...), '}')
	default:
		b.parts(m)
	}
}

func (b *blocks) message(m llm.Message) {
	switch {
	case m.Role == llm.Tool:
		b.result(m)
	case m.Raw.Is(llm.Anthropic):
		b.own(wire.Member(m.Raw.Bytes, "content"), m)
	default:
		b.parts(m)
	}
	b.tail(m)
	for _, c := range m.Calls {
		b.call(c)
	}
}

func (b *blocks) result(m llm.Message) {
	if m.Raw.Is(llm.Anthropic) {
		b.raw(m.Raw.Bytes)
		return
	}
	b.raw([]byte(`{"type":"tool_result","tool_use_id":`))
	b.out = wire.AppendString(b.out, fitID(m.CallID))
	b.out = append(b.out, `,"content":`...)
	if len(m.Parts) == 1 && m.Parts[0].Kind == llm.Text {
		b.out = append(wire.AppendString(b.out, m.Parts[0].Text), '}')
		return
	}
	inner := blocks{out: append(b.out, '[')}
	inner.parts(m)
	b.out = append(inner.out, "]}"...)
}

func (b *blocks) parts(m llm.Message) {
	for _, p := range m.Parts {
		switch {
		case p.Kind == llm.Text:
			b.text(p.Text)
		case p.Media != nil && p.Kind == llm.Image:
			b.raw([]byte(`{"type":"image","source":`))
			b.out = append(appendSource(b.out, *p.Media), '}')
		case p.Media != nil:
			b.file(*p.Media)
		}
	}
}

func appendSource(dst []byte, m llm.Media) []byte {
	if m.Data == "" {
		dst = append(dst, `{"type":"url","url":`...)
		return append(wire.AppendString(dst, m.URL), '}')
	}
	dst = append(dst, `{"type":"base64","media_type":`...)
	dst = wire.AppendString(dst, m.Type)
	dst = append(dst, `,"data":`...)
	return append(wire.AppendString(dst, m.Data), '}')
}

const pdf = "application/pdf"

// file writes a document: a PDF, a link to one, or text. Of other files the model is told
// that they were there.
func (b *blocks) file(m llm.Media) {
	data, err := llm.DecodeBase64(m.Data)
	switch {
	case m.Type == pdf, m.Data == "" && m.URL != "":
		b.raw([]byte(`{"type":"document","source":`))
		b.out = appendSource(b.out, m)
	case err == nil && strings.HasPrefix(m.Type, "text/"):
		b.raw([]byte(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":`))
		b.out = append(wire.AppendString(b.out, strings.ToValidUTF8(string(data), "\uFFFD")), '}')
	default:
		b.text(unshown(m))
		return
	}
	if m.Name != "" {
		b.out = append(b.out, `,"title":`...)
		b.out = wire.AppendString(b.out, m.Name)
	}
	b.out = append(b.out, '}')
}

// call writes a call. The API takes nothing but an object as its input: what is none is
// put into one, so that the model sees what it wrote.
func (b *blocks) call(c llm.Call) {
	b.raw([]byte(`{"type":"tool_use","id":`))
	b.out = wire.AppendString(b.out, fitID(c.ID))
	b.out = append(b.out, `,"name":`...)
	b.out = wire.AppendString(b.out, c.Name)
	b.out = append(b.out, `,"input":`...)
	input := jsontext.Value(strings.TrimSpace(c.Arguments))
	switch {
	case len(input) == 0:
		b.out = append(b.out, "{}"...)
	case input.Kind() == '{' && wire.Check(input) == nil:
		b.out = append(b.out, input...)
	default:
		b.out = append(b.out, `{"arguments":`...)
		b.out = append(wire.AppendString(b.out, c.Arguments), '}')
	}
	b.out = append(b.out, '}')
}

// fitID is a call's id in the letters that the API takes. What has others becomes one that
// is the same each time.
func fitID(id string) string {
	fit := strings.Map(func(r rune) rune {
		if r < 0x80 && strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", r) {
			return r
		}
		return '_'
	}, id)
	if fit == id && id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return fit + "_" + hex.EncodeToString(sum[:4])
}

// defaultMaxTokens bounds a reply whose client sets no bound, which the API demands.
const defaultMaxTokens = 8192

// neutralMembers are the members of a request of another dialect.
func neutralMembers(r *llm.Request, version string) []llm.Member {
	o := r.Options
	members := []llm.Member{{Name: "model", Value: wire.AppendString(nil, r.Model)}}
	add := func(name string, value []byte) { members = append(members, llm.Member{Name: name, Value: value}) }
	most := o.MaxTokens
	if most == 0 {
		most = defaultMaxTokens
	}
	add("max_tokens", strconv.AppendInt(nil, int64(most), 10))
	add("system", nil)
	add("messages", nil)
	if declares(r) {
		add("tools", nil)
		if choice := appendChoice(nil, o); len(choice) > 0 {
			add("tool_choice", choice)
		}
	}
	thinking, config := thinkingOf(o, version, most)
	if thinking != nil {
		add("thinking", thinking)
	}
	if samples(r, version) || thinking == nil && version == Version2023 {
		if o.Temperature != nil {
			add("temperature", strconv.AppendFloat(nil, min(*o.Temperature, 1), 'g', -1, 64))
		}
		if o.TopP != nil {
			add("top_p", strconv.AppendFloat(nil, *o.TopP, 'g', -1, 64))
		}
		if o.TopK != nil {
			add("top_k", strconv.AppendInt(nil, int64(*o.TopK), 10))
		}
	}
	if stops := appendStops(nil, o.Stop); len(stops) > 2 {
		add("stop_sequences", stops)
	}
	if o.Structured && len(o.Schema) > 0 {
		if config != nil {
			config = append(config, ',')
		}
		config = append(append(append(config, `"format":{"type":"json_schema","schema":`...), o.Schema...), '}')
	}
	if config != nil {
		add("output_config", append(append([]byte{'{'}, config...), '}'))
	}
	return members
}

// thinkingOf is how much the model thinks, as a version of the API has it: a budget in the
// older one, and members of output_config in the newer. A budget must be smaller than the
// bound of the reply, and no call may be forced beside it.
func thinkingOf(o llm.Options, version string, most int) (thinking, config []byte) {
	forced := o.Choice == llm.ChoiceRequired || o.Choice == llm.ChoiceNamed
	if o.Effort == "" || o.Effort == "none" || forced {
		return nil, nil
	}
	if version != Version2023 {
		effort := o.Effort
		if effort == "minimal" {
			effort = "low"
		}
		return []byte(`{"type":"adaptive"}`), wire.AppendString([]byte(`"effort":`), effort)
	}
	budget := leastBudget
	switch o.Effort {
	case "medium":
		budget = mediumBudget
	case "high", "xhigh":
		budget = highBudget
	}
	if budget = min(budget, most/2); budget < leastBudget {
		return nil, nil
	}
	thinking = strconv.AppendInt([]byte(`{"type":"enabled","budget_tokens":`), int64(budget), 10)
	return append(thinking, '}'), nil
}

// appendChoice is the client's tool choice; nothing when it has none.
func appendChoice(dst []byte, o llm.Options) []byte {
	alone := o.Parallel != nil && !*o.Parallel
	switch o.Choice {
	case llm.ChoiceNone:
		return append(dst, `{"type":"none"}`...)
	case llm.ChoiceRequired:
		dst = append(dst, `{"type":"any"`...)
	case llm.ChoiceNamed:
		dst = append(dst, `{"type":"tool","name":`...)
		dst = wire.AppendString(dst, o.Function)
	default:
		if o.Choice != llm.ChoiceAuto && !alone {
			return dst
		}
		dst = append(dst, `{"type":"auto"`...)
	}
	if alone {
		dst = append(dst, `,"disable_parallel_tool_use":true`...)
	}
	return append(dst, '}')
}

// appendStops leaves out what is white space, which the API refuses.
func appendStops(dst []byte, stops []string) []byte {
	dst = append(dst, '[')
	for _, s := range stops {
		if strings.TrimSpace(s) == "" {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, s)
	}
	return append(dst, ']')
}

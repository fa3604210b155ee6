package responses

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm/openai"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// conversation makes messages of the other dialect of items. What the model said between
// two messages of others is one message there, however many items it is here: so an answer
// of ours comes back as what it was.
type conversation struct {
	tools *toolset
	out   []byte
	begun bool     // a message that is not of the system
	lead  []string // texts of the system at the beginning
	own   said     // by the model, not written yet
	shown []byte   // parts of files that tools returned, not written yet
	left  []string
}

// said is what the model said.
type said struct {
	any             bool
	text, reasoning strings.Builder
	calls           []llm.Call
}

func newConversation(instructions string, tools *toolset) *conversation {
	c := &conversation{tools: tools, out: []byte{'['}}
	if instructions != "" {
		c.lead = append(c.lead, instructions)
	}
	return c
}

// item adds an item; at says where it is, for errors.
func (c *conversation) item(v jsontext.Value, at string) error {
	if v.Kind() != '{' {
		return invalid(at, "%s must be an object", at)
	}
	role, _ := wire.String(wire.Member(v, "role"))
	kind := kindOf(v)
	if kind == "" && role != "" {
		kind = "message"
	}
	switch kind {
	case "message":
		return c.message(role, wire.Member(v, "content"), at)
	case "function_call", "custom_tool_call":
		return c.call(v, kind, at)
	case "function_call_output", "custom_tool_call_output":
		return c.result(v, at)
	case "reasoning":
		c.reasoning(v)
	case "compaction", "compaction_summary":
		return invalid(at, "%s is a conversation that the vendor has made unreadable for others: send its items themselves", at)
	case "":
		return invalid(at, "%s must have a type, or the role of a message", at)
	default:
		c.leave("the item " + quoted(kind))
	}
	return nil
}

func (c *conversation) leave(what string) { c.left = append(c.left, what) }

func (c *conversation) message(role string, content jsontext.Value, at string) error {
	switch llm.Role(role) {
	case llm.System, llm.Developer:
		// Most models that run locally know no developer.
		text, err := c.plain(content, leadGap, at)
		if err != nil {
			return err
		}
		if !c.begun && !c.own.any {
			c.lead = append(c.lead, text)
			return nil
		}
		c.write(llm.System, wire.AppendString(nil, text))
	case llm.User:
		parts, err := c.parts(content, at)
		if err != nil {
			return err
		}
		c.write(llm.User, parts)
	case llm.Assistant:
		text, err := c.plain(content, "", at)
		if err != nil {
			return err
		}
		c.said().text.WriteString(text)
	default:
		return invalid(at+".role", "%s has the role %s: it must be user, assistant, system or developer", at, quoted(role))
	}
	return nil
}

// said is what the model says now. Files that tools returned come before it.
func (c *conversation) said() *said {
	c.show()
	c.own.any = true
	return &c.own
}

// plain is the text of content that can only be text.
func (c *conversation) plain(content jsontext.Value, gap, at string) (string, error) {
	if text, ok := wire.String(content); ok {
		return text, nil
	}
	if content.Kind() != '[' {
		return "", invalid(at+".content", "%s.content must be a string, or an array of parts", at)
	}
	var texts []string
	for a := wire.Array(content); a.Next(); {
		switch kind := kindOf(a.Value); kind {
		case "input_text", "output_text", "text", "summary_text", "reasoning_text":
			text, _ := wire.String(wire.Member(a.Value, "text"))
			texts = append(texts, text)
		case "refusal":
			text, _ := wire.String(wire.Member(a.Value, "refusal"))
			texts = append(texts, text)
		default:
			return "", invalid(at+".content", "%s.content has a part of type %s: it can only have text", at, quoted(kind))
		}
	}
	return strings.Join(texts, gap), nil
}

// parts is the content of a message of the user: a string where there is only one text.
func (c *conversation) parts(content jsontext.Value, at string) ([]byte, error) {
	if content.Kind() == '"' {
		return content, nil
	}
	if content.Kind() != '[' {
		return nil, invalid(at+".content", "%s.content must be a string, or an array of parts", at)
	}
	out, n := []byte{'['}, 0
	only := jsontext.Value(nil)
	for a := wire.Array(content); a.Next(); n++ {
		if n > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendPart(out, a.Value, at+".content"); err != nil {
			return nil, err
		}
		only = wire.Member(a.Value, "text")
	}
	if n == 1 && only.Kind() == '"' {
		return only, nil
	}
	return append(out, ']'), nil
}

// appendPart writes a part as the other dialect has it.
func appendPart(dst []byte, v jsontext.Value, at string) ([]byte, error) {
	member := func(name string) string {
		text, _ := wire.String(wire.Member(v, name))
		return text
	}
	switch kind := kindOf(v); kind {
	case "input_text", "output_text", "text":
		return appendTextPart(dst, member("text")), nil
	case "refusal":
		return appendTextPart(dst, member("refusal")), nil
	case "input_image":
		address := wire.Member(v, "image_url")
		if address.Kind() == '{' { // as the other dialect has it
			address = wire.Member(address, "url")
		}
		if address.Kind() != '"' {
			return nil, invalid(at, "%s has an image without image_url: files are not kept here, send it as an address that holds it (data:image/png;base64,...)", at)
		}
		dst = appendMember(append(dst, `{"type":"image_url","image_url":{`...), "url", address)
		if detail := member("detail"); detail != "" {
			dst = appendText(dst, "detail", detail)
		}
		return append(dst, "}}"...), nil
	case "input_file":
		return appendFile(dst, member("filename"), member("file_data"), member("file_url"), member("file_id"), at)
	case "input_audio":
		return append(appendMember(append(dst, `{"type":"input_audio"`...), "input_audio", wire.Member(v, "input_audio")), '}'), audio(v, at)
	default:
		return nil, invalid(at, "%s has a part of type %s: there are input_text, input_image, input_file and input_audio", at, quoted(kind))
	}
}

func audio(v jsontext.Value, at string) error {
	if wire.Member(v, "input_audio").Kind() != '{' {
		return invalid(at, "%s has a sound without input_audio: give its data and its format", at)
	}
	return nil
}

func appendTextPart(dst []byte, text string) []byte {
	return append(appendText(append(dst, `{"type":"text"`...), "text", text), '}')
}

// appendFile is a file that is there, or that is told of.
func appendFile(dst []byte, name, data, address, id, at string) ([]byte, error) {
	switch {
	case data != "":
		dst = append(dst, `{"type":"file","file":{`...)
		if name != "" {
			dst = appendText(dst, "filename", name)
		}
		return append(appendText(dst, "file_data", data), "}}"...), nil
	case address != "":
		return appendTextPart(dst, linkedFile(name, address)), nil
	case id != "":
		return nil, invalid(at, "%s has the file %s: files are not kept here, send it in file_data", at, quoted(id))
	}
	return nil, invalid(at, "%s has a file of which nothing was sent: give file_data", at)
}

func (c *conversation) call(v jsontext.Value, kind, at string) error {
	id, _ := wire.String(wire.Member(v, "call_id"))
	name, _ := wire.String(wire.Member(v, "name"))
	namespace, _ := wire.String(wire.Member(v, "namespace"))
	if id == "" || name == "" {
		return invalid(at, "%s must have a call_id and a name", at)
	}
	arguments, _ := wire.String(wire.Member(v, "arguments"))
	if kind == "custom_tool_call" {
		input, _ := wire.String(wire.Member(v, "input"))
		arguments = customArguments(input)
	}
	own := c.said()
	own.calls = append(own.calls, llm.Call{ID: id, Name: c.tools.flatOf(namespace, name), Arguments: arguments})
	return nil
}

func (c *conversation) reasoning(v jsontext.Value) {
	own := c.said()
	for a := wire.Array(wire.Member(v, "content")); a.Next(); {
		text, _ := wire.String(wire.Member(a.Value, "text"))
		own.reasoning.WriteString(text)
	}
}

// result is what a tool returned. Its files follow in a message of the user, for results
// are text in the other dialect.
func (c *conversation) result(v jsontext.Value, at string) error {
	id, _ := wire.String(wire.Member(v, "call_id"))
	if id == "" {
		return invalid(at+".call_id", "%s must have a call_id", at)
	}
	c.flush()
	output := wire.Member(v, "output")
	text, ok := wire.String(output)
	var shown []byte
	if !ok {
		var texts []string
		for a := wire.Array(output); a.Next(); {
			switch kindOf(a.Value) {
			case "input_text", "output_text", "text":
				part, _ := wire.String(wire.Member(a.Value, "text"))
				texts = append(texts, part)
				continue
			}
			var err error
			if shown, err = appendPart(append(shown, ','), a.Value, at+".output"); err != nil {
				return err
			}
		}
		if output.Kind() != '[' && !wire.IsNull(output) {
			texts = append(texts, string(output)) // some clients leave the quotes out
		}
		if text = strings.Join(texts, "\n"); text == "" && shown != nil {
			text = filesFollow
		}
	}
	if shown != nil {
		if c.shown != nil {
			c.shown = append(c.shown, ',')
		}
		c.shown = append(appendTextPart(c.shown, filesOfResult(id)), shown...)
	}
	c.next()
	c.out = appendText(append(c.out, `{"role":"tool"`...), "tool_call_id", id)
	c.out = append(appendText(c.out, "content", text), '}')
	return nil
}

// write adds a message of others.
func (c *conversation) write(role llm.Role, content []byte) {
	c.flush()
	c.show()
	c.next()
	c.out = appendText(append(c.out, '{'), "role", string(role))
	c.out = append(appendMember(c.out, "content", content), '}')
}

// next begins a message. What the system says at the beginning is one message: many
// models take no other.
func (c *conversation) next() {
	if !c.begun {
		c.begun = true
		if len(c.lead) > 0 {
			c.out = append(c.out, `{"role":"system"`...)
			c.out = append(appendText(c.out, "content", strings.Join(c.lead, leadGap)), '}')
		}
	}
	if len(c.out) > 1 {
		c.out = append(c.out, ',')
	}
}

// flush writes what the model said.
func (c *conversation) flush() {
	if !c.own.any {
		return
	}
	own := c.own
	c.own = said{}
	if own.text.Len() == 0 && len(own.calls) == 0 {
		return // it only thought
	}
	c.next()
	c.out = appendText(append(c.out, '{'), "role", string(llm.Assistant))
	if own.reasoning.Len() > 0 {
		c.out = appendText(c.out, "reasoning_content", own.reasoning.String())
	}
	c.out = appendMember(c.out, "content", nil)
	if own.text.Len() > 0 {
		c.out = wire.AppendString(c.out, own.text.String())
	} else {
		c.out = append(c.out, "null"...)
	}
	for i, call := range own.calls {
		if i == 0 {
			c.out = append(c.out, `,"tool_calls":[`...)
		} else {
			c.out = append(c.out, ',')
		}
		c.out = openai.AppendCall(c.out, call)
	}
	if len(own.calls) > 0 {
		c.out = append(c.out, ']')
	}
	c.out = append(c.out, '}')
}

// show writes the files that tools returned.
func (c *conversation) show() {
	if c.shown == nil {
		return
	}
	shown := append(append([]byte{'['}, c.shown...), ']')
	c.shown = nil
	c.next()
	c.out = appendText(append(c.out, '{'), "role", string(llm.User))
	c.out = append(appendMember(c.out, "content", shown), '}')
}

// end are all messages.
func (c *conversation) end() []byte {
	c.flush()
	c.show()
	if !c.begun && len(c.lead) > 0 {
		c.next()
		c.out = c.out[:len(c.out)-1] // there is none behind it
	}
	return append(c.out, ']')
}

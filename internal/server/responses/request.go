package responses

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// request is the body of a request for a response. Values are slices of the body.
type request struct {
	body jsontext.Value
	// said are the members that are there and not null.
	said map[string]jsontext.Value
	// carried are the names of those that both dialects have, in the client's order.
	carried    []string
	model      string
	previous   string
	stream     bool
	background bool
	store      bool
	// idle: nothing is to be generated. Codex sends the beginning of a conversation so.
	idle      bool
	skills    []string
	discovery *bool
	tools     toolset
	// left names what no upstream is told of.
	left []string
}

// decode reads a body. The error is the client's.
func decode(body []byte, bounds codec.Bounds) (*request, error) {
	if err := wire.Check(body); err != nil {
		return nil, invalid("", "the body is not valid JSON: %v", err)
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, invalid("", "the body must be a JSON object with the members model and input")
	}
	r := &request{body: body, said: map[string]jsontext.Value{}, store: true}
	for c := wire.Object(body); c.Next(); {
		name, ok := wire.Unquote(c.Name)
		if !ok {
			return nil, invalid("", "the member %q has a name that is not valid JSON", c.Name)
		}
		if wire.IsNull(c.Value) {
			continue
		}
		r.said[name] = c.Value
		if err := r.member(name, c.Value); err != nil {
			return nil, err
		}
	}
	if r.model == "" {
		return nil, invalid("model", `"model" is missing: name one that GET /v1/models lists`)
	}
	if r.background && !r.store {
		return nil, invalid("background", `"background" needs "store": a response that is not kept cannot be fetched`)
	}
	var err error
	r.tools, err = decodeTools(r.said["tools"], r.said["tool_choice"], bounds.Tools)
	if err != nil {
		return nil, err
	}
	for _, what := range r.tools.left {
		r.leave(what)
	}
	return r, nil
}

func (r *request) member(name string, v jsontext.Value) (err error) {
	switch name {
	case "model":
		r.model, err = text(name, v)
	case "previous_response_id":
		r.previous, err = text(name, v)
	case "stream":
		r.stream, err = boolean(name, v)
	case "background":
		r.background, err = boolean(name, v)
	case "store":
		r.store, err = boolean(name, v)
	case "generate":
		on := false
		on, err = boolean(name, v)
		r.idle = err == nil && !on
	case "instructions":
		if v.Kind() != '"' {
			err = invalid(name, `"instructions" must be a string`)
		}
	case "conversation":
		err = invalid(name, `conversations are not kept here: go on from a response by "previous_response_id", or send the items in "input"`)
	case "prompt":
		err = invalid(name, `templates of prompts are not kept here: send their text in "instructions" and "input"`)
	case "include":
		for c := wire.Array(v); c.Next(); {
			if what, _ := wire.String(c.Value); what != "message.output_text.logprobs" {
				r.leave("include " + quoted(what))
			}
		}
	case "truncation":
		if how, _ := wire.String(v); how != "disabled" {
			r.leave("truncation")
		}
	case "reasoning":
		r.members(name, v, "effort", "summary", "generate_summary")
	case "text":
		r.members(name, v, "format", "verbosity")
	case "skills":
		if json.Unmarshal(v, &r.skills) != nil {
			err = invalid(name, `"skills" must be an array of skill names, for example ["pdf"]`)
		}
	case "skills_discovery":
		on := false
		on, err = boolean(name, v)
		r.discovery = &on
	case "multi_agent":
		// Delegation comes with children; narrowing it to nothing is already true.
		_, err = boolean(name, v)
	case "max_output_tokens":
		if n, bad := strconv.Atoi(string(v)); bad != nil || n < 1 {
			err = invalid(name, `"max_output_tokens" must be a whole number from 1 on`)
		}
	case "input", "tools", "tool_choice", "stream_options", "top_logprobs", "parallel_tool_calls":
	case "temperature", "top_p", "metadata", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user":
		r.carried = append(r.carried, name)
	default:
		r.leave("the member " + quoted(name))
	}
	return err
}

// members leaves out what is new of an object whose members are known.
func (r *request) members(name string, v jsontext.Value, known ...string) {
	for c := wire.Object(v); c.Next(); {
		if member, _ := wire.Unquote(c.Name); !slices.Contains(known, member) && !wire.IsNull(c.Value) {
			r.leave("the member " + quoted(name+"."+member))
		}
	}
}

func (r *request) leave(what string) {
	if !slices.Contains(r.left, what) {
		r.left = append(r.left, what)
	}
}

// namesShown is how many of the things that were left out a warning names.
const namesShown = 8

// warnings say what of the request is not carried.
func (r *request) warnings() []string {
	if len(r.left) == 0 {
		return nil
	}
	names, more := r.left, ""
	if n := len(names) - namesShown; n > 0 {
		names, more = names[:namesShown], " and "+strconv.Itoa(n)+" more"
	}
	return []string{"no upstream can be told of this, so it is left out: " + strings.Join(names, ", ") + more}
}

func text(name string, v jsontext.Value) (string, error) {
	s, ok := wire.String(v)
	if !ok {
		return "", invalid(name, "%q must be a string", name)
	}
	return s, nil
}

func boolean(name string, v jsontext.Value) (bool, error) {
	on := string(v) == "true"
	if !on && string(v) != "false" {
		return false, invalid(name, "%q must be true or false", name)
	}
	return on, nil
}

// compose makes the request for the gateway: a Chat Completions request of the
// conversation's items. With full, messages are decoded for a provider of another dialect.
func (r *request) compose(items []jsontext.Value, header http.Header, bounds codec.Bounds, full bool) (gateway.Request, error) {
	instructions, _ := wire.String(r.said["instructions"])
	c := newConversation(instructions, &r.tools)
	for i, item := range items {
		if err := c.item(item, "input["+strconv.Itoa(i)+"]"); err != nil {
			return gateway.Request{}, err
		}
	}
	messages := c.end()
	for _, what := range c.left {
		r.leave(what)
	}
	decoded, err := openai.DecodeRequest(r.chat(messages), bounds, full)
	if err != nil {
		return gateway.Request{}, asInput(err)
	}
	return gateway.Request{
		Request: decoded.Request, Header: passing(header), EndUser: r.endUser(),
		Skills: append(r.skills, server.SkillsIn(header)...), Discovery: r.discovery,
		Expand: openai.Expand, Files: openai.Attachments,
	}, nil
}

// asInput is an error about the composed request in words of the client's.
func asInput(err error) error {
	f := *server.FaultOf(err)
	if strings.HasPrefix(f.Param, "messages") {
		f.Param = "input"
		if f.Detail == "" {
			return invalid("input", `"input" holds no message: give a text, or at least one item`)
		}
	}
	return &f
}

// endUser is whom a product's request is made for, as it says itself.
func (r *request) endUser() string {
	for _, name := range []string{"safety_identifier", "user"} {
		if id, ok := wire.String(r.said[name]); ok && id != "" {
			return id
		}
	}
	return ""
}

// chat is the body of the Chat Completions request.
func (r *request) chat(messages []byte) []byte {
	body := make([]byte, 0, len(messages)+len(r.body)/2+256)
	body = wire.AppendString(append(body, `{"model":`...), r.model)
	body = append(append(body, `,"messages":`...), messages...)
	add := func(name string, value []byte) {
		body = append(wire.AppendString(append(body, ','), name), ':')
		body = append(body, value...)
	}
	if len(r.tools.list) > 0 {
		add("tools", r.tools.chat())
		if r.tools.choice != nil {
			add("tool_choice", r.tools.choice)
		}
		if v := r.said["parallel_tool_calls"]; v != nil {
			add("parallel_tool_calls", v)
		}
	}
	if v := r.said["max_output_tokens"]; v != nil {
		add(maxTokens(r.model), v)
	}
	for _, name := range r.carried {
		add(name, r.said[name])
	}
	if n, err := strconv.Atoi(string(r.said["top_logprobs"])); err == nil && n > 0 || r.logprobs() {
		add("logprobs", []byte("true"))
		if n > 0 {
			add("top_logprobs", r.said["top_logprobs"])
		}
	}
	if v := wire.Member(r.said["reasoning"], "effort"); !wire.IsNull(v) {
		add("reasoning_effort", v)
	}
	if v := wire.Member(r.said["text"], "verbosity"); !wire.IsNull(v) {
		add("verbosity", v)
	}
	if v := format(wire.Member(r.said["text"], "format")); v != nil {
		add("response_format", v)
	}
	return append(body, '}')
}

// logprobs reports whether the client asks for the odds of tokens.
func (r *request) logprobs() bool {
	for c := wire.Array(r.said["include"]); c.Next(); {
		if what, _ := wire.String(c.Value); what == "message.output_text.logprobs" {
			return true
		}
	}
	return false
}

// summary reports whether the client asks for what the model thinks as a summary. Nobody
// makes one here: the text itself then stands where such a client looks for it.
func (r *request) summary() bool {
	v := r.said["reasoning"]
	return !wire.IsNull(wire.Member(v, "summary")) || !wire.IsNull(wire.Member(v, "generate_summary"))
}

// maxTokens is the name of the bound of an answer. Local servers know the older one; the
// vendor's thinking models refuse it.
func maxTokens(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	thinking := len(name) > 1 && name[0] == 'o' && '0' <= name[1] && name[1] <= '9'
	if thinking || strings.HasPrefix(name, "gpt-5") || strings.HasPrefix(name, "codex") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// format is the form of the answer, as the other dialect has it; nil for text.
func format(v jsontext.Value) []byte {
	switch kind, _ := wire.String(wire.Member(v, "type")); kind {
	case "", "text":
		return nil
	case "json_schema":
		out := []byte(`{"type":"json_schema","json_schema":{`)
		for c := wire.Object(v); c.Next(); {
			if c.Is("type") || wire.IsNull(c.Value) {
				continue
			}
			out = appendMember(out, string(c.Name), c.Value)
		}
		return append(out, "}}"...)
	}
	return v
}

// appendMember adds a member to an object; its name needs no escapes, or has them.
func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), '"', ':')
	return append(dst, value...)
}

func appendText(dst []byte, name, value string) []byte {
	return wire.AppendString(appendMember(dst, name, nil), value)
}

func appendCount(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendMember(dst, name, nil), n, 10)
}

// tooMany is a request with more of something than it may have.
func tooMany(param, detail, what string, most int) *fault.Error {
	e := invalid(param, "the request has more than %d %s", most, what)
	e.Detail = detail
	return e
}

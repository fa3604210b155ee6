// Package ollama speaks Ollama's own dialect to an upstream and holds its codec, which the
// Ollama door shares.
//
// What a client sent in this dialect is spliced, never decoded and encoded again. Upstream
// is always asked for a stream. Calls have no ids in this dialect: they are told apart by
// their place in the conversation.
//
// It retries nothing, follows no redirect, runs no tool, and loads or removes no model.
//
// Start at [New] and [DecodeRequest].
package ollama

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// Request is a client's request of /api/chat.
type Request struct {
	*llm.Request
	// Stream is how the client wants its answer; it is true when the client does not say.
	Stream bool
}

// DecodeRequest reads a request body. Values are slices of body, which must not change
// afterwards. Members of other hosts' extensions stay in Rest, where [Request.Take] finds
// them. A request without messages is one to load the model or to let go of it, and is no
// error here. With full, messages are decoded for a provider of another dialect. The error
// is a [*codec.Error].
func DecodeRequest(body []byte, bounds codec.Bounds, full bool) (*Request, error) {
	if err := wire.Check(body); err != nil {
		return nil, &codec.Error{Message: "the body is not valid JSON: " + err.Error()}
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, &codec.Error{Message: "the body must be a JSON object with the members model and messages"}
	}
	r := &Request{Request: &llm.Request{Dialect: llm.Ollama}, Stream: true}
	for c := wire.Object(body); c.Next(); {
		if err := r.member(&c, bounds, full); err != nil {
			return nil, err
		}
	}
	if r.Model == "" {
		return nil, &codec.Error{Param: "model", Message: `"model" is missing: name one that GET /api/tags lists`}
	}
	return r, nil
}

func (r *Request) member(c *wire.Cursor, bounds codec.Bounds, full bool) error {
	name, err := codec.Name(c.Name, known())
	if err != nil {
		return err
	}
	m := llm.Member{Name: name, Value: c.Value, Neutral: true}
	switch name {
	case "model":
		r.Model, err = bounds.ModelName(c.Value)
	case "messages":
		if wire.IsNull(c.Value) {
			break
		}
		m.Value = nil
		r.Messages, err = decodeMessages(c.Value, bounds, full)
	case "tools":
		if wire.IsNull(c.Value) {
			break
		}
		m.Value = nil
		r.Tools, err = decodeTools(c.Value, bounds)
	case "stream":
		r.Stream, err = codec.Boolean(name, c.Value, true)
	case "options":
		m.Neutral = setOptions(&r.Options, c.Value)
	case "format":
		m.Neutral = setFormat(&r.Options, c.Value)
	case "think":
		m.Neutral = setThink(&r.Options, c.Value)
	case "keep_alive":
		// How long a model stays loaded is nobody's loss where nothing is loaded.
	default:
		m.Neutral = false
	}
	r.Rest = append(r.Rest, m)
	return err
}

// known are the members that the host reads.
func known() []string {
	return []string{
		"model", "messages", "tools", "stream", "options", "format", "think", "keep_alive", "skills", "skills_discovery", "multi_agent",
	}
}

// setOptions takes the settings that other dialects have too, and reports whether those
// were all.
func setOptions(o *llm.Options, v jsontext.Value) bool {
	if v.Kind() != '{' {
		return wire.IsNull(v)
	}
	all := true
	for c := wire.Object(v); c.Next(); {
		name, _ := wire.Unquote(c.Name)
		all = (wire.IsNull(c.Value) || setOption(o, name, c.Value)) && all
	}
	return all
}

func setOption(o *llm.Options, name string, v jsontext.Value) bool {
	switch name {
	case "temperature":
		return setFloat(&o.Temperature, v)
	case "top_p":
		return setFloat(&o.TopP, v)
	case "presence_penalty":
		return setFloat(&o.PresencePenalty, v)
	case "frequency_penalty":
		return setFloat(&o.FrequencyPenalty, v)
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
	case "num_predict":
		// Negative numbers set no bound.
		n, err := strconv.Atoi(string(v))
		o.MaxTokens = max(n, 0)
		return err == nil
	case "stop":
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
	return false
}

func setFloat(to **float64, v jsontext.Value) bool {
	f, err := strconv.ParseFloat(string(v), 64)
	if err == nil {
		*to = &f
	}
	return err == nil
}

func setFormat(o *llm.Options, v jsontext.Value) bool {
	switch text, ok := wire.String(v); {
	case text == "json":
		o.Structured = true
	case v.Kind() == '{':
		o.Structured, o.Schema = true, v
	default:
		return wire.IsNull(v) || ok && text == "" // as clients write that they say nothing
	}
	return true
}

func setThink(o *llm.Options, v jsontext.Value) bool {
	switch level, _ := wire.String(v); {
	case string(v) == "true":
		o.Effort = "medium"
	case string(v) == "false":
		o.Effort = noEffort
	case slices.Contains([]string{"low", "medium", "high"}, level):
		o.Effort = level
	default:
		return wire.IsNull(v)
	}
	return true
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
		f := wire.Member(c.Value, "function")
		d := llm.Declaration{Raw: raw(c.Value), Parameters: wire.Member(f, "parameters"), Special: f == nil}
		d.Name, _ = wire.String(wire.Member(f, "name"))
		d.Description, _ = wire.String(wire.Member(f, "description"))
		tools = append(tools, d)
	}
	return tools, nil
}

func raw(v jsontext.Value) llm.Raw { return llm.Raw{Dialect: llm.Ollama, Bytes: v} }

// passesOn lists the headers of a client that an upstream may see.
func passesOn() []string { return []string{llm.Authorization, "Traceparent", "Tracestate"} }

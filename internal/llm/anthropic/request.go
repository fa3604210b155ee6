// Package anthropic speaks Anthropic's Messages to an upstream and holds that dialect's
// codec, which the Anthropic door shares.
//
// What a client sent in this dialect is spliced, never decoded and encoded again. Both
// versions of the API are spoken, 2023-06-01 and 2026-10-21. Upstream is always asked for a
// stream.
//
// It retries nothing, follows no redirect and runs no tool.
//
// Start at [New] and [DecodeRequest].
package anthropic

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// The versions of the API.
const (
	Version2023 = "2023-06-01"
	Version2026 = "2026-10-21"
)

// Request is a client's Messages request.
type Request struct {
	*llm.Request
	// Stream is how the client wants its answer.
	Stream bool
}

// decoder reads one request.
type decoder struct {
	request *Request
	bounds  codec.Bounds
	full    bool
	version string
	system  []llm.Message
}

// DecodeRequest reads a request body of a version of the API. Values are slices of body,
// which must not change afterwards. Members of other hosts' extensions stay in Rest, where
// [Request.Take] finds them. With full, messages are decoded for a provider of another
// dialect. The error is a [*codec.Error].
func DecodeRequest(body []byte, version string, bounds codec.Bounds, full bool) (*Request, error) {
	if err := wire.Check(body); err != nil {
		return nil, &codec.Error{Message: "the body is not valid JSON: " + err.Error()}
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, &codec.Error{Message: "the body must be a JSON object with the members model, max_tokens and messages"}
	}
	d := &decoder{request: &Request{Request: &llm.Request{Dialect: llm.Anthropic}}, bounds: bounds, full: full, version: version}
	for c := wire.Object(body); c.Next(); {
		name, err := codec.Name(c.Name, known())
		if err != nil {
			return nil, err
		}
		if err := d.member(name, c.Value); err != nil {
			return nil, err
		}
	}
	r := d.request
	switch {
	case r.Model == "":
		return nil, &codec.Error{Param: "model", Message: `"model" is missing: name one that GET /v1/models lists`}
	case len(r.Messages) == 0:
		return nil, &codec.Error{Param: "messages", Message: `"messages" is missing or empty: give at least one message`}
	}
	r.Messages = append(d.system, r.Messages...)
	return r, nil
}

func (d *decoder) member(name string, v jsontext.Value) (err error) {
	r := d.request
	m := llm.Member{Name: name, Value: v, Neutral: true}
	switch name {
	case "model":
		r.Model, err = d.bounds.ModelName(v)
	case "messages":
		m.Value = nil
		err = d.messages(v)
	case "system":
		if wire.IsNull(v) {
			break
		}
		m.Value = nil
		d.system, err = d.systemOf(v)
	case "tools":
		if wire.IsNull(v) {
			break
		}
		m.Value = nil
		err = d.tools(v)
	case "stream":
		r.Stream, err = codec.Boolean(name, v, false)
	default:
		m.Neutral = setOption(&r.Options, name, v)
	}
	r.Rest = append(r.Rest, m)
	return err
}

// known are the members that the host reads.
func known() []string {
	return []string{
		"model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "thinking", "output_config", "metadata",
		"skills", "skills_discovery", "multi_agent",
	}
}

// setOption takes a setting that other dialects have too, and reports whether it could. A
// value of a wrong type is for the upstream to refuse, so it is no error here.
func setOption(o *llm.Options, name string, v jsontext.Value) bool {
	switch name {
	case "max_tokens":
		n, err := strconv.Atoi(string(v))
		o.MaxTokens = max(n, 0)
		return err == nil
	case "temperature":
		return setFloat(&o.Temperature, v)
	case "top_p":
		return setFloat(&o.TopP, v)
	case "top_k":
		n, err := strconv.Atoi(string(v))
		if err == nil {
			o.TopK = &n
		}
		return err == nil
	case "stop_sequences":
		for c := wire.Array(v); c.Next(); {
			text, ok := wire.String(c.Value)
			if !ok {
				return false
			}
			o.Stop = append(o.Stop, text)
		}
		return true
	case "tool_choice":
		return setChoice(o, v)
	case "thinking":
		return setThinking(o, v)
	case "output_config":
		return setOutput(o, v)
	case "output_format":
		return setFormat(o, v)
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

func setChoice(o *llm.Options, v jsontext.Value) bool {
	if wire.IsNull(v) {
		return true
	}
	if alone := wire.Member(v, "disable_parallel_tool_use"); alone != nil {
		together := string(alone) != "true"
		o.Parallel = &together
	}
	switch kind, _ := wire.String(wire.Member(v, "type")); kind {
	case "auto":
		o.Choice = llm.ChoiceAuto
	case "none":
		o.Choice = llm.ChoiceNone
	case "any":
		o.Choice = llm.ChoiceRequired
	case "tool":
		o.Choice = llm.ChoiceNamed
		o.Function, _ = wire.String(wire.Member(v, "name"))
	default:
		o.Choice = llm.ChoiceOther
		return false
	}
	return true
}

// The budgets of tokens that the efforts of other dialects come to, and back.
const (
	leastBudget  = 1024 // the smallest that the API takes
	mediumBudget = 8192
	highBudget   = 24576
)

func setThinking(o *llm.Options, v jsontext.Value) bool {
	switch kind, _ := wire.String(wire.Member(v, "type")); kind {
	case "disabled":
		o.Effort = "none"
	case "adaptive":
		if o.Effort == "" {
			o.Effort = "medium"
		}
	case "enabled":
		budget, _ := strconv.Atoi(string(wire.Member(v, "budget_tokens")))
		switch {
		case budget >= highBudget:
			o.Effort = "high"
		case budget >= mediumBudget:
			o.Effort = "medium"
		default:
			o.Effort = "low"
		}
	default:
		return wire.IsNull(v)
	}
	return true
}

// setOutput reads output_config. Its effort is more exact than that of thinking, whichever
// comes first, unless thinking is off.
func setOutput(o *llm.Options, v jsontext.Value) bool {
	known := true
	for c := wire.Object(v); c.Next(); {
		switch {
		case c.Is("effort"):
			effort, _ := wire.String(c.Value)
			if effort == "max" {
				effort = "xhigh"
			}
			if o.Effort != "none" {
				o.Effort = effort
			}
		case c.Is("format"):
			known = setFormat(o, c.Value) && known
		default:
			known = false
		}
	}
	return known
}

func setFormat(o *llm.Options, v jsontext.Value) bool {
	if wire.IsNull(v) {
		return true
	}
	if kind, _ := wire.String(wire.Member(v, "type")); kind != "json_schema" {
		return false
	}
	o.Structured, o.Schema = true, wire.Member(v, "schema")
	return true
}

func (d *decoder) tools(v jsontext.Value) error {
	if v.Kind() != '[' {
		return &codec.Error{Param: "tools", Message: `"tools" must be an array`}
	}
	r := d.request
	for c := wire.Array(v); c.Next(); {
		if len(r.Tools) == d.bounds.Tools {
			return d.bounds.TooManyTools()
		}
		t := llm.Declaration{Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: c.Value}, Parameters: wire.Member(c.Value, "input_schema")}
		t.Name, _ = wire.String(wire.Member(c.Value, "name"))
		t.Description, _ = wire.String(wire.Member(c.Value, "description"))
		kind, _ := wire.String(wire.Member(c.Value, "type"))
		t.Special = kind != "" && kind != "custom"
		r.Tools = append(r.Tools, t)
	}
	return nil
}

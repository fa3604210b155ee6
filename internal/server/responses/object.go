package responses

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// ask is a request that is ready to be answered.
type ask struct {
	*request
	id      string // of the response
	created int64  // seconds since 1970
	owner   continuity.Owner
	session string // that it is worked on in; empty for none
	// input are the request's items, each with an id; items the whole conversation.
	input []jsontext.Value
	items []jsontext.Value
	in    gateway.Request
	// apart: the conversation before it is not kept, so that it is kept with this response.
	apart bool
	// odds: the client asked for those of tokens.
	odds bool
	// told are warnings that no header can carry: each stream of a WebSocket has its own.
	told []string
	// working: it is told that its response is worked on.
	working bool
}

// responsePrefix begins the id of a response.
const responsePrefix = "resp_"

// itemID names an item so that its response can be found.
func (a *ask) itemID(prefix, n string) string {
	return prefix + strings.TrimPrefix(a.id, responsePrefix) + "_" + n
}

// responseOf is the response whose item has an id; false for an id of somebody else's
// making.
func responseOf(item string) (string, bool) {
	_, rest, ok := strings.Cut(item, "_")
	end := strings.LastIndexByte(rest, '_')
	if !ok || end < 1 {
		return "", false
	}
	return responsePrefix + rest[:end], true
}

// object is the response. All members that the vendor's always has are there, and what the
// client said is said again.
func (a *ask) object(s state) []byte {
	out := appendText([]byte{'{'}, "id", a.id)
	out = appendText(out, "object", "response")
	out = appendCount(out, "created_at", a.created)
	out = appendText(out, "status", s.status)
	out = appendFlag(out, "background", a.background)
	if s.at > 0 {
		out = appendCount(out, "completed_at", s.at)
	} else {
		out = appendMember(out, "completed_at", []byte("null"))
	}
	out = s.appendError(out)
	if s.reason != "" {
		out = append(appendText(append(appendMember(out, "incomplete_details", nil), '{'), "reason", s.reason), '}')
	} else {
		out = appendMember(out, "incomplete_details", []byte("null"))
	}
	out = a.echo(out, "instructions", "null")
	out = a.echo(out, "max_output_tokens", "null")
	out = a.echo(out, "max_tool_calls", "null")
	out = appendText(out, "model", a.model)
	out = appendMember(out, "output", output(s.items))
	out = a.echo(out, "parallel_tool_calls", "true")
	out = a.echo(out, "previous_response_id", "null")
	if a.said["prompt_cache_key"] != nil {
		out = a.echo(out, "prompt_cache_key", "null")
	}
	out = appendReasoning(appendMember(out, "reasoning", nil), a.said["reasoning"])
	out = a.echo(out, "safety_identifier", "null")
	out = a.echo(out, "service_tier", `"default"`)
	out = appendFlag(out, "store", a.store)
	out = a.echo(out, "temperature", "null")
	out = a.echo(out, "text", `{"format":{"type":"text"}}`)
	out = a.echo(out, "tool_choice", `"auto"`)
	out = a.echo(out, "tools", "[]")
	out = a.echo(out, "top_logprobs", "0")
	out = a.echo(out, "top_p", "null")
	out = appendMember(out, "truncation", []byte(`"disabled"`))
	out = appendUsage(appendMember(out, "usage", nil), s.usage)
	out = a.echo(out, "user", "null")
	out = a.echo(out, "metadata", "{}")
	return append(out, '}')
}

// echo says what the client said, or what holds without it.
func (a *ask) echo(dst []byte, name, unsaid string) []byte {
	if v := a.said[name]; v != nil {
		return appendLine(appendMember(dst, name, nil), v)
	}
	return appendMember(dst, name, []byte(unsaid))
}

func appendReasoning(dst []byte, v jsontext.Value) []byte {
	dst = append(dst, '{')
	for _, name := range []string{"effort", "summary"} {
		if said := wire.Member(v, name); !wire.IsNull(said) {
			dst = appendLine(appendMember(dst, name, nil), said)
			continue
		}
		dst = appendMember(dst, name, []byte("null"))
	}
	return append(dst, '}')
}

// appendLine writes JSON on one line: an event's data must hold no line break.
func appendLine(dst, v []byte) []byte {
	for _, b := range v {
		if b != '\n' && b != '\r' {
			dst = append(dst, b)
		}
	}
	return dst
}

func appendFlag(dst []byte, name string, on bool) []byte {
	if on {
		return appendMember(dst, name, []byte("true"))
	}
	return appendMember(dst, name, []byte("false"))
}

func (s state) appendError(dst []byte) []byte {
	if s.fault == nil || s.status != failed {
		return appendMember(dst, "error", []byte("null"))
	}
	dst = append(appendMember(dst, "error", nil), '{')
	dst = appendText(dst, "code", failure(s.fault))
	return append(appendText(dst, "message", s.fault.Message), '}')
}

// appendUsage writes what all rounds of a response took.
func appendUsage(dst []byte, u *llm.Usage) []byte {
	if u == nil {
		return append(dst, "null"...)
	}
	total := u.Total
	if total == 0 {
		total = llm.Usage{Total: u.Input}.Add(llm.Usage{Total: u.Output}).Total
	}
	dst = appendCount(append(dst, '{'), "input_tokens", u.Input)
	dst = append(appendMember(dst, "input_tokens_details", nil), '{')
	dst = appendCount(dst, "cached_tokens", u.Cached)
	dst = append(appendCount(dst, "cache_write_tokens", u.Written), '}')
	dst = appendCount(dst, "output_tokens", u.Output)
	dst = append(appendMember(dst, "output_tokens_details", nil), '{')
	dst = append(appendCount(dst, "reasoning_tokens", u.Reasoning), '}')
	return append(appendCount(dst, "total_tokens", total), '}')
}

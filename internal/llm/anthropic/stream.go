package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

// reply follows one generation, event by event.
type reply struct {
	newID   func() string
	limits  limits
	size    int64
	begun   bool
	stopped bool
	blocks  []*block
	calls   int
	finish  llm.Finish
	usage   counts
	model   string
}

// block is one block of the message, as far as it has come.
type block struct {
	index int
	kind  string
	start jsontext.Value
	// texts are members that deltas add to, as they stand between quotes.
	texts []text
	// citations are elements of the array that deltas add to.
	citations []byte
	call      int // of a call: its number
	id, name  string
	arguments []byte
	over      bool
}

// text is a member that comes in parts.
type text struct {
	member   string
	contents []byte
}

// counts are usage as the dialect has it: what was read from a cache and written to one is
// not in the input.
type counts struct{ input, output, read, written int64 }

func (c *counts) take(v jsontext.Value) {
	for name, to := range map[string]*int64{
		"input_tokens": &c.input, "output_tokens": &c.output, "cache_read_input_tokens": &c.read, "cache_creation_input_tokens": &c.written,
	} {
		if n, err := strconv.ParseInt(string(wire.Member(v, name)), 10, 64); err == nil && n >= 0 {
			*to = n
		}
	}
}

func (c counts) usage() llm.Usage {
	u := llm.Usage{Input: c.input + c.read + c.written, Output: c.output, Cached: c.read, Written: c.written}
	u.Total = u.Input + u.Output
	return u
}

// AppendUsage writes a usage object of the dialect.
func AppendUsage(dst []byte, u llm.Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), max(u.Input-u.Cached-u.Written, 0), 10)
	dst = strconv.AppendInt(append(dst, `,"cache_creation_input_tokens":`...), u.Written, 10)
	dst = strconv.AppendInt(append(dst, `,"cache_read_input_tokens":`...), u.Cached, 10)
	dst = strconv.AppendInt(append(dst, `,"output_tokens":`...), u.Output, 10)
	return append(dst, '}')
}

// StopReason is a reason to stop as the dialect has it. One that it has not is the end of
// an answer like any other.
func StopReason(f llm.Finish) string {
	switch f {
	case llm.FinishCalls:
		return "tool_use"
	case llm.FinishLength:
		return "max_tokens"
	case llm.FinishRefused:
		return "refusal"
	case "stop_sequence", "pause_turn", "compaction", "model_context_window_exceeded":
		return string(f)
	}
	return "end_turn"
}

// finishOf is the neutral reason; one that is the dialect's alone stays as it is.
func finishOf(reason string) llm.Finish {
	switch reason {
	case "end_turn", "":
		return llm.FinishStop
	case "tool_use":
		return llm.FinishCalls
	case "max_tokens":
		return llm.FinishLength
	case "refusal":
		return llm.FinishRefused
	}
	return llm.Finish(reason)
}

// ErrorType names a fault as the dialect does.
func ErrorType(c fault.Code) string {
	switch c {
	case fault.Unauthenticated:
		return "authentication_error"
	case fault.Forbidden:
		return "permission_error"
	case fault.NotFound:
		return "not_found_error"
	case fault.TooLarge:
		return "request_too_large"
	case fault.Busy:
		return "overloaded_error"
	case fault.Timeout:
		return "timeout_error"
	}
	if c.Status() >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// event takes one event. show is false when there is nothing in it for anybody.
func (r *reply) event(data jsontext.Value) (p llm.Piece, show bool, err error) {
	if r.size += int64(len(data)); r.size > r.limits.reply {
		return p, false, &llm.StreamError{Message: fmt.Sprintf("the reply is larger than %d bytes (limit %s)", r.limits.reply, config.UpstreamReply), Detail: "upstream_reply_too_large"}
	}
	if !wire.Lenient(data) {
		return p, false, &llm.StreamError{Message: "an event is not JSON: " + upstream.Excerpt(data)}
	}
	p.Raw = raw(data)
	kind, _ := wire.String(wire.Member(data, "type"))
	switch kind {
	case "message_start":
		message := wire.Member(data, "message")
		r.begun = true
		r.model, _ = wire.String(wire.Member(message, "model"))
		r.usage.take(wire.Member(message, "usage"))
	case "content_block_start":
		return r.startBlock(p)
	case "content_block_delta":
		return r.delta(p)
	case "content_block_stop":
		if b := r.block(data); b != nil {
			b.over = true
		}
	case "message_delta":
		reason, _ := wire.String(wire.Member(wire.Member(data, "delta"), "stop_reason"))
		r.usage.take(wire.Member(data, "usage"))
		r.finish = finishOf(reason)
		if r.finish == llm.FinishCalls && r.calls == 0 {
			r.finish = llm.FinishStop
		}
		usage := r.usage.usage()
		p.Finish, p.Usage = r.finish, &usage
	case "message_stop":
		r.stopped = true
		return p, false, nil
	case "ping":
		return p, false, nil
	case "error":
		if fault := upstream.ErrorMember(data); fault != nil {
			return p, false, upstream.StreamError(data, fault)
		}
		return p, false, &llm.StreamError{Message: "an error without a word: " + upstream.Excerpt(data)}
	case "":
		if fault := upstream.ErrorMember(data); fault != nil {
			return p, false, upstream.StreamError(data, fault)
		}
		return p, false, nil
	}
	return p, true, nil
}

// block is the one that an event is about. An upstream may use a number again once that
// block is over.
func (r *reply) block(data jsontext.Value) *block {
	n, err := strconv.Atoi(string(wire.Member(data, "index")))
	if err != nil {
		return nil
	}
	for _, b := range slices.Backward(r.blocks) {
		if b.index == n {
			return b
		}
	}
	return nil
}

func (r *reply) startBlock(p llm.Piece) (llm.Piece, bool, error) {
	data := p.Raw.Bytes
	n, err := strconv.Atoi(string(wire.Member(data, "index")))
	if err != nil || n < 0 {
		return p, false, &llm.StreamError{Message: "a block has no number: " + upstream.Excerpt(data)}
	}
	content := wire.Member(data, "content_block")
	b := &block{index: n, start: slices.Clone(content)}
	b.kind, _ = wire.String(wire.Member(content, "type"))
	r.blocks = append(r.blocks, b)
	switch b.kind {
	case "text":
		p.Text, _ = wire.String(wire.Member(content, "text"))
	case "thinking":
		p.Reasoning, _ = wire.String(wire.Member(content, "thinking"))
	case "tool_use":
		if r.calls == r.limits.calls {
			return p, false, &llm.StreamError{Message: fmt.Sprintf("the reply has more than %d calls (limit %s)", r.limits.calls, config.UpstreamCalls), Detail: "upstream_too_many_calls"}
		}
		r.startCall(b)
		d := llm.CallDelta{Index: b.call, ID: b.id, Name: b.name}
		if input := wire.Member(content, "input"); !emptyObject(input) {
			b.arguments = append(b.arguments, input...)
			d.Arguments = string(input)
		}
		p.Raw, p.Calls = llm.Raw{}, []llm.CallDelta{d}
	}
	return p, true, nil
}

// emptyObject reports whether an input is none yet: the rest of it comes in deltas.
func emptyObject(v jsontext.Value) bool {
	c := wire.Object(v)
	return v.Kind() != '{' || !c.Next()
}

// startCall numbers a call and sees to it that it has an id of its own.
func (r *reply) startCall(b *block) {
	b.call = r.calls
	r.calls++
	b.name, _ = wire.String(wire.Member(b.start, "name"))
	b.id, _ = wire.String(wire.Member(b.start, "id"))
	taken := slices.ContainsFunc(r.blocks, func(o *block) bool { return o != b && o.kind == b.kind && o.id == b.id })
	if b.id == "" || taken {
		b.id = "toolu_" + r.newID()
		b.start = wire.Set(b.start, "id", wire.AppendString(nil, b.id))
	}
}

func (r *reply) delta(p llm.Piece) (llm.Piece, bool, error) {
	b := r.block(p.Raw.Bytes)
	if b == nil || b.over {
		return p, false, nil // of no block: nobody could place it
	}
	v := wire.Member(p.Raw.Bytes, "delta")
	kind, _ := wire.String(wire.Member(v, "type"))
	switch kind {
	case "text_delta":
		p.Text, _ = wire.String(wire.Member(v, "text"))
		b.add("text", wire.Member(v, "text"))
	case "thinking_delta":
		p.Reasoning, _ = wire.String(wire.Member(v, "thinking"))
		b.add("thinking", wire.Member(v, "thinking"))
	case "signature_delta":
		b.add("signature", wire.Member(v, "signature"))
	case "citations_delta":
		if len(b.citations) > 0 {
			b.citations = append(b.citations, ',')
		}
		b.citations = append(b.citations, wire.Member(v, "citation")...)
	case "input_json_delta":
		part, _ := wire.String(wire.Member(v, "partial_json"))
		b.arguments = append(b.arguments, part...)
		if b.kind != "tool_use" {
			return p, true, nil // a call that the upstream itself answers
		}
		if part == "" {
			return p, false, nil
		}
		p.Raw, p.Calls = llm.Raw{}, []llm.CallDelta{{Index: b.call, Arguments: part}}
	default:
		for c := wire.Object(v); c.Next(); {
			if name, _ := wire.Unquote(c.Name); name != "type" && c.Value.Kind() == '"' {
				b.add(name, c.Value)
			}
		}
	}
	return p, true, nil
}

// add continues a member that is text.
func (b *block) add(member string, v jsontext.Value) {
	contents, ok := wire.Contents(v)
	if !ok {
		return
	}
	i := slices.IndexFunc(b.texts, func(t text) bool { return t.member == member })
	if i < 0 {
		i = len(b.texts)
		b.texts = append(b.texts, text{member: member})
	}
	b.texts[i].contents = append(b.texts[i].contents, contents...)
}

// value is the block as the upstream would have written it whole.
func (b *block) value() jsontext.Value {
	v := b.start
	for _, t := range b.texts {
		own, _ := wire.Contents(wire.Member(v, t.member))
		v = wire.Set(v, t.member, slices.Concat([]byte{'"'}, own, t.contents, []byte{'"'}))
	}
	if len(b.citations) > 0 {
		v = wire.Set(v, "citations", slices.Concat([]byte{'['}, b.citations, []byte{']'}))
	}
	if len(b.arguments) > 0 {
		input := jsontext.Value(b.arguments)
		if input.Kind() != '{' || !wire.Lenient(input) {
			input = slices.Concat([]byte(`{"arguments":`), wire.AppendString(nil, string(b.arguments)), []byte{'}'})
		}
		v = wire.Set(v, "input", input)
	}
	return v
}

// end is the reply when the stream is over.
func (r *reply) end(err error) (*llm.Reply, error) {
	if errors.Is(err, wire.ErrEventTooLarge) {
		return nil, &llm.StreamError{Message: fmt.Sprintf("an event is larger than %d bytes (limit %s)", r.limits.event, config.UpstreamEvent), Detail: "upstream_event_too_large"}
	}
	if err != nil && err != io.EOF {
		return nil, upstream.Broken(err)
	}
	// Some servers of the dialect end their streams with the reason to stop.
	if !r.begun || !r.stopped && r.finish == "" {
		return nil, &llm.StreamError{Message: "it ended in the middle of a reply"}
	}
	if r.finish == "" {
		r.finish = llm.FinishStop
	}
	return &llm.Reply{Message: r.message(), Finish: r.finish, Usage: r.usage.usage(), Model: r.model}, nil
}

// message is the assistant's, with the blocks as they came: it goes back in the next round.
// Text that is empty is left out, which the API refuses.
func (r *reply) message() llm.Message {
	m := llm.Message{Role: llm.Assistant}
	b := blocks{out: []byte(`{"role":"assistant","content":[`)}
	for _, x := range r.blocks {
		v := x.value()
		if contents, _ := wire.Contents(wire.Member(v, "text")); x.kind == "text" && len(contents) == 0 {
			continue
		}
		b.raw(v)
		if x.kind != "tool_use" {
			m.Parts = append(m.Parts, partOf(v))
			continue
		}
		m.Calls = append(m.Calls, llm.Call{ID: x.id, Name: x.name, Arguments: string(x.arguments)})
	}
	if b.n == 0 {
		b.text(nothing)
	}
	// What is no text no strict upstream would take back.
	m.Raw = raw(bytes.ToValidUTF8(append(b.out, "]}"...), []byte("\uFFFD")))
	return m
}

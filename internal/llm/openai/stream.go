package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

// reply follows one generation, event by event.
type reply struct {
	newID    func() string
	limits   limits
	size     int64
	assembly Assembly
	template template
	calls    []llm.CallDelta // reused from event to event
	seen     []seenCall
	finish   llm.Finish
	usage    llm.Usage
	model    string
	choices  []choiceState
}

// choiceState is an alternative of the reply and whether it has finished.
type choiceState struct {
	index int
	ended bool
}

// seenCall is a call of the reply and how the upstream and we number it.
type seenCall struct {
	wireIndex int
	id        string
}

// event takes one event's data. done is set by the end mark.
func (r *reply) event(e wire.Event) (p llm.Piece, done bool, err error) {
	data := jsontext.Value(e.Data)
	if string(data) == "[DONE]" {
		return llm.Piece{}, true, nil
	}
	if r.size += int64(len(data)); r.size > r.limits.reply {
		return llm.Piece{}, false, &llm.StreamError{Message: fmt.Sprintf("the reply is larger than %d bytes (limit %s)", r.limits.reply, config.UpstreamReply), Detail: "upstream_reply_too_large"}
	}
	if text, ok := r.template.match(data); ok {
		r.assembly.Plain(text)
		return llm.Piece{Text: string(text), Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: data}, Repeats: true}, false, nil
	}
	if !wire.Lenient(data) {
		return llm.Piece{}, false, &llm.StreamError{Message: "an event is not JSON: " + upstream.Excerpt(data)}
	}
	if fault := upstream.ErrorMember(data); fault != nil {
		return llm.Piece{}, false, upstream.StreamError(data, fault)
	}
	if err := r.note(wire.Member(data, "choices")); err != nil {
		return llm.Piece{}, false, err
	}
	p, delta := parseChunk(data, r.calls[:0])
	if err := r.take(&p, delta); err != nil {
		return llm.Piece{}, false, err
	}
	if p.Text != "" && p.Choice == 0 && p.Reasoning == "" && len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil {
		r.template.learn(data)
	}
	return p, false, nil
}

// note marks which alternatives there are and which of them have finished.
func (r *reply) note(choices jsontext.Value) error {
	for c := wire.Array(choices); c.Next(); {
		index := int(number(wire.Member(c.Value, "index")))
		i := slices.IndexFunc(r.choices, func(s choiceState) bool { return s.index == index })
		if i < 0 {
			if len(r.choices) == r.limits.choices {
				return &llm.StreamError{Message: fmt.Sprintf("the reply has more than %d choices (limit %s)", r.limits.choices, config.UpstreamChoices), Detail: "upstream_too_many_choices"}
			}
			i = len(r.choices)
			r.choices = append(r.choices, choiceState{index: index})
		}
		if finish, _ := wire.String(wire.Member(c.Value, "finish_reason")); finish != "" {
			r.choices[i].ended = true
		}
	}
	return nil
}

// open reports whether an alternative has not finished, or there is none at all.
func (r *reply) open() bool {
	return len(r.choices) == 0 || slices.ContainsFunc(r.choices, func(s choiceState) bool { return !s.ended })
}

// take notes what a piece and its delta add to the reply and makes its calls unambiguous.
func (r *reply) take(p *llm.Piece, delta jsontext.Value) error {
	r.calls = p.Calls
	if r.model == "" {
		r.model, _ = wire.String(wire.Member(p.Raw.Bytes, "model"))
	}
	if p.Usage != nil {
		r.usage = *p.Usage
	}
	if p.Choice != 0 {
		return nil // how an alternative ends says nothing of the reply
	}
	if p.Finish != "" {
		r.finish = p.Finish
	}
	if delta != nil {
		r.assembly.Delta(delta)
	}
	for i := range p.Calls {
		if r.number(&p.Calls[i]) {
			p.Raw = llm.Raw{}
		}
		if len(r.seen) > r.limits.calls {
			return &llm.StreamError{Message: fmt.Sprintf("the reply has more than %d calls (limit %s)", r.limits.calls, config.UpstreamCalls), Detail: "upstream_too_many_calls"}
		}
		r.assembly.Call(p.Calls[i])
	}
	return nil
}

// number makes a fragment's index dense and sees to it that its call has an id
// of its own. It reports whether the fragment had to change. Some servers send
// whole calls that all have index 0, or none, or no id.
func (r *reply) number(d *llm.CallDelta) bool {
	at := -1
	for i := len(r.seen) - 1; i >= 0; i-- {
		if r.seen[i].wireIndex == d.Index {
			at = i
			break
		}
	}
	fresh := at < 0 || (d.ID != "" && d.Name != "" && r.seen[at].id != d.ID)
	changed := false
	if fresh {
		taken := slices.ContainsFunc(r.seen, func(s seenCall) bool { return s.id == d.ID })
		if d.ID == "" || taken {
			d.ID = "call_" + r.newID()
			d.Raw = wire.Set(d.Raw, "id", wire.AppendString(nil, d.ID))
			changed = true
		}
		at = len(r.seen)
		r.seen = append(r.seen, seenCall{wireIndex: d.Index, id: d.ID})
	}
	if d.Index != at {
		d.Index = at
		d.Raw = wire.Set(d.Raw, "index", strconv.AppendInt(nil, int64(at), 10))
		changed = true
	}
	return changed
}

// end is the reply when the stream is over. done tells whether the end mark
// came.
func (r *reply) end(done bool, err error) (*llm.Reply, error) {
	if errors.Is(err, wire.ErrEventTooLarge) {
		return nil, &llm.StreamError{Message: fmt.Sprintf("an event is larger than %d bytes (limit %s)", r.limits.event, config.UpstreamEvent), Detail: "upstream_event_too_large"}
	}
	if err != nil && err != io.EOF {
		return nil, upstream.Broken(err)
	}
	if len(r.choices) == 0 || (!done && r.open()) {
		return nil, &llm.StreamError{Message: "it ended in the middle of a reply"}
	}
	if r.finish == "" {
		r.finish = llm.FinishStop
	}
	raw := r.assembly.Message()
	if !utf8.Valid(raw) {
		// Sent back as it is, no strict upstream would take it.
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return &llm.Reply{Message: decodeMessage(raw, true), Finish: r.finish, Usage: r.usage, Model: r.model}, nil
}

// whole reads a completion that an upstream sent in one piece although a stream
// was asked for. Its pieces are those of a stream: all choices, then the usage.
func (r *reply) whole(body jsontext.Value) ([]llm.Piece, error) {
	if !wire.Lenient(body) {
		return nil, &llm.StreamError{Message: "the answer is not JSON: " + upstream.Excerpt(body)}
	}
	if fault := upstream.ErrorMember(body); fault != nil {
		return nil, upstream.StreamError(body, fault)
	}
	choices := wire.Member(body, "choices")
	if wire.Member(firstChoice(choices), "message") == nil {
		return nil, &llm.StreamError{Message: "the answer has no choices: " + upstream.Excerpt(body)}
	}
	if err := r.note(choices); err != nil {
		return nil, err
	}
	var pieces []llm.Piece
	for _, chunk := range r.chunks(body) {
		p, delta := parseChunk(chunk, nil)
		if err := r.take(&p, delta); err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

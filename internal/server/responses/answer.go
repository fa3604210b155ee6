package responses

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// The states of a response.
const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
	cancelled  = "cancelled"
)

// emitter takes an event: its type and the whole object. The bytes are valid until it
// returns.
type emitter func(kind string, event []byte)

// answer makes one response of all the rounds of a turn: its items, numbered in the order
// in which they begin, and the events that tell of them in the vendor's order.
type answer struct {
	ask  *ask
	emit emitter
	seq  int64

	items []*item
	open  *item         // the message or the reasoning that grows
	calls map[int]*item // of this round
	round int
	begun bool
	body  []byte // reused
}

func newAnswer(a *ask, emit emitter) *answer { return &answer{ask: a, emit: emit} }

// event writes an event; members writes what it has beside its type and its number.
func (a *answer) event(kind string, members func(dst []byte) []byte) {
	a.body = appendText(append(a.body[:0], '{'), "type", kind)
	a.body = appendCount(a.body, "sequence_number", a.seq)
	a.seq++
	a.body = append(members(a.body), '}')
	a.emit(kind, a.body)
}

// about writes an event of the response as a whole. The first one has the warnings that
// have no other place.
func (a *answer) about(kind string, response []byte) {
	first := a.seq == 0
	a.event(kind, func(dst []byte) []byte {
		dst = appendMember(dst, "response", response)
		if !first || len(a.ask.told) == 0 {
			return dst
		}
		dst = append(appendMember(dst, "metier_warnings", nil), '[')
		for i, warning := range a.ask.told {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = wire.AppendString(dst, warning)
		}
		return append(dst, ']')
	})
}

// queue tells of a response that is worked on in the background.
func (a *answer) queue() {
	body := a.ask.object(state{status: queued})
	a.about("response.created", body)
	a.about("response.queued", body)
}

// start tells once that the response is worked on.
func (a *answer) start() {
	if a.begun {
		return
	}
	a.begun = true
	body := a.ask.object(state{status: inProgress})
	if !a.ask.background {
		a.about("response.created", body)
	}
	a.about("response.in_progress", body)
}

// piece encodes what a client sees of one piece.
func (a *answer) piece(round int, p *llm.Piece) {
	if p.Choice != 0 {
		return // the dialect has one answer
	}
	if round != a.round {
		a.closeCalls(completed, false)
		a.round, a.calls = round, map[int]*item{}
	}
	if p.Reasoning != "" {
		kind := reasoningItem
		if a.ask.summary() {
			kind = summaryItem
		}
		a.grow(kind, p.Reasoning, nil)
	}
	if p.Text != "" {
		a.grow(messageItem, p.Text, a.odds(p))
	}
	for _, d := range p.Calls {
		a.call(d)
	}
}

// odds are those of the tokens of a piece's text, if the client asked for them and the
// upstream tells them as this dialect does.
func (a *answer) odds(p *llm.Piece) []byte {
	if !a.ask.odds || !p.Raw.Is(llm.OpenAIChat) {
		return nil
	}
	for c := wire.Array(wire.Member(p.Raw.Bytes, "choices")); c.Next(); {
		v := wire.Member(wire.Member(c.Value, "logprobs"), "content")
		if v.Kind() == '[' && wire.Check(v) == nil { // tokens may hold halves of letters
			return bytes.TrimSpace(v[1 : len(v)-1])
		}
	}
	return nil
}

// grow adds to the message or the reasoning that grows, or begins one.
func (a *answer) grow(kind itemKind, text string, odds []byte) {
	if a.open == nil || a.open.kind != kind {
		a.close(completed)
		a.open = a.add(&item{kind: kind})
		a.tell(a.open, "response.output_item.added", inProgress)
		a.part(a.open, kind.words().partAdded, "")
	}
	it := a.open
	it.text.WriteString(text)
	if len(odds) > 0 {
		if len(it.odds) > 0 {
			it.odds = append(it.odds, ',')
		}
		it.odds = append(it.odds, odds...)
	}
	a.inside(it, kind.words().delta, func(dst []byte) []byte {
		dst = appendText(dst, "delta", text)
		if kind == messageItem {
			dst = appendOdds(dst, odds)
		}
		return dst
	})
}

func appendOdds(dst, odds []byte) []byte {
	return append(append(appendMember(dst, "logprobs", nil), '['), append(bytes.Clone(odds), ']')...)
}

// add numbers an item.
func (a *answer) add(it *item) *item {
	a.start()
	it.index = len(a.items)
	it.id = a.ask.itemID(it.kind.words().prefix, strconv.Itoa(it.index))
	a.items = append(a.items, it)
	return it
}

// tell writes an event of an item as a whole.
func (a *answer) tell(it *item, kind, status string) {
	a.event(kind, func(dst []byte) []byte {
		dst = appendCount(dst, "output_index", int64(it.index))
		return it.append(appendMember(dst, "item", nil), status)
	})
}

// inside writes an event about an item, and about its part if it has parts.
func (a *answer) inside(it *item, kind string, members func([]byte) []byte) {
	a.event(kind, func(dst []byte) []byte {
		dst = appendText(dst, "item_id", it.id)
		dst = appendCount(dst, "output_index", int64(it.index))
		if it.kind.words().partIndex != "" {
			dst = appendCount(dst, it.kind.words().partIndex, 0)
		}
		return members(dst)
	})
}

// part writes an event of an item's one part as a whole.
func (a *answer) part(it *item, kind, text string) {
	a.inside(it, kind, func(dst []byte) []byte {
		return it.appendPart(appendMember(dst, "part", nil), text)
	})
}

// close ends the message or the reasoning that grows.
func (a *answer) close(status string) {
	it := a.open
	if it == nil {
		return
	}
	a.open = nil
	it.over, it.status = true, status
	text := it.text.String()
	a.inside(it, it.kind.words().done, func(dst []byte) []byte {
		dst = appendText(dst, "text", text)
		if it.kind == messageItem {
			dst = appendOdds(dst, it.odds)
		}
		return dst
	})
	a.part(it, it.kind.words().partDone, text)
	a.tell(it, "response.output_item.done", status)
}

// call takes a fragment of a call.
func (a *answer) call(d llm.CallDelta) {
	it := a.calls[d.Index]
	if it == nil {
		a.close(completed)
		a.closeCalls(completed, true)
		it = &item{kind: functionItem}
		a.calls[d.Index] = it
	}
	if it.over {
		return // its arguments were an object already
	}
	if it.callID == "" {
		it.callID = d.ID
	}
	it.called += d.Name
	if d.Arguments == "" {
		return
	}
	a.announce(it)
	it.text.WriteString(d.Arguments)
	if it.kind == functionItem {
		a.inside(it, it.kind.words().delta, func(dst []byte) []byte { return appendText(dst, "delta", d.Arguments) })
	}
}

// announce tells of a call, when its whole name is there.
func (a *answer) announce(it *item) {
	if it.id != "" {
		return
	}
	it.tool = a.ask.tools.named(it.called)
	if it.tool.custom {
		it.kind = customItem
	}
	a.add(it)
	a.tell(it, "response.output_item.added", inProgress)
}

// closeCalls ends the calls of the round. With whole, those whose arguments may go on stay:
// calls side by side may come in turns.
func (a *answer) closeCalls(status string, whole bool) {
	for _, i := range slices.Sorted(maps.Keys(a.calls)) {
		if it := a.calls[i]; !it.over && (!whole || it.whole()) {
			a.closeCall(it, status)
		}
	}
}

// whole reports whether a call's arguments are an object. Looking at each step again would
// take long on arguments of many steps.
func (it *item) whole() bool {
	n := it.text.Len()
	if n < it.next {
		return false
	}
	it.next = n + n/8 + 1
	return isObject(it.text.String())
}

func isObject(text string) bool {
	v := jsontext.Value(text)
	return v.Kind() == '{' && v.IsValid()
}

func (a *answer) closeCall(it *item, status string) {
	a.announce(it)
	it.over, it.status = true, status
	if it.kind == customItem {
		input := customText(it.text.String())
		a.inside(it, it.kind.words().delta, func(dst []byte) []byte { return appendText(dst, "delta", input) })
		a.inside(it, it.kind.words().done, func(dst []byte) []byte { return appendText(dst, "input", input) })
	} else {
		a.inside(it, it.kind.words().done, func(dst []byte) []byte {
			return appendText(appendText(dst, "name", it.tool.name), "arguments", it.text.String())
		})
	}
	a.tell(it, "response.output_item.done", status)
}

// state is where a response stands.
type state struct {
	status string
	items  []*item
	usage  *llm.Usage
	// reason says why it is incomplete, and fault why it failed.
	reason string
	fault  *fault.Error
	// at is when it was completed, in seconds since 1970.
	at int64
}

// end ends the items of a turn that went well, and is where the response stands then.
func (a *answer) end(o turn.Outcome, at int64) state {
	a.start()
	s := state{status: completed, usage: &o.Usage, at: at}
	switch openai.FinishReason(o.Finish) {
	case llm.FinishLength:
		s.status, s.reason = incomplete, "max_output_tokens"
	case llm.FinishRefused:
		s.status, s.reason = incomplete, "content_filter"
	}
	a.close(s.status)
	a.closeCalls(s.status, false)
	s.items = a.items
	return s
}

// fail is where a response stands whose turn broke off. What is open stays as far as it
// came.
func (a *answer) fail(status string, why *fault.Error) state {
	a.start()
	for _, it := range a.items {
		if !it.over {
			it.over, it.status = true, incomplete
		}
	}
	return state{status: status, items: a.items, fault: why}
}

// last tells of the end.
func (a *answer) last(status string, body []byte) {
	kind := "response." + status
	if status == cancelled {
		kind = "response.failed" // the vendor has no event for it
	}
	a.about(kind, body)
}

// itemKind is what an item is.
type itemKind int

// The kinds.
const (
	messageItem itemKind = iota + 1
	reasoningItem
	summaryItem
	functionItem
	customItem
)

// itemWords name an item and the events that tell of it.
type itemWords struct {
	prefix, name, delta, done string
	// Of one with parts:
	partAdded, partDone, partIndex, partType string
}

func (k itemKind) words() itemWords {
	switch k {
	case messageItem:
		return itemWords{
			"msg_", "message", "response.output_text.delta", "response.output_text.done",
			"response.content_part.added", "response.content_part.done", "content_index", "output_text",
		}
	case reasoningItem:
		return itemWords{
			"rs_", "reasoning", "response.reasoning_text.delta", "response.reasoning_text.done",
			"response.content_part.added", "response.content_part.done", "content_index", "reasoning_text",
		}
	case summaryItem:
		return itemWords{
			"rs_", "reasoning", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
			"response.reasoning_summary_part.added", "response.reasoning_summary_part.done", "summary_index", "summary_text",
		}
	case customItem:
		return itemWords{prefix: "ctc_", name: "custom_tool_call", delta: "response.custom_tool_call_input.delta", done: "response.custom_tool_call_input.done"}
	}
	return itemWords{prefix: "fc_", name: "function_call", delta: "response.function_call_arguments.delta", done: "response.function_call_arguments.done"}
}

// item is one item of a response's output.
type item struct {
	kind   itemKind
	id     string // empty until it is told of
	index  int
	text   strings.Builder // or a call's arguments
	odds   []byte          // of its tokens
	over   bool
	status string // of one that is over

	callID, called string
	next           int // the length of the arguments at which they are looked at again
	tool           declared
}

// append writes the item as it is when it has the given status.
func (it *item) append(dst []byte, status string) []byte {
	dst = appendText(append(dst, '{'), "id", it.id)
	dst = appendText(dst, "type", it.kind.words().name)
	begins := status == inProgress
	switch it.kind {
	case messageItem:
		dst = appendText(appendText(dst, "status", status), "role", "assistant")
		dst = it.appendParts(appendMember(dst, "content", nil), !begins)
	case reasoningItem:
		dst = appendMember(dst, "summary", []byte("[]"))
		dst = it.appendParts(appendMember(dst, "content", nil), !begins)
	case summaryItem:
		dst = it.appendParts(appendMember(dst, "summary", nil), !begins)
	default:
		dst = it.appendCall(dst, status)
	}
	return append(dst, '}')
}

func (it *item) appendCall(dst []byte, status string) []byte {
	dst = appendText(appendText(dst, "status", status), "call_id", it.callID)
	if it.tool.namespace != "" {
		dst = appendText(dst, "namespace", it.tool.namespace)
	}
	dst = appendText(dst, "name", it.tool.name)
	text := ""
	if status != inProgress {
		text = it.text.String()
	}
	if it.kind == customItem {
		if text != "" {
			text = customText(text)
		}
		return appendText(dst, "input", text)
	}
	return appendText(dst, "arguments", text)
}

func (it *item) appendParts(dst []byte, there bool) []byte {
	if !there {
		return append(dst, "[]"...)
	}
	return append(it.appendPart(append(dst, '['), it.text.String()), ']')
}

func (it *item) appendPart(dst []byte, text string) []byte {
	dst = appendText(append(dst, '{'), "type", it.kind.words().partType)
	dst = appendText(dst, "text", text)
	if it.kind != messageItem {
		return append(dst, '}')
	}
	odds := it.odds
	if !it.over {
		odds = nil
	}
	return append(appendOdds(appendMember(dst, "annotations", []byte("[]")), odds), '}')
}

// output are the items as a response has them.
func output(items []*item) []byte {
	out := []byte{'['}
	for _, it := range items {
		if it.id == "" {
			continue // a call of which the name never came
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = it.append(out, it.status)
	}
	return append(out, ']')
}

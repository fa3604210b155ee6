package anthropic

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// head names a message where no upstream does.
type head struct {
	ID, Model string
	// Thinking: the client asked to see what the model thinks. What an upstream of this
	// dialect shows of it is shown in any case.
	Thinking bool
	// Stop are the client's sequences that end an answer.
	Stop []string
}

// member is one that a message has at its beginning, and what it is where an upstream gives
// none that fits.
type member struct {
	name  string
	value []byte
	fits  func(jsontext.Value) bool
}

func (h head) members() []member {
	isText := func(v jsontext.Value) bool { text, ok := wire.Contents(v); return ok && len(text) > 0 }
	is := func(text string) func(jsontext.Value) bool {
		return func(v jsontext.Value) bool { return string(v) == text }
	}
	return []member{
		{"id", wire.AppendString(nil, h.ID), isText},
		{"type", []byte(`"message"`), is(`"message"`)},
		{"role", []byte(`"assistant"`), is(`"assistant"`)},
		{"model", wire.AppendString(nil, h.Model), isText},
		{"content", []byte("[]"), is("[]")},
		{"stop_reason", []byte("null"), is("null")},
		{"stop_sequence", []byte("null"), is("null")},
		{"usage", anthropic.AppendUsage(nil, llm.Usage{}), func(v jsontext.Value) bool { return v.Kind() == '{' }},
	}
}

// encoder makes one well-formed message of all the rounds of a turn: one beginning, blocks
// numbered densely, usage of the whole, one end. Events of an upstream of the same dialect
// go through as they came wherever that holds.
type encoder struct {
	head    head
	blocks  blocks
	emit    emitter
	started bool
	round   int
	// Of this round: the blocks by the upstream's numbers, and the calls by the client's.
	raws  map[int]*block
	calls map[int]*block
	last  jsontext.Value // the upstream's event that ends its last message
}

func newEncoder(h head, emit emitter) *encoder {
	e := &encoder{head: h, emit: emit}
	e.blocks.emit = func(kind string, event []byte) {
		e.start(nil)
		emit(kind, event)
	}
	return e
}

// piece encodes what a client sees of one piece.
func (e *encoder) piece(round int, p *llm.Piece) {
	if p.Choice != 0 {
		return // the dialect has one answer
	}
	if round != e.round {
		e.turnTo(round)
	}
	if p.Raw.Is(llm.Anthropic) && len(p.Calls) == 0 && e.raw(p.Raw.Bytes) {
		return
	}
	if p.Reasoning != "" && e.head.Thinking {
		e.blocks.text(thinkingBlock, p.Reasoning)
	}
	if p.Text != "" {
		e.blocks.text(textBlock, p.Text)
	}
	for _, d := range p.Calls {
		b := e.calls[d.Index]
		if b == nil {
			b = e.blocks.add(&block{kind: toolBlock})
			e.calls[d.Index] = b
		}
		e.blocks.call(b, d)
	}
}

// turnTo begins a round. Text goes on where it stood, for the model's words are one text to
// its client; thoughts and calls are each round's own.
func (e *encoder) turnTo(round int) {
	e.round = round
	e.raws, e.calls, e.last = map[int]*block{}, map[int]*block{}, nil
	e.blocks.endAll(textBlock)
}

// raw passes an event of an upstream of this dialect on, changed only where the turn needs
// it. It reports whether that is all that the client sees of the piece.
func (e *encoder) raw(event jsontext.Value) bool {
	kind, _ := wire.String(wire.Member(event, "type"))
	switch kind {
	case "message_start":
		e.start(wire.Member(event, "message"))
	case "content_block_start":
		return e.rawStart(event)
	case "content_block_delta":
		b := e.raws[numberOf(event)]
		if b == nil || b.over || wire.Member(event, "delta").Kind() != '{' {
			return false
		}
		e.blocks.event(b, event)
	case "content_block_stop":
		// One that is not known is a call's, the host's perhaps.
		if b := e.raws[numberOf(event)]; b != nil && !b.over {
			e.blocks.end(b)
		}
	case "message_delta":
		e.last = slices.Clone(event)
	case "message_stop", "ping", "error":
	default:
		// A kind that is newer than this code. One about a block would name a wrong one.
		if wire.Member(event, "index") == nil && isWord(kind) {
			e.start(nil)
			e.emit(kind, event)
		}
	}
	return true
}

func (e *encoder) rawStart(event jsontext.Value) bool {
	kind, _ := wire.String(wire.Member(wire.Member(event, "content_block"), "type"))
	if kind == "" || kind == toolBlock {
		return false // calls come as calls, so that the host's can be told apart
	}
	e.raws[numberOf(event)] = e.blocks.add(&block{kind: kind, start: slices.Clone(event)})
	return true
}

// start writes the message's beginning once: the upstream's, or one with what is known.
func (e *encoder) start(message jsontext.Value) {
	if e.started {
		return
	}
	e.started = true
	if message.Kind() != '{' {
		message = jsontext.Value("{}")
	}
	for _, m := range e.head.members() {
		if !m.fits(wire.Member(message, m.name)) {
			message = wire.Set(message, m.name, m.value)
		}
	}
	out := slices.Concat([]byte(`{"type":"message_start","message":`), message, []byte{'}'})
	e.emit("message_start", out)
	e.emit("ping", []byte(ping))
}

// ping says that somebody is there.
const ping = `{"type":"ping"}`

// end writes what is still missing when the turn has ended.
func (e *encoder) end(o turn.Outcome) {
	e.blocks.endAll("")
	e.start(nil)
	e.emit("message_delta", e.ending(o))
	e.emit("message_stop", []byte(`{"type":"message_stop"}`))
}

// ending is the event with the reason to stop and the usage of all rounds. Of one round it
// is the upstream's own, if that says the same.
func (e *encoder) ending(o turn.Outcome) jsontext.Value {
	reason := anthropic.StopReason(o.Finish)
	event := e.last
	if event.Kind() != '{' {
		event = jsontext.Value(`{"type":"message_delta","delta":{"stop_reason":null,"stop_sequence":null},"usage":{}}`)
	}
	delta := wire.Member(event, "delta")
	if own, _ := wire.String(wire.Member(delta, "stop_reason")); own != reason {
		if delta.Kind() != '{' {
			delta = jsontext.Value("{}")
		}
		delta = wire.Set(delta, "stop_reason", wire.AppendString(nil, reason))
		if reason == "stop_sequence" && len(e.head.Stop) == 1 {
			// Of a turn's later rounds no event of the upstream's says which it was.
			delta = wire.Set(delta, reason, wire.AppendString(nil, e.head.Stop[0]))
		}
		event = wire.Set(event, "delta", delta)
	}
	if usage := wire.Member(event, "usage"); o.Rounds != 1 || e.last == nil || usage.Kind() != '{' {
		event = wire.Set(event, "usage", withSum(usage, o.Usage))
	}
	return event
}

// withSum is a usage object with the four counts of the whole turn; what else it counts
// stays.
func withSum(own jsontext.Value, sum llm.Usage) jsontext.Value {
	if own.Kind() != '{' {
		own = jsontext.Value("{}")
	}
	for c := wire.Object(anthropic.AppendUsage(nil, sum)); c.Next(); {
		own = wire.Set(own, string(c.Name), c.Value)
	}
	return own
}

// isWord reports whether the name of a kind can stand in the frame of an event.
func isWord(kind string) bool {
	return kind != "" && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

func numberOf(event jsontext.Value) int {
	n, err := strconv.Atoi(string(wire.Member(event, "index")))
	if err != nil {
		return -1
	}
	return n
}

func appendNumber(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// appendNumbered writes an event with another number of its block.
func appendNumbered(dst []byte, event jsontext.Value, index int) []byte {
	if numberOf(event) == index {
		return append(dst, event...)
	}
	return append(dst, wire.Set(event, "index", appendNumber(nil, index))...)
}

// frames writes events as a stream has them.
type frames struct{ out []byte }

func (f *frames) event(kind string, event []byte) {
	f.out = append(append(f.out, "event: "...), kind...)
	f.out = append(f.out, "\ndata: "...)
	f.out = append(appendLine(f.out, event), "\n\n"...)
}

// appendLine writes JSON on one line: an event's data must hold no line break.
func appendLine(dst, v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return append(dst, v...)
	}
	for _, b := range v {
		if b != '\n' && b != '\r' {
			dst = append(dst, b)
		}
	}
	return dst
}

// take is what was written since the last time, valid until the next event.
func (f *frames) take() []byte {
	out := f.out
	f.out = f.out[:0]
	return out
}

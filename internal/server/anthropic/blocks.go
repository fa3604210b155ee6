package anthropic

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// The kinds of blocks that the host itself writes.
const (
	textBlock     = "text"
	thinkingBlock = "thinking"
	toolBlock     = "tool_use"
)

// block is one block of the message's content: of an upstream of this dialect as it came,
// but for its number, or made of neutral pieces.
type block struct {
	kind string
	// start is the event of an upstream of this dialect that begins it; nil for a block
	// of the host's making.
	start jsontext.Value
	index int // the client's number, given when it begins
	begun bool
	over  bool // nothing more comes of it

	held []fragment // what came while another block was not over

	id, name  []byte // of a call
	arguments []byte
	sent      int  // of the arguments
	next      int  // the length of the arguments at which they are looked at again
	complete  bool // they are an object
}

func isObject(v jsontext.Value) bool { return v.Kind() == '{' && v.IsValid() }

// fragment is a piece of a block: an event of an upstream of this dialect, or text.
type fragment struct {
	event jsontext.Value
	text  string
}

// whole reports whether nothing more can come of a block behind which another one
// begins. Calls side by side may come in turns; arguments that are an object are all.
func (b *block) whole() bool {
	if b.over || b.kind != toolBlock || b.start != nil {
		return true
	}
	if n := len(b.arguments); !b.complete && n >= b.next {
		// Looking at each step again would take long on arguments of many steps.
		b.next = n + n/8 + 1
		b.complete = isObject(jsontext.Value(b.arguments))
	}
	return b.complete
}

// blocks writes blocks one after another, numbered densely, each begun, filled and ended
// before the next. What comes for a later one meanwhile waits.
type blocks struct {
	emit  emitter
	queue []*block // the first is the one that is written
	next  int
	out   []byte // reused
}

// emitter takes one event of the stream. The bytes are valid until it returns.
type emitter func(kind string, event []byte)

// last is the newest block, if more may come of it.
func (s *blocks) last() *block {
	if len(s.queue) == 0 || s.queue[len(s.queue)-1].over {
		return nil
	}
	return s.queue[len(s.queue)-1]
}

// add puts a block behind the others.
func (s *blocks) add(b *block) *block {
	s.queue = append(s.queue, b)
	s.flow()
	return b
}

// text adds text to the newest block if it is of that kind, and else to a new one.
func (s *blocks) text(kind, text string) {
	b := s.last()
	if b == nil || b.kind != kind {
		b = s.add(&block{kind: kind})
	}
	if s.queue[0] != b {
		b.held = append(b.held, fragment{text: text})
		s.flow()
		return
	}
	s.writeText(b, text)
}

// event adds an event of an upstream of this dialect to a block that is not over.
func (s *blocks) event(b *block, event jsontext.Value) {
	if s.queue[0] != b {
		b.held = append(b.held, fragment{event: slices.Clone(event)})
		return
	}
	s.begin(b)
	s.out = appendNumbered(s.out[:0], event, b.index)
	s.emit("content_block_delta", s.out)
}

// call adds a fragment of a call.
func (s *blocks) call(b *block, d llm.CallDelta) {
	b.id = append(b.id, d.ID...)
	b.name = append(b.name, d.Name...)
	b.arguments = append(b.arguments, d.Arguments...)
	s.flow()
}

// end says that nothing more comes of a block.
func (s *blocks) end(b *block) {
	b.over = true
	s.flow()
}

// endAll ends all blocks, but for the newest one if it is of the kind that is kept.
func (s *blocks) endAll(kept string) {
	for i, b := range s.queue {
		b.over = b.over || i < len(s.queue)-1 || b.kind != kept
	}
	s.flow()
}

// flow writes the first block as far as it has come, and the ones behind it when it is
// whole.
func (s *blocks) flow() {
	for len(s.queue) > 0 {
		b := s.queue[0]
		s.release(b)
		if !b.over && (len(s.queue) == 1 || !b.whole()) {
			return
		}
		b.over = true
		s.finish(b)
		s.queue = slices.Delete(s.queue, 0, 1)
	}
}

// release writes what was held of the first block.
func (s *blocks) release(b *block) {
	if !b.begun && b.start != nil && !silent(b.start) {
		s.begin(b)
	}
	for _, f := range b.held {
		if f.event != nil {
			s.event(b, f.event)
			continue
		}
		s.writeText(b, f.text)
	}
	b.held = nil
	if b.kind == toolBlock && b.start == nil && b.sent < len(b.arguments) {
		s.begin(b)
		s.writeDelta(b, "input_json_delta", "partial_json", string(b.arguments[b.sent:]))
		b.sent = len(b.arguments)
	}
}

// silent reports whether a block begins with no text. It is shown once there is some:
// clients send back what they got, and the vendor refuses text that is empty.
func silent(start jsontext.Value) bool {
	content := wire.Member(start, "content_block")
	kind, _ := wire.String(wire.Member(content, "type"))
	text, _ := wire.Contents(wire.Member(content, "text"))
	return kind == textBlock && len(text) == 0
}

func (s *blocks) writeText(b *block, text string) {
	s.begin(b)
	if b.kind == thinkingBlock {
		s.writeDelta(b, "thinking_delta", "thinking", text)
		return
	}
	s.writeDelta(b, "text_delta", "text", text)
}

func (s *blocks) writeDelta(b *block, kind, member, text string) {
	s.out = append(s.out[:0], `{"type":"content_block_delta","index":`...)
	s.out = appendNumber(s.out, b.index)
	s.out = append(append(s.out, `,"delta":{"type":"`...), kind...)
	s.out = append(append(append(s.out, `","`...), member...), `":`...)
	s.out = wire.AppendString(s.out, text)
	s.emit("content_block_delta", append(s.out, "}}"...))
}

// begin writes a block's beginning once.
func (s *blocks) begin(b *block) {
	if b.begun {
		return
	}
	b.begun, b.index = true, s.next
	s.next++
	if b.start != nil {
		s.out = appendNumbered(s.out[:0], b.start, b.index)
		s.emit("content_block_start", s.out)
		return
	}
	s.out = append(s.out[:0], `{"type":"content_block_start","index":`...)
	s.out = appendNumber(s.out, b.index)
	s.out = append(s.out, `,"content_block":`...)
	s.out = b.appendEmpty(s.out)
	s.emit("content_block_start", append(s.out, '}'))
}

// appendEmpty writes a block of the host's making as it begins.
func (b *block) appendEmpty(dst []byte) []byte {
	switch b.kind {
	case thinkingBlock:
		// Only the vendor can sign what its models thought.
		return append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case toolBlock:
		dst = append(dst, `{"type":"tool_use","id":`...)
		dst = wire.AppendString(dst, string(b.id))
		dst = append(dst, `,"name":`...)
		dst = wire.AppendString(dst, string(b.name))
		return append(dst, `,"input":{}}`...)
	}
	return append(dst, `{"type":"text","text":""}`...)
}

// finish writes a block's end. A call without arguments is one; text without text is
// nothing.
func (s *blocks) finish(b *block) {
	if b.kind == toolBlock {
		s.begin(b)
	}
	if !b.begun {
		return
	}
	s.out = append(s.out[:0], `{"type":"content_block_stop","index":`...)
	s.out = appendNumber(s.out, b.index)
	s.emit("content_block_stop", append(s.out, '}'))
}

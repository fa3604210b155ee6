package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrEventTooLarge is returned for an event above the reader's bound.
var ErrEventTooLarge = errors.New("wire: event is larger than the bound")

// Event is one server-sent event. Its bytes are valid until the next call of
// Next.
type Event struct {
	Name []byte // of the event field; empty when there was none
	Data []byte // lines joined with a newline
}

// Buffers lends the large buffers of readers whose streams come fast. The zero
// Buffers is ready; it is safe for concurrent use and must not be copied.
type Buffers struct{ pool sync.Pool }

func (b *Buffers) get() *[fullBuffer]byte {
	if b == nil {
		return new([fullBuffer]byte)
	}
	if buf, ok := b.pool.Get().(*[fullBuffer]byte); ok {
		return buf
	}
	return new([fullBuffer]byte)
}

// EventReader reads server-sent events as the WHATWG specification says: lines
// end in CR, LF or CRLF, a byte order mark at the start is skipped, comments and
// unknown fields are ignored, an event without data is none. Ids and retry
// times are not kept: no upstream of a model resumes a stream.
type EventReader struct {
	r       io.Reader
	max     int
	buffers *Buffers
	lent    *[fullBuffer]byte

	buf        []byte
	start, end int  // unread bytes of buf
	skipLF     bool // the last line ended in CR
	full       bool // the last read filled the buffer
	begun      bool

	name, data []byte
}

// A slow stream needs room for one event. One whose reads fill the buffer gets
// a full one, and so fewer reads and flushes; an event that is larger gets what it
// needs.
const (
	firstBuffer = 1 << 10
	fullBuffer  = 32 << 10
)

// NewEventReader reads from r. An event of more than max bytes is an error.
// buffers may be nil; with it, [EventReader.Release] gives back what was lent.
func NewEventReader(r io.Reader, max int, buffers *Buffers) *EventReader {
	return &EventReader{r: r, max: max, buffers: buffers, buf: make([]byte, firstBuffer)}
}

// Release gives the reader's buffer back. The reader and its events must not be
// used afterwards.
func (e *EventReader) Release() {
	if e.lent != nil && e.buffers != nil {
		e.buffers.pool.Put(e.lent)
	}
	e.lent, e.buf = nil, nil
}

// Next is the next event, or [io.EOF] after the last. An event that the stream
// ends in the middle of is dropped, as the specification says.
func (e *EventReader) Next() (Event, error) {
	e.name, e.data = e.name[:0], e.data[:0]
	seen := false
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if seen {
				return Event{Name: e.name, Data: e.data}, nil
			}
			e.name = e.name[:0]
			continue
		}
		field, value, found := bytes.Cut(line, []byte(":"))
		if found && len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(field) {
		case "event":
			e.name = append(e.name[:0], value...)
		case "data":
			if seen {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			seen = true
			if len(e.data) > e.max {
				return Event{}, e.tooLarge()
			}
		}
	}
}

// Pending reports whether a whole line is here already, so that Next will
// probably not wait.
func (e *EventReader) Pending() bool {
	b := e.buf[e.start:e.end]
	if e.skipLF && len(b) > 0 && b[0] == '\n' {
		b = b[1:]
	}
	// The blank line that ends the last event does not count.
	return len(bytes.TrimLeft(b, "\r\n")) > 0 && bytes.IndexByte(b, '\n') >= 0
}

func (e *EventReader) tooLarge() error {
	return fmt.Errorf("%w of %d bytes", ErrEventTooLarge, e.max)
}

// line is the next line without its end, valid until the next call.
func (e *EventReader) line() ([]byte, error) {
	from := 0 // bytes of the line that were searched already
	for {
		if e.skipLF && e.start < e.end {
			if e.buf[e.start] == '\n' {
				e.start++
			}
			e.skipLF = false
		}
		if n := lineEnd(e.buf[e.start+from : e.end]); n >= 0 {
			n += from
			line := e.buf[e.start : e.start+n]
			e.skipLF = e.buf[e.start+n] == '\r'
			e.start += n + 1
			return e.first(line), nil
		}
		from = e.end - e.start
		if from > e.max {
			return nil, e.tooLarge()
		}
		if err := e.fill(); err != nil {
			return nil, err
		}
	}
}

func (e *EventReader) first(line []byte) []byte {
	if e.begun {
		return line
	}
	e.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// lineEnd is the place of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return n
}

// fill reads more bytes behind those that are there.
func (e *EventReader) fill() error {
	if e.start > 0 {
		e.end = copy(e.buf, e.buf[e.start:e.end])
		e.start = 0
	}
	switch {
	case e.full && e.lent == nil && len(e.buf) < fullBuffer:
		e.lent = e.buffers.get()
		e.end = copy(e.lent[:], e.buf[:e.end])
		e.buf = e.lent[:]
	case e.end == len(e.buf):
		e.buf = append(e.buf, make([]byte, len(e.buf))...)
	}
	for range 100 {
		n, err := e.r.Read(e.buf[e.end:])
		e.end += n
		e.full = e.end == len(e.buf)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// AppendEvent appends an event with one line of data. data must hold no line
// break: JSON on one line has none.
func AppendEvent(dst []byte, data []byte) []byte {
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}

// Comment is what keeps an idle stream alive: a line that every client skips.
const Comment = ": keep-alive\n\n"

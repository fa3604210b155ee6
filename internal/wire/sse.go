package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrEventTooLarge is returned for an event above the reader's bound.
var ErrEventTooLarge = errors.New("wire: event is larger than the bound")

// Event is one server-sent event. Its bytes are valid until the next call of
// Next.
type Event struct {
	Name []byte // of the event field; empty when there was none
	Data []byte // lines joined with a newline
}

// EventReader reads server-sent events as the WHATWG specification says: lines
// end in CR, LF or CRLF, a byte order mark at the start is skipped, comments and
// unknown fields are ignored, an event without data is none. Ids and retry
// times are not kept: no upstream of a model resumes a stream.
type EventReader struct {
	r   io.Reader
	max int

	buf        []byte
	start, end int  // unread bytes of buf
	skipLF     bool // the last line ended in CR
	begun      bool

	name, data []byte
}

// firstBuffer fits most events of a chat stream twice over.
const firstBuffer = 4 << 10

// NewEventReader reads from r. An event of more than max bytes is an error.
func NewEventReader(r io.Reader, max int) *EventReader {
	return &EventReader{r: r, max: max, buf: make([]byte, firstBuffer)}
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
	if e.end == len(e.buf) {
		e.buf = append(e.buf, make([]byte, len(e.buf))...)
	}
	for range 100 {
		n, err := e.r.Read(e.buf[e.end:])
		e.end += n
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

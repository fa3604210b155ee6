package server

import (
	"cmp"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/wire"
)

// Form is how a streamed answer stands on the wire. The zero form is server-sent events
// with comments.
type Form struct {
	// ContentType is text/event-stream if empty.
	ContentType string
	// Silence is written when nothing was for a while: an event of the dialect's own, or
	// white space that its readers skip. It is a comment if empty.
	Silence string
}

// Stream is the one pump of a streamed answer. It writes what a door encodes
// and, after a silence, what keeps the connection alive. It is safe for concurrent use.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	every   time.Duration
	form    Form

	mu     sync.Mutex
	begun  bool
	dirty  bool // written and not flushed
	closed bool
	last   time.Time
	err    error
	timer  *time.Timer
}

// NewStream makes the pump of a streamed answer. The status goes out with the first write,
// so until then an error can still have one of its own. What breaks the first silence
// comes after the same time as the others: from then on the status is 200. Close it in a
// defer, since a panic must stop its timer, too.
func NewStream(w http.ResponseWriter, keepAlive time.Duration, form Form) *Stream {
	form.ContentType = cmp.Or(form.ContentType, "text/event-stream")
	form.Silence = cmp.Or(form.Silence, wire.Comment)
	s := &Stream{w: w, control: http.NewResponseController(w), every: keepAlive, form: form, last: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(keepAlive, s.keepAlive)
	return s
}

// Write sends bytes. Without flush they may wait for the next write.
func (s *Stream) Write(b []byte, flush bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(b, flush)
}

// Begun reports whether the answer's status is out.
func (s *Stream) Begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Close stops the keep-alives and sends what is still buffered. It returns the
// first error of the stream, again when it is called again.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	if s.dirty && !s.closed {
		_ = s.write(nil, true) // the error stays in s.err
	}
	s.closed = true
	return s.err
}

var errStreamClosed = errors.New("server: stream is closed")

func (s *Stream) write(b []byte, flush bool) error {
	switch {
	case s.err != nil:
		return s.err
	case s.closed:
		return errStreamClosed
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", s.form.ContentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	if len(b) > 0 {
		s.dirty = true
		if _, err := s.w.Write(b); err != nil {
			s.err = err
			return err
		}
	}
	if flush && s.dirty {
		s.dirty = false
		s.last = time.Now()
		// A stream that cannot be flushed is no stream: fail now, not never.
		if err := s.control.Flush(); err != nil {
			s.err = err
		}
	}
	return s.err
}

// keepAlive looks how long the silence has been, and speaks or waits.
func (s *Stream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	left := s.every - time.Since(s.last)
	if left <= 0 {
		// A failure shows in the next write of the door.
		_ = s.write([]byte(s.form.Silence), true)
		left = s.every
	}
	s.timer.Reset(left)
}

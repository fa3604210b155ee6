package upstream

import (
	"io"
	"sync"
	"time"
)

// watchdog calls its function once when an upstream was silent for a while, or
// sent for too long what is no event. Seeing something costs no timer: the timer
// looks when it fires.
type watchdog struct {
	after time.Duration
	fire  func(silence time.Duration)

	mu      sync.Mutex
	read    time.Time // when the last bytes came
	said    time.Time // when the last event did
	timer   *time.Timer
	stopped bool
}

// patience is how many times the stall an upstream may send bytes and no event.
// Its keep-alives say that it is at work, so they are not silence; but a model
// that hangs behind a server that goes on sending them must not hold its client
// for ever.
const patience = 4

func newWatchdog(after time.Duration, fire func(silence time.Duration)) *watchdog {
	now := time.Now()
	w := &watchdog{after: after, fire: fire, read: now, said: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(after, w.check)
	return w
}

// bytes notes that something came, be it a keep-alive.
func (w *watchdog) bytes() {
	w.mu.Lock()
	w.read = time.Now()
	w.mu.Unlock()
}

// event notes that what came last was an event.
func (w *watchdog) event() {
	w.mu.Lock()
	w.said = w.read
	w.mu.Unlock()
}

func (w *watchdog) check() {
	w.mu.Lock()
	silence := w.after
	left := w.after - time.Since(w.read)
	if most := patience * w.after; left > 0 {
		if rest := most - time.Since(w.said); rest < left {
			left, silence = rest, most
		}
	}
	late := left <= 0 && !w.stopped
	if left > 0 && !w.stopped {
		w.timer.Reset(left)
	}
	w.mu.Unlock()
	if late {
		w.fire(silence)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// watchedBody tells a watchdog of the bytes that are read.
type watchedBody struct {
	io.Reader
	watch *watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.watch.bytes()
	}
	return n, err
}

package openai

import (
	"sync"
	"time"
)

// watchdog calls its function once when nothing was seen for a while. Seeing
// something costs no timer: the timer looks when it fires.
type watchdog struct {
	after time.Duration
	fire  func()

	mu      sync.Mutex
	last    time.Time
	timer   *time.Timer
	stopped bool
}

func newWatchdog(after time.Duration, fire func()) *watchdog {
	w := &watchdog{after: after, fire: fire, last: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(after, w.check)
	return w
}

func (w *watchdog) seen() {
	w.mu.Lock()
	w.last = time.Now()
	w.mu.Unlock()
}

func (w *watchdog) check() {
	w.mu.Lock()
	left := w.after - time.Since(w.last)
	late := left <= 0 && !w.stopped
	if left > 0 && !w.stopped {
		w.timer.Reset(left)
	}
	w.mu.Unlock()
	if late {
		w.fire()
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

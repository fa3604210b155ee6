package watch

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// notifier is told by the host.
type notifier struct {
	w    *fsnotify.Watcher
	out  chan event
	done chan struct{}
	end  sync.WaitGroup
}

func newNotifier() (*notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch folders: %w", err)
	}
	n := &notifier{w: w, out: make(chan event), done: make(chan struct{})}
	n.end.Go(n.pass)
	return n, nil
}

func (n *notifier) events() <-chan event { return n.out }

func (n *notifier) add(dir string) error {
	err := n.w.Add(dir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	return err
}

func (n *notifier) remove(dir string) { _ = n.w.Remove(dir) } // it may be gone by itself

func (n *notifier) close() {
	close(n.done)
	n.end.Wait()
	_ = n.w.Close() // nothing is lost with it
}

// backlog is how many events wait at most before they count as lost.
const backlog = 4096

// pass turns the library's events into ours. It never makes the library wait:
// whoever takes events adds folders to the library meanwhile. Every error of the
// library means that it may have missed something.
func (n *notifier) pass() {
	var waiting []event
	for {
		var next event
		var out chan event // nil, which blocks, while there is nothing to give
		if len(waiting) > 0 {
			next, out = waiting[0], n.out
		}
		select {
		case <-n.done:
			return
		case in := <-n.w.Events:
			if in.Name != "" {
				waiting = append(waiting, event{path: in.Name, kind: kindOf(in.Op)})
			}
		case <-n.w.Errors:
			waiting = append(waiting, event{kind: lost})
		case out <- next:
			waiting = waiting[1:]
		}
		if len(waiting) > backlog {
			waiting = []event{{kind: lost}}
		}
	}
}

func kindOf(op fsnotify.Op) kind {
	switch {
	case op.Has(fsnotify.Create):
		return created
	case op == fsnotify.Chmod:
		return touched
	}
	return written
}

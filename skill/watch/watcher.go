package watch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/skill"
)

// watcher connects a source with a registry. One goroutine takes events and one
// rescans, so that what is written during a scan is known at its end.
type watcher struct {
	registry *skill.Registry
	o        Options
	src      source
	kick     chan struct{} // something changed for the goroutine that rescans

	mu sync.Mutex
	// places are the folders that are watched, with the names that matter there;
	// none means all.
	places map[string][]string
	// writes are the times of the last change in each folder or below it.
	writes map[string]time.Time
	all    time.Time // when events were lost
	last   time.Time // change
	first  time.Time // change that no scan has seen; zero when all are
	full   bool      // the source takes no more folders
}

func newWatcher(r *skill.Registry, o Options, src source) *watcher {
	return &watcher{
		registry: r, o: o, src: src, kick: make(chan struct{}, 1),
		places: map[string][]string{}, writes: map[string]time.Time{},
	}
}

// run ends with ctx, and before that only with errFull.
func (w *watcher) run(ctx context.Context) error {
	var taking sync.WaitGroup
	done := make(chan struct{})
	taking.Go(func() { w.take(done) })
	defer func() {
		close(done)
		taking.Wait()
		w.src.close()
	}()
	w.sync(ctx)
	w.dirty(time.Now()) // whatever happened before the folders were watched
	timer := time.NewTimer(w.o.Settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.kick:
		case <-timer.C:
			w.rescan(ctx)
		}
		w.mu.Lock()
		full := w.full
		w.mu.Unlock()
		if full {
			return errFull
		}
		timer.Reset(w.wait(time.Now()))
	}
}

// take notes events until done.
func (w *watcher) take(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case e := <-w.src.events():
			w.note(e, time.Now())
		}
	}
}

// note takes an event, and watches a folder that is new at once: what is written
// there next must not be missed.
func (w *watcher) note(e event, now time.Time) {
	if e.kind != lost && !w.matters(e.path) {
		return
	}
	switch e.kind {
	case lost:
		w.mu.Lock()
		w.all, w.last = now, now
		w.mu.Unlock()
	case touched: // it counts, but nobody writes
	case created:
		w.mark(e.path, now)
		w.addTree(e.path)
	case written:
		w.mark(e.path, now)
		w.dropMissing(e.path)
	}
	w.dirty(now)
}

// matters says whether a change at a path can change a scan.
func (w *watcher) matters(path string) bool {
	if name := filepath.Base(path); name == ".git" || name == "node_modules" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	only := w.places[filepath.Dir(path)]
	if _, watched := w.places[path]; watched {
		return true
	}
	return len(only) == 0 || slices.Contains(only, filepath.Base(path))
}

// mark notes the time of a change for its path and all folders above.
func (w *watcher) mark(path string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = now
	for {
		w.writes[path] = now
		up := filepath.Dir(path)
		if up == path {
			return
		}
		path = up
	}
}

// dirty asks for a scan.
func (w *watcher) dirty(now time.Time) {
	w.mu.Lock()
	if w.first.IsZero() {
		w.first = now
	}
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// addTree watches a new folder and those below it. What was written there before
// counts as written now.
func (w *watcher) addTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil // gone again; its own event follows
		case d.Name() == ".git" || d.Name() == "node_modules":
			return fs.SkipDir
		}
		w.add(path, nil)
		return nil
	})
}

// dropMissing stops watching what was below a path that is not there any more.
// The host may go on telling of a folder that has moved, by its old name.
func (w *watcher) dropMissing(path string) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	w.mu.Lock()
	var gone []string
	for dir := range w.places {
		if dir == path || strings.HasPrefix(dir, path+string(filepath.Separator)) {
			gone = append(gone, dir)
			delete(w.places, dir)
		}
	}
	w.mu.Unlock()
	for _, dir := range gone {
		w.src.remove(dir)
	}
}

// add watches a folder, and tells whether it is a new one.
func (w *watcher) add(dir string, only []string) (fresh bool) {
	err := w.src.add(dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.places[dir]
	switch {
	case errors.Is(err, errFull):
		w.full = true
		return false
	case err != nil: // it is gone, or may not be read: the scan says so
		delete(w.places, dir)
		return false
	}
	w.places[dir] = only
	return !known
}

// sync watches what the registry names, and no more. It tells whether a folder
// is new: something may have changed there since the scan.
func (w *watcher) sync(ctx context.Context) (fresh bool) {
	wanted := map[string][]string{}
	for _, p := range w.registry.Places() {
		only, known := wanted[p.Dir]
		switch {
		case p.Only == "" || known && len(only) == 0:
			wanted[p.Dir] = nil
		default:
			wanted[p.Dir] = append(only, p.Only)
		}
	}
	for dir, only := range wanted {
		if ctx.Err() != nil {
			return false
		}
		fresh = w.add(dir, only) || fresh
	}
	w.mu.Lock()
	var extra []string
	for dir := range w.places {
		if _, keep := wanted[dir]; !keep && time.Since(w.writes[dir]) >= w.o.Settle {
			extra = append(extra, dir)
			delete(w.places, dir)
		}
	}
	w.mu.Unlock()
	for _, dir := range extra {
		w.src.remove(dir)
	}
	return fresh
}

// wait is how long until the next scan: until it is quiet, but no longer than
// patience allows.
func (w *watcher) wait(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() {
		return time.Duration(1<<63 - 1)
	}
	quiet := later(w.last, w.first).Add(w.o.Settle)
	if limit := w.first.Add(patience * w.o.Settle); limit.Before(quiet) {
		quiet = limit
	}
	return max(quiet.Sub(now), 0)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writing says whether something was written in a folder so shortly ago that the
// rest may follow.
func (w *watcher) writing(dir string) bool {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Sub(w.writes[dir]) < w.o.Settle || now.Sub(w.all) < w.o.Settle
}

func (w *watcher) rescan(ctx context.Context) {
	w.mu.Lock()
	w.first = time.Time{}
	for path, at := range w.writes {
		if time.Since(at) >= w.o.Settle {
			delete(w.writes, path)
		}
	}
	w.mu.Unlock()
	before := w.registry.Snapshot()
	after, err := w.registry.RescanExcept(ctx, w.writing)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.o.Logger.WarnContext(ctx, "the skills stay as they were, because they cannot be read again", slog.Any("error", err))
	default:
		w.report(ctx, before, after)
	}
	if fresh := w.sync(ctx); fresh || err == nil && len(after.Pending()) > 0 {
		w.dirty(time.Now())
	}
}

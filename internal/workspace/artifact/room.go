package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What the names in the store's directory begin with, but for those of runs,
// which are bare ids: runs that are being made and runs that are being removed.
const (
	newPrefix = ".new-"
	oldPrefix = ".old-"
)

// kept is what is known of a run without reading it.
type kept struct {
	created time.Time
	cost    int64
}

// block is the unit that file systems give out space in. Each file and each
// folder is counted with one for its own record.
const block = 4096

// runCost is what a run costs without its files: its two folders and its record.
const runCost = 3 * block

// cost is the room that a file takes.
func cost(f File) int64 {
	names := int64(strings.Count(f.Path, "/")) + 1
	return (f.Bytes+block-1)/block*block + names*block
}

// reserve promises room and removes the oldest runs to make it. It is false, and
// removes nothing, when there would be too little room even without them.
func (s *Store) reserve(room int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending+room > s.total {
		return false, nil
	}
	if err := s.shrink(s.total - room); err != nil {
		return false, err
	}
	s.pending += room
	return true, nil
}

func (s *Store) release(room int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending -= room
}

// stage makes the folder in which a run is put together, and marks it as in use
// before a sweep can look at it.
func (s *Store) stage(id string) (dir string, mark *os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir = filepath.Join(s.options.Dir, newPrefix+id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("make a folder for the copies: %w", pathless(err))
	}
	if mark, err = claim(dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mark the folder for the copies: %w", pathless(err)), os.RemoveAll(dir))
	}
	return dir, mark, nil
}

// commit makes a finished folder a run. The room that it was promised is then its
// own.
func (s *Store) commit(id, stage string, created time.Time, room int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Rename(stage, filepath.Join(s.options.Dir, id)); err != nil {
		return err
	}
	s.pending -= room
	s.used += room
	s.runs[id] = kept{created: created, cost: room}
	return nil
}

// shrink removes the oldest runs until no more room than that is taken.
func (s *Store) shrink(most int64) error {
	for s.used+s.pending > most && len(s.runs) > 0 {
		if err := s.remove(s.oldest()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) oldest() string {
	var first string
	for id, k := range s.runs {
		if first == "" || cmp.Or(k.created.Compare(s.runs[first].created), cmp.Compare(id, first)) < 0 {
			first = id
		}
	}
	return first
}

// remove takes a run away in one step, so that no reader finds a part of it.
func (s *Store) remove(id string) error {
	old := filepath.Join(s.options.Dir, oldPrefix+id)
	err := os.Rename(filepath.Join(s.options.Dir, id), old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	s.used -= s.runs[id].cost
	delete(s.runs, id)
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	return nil
}

func (s *Store) expired(created time.Time) bool {
	return s.options.Now().Sub(created) >= s.age
}

// Sweep removes the runs that are too old, then the oldest while there is too
// much, and what a dead process left half done. It finds runs that another process
// has made or removed. It goes on after a failure and gives them all back.
func (s *Store) Sweep(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.options.Dir)
	if err != nil {
		return fmt.Errorf("sweep artifacts: %w", err)
	}
	there := map[string]bool{}
	var failed []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		there[e.Name()] = true
		failed = append(failed, s.tidy(e.Name()))
	}
	for id, k := range s.runs {
		switch {
		case !there[id]:
			s.used -= k.cost
			delete(s.runs, id)
		case s.expired(k.created):
			failed = append(failed, s.remove(id))
		}
	}
	failed = append(failed, s.shrink(s.total))
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("sweep artifacts: %w", err)
	}
	return nil
}

// tidy deals with one name in the store's directory.
func (s *Store) tidy(name string) error {
	at := filepath.Join(s.options.Dir, name)
	if id, ok := strings.CutPrefix(name, oldPrefix); ok && validID(id) {
		return os.RemoveAll(at)
	}
	if id, ok := strings.CutPrefix(name, newPrefix); ok && validID(id) && abandoned(at) {
		return os.RemoveAll(at)
	}
	if _, known := s.runs[name]; known || !validID(name) {
		return nil
	}
	rec, err := s.load(name)
	if err == nil {
		err = s.verify(name, rec)
	}
	switch {
	case errors.Is(err, errBroken):
		s.options.Logger.Warn("artifacts are damaged and are removed", "run", name, "error", err)
		return s.remove(name)
	case errors.Is(err, ErrNotFound):
		return nil // another process has removed it
	case err != nil:
		return err
	}
	k := kept{created: rec.Created, cost: runCost}
	for _, f := range rec.Files {
		k.cost += cost(f)
	}
	s.runs[name] = k
	s.used += k.cost
	return nil
}

// sweepEvery is the longest time between two sweeps of [Store.Run]. What is too
// old is not given out before either.
const sweepEvery = 10 * time.Minute

// Run sweeps now and then until ctx ends, and returns then; failures go to the
// log. The caller starts it in a goroutine and waits for it.
func (s *Store) Run(ctx context.Context) {
	t := time.NewTicker(min(sweepEvery, s.age))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.WarnContext(ctx, "artifacts were not swept", "error", err)
		}
	}
}

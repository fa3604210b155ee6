package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/workspace"
)

// record lies beside the packages of a set and says what they are. Its time is when the
// set was last used.
type record struct {
	Kind    registry.Kind `json:"kind"`
	Digest  string        `json:"digest"`
	Entries int64         `json:"entries"`
	Bytes   int64         `json:"bytes"`
	Cost    int64         `json:"cost"`
	Names   []Installed   `json:"names"`
}

const recordName = "set.json"

// answer is what is remembered of an install.
type answer struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

var (
	errAbsent = errors.New("there is no such set")
	setName   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func (s *Store) set(digest string) string { return filepath.Join(s.sets(), digest) }
func (s *Store) answer(key string) string { return filepath.Join(s.index(), key+".json") }
func (r record) matches(now seen) bool    { return r.Entries == now.entries && r.Bytes == now.bytes }

func (s *Store) fresh(a answer) bool {
	age := s.now().Sub(a.At)
	return age >= 0 && age < s.o.Limits.Duration(config.PackagesFresh)
}

// recall is the set that an earlier install of the same made, and whether it is young
// enough to be given without asking. It is zero when there is none.
func (s *Store) recall(p plan) (Set, bool, error) {
	var a answer
	data, err := os.ReadFile(s.answer(p.key))
	if err != nil || json.Unmarshal(data, &a) != nil || !setName.MatchString(a.Digest) {
		return Set{}, false, nil // it is asked again, and written again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set, err := s.hold(a.Digest)
	if errors.Is(err, errAbsent) {
		return Set{}, false, nil
	}
	return set, err == nil && s.fresh(a), err
}

// hold takes a set into use: it is marked, and it has all that it had when it was made.
// One that has not is put away. The caller holds the lock.
func (s *Store) hold(digest string) (Set, error) {
	dir := s.set(digest)
	m, err := claim(dir, true)
	if err != nil {
		return Set{}, errAbsent
	}
	rec, err := readRecord(dir)
	if err == nil {
		var now seen
		// The look is short, and a caller that is gone gets nothing from its end.
		now, err = glance(context.Background(), filepath.Join(dir, treeDir))
		if err == nil && !rec.matches(now) {
			err = errors.New("it is not as it was")
		}
	}
	if err != nil {
		m.release()
		s.log.Warn("a set of packages is damaged and is made again", "set", digest, "error", err)
		return Set{}, errors.Join(errAbsent, s.discard(digest))
	}
	now := s.now()
	_ = os.Chtimes(filepath.Join(dir, recordName), now, now) // without it the set seems older
	s.leases[digest]++
	set := setOf(rec, dir)
	set.release = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leases[digest]--; s.leases[digest] == 0 {
			delete(s.leases, digest)
		}
		m.release()
	})
	return set, nil
}

func readRecord(dir string) (record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return record{}, err
	}
	var rec record
	err = json.Unmarshal(data, &rec)
	return rec, err
}

// setOf describes a set on the disk.
func setOf(rec record, dir string) Set {
	tree := filepath.Join(dir, treeDir)
	set := Set{Dir: dir, Names: rec.Names}
	bin := filepath.Join(tree, "bin")
	if rec.Kind == registry.Npm {
		set.NodePath = filepath.Join(tree, "node_modules")
		bin = filepath.Join(set.NodePath, ".bin")
	} else {
		set.Python = []string{tree}
	}
	if info, err := os.Stat(bin); err == nil && info.IsDir() {
		set.Bin = []string{bin}
	}
	return set
}

// commit makes a finished stage a set, or finds the set that it equals, and remembers it.
func (s *Store) commit(ctx context.Context, p plan, t stage, rec record) (Set, error) {
	made := filepath.Join(t.dir, "set")
	if err := s.prepare(t, made, rec); err != nil {
		return Set{}, fmt.Errorf("keep what was installed: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Set{}, err
	}
	set, err := s.enter(made, rec)
	if err != nil {
		return Set{}, err
	}
	if err := writeWhole(s.answer(p.key), answer{Digest: rec.Digest, At: s.now().UTC().Round(0)}); err != nil {
		set.Close()
		return Set{}, fmt.Errorf("remember what was installed: %w", err)
	}
	return set, nil
}

// enter gives a set its name, or takes the one that has it already.
func (s *Store) enter(made string, rec record) (Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, err := s.hold(rec.Digest)
	if errors.Is(err, errAbsent) {
		if err := s.room(rec.Cost); err != nil {
			return Set{}, err
		}
		// Another process may have been faster: then its set is as good.
		renamed := os.Rename(made, s.set(rec.Digest))
		if set, err = s.hold(rec.Digest); err != nil {
			err = errors.Join(renamed, err)
		}
	}
	if err != nil {
		return Set{}, fmt.Errorf("keep what was installed: %w", err)
	}
	return set, nil
}

// prepare puts the set together in the stage, so that it appears in one step.
func (s *Store) prepare(t stage, made string, rec record) error {
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	tree := filepath.Join(made, treeDir)
	if err := os.Rename(t.tree(), tree); err != nil {
		return err
	}
	if err := harden(tree); err != nil {
		return err
	}
	return writeWhole(filepath.Join(made, recordName), rec)
}

// writeWhole writes a value so that a reader finds all of it or what was there before.
func writeWhole(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// aged is a set that could make room.
type aged struct {
	digest string
	used   time.Time
	cost   int64
}

// room removes sets that nobody uses, those unused the longest first, until there is
// room for one more.
func (s *Store) room(cost int64) error {
	total := s.o.Limits.Get(config.PackagesTotal)
	if cost > total {
		return failure(NoRoom, tooLarge(total))
	}
	all, err := s.all()
	if err != nil {
		return err
	}
	taken := cost
	for _, a := range all {
		taken += a.cost
	}
	for _, a := range all {
		if taken <= total {
			return nil
		}
		if s.leases[a.digest] > 0 || !idle(s.set(a.digest)) {
			continue
		}
		if err := s.discard(a.digest); err != nil {
			return err
		}
		taken -= a.cost
	}
	if taken > total {
		return failure(NoRoom, noRoom(total))
	}
	return nil
}

// all are the sets on the disk, the one unused the longest first.
func (s *Store) all() ([]aged, error) {
	entries, err := os.ReadDir(s.sets())
	if err != nil {
		return nil, err
	}
	var all []aged
	for _, e := range entries {
		if !setName.MatchString(e.Name()) {
			continue
		}
		rec, err := readRecord(s.set(e.Name()))
		info, statErr := os.Stat(filepath.Join(s.set(e.Name()), recordName))
		if err != nil || statErr != nil {
			all = append(all, aged{digest: e.Name()})
			continue
		}
		all = append(all, aged{digest: e.Name(), used: info.ModTime(), cost: rec.Cost})
	}
	slices.SortStableFunc(all, func(a, b aged) int { return a.used.Compare(b.used) })
	return all, nil
}

// discard takes a set away in one step and then removes it. What is left of it after a
// crash goes with the next start.
func (s *Store) discard(digest string) error {
	old, err := os.MkdirTemp(s.stages(), "old-")
	if err != nil {
		return err
	}
	err = os.Rename(s.set(digest), filepath.Join(old, "set"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, workspace.Remove(old))
}

// tidy removes what a dead process left, and what is remembered of sets that are gone.
func (s *Store) tidy() error {
	stages, err := os.ReadDir(s.stages())
	if err != nil {
		return err
	}
	for _, e := range stages {
		if dir := filepath.Join(s.stages(), e.Name()); abandoned(dir) {
			if err := workspace.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.log.Warn("what an install left is not removed", "dir", dir, "error", err)
			}
		}
	}
	answers, err := os.ReadDir(s.index())
	if err != nil {
		return err
	}
	for _, e := range answers {
		var a answer
		at := filepath.Join(s.index(), e.Name())
		data, err := os.ReadFile(at)
		if err == nil && json.Unmarshal(data, &a) == nil && setName.MatchString(a.Digest) {
			if _, err := os.Lstat(s.set(a.Digest)); err == nil {
				continue
			}
		}
		_ = os.Remove(at) // another process may have done it
	}
	return nil
}

package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metier-run/metier/skill"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	check(t, os.MkdirAll(filepath.Dir(at), 0o755))
	check(t, os.WriteFile(at, []byte(text), 0o644))
}

func manifest(name string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: About %s.\n---\n\nDo %s.\n", name, name, name)
}

// folder is a new folder, links resolved: events have such paths.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}

func openRegistry(t testing.TB, roots ...skill.Root) *skill.Registry {
	t.Helper()
	r, err := skill.Open(t.Context(), skill.Options{Roots: roots})
	check(t, err)
	return r
}

func names(s *skill.Snapshot) string {
	var all []string
	for _, k := range s.Skills() {
		all = append(all, k.Name)
	}
	return strings.Join(all, " ")
}

// fake is a source of which a test is the host.
type fake struct {
	out  chan event
	full bool
	// onAdd runs before a folder is watched.
	onAdd func(dir string)

	mu    sync.Mutex
	added map[string]int
}

func newFake() *fake { return &fake{out: make(chan event), added: map[string]int{}} }

func (f *fake) add(dir string) error {
	if f.full {
		return errFull
	}
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	if f.onAdd != nil {
		f.onAdd(dir)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added[dir]++
	return nil
}

func (f *fake) remove(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.added, dir)
}

func (f *fake) watches(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.added[dir] > 0
}

func (f *fake) events() <-chan event { return f.out }
func (f *fake) close()               {}

// rig is a watcher over a fake source.
type rig struct {
	t        *testing.T
	src      *fake
	registry *skill.Registry
	dir      string
	changed  atomic.Pointer[skill.Snapshot]
	changes  atomic.Int64
}

// settle is the time of all tests in a bubble.
const settle = time.Second

// start watches a root in a bubble until the test ends.
func start(t *testing.T, dir string, roots ...skill.Root) *rig {
	t.Helper()
	if len(roots) == 0 {
		roots = []skill.Root{{Dir: dir}}
	}
	g := &rig{t: t, src: newFake(), dir: dir, registry: openRegistry(t, roots...)}
	o := Options{Settle: settle, Logger: discard(), Changed: func(s *skill.Snapshot) {
		g.changed.Store(s)
		g.changes.Add(1)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := newWatcher(g.registry, o, g.src).run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return g
}

// write writes a file and tells of it.
func (g *rig) write(name, text string) {
	g.t.Helper()
	at := filepath.Join(g.dir, filepath.FromSlash(name))
	_, err := os.Stat(filepath.Dir(at))
	isNew := err != nil
	write(g.t, g.dir, name, text)
	if isNew {
		g.tell(created, filepath.Dir(name))
	}
	g.tell(written, name)
}

func (g *rig) tell(k kind, name string) {
	g.src.out <- event{path: filepath.Join(g.dir, filepath.FromSlash(name)), kind: k}
}

func (g *rig) want(what string) {
	g.t.Helper()
	if got := names(g.registry.Snapshot()); got != what {
		g.t.Errorf("the skills are %q, want %q; errors %v", got, what, g.registry.Snapshot().Errors())
	}
}

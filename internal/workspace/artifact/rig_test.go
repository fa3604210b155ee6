package artifact

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		os.Exit(onFullDisk(dir))
	}
	goleak.VerifyTestMain(m)
}

// fullDiskEnv makes this binary the child of a test.
const fullDiskEnv = "ARTIFACT_TEST_FULL_DISK"

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a store beside a workdir, with a clock that the test turns.
type rig struct {
	*Store
	work string
	now  time.Time
	ids  atomic.Uint64
	opts Options
}

func newRig(t testing.TB, limits map[config.Name]int64) *rig {
	t.Helper()
	r := &rig{work: filepath.Join(t.TempDir(), "work"), now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	check(t, os.Mkdir(r.work, 0o755))
	r.opts = Options{
		Dir: filepath.Join(t.TempDir(), "artifacts"), Now: func() time.Time { return r.now },
		NewID: func() string { return fmt.Sprintf("%016x", r.ids.Add(1)) },
	}
	for name, value := range limits {
		var err error
		r.opts.Limits, err = r.opts.Limits.Set(name, value)
		check(t, err)
	}
	r.reopen(t)
	return r
}

func (r *rig) reopen(t testing.TB) {
	t.Helper()
	var err error
	r.Store, err = Open(r.opts)
	check(t, err)
}

func (r *rig) write(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(r.work, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
		check(t, os.WriteFile(p, []byte(text), 0o644))
	}
}

func (r *rig) take(t testing.TB) Snapshot {
	t.Helper()
	s, err := Take(t.Context(), r.work, Scope{Ignore: DefaultIgnore()})
	check(t, err)
	return s
}

func (r *rig) capture(t testing.TB, before Snapshot) Capture {
	t.Helper()
	c, err := r.Capture(t.Context(), "me", r.work, before)
	check(t, err)
	return c
}

// run captures one file of a size under a name of its own.
func (r *rig) run(t testing.TB, name string, size int) Capture {
	t.Helper()
	before := r.take(t)
	r.write(t, map[string]string{name: strings.Repeat("x", size)})
	return r.capture(t, before)
}

// text is a copy, read through the store.
func (r *rig) text(t testing.TB, runID, name string) string {
	t.Helper()
	f, _, err := r.Open("me", runID, name)
	check(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	check(t, err)
	return string(b)
}

// there lists what is in the store's directory.
func (r *rig) there(t testing.TB) string {
	t.Helper()
	entries, err := os.ReadDir(r.opts.Dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func paths(c Capture) string {
	var names []string
	for _, f := range c.Files {
		names = append(names, f.Path)
	}
	return strings.Join(names, " ")
}

func reasons(c Capture) map[string]string {
	m := map[string]string{}
	for _, s := range c.Skipped {
		m[s.Path] = s.Reason
	}
	return m
}

// bits collects the permissions of everything below a directory.
func bits(t testing.TB, dir string) map[fs.FileMode]int {
	t.Helper()
	m := map[fs.FileMode]int{}
	check(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			m[info.Mode()]++
		}
		return err
	}))
	return m
}

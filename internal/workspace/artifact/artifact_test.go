package artifact

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

func TestNewAndChanged(t *testing.T) {
	r := newRig(t, nil)
	r.write(t, map[string]string{"old.txt": "old", "edited.txt": "a", "data/kept.csv": "1", "gone.txt": ""})
	before := r.take(t)
	r.write(t, map[string]string{
		"edited.txt": "ab", "new.txt": "n", "data/deep/x.bin": "\x00\xff", "empty": "",
		".tmp/x": "t", ".hidden": "h", "node_modules/m/i.js": "j", "data/__pycache__/a.txt": "p", "mod.pyc": "c",
	})
	check(t, os.Remove(filepath.Join(r.work, "gone.txt")))
	c := r.capture(t, before)
	want := Capture{RunID: "0000000000000001", Files: []File{
		{"edited.txt", 2}, {"empty", 0}, {"new.txt", 1}, {"data/deep/x.bin", 2},
	}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Fatal(diff)
	}
	run, err := r.List("me", c.RunID)
	check(t, err)
	if diff := cmp.Diff(Run{ID: c.RunID, Created: r.now, Files: want.Files}, run); diff != "" {
		t.Error(diff)
	}
	r.write(t, map[string]string{"new.txt": "later", "data/deep/x.bin": "later"})
	check(t, os.RemoveAll(filepath.Join(r.work, "data")))
	if a, b := r.text(t, c.RunID, "new.txt"), r.text(t, c.RunID, "./data//deep/x.bin"); a != "n" || b != "\x00\xff" {
		t.Errorf("a later edit changed a copy: %q %q", a, b)
	}
	if b, err := os.ReadFile(filepath.Join(r.Dir(c.RunID), "new.txt")); err != nil || string(b) != "n" {
		t.Errorf("%q %v", b, err)
	}
	if runtime.GOOS != "windows" {
		if diff := cmp.Diff(map[fs.FileMode]int{fs.ModeDir | 0o700: 5, 0o600: 5}, bits(t, r.opts.Dir)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestChangeInPlace: neither the same size nor the same time alone hides a change.
func TestChangeInPlace(t *testing.T) {
	r := newRig(t, nil)
	r.write(t, map[string]string{"size": "aa", "time": "aa", "same": "aa"})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"size", "time", "same"} {
		check(t, os.Chtimes(filepath.Join(r.work, name), at, at))
	}
	before := r.take(t)
	r.write(t, map[string]string{"size": "bb", "time": "bbb"})
	check(t, os.Chtimes(filepath.Join(r.work, "time"), at, at))
	check(t, os.Chmod(filepath.Join(r.work, "same"), 0o755))
	if got := paths(r.capture(t, before)); got != "size time" {
		t.Error(got)
	}
}

func TestNothingNew(t *testing.T) {
	r := newRig(t, nil)
	r.write(t, map[string]string{"a": "1"})
	if c := r.capture(t, r.take(t)); c.RunID != "" || len(c.Files)+len(c.Skipped) != 0 || r.there(t) != "" {
		t.Errorf("%+v, and there is %q", c, r.there(t))
	}
	if c := r.capture(t, Snapshot{}); paths(c) != "a" {
		t.Errorf("an empty snapshot: %+v", c)
	}
}

func TestScope(t *testing.T) {
	tests := []struct {
		ignore string
		name   string
		folder bool
		want   bool
	}{
		{"state/", "state", true, true},
		{"state/", "a/state", true, true},
		{"state/", "state", false, false},
		{"/state/", "state", true, true},
		{"/state/", "a/state", true, false},
		{"/a/b/", "a/b", true, true},
		{"*.pyc", "a/b.pyc", false, true},
		{"*.pyc", "b.pyc", true, false},
		{"/*.md", "b.md", false, true},
		{"/*.md", "a/b.md", false, false},
	}
	for _, tt := range tests {
		if got := (Scope{Ignore: []string{tt.ignore}}).ignores(tt.name, tt.folder); got != tt.want {
			t.Errorf("%s ignores %s: %v", tt.ignore, tt.name, got)
		}
	}
	if _, err := Take(t.Context(), t.TempDir(), Scope{Ignore: []string{"a["}}); err == nil {
		t.Error("a pattern that cannot match is taken")
	}
	if _, err := Take(t.Context(), filepath.Join(t.TempDir(), "none"), Scope{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOwners(t *testing.T) {
	r := newRig(t, nil)
	c := r.run(t, "a", 1)
	for _, id := range []string{c.RunID, "ffffffffffffffff", "", "..", "../work", "0000000000000001/", "000000000000000A", newPrefix + c.RunID} {
		for _, owner := range []string{"", "you", "me/"} {
			if _, err := r.List(owner, id); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q lists %q: %v", owner, id, err)
			}
			if _, _, err := r.Open(owner, id, "a"); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q opens %q: %v", owner, id, err)
			}
		}
		if _, err := r.List("me", id); id != c.RunID && !errors.Is(err, ErrNotFound) {
			t.Errorf("the owner lists %q: %v", id, err)
		}
	}
	if Owner("a/b", "c") == Owner("a", "b/c") || Owner("a", "") == Owner("", "a") {
		t.Error("two callers are one owner")
	}
}

func TestPaths(t *testing.T) {
	r := newRig(t, nil)
	before := r.take(t)
	r.write(t, map[string]string{"a/b": "1"})
	c := r.capture(t, before)
	for _, name := range []string{"b", "a", ".", "a/b/c", "A/b"} {
		if _, _, err := r.Open("me", c.RunID, name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "../run.json", "a/../../run.json", "/etc/passwd", `a\b`, "a\x00"} {
		_, _, err := r.Open("me", c.RunID, name)
		if _, ok := errors.AsType[*guard.PathError](err); !ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := URL("/x/", "id", "a b/c%d/é(1)"); got != "/x/id/a%20b/c%25d/%C3%A9%281%29" {
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactBytes: 1024, config.ArtifactCount: 3})
	before := r.take(t)
	r.write(t, map[string]string{"a": strings.Repeat("x", 1024), "b": strings.Repeat("x", 1025), "z/1": "", "z/2": "", "z/3": "", "z/4": "", "z/5": "", "z/6": ""})
	c := r.capture(t, before)
	want := Capture{
		RunID: "0000000000000001", Files: []File{{"a", 1024}, {"z/1", 0}, {"z/2", 0}}, Unlisted: 2,
		Skipped: []Skipped{{"b", tooLarge(1025, 1024)}, {"z/3", tooMany(3)}, {"z/4", tooMany(3)}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// TestTotal: the oldest run makes room, a file for which there is no room at all
// pushes nothing out, and a new process counts as the old one did.
func TestTotal(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactTotal: 100_000})
	for i := range 3 {
		r.now = r.now.Add(time.Minute)
		r.run(t, strconv.Itoa(i), 9_000) // 12,288 and one block for the file, three for the run
	}
	if got := r.there(t); got != "0000000000000001 0000000000000002 0000000000000003" || r.used != 3*28_672 {
		t.Fatalf("%s, %d bytes", got, r.used)
	}
	r.reopen(t)
	if r.used != 3*28_672 || r.pending != 0 {
		t.Errorf("%d bytes after a restart, %d promised", r.used, r.pending)
	}
	c := r.run(t, "huge", 200_000)
	if want := map[string]string{"huge": noRoom(100_000)}; c.RunID != "" || cmp.Diff(want, reasons(c)) != "" {
		t.Errorf("%+v", c)
	}
	if got := r.there(t); got != "0000000000000001 0000000000000002 0000000000000003" {
		t.Errorf("what cannot be kept has pushed others out: %s", got)
	}
	before := r.take(t)
	r.write(t, map[string]string{"x/1": strings.Repeat("x", 40_000), "x/2": strings.Repeat("x", 20_000), "x/3": strings.Repeat("x", 30_000)})
	c = r.capture(t, before)
	if diff := cmp.Diff(map[string]string{"x/3": noRoom(100_000)}, reasons(c)); paths(c) != "x/1 x/2" || diff != "" || r.used > 100_000 {
		t.Errorf("%+v, %d bytes", c, r.used)
	}
	check(t, r.remove(c.RunID))
	r.run(t, "again", 9_000)
	r.now = r.now.Add(time.Minute)
	c = r.run(t, "large", 50_000)
	if got := r.there(t); got != "0000000000000005 "+c.RunID || r.used > 100_000 {
		t.Errorf("%s, %d bytes", got, r.used)
	}
	if r.pending != 0 {
		t.Errorf("%d bytes stay promised", r.pending)
	}
}

// TestSmallFiles: a run of empty files is not free.
func TestSmallFiles(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactTotal: 100_000})
	for i := range 50 {
		r.now = r.now.Add(time.Second)
		r.run(t, strconv.Itoa(i), 0)
	}
	if n := len(strings.Fields(r.there(t))); n > 8 || n < 4 {
		t.Errorf("%d runs", n)
	}
}

func TestAge(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactAge: 60})
	first := r.run(t, "a", 1)
	r.now = r.now.Add(59 * time.Second)
	second := r.run(t, "b", 1)
	check(t, r.Sweep(t.Context()))
	r.text(t, first.RunID, "a")
	r.now = r.now.Add(time.Second)
	if _, err := r.List("me", first.RunID); !errors.Is(err, ErrNotFound) {
		t.Errorf("too old and not swept: %v", err)
	}
	open, _, err := r.Open("me", second.RunID, "b")
	check(t, err)
	defer open.Close()
	check(t, r.Sweep(t.Context()))
	if got := r.there(t); got != second.RunID {
		t.Error(got)
	}
	r.now = r.now.Add(time.Hour)
	r.reopen(t)
	if got := r.there(t); got != "" || r.used != 0 {
		t.Errorf("%s, %d bytes", got, r.used)
	}
}

// TestRun: the sweeper removes by itself, and ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[config.Name]int64{config.ArtifactAge: 60})
		r.opts.Now = time.Now
		r.reopen(t)
		r.run(t, "a", 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Store.Run(ctx); close(ended) }()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if got := r.there(t); got != "" {
			t.Error(got)
		}
		cancel()
		<-ended
	})
}

// TestLeftovers: a new process removes what a dead one left, and nothing else.
func TestLeftovers(t *testing.T) {
	r := newRig(t, nil)
	good := r.run(t, "good", 3)
	cut, torn, bare := r.run(t, "cut", 3), r.run(t, "torn", 3), r.run(t, "bare", 3)
	at := func(elem ...string) string { return filepath.Join(append([]string{r.opts.Dir}, elem...)...) }
	check(t, os.Truncate(filepath.Join(r.Dir(cut.RunID), "cut"), 1))
	check(t, os.WriteFile(at(torn.RunID, recordName), nil, 0o600))
	check(t, os.Remove(at(bare.RunID, recordName)))
	half, alive := newPrefix+"aaaaaaaaaaaaaaaa", newPrefix+"bbbbbbbbbbbbbbbb"
	for _, name := range []string{half, alive, oldPrefix + "cccccccccccccccc", "mine", newPrefix + "mine"} {
		check(t, os.MkdirAll(at(name, "files"), 0o700))
	}
	long := time.Now().Add(-48 * time.Hour)
	check(t, os.Chtimes(at(half), long, long))
	mark, err := claim(at(alive))
	check(t, err)
	for _, id := range []string{cut.RunID, torn.RunID, bare.RunID} {
		name := map[string]string{cut.RunID: "cut", torn.RunID: "torn", bare.RunID: "bare"}[id]
		if _, _, err := r.Open("me", id, name); !errors.Is(err, ErrNotFound) {
			t.Errorf("a damaged copy of %s is given out: %v", name, err)
		}
	}
	r.reopen(t)
	if got, want := r.there(t), alive+" "+newPrefix+"mine "+good.RunID+" mine"; got != want {
		t.Errorf("there is %s, want %s", got, want)
	}
	r.text(t, good.RunID, "good")
	if mark != nil {
		check(t, mark.Close())
		check(t, r.Sweep(t.Context()))
		if strings.Contains(r.there(t), alive) {
			t.Error("what nobody holds any more is still there")
		}
	}
}

// TestTwoProcesses: two stores over one directory see each other's runs and keep
// to the total between sweeps.
func TestTwoProcesses(t *testing.T) {
	r := newRig(t, nil)
	other, err := Open(r.opts)
	check(t, err)
	c := r.run(t, "a", 1)
	if _, err := other.List("me", c.RunID); err != nil {
		t.Error(err)
	}
	check(t, other.Sweep(t.Context()))
	if other.used != r.used {
		t.Errorf("%d and %d bytes", other.used, r.used)
	}
	check(t, other.remove(c.RunID))
	check(t, r.Sweep(t.Context()))
	if r.used != 0 || len(r.runs) != 0 {
		t.Errorf("%d bytes of a run that is gone", r.used)
	}
}

// TestCancelled: a caller that is gone leaves nothing behind.
func TestCancelled(t *testing.T) {
	r := newRig(t, nil)
	before := r.take(t)
	r.write(t, map[string]string{"a": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	r.options.NewID = func() string { cancel(); return "00000000000000aa" }
	if _, err := r.Capture(ctx, "me", r.work, before); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r.there(t) != "" || r.pending != 0 || r.used != 0 {
		t.Errorf("there is %q, and %d bytes", r.there(t), r.pending+r.used)
	}
	if _, err := Take(ctx, r.work, Scope{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBadID(t *testing.T) {
	r := newRig(t, nil)
	before := r.take(t)
	r.write(t, map[string]string{"a": "1"})
	for _, id := range []string{"", "../../etc/x", "ABCDEF0123456789"} {
		r.options.NewID = func() string { return id }
		if _, err := r.Capture(t.Context(), "me", r.work, before); err == nil {
			t.Errorf("the run id %q is taken", id)
		}
	}
	r.options.NewID = newID
	if c := r.capture(t, before); !validID(c.RunID) {
		t.Errorf("%+v", c)
	}
}

// TestConcurrent: captures, readers and sweeps get along, and the total holds.
func TestConcurrent(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactTotal: 200_000})
	r.write(t, map[string]string{"a": strings.Repeat("x", 30_000), "b/c": strings.Repeat("y", 20_000)})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				c, err := r.Capture(t.Context(), "me", r.work, Snapshot{})
				if err != nil {
					t.Errorf("capture: %v", err)
					return
				}
				f, _, err := r.Open("me", c.RunID, "a")
				if err == nil {
					err = f.Close()
				}
				if err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("open: %v", err)
				}
				if err := r.Sweep(t.Context()); err != nil {
					t.Errorf("sweep: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if r.pending != 0 || r.used > 200_000 || int64(len(r.runs))*(runCost+cost(File{"a", 30_000})) > 200_000 || len(strings.Fields(r.there(t))) != len(r.runs) {
		t.Errorf("%d promised, %d used by %d runs; there is %s", r.pending, r.used, len(r.runs), r.there(t))
	}
}

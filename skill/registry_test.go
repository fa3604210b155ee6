package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openRegistry(t testing.TB, o Options) *Registry {
	t.Helper()
	r, err := Open(t.Context(), o)
	check(t, err)
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file below a directory, with a time that makes its stamp count.
func putFile(t testing.TB, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	check(t, os.MkdirAll(filepath.Dir(at), 0o755))
	check(t, os.WriteFile(at, []byte(text), 0o644))
	check(t, os.Chtimes(at, time.Time{}, time.Now().Add(-time.Hour)))
}

func rescan(t testing.TB, r *Registry, writing func(string) bool) *Snapshot {
	t.Helper()
	s, err := r.RescanExcept(t.Context(), writing)
	check(t, err)
	return s
}

func TestRegistry(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	putFile(t, dir, "b/SKILL.md", manifest("b"))
	roots := []Root{{Dir: dir, Setting: "--skills-dir"}}
	r := openRegistry(t, Options{Roots: roots})
	held := r.Snapshot()
	if diff := cmp.Diff(roots, r.Roots()); diff != "" {
		t.Error(diff)
	}
	check(t, os.RemoveAll(filepath.Join(dir, "b")))
	putFile(t, dir, "c/SKILL.md", manifest("c"))
	if s := rescan(t, r, nil); s != r.Snapshot() || strings.Join(names(s), "") != "ac" || strings.Join(names(held), "") != "ab" {
		t.Errorf("after a rescan %v, before %v", names(s), names(held))
	}
	before, now := r.Snapshot(), r.Snapshot().Digest()
	if s := rescan(t, r, nil); s.Digest() != now || s.skills[0].content != before.skills[0].content {
		t.Error("what has not changed was read again")
	}
	check(t, os.RemoveAll(dir))
	_, err := r.Rescan(t.Context())
	e, ok := errors.AsType[*RootError](err)
	want := fmt.Sprintf("load skills: --skills-dir: directory %q does not exist: create it or correct --skills-dir", dir)
	if !ok || e.Error() != want || e.Setting != "--skills-dir" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that has gone: %v", err)
	}
	if r.Snapshot().Digest() != now {
		t.Error("a failed rescan has put another snapshot in force")
	}
	if _, err := Open(t.Context(), Options{Roots: roots}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing root: %v", err)
	}
}

func TestRescanSeesChanges(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	putFile(t, dir, "a/f.md", "one")
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	seen := map[string]bool{r.Snapshot().Digest(): true}
	file := filepath.Join(dir, "a/f.md")
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"same size", func() { check(t, os.WriteFile(file, []byte("two"), 0o644)) }},
		{"same size and a time too new to count", func() { check(t, os.WriteFile(file, []byte("six"), 0o644)) }},
		{"same size and time, another file", func() {
			info, err := os.Stat(file)
			check(t, err)
			next := file + "x"
			check(t, os.WriteFile(next, []byte("ten"), 0o644))
			check(t, os.Chtimes(next, time.Time{}, info.ModTime()))
			check(t, os.Rename(next, file))
		}},
		{"a new file", func() { putFile(t, dir, "a/g.md", "") }},
		{"renamed", func() { check(t, os.Rename(filepath.Join(dir, "a/g.md"), filepath.Join(dir, "a/h.md"))) }},
		{"a file below a new folder", func() { putFile(t, dir, "a/x/y.md", "") }},
		{"the manifest", func() { putFile(t, dir, "a/SKILL.md", manifest("a")+"more\n") }},
	} {
		step.do()
		s := rescan(t, r, nil)
		if seen[s.Digest()] {
			t.Errorf("%s: the digest is one of before", step.name)
		}
		seen[s.Digest()] = true
		if fresh := load(t, Options{Roots: []Root{{Dir: dir}}}); fresh.Digest() != s.Digest() {
			t.Errorf("%s: a rescan and a new reading differ", step.name)
		}
	}
	check(t, os.Chtimes(file, time.Time{}, time.Now()))
	before := r.Snapshot().Digest()
	if s := rescan(t, r, nil); s.Digest() != before {
		t.Error("a new time changes the digest")
	}
}

// TestRescanDistrustsNewFiles: a file can be written twice within one tick of
// the file system's clock, and then nothing tells but its content.
func TestRescanDistrustsNewFiles(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "a/f.md")
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	putFile(t, dir, "a/f.md", "one")
	now := time.Now()
	check(t, os.Chtimes(at, now, now))
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	before := r.Snapshot().Digest()
	check(t, os.WriteFile(at, []byte("two"), 0o644))
	check(t, os.Chtimes(at, now, now))
	if rescan(t, r, nil).Digest() == before {
		t.Error("the change was not seen")
	}
}

func TestDigestIsWorkedOutOnce(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	putFile(t, dir, "a/f.md", "one")
	s := load(t, Options{Roots: []Root{{Dir: dir}}})
	k, _ := s.Find("a")
	digest := s.Digest()
	putFile(t, dir, "a/f.md", "two")
	if s.Digest() != digest || k.Digest() == load(t, Options{Roots: []Root{{Dir: dir}}}).skills[0].Digest() {
		t.Error("a snapshot's digest follows the disk")
	}
	if (Skill{}).Digest() != "" || (&Snapshot{}).Digest() == "" {
		t.Error("digests of nothing")
	}
}

// TestRescanExcept: a skill that is being written stays as it was.
func TestRescanExcept(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	putFile(t, dir, "b/SKILL.md", manifest("b"))
	putFile(t, dir, "c/SKILL.md", manifest("c"))
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	real, err := filepath.EvalSymlinks(dir)
	check(t, err)
	writing := func(at string) bool { return at != filepath.Join(real, "c") }

	putFile(t, dir, "a/SKILL.md", "---\nname: half")            // does not parse
	putFile(t, dir, "a/new.md", "x")                            // nor is it whole
	putFile(t, dir, "new/SKILL.md", manifest("new"))            // new
	putFile(t, dir, "worse/SKILL.md", "---\n")                  // new, and does not parse
	check(t, os.RemoveAll(filepath.Join(dir, "b")))             // gone for a moment
	putFile(t, dir, "c/SKILL.md", manifest("c")+"quiet again ") // not being written
	s := rescan(t, r, writing)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(s)); diff != "" {
		t.Error(diff)
	}
	if a, _ := s.Find("a"); len(a.Files) != 1 || a.Description != "About a." {
		t.Errorf("a is not as it was: %+v", a)
	}
	if c, _ := s.Find("c"); c.BodyBytes == int64(len("Do c.")) {
		t.Error("c is as it was")
	}
	if len(s.Errors()) > 0 {
		t.Error(s.Errors())
	}
	want := []string{"a", "new", "worse", "b"}
	for i, p := range s.Pending() {
		if rel, _ := filepath.Rel(dir, p); i >= len(want) || rel != want[i] {
			t.Errorf("pending: %v", s.Pending())
		}
	}
	if s = rescan(t, r, writing); len(names(s)) != 3 {
		t.Errorf("a second rescan while they are written: %v", names(s))
	}
	s = rescan(t, r, nil)
	if diff := cmp.Diff([]string{"c", "new"}, names(s)); diff != "" || len(s.Errors()) != 2 || len(s.Pending()) != 0 {
		t.Errorf("after the writing: %s %v %v", diff, s.Errors(), s.Pending())
	}
}

func TestKeptSkillGivesItsNameUp(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "x/a/SKILL.md", manifest("a"))
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	check(t, os.Rename(filepath.Join(dir, "x/a"), filepath.Join(dir, "a")))
	s := rescan(t, r, func(at string) bool { return strings.HasSuffix(at, filepath.FromSlash("x/a")) })
	if k, ok := s.Find("a"); !ok || k.Dir() != filepath.Join(dir, "a") || len(s.Pending()) != 0 {
		t.Errorf("%v %v %v", k.Dir(), s.Errors(), s.Pending())
	}
}

func TestRescanWaitsItsTurn(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "a/SKILL.md", manifest("a"))
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := r.RescanExcept(t.Context(), func(string) bool {
			select {
			case inside <- struct{}{}:
			case <-leave:
			}
			<-leave
			return false
		})
		done <- err
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Rescan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a rescan beside another: %v", err)
	}
	if len(names(r.Snapshot())) != 1 {
		t.Error("no snapshot during a rescan")
	}
	close(leave)
	check(t, <-done)
	if _, err := Open(ctx, Options{Roots: []Root{{Dir: dir}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open after the end of ctx: %v", err)
	}
}

// generation writes a skill: the manifest tells a number, and every file has a
// size that fits it.
func generation(t testing.TB, dir string, g int) {
	t.Helper()
	for _, name := range []string{"a.md", "references/b.md"} {
		putFile(t, dir, "s/"+name, strings.Repeat("x", g))
	}
	putFile(t, dir, "s/SKILL.md", strings.Replace(manifest("s"), "---\n\n", fmt.Sprintf("metadata: {generation: \"%d\"}\n---\n\n", g), 1))
	for _, name := range []string{"c.md", "z/y/d.md"} {
		putFile(t, dir, "s/"+name, strings.Repeat("x", g))
	}
}

// TestNoHalfSkill: while a skill is written in pieces, again and again, each
// snapshot holds one whole generation of it.
func TestNoHalfSkill(t *testing.T) {
	const generations = 300
	dir := t.TempDir()
	generation(t, dir, 0)
	r := openRegistry(t, Options{Roots: []Root{{Dir: dir}}})
	var writing atomic.Bool
	start, end := make(chan int, 1), make(chan struct{})
	go func() {
		for g := range start {
			writing.Store(true)
			generation(t, dir, g)
			end <- struct{}{}
		}
		close(end)
	}()
	kept := 0
	for g := range generations {
		begun := false
		s := rescan(t, r, func(string) bool {
			if !begun { // the writer begins just before the folder is read
				begun = true
				start <- g + 1
				return false
			}
			return writing.Load()
		})
		judgeGeneration(t, s)
		kept += len(s.Pending())
		<-end
		writing.Store(false) // a while later, as a watcher would say
	}
	close(start)
	<-end
	if g := judgeGeneration(t, rescan(t, r, nil)); g != fmt.Sprint(generations) {
		t.Errorf("in the end there is generation %s", g)
	}
	t.Logf("%d of %d scans ran into the writer", kept, generations)
}

// meddler is a context that lets something happen when it is asked for the nth
// time, which a reader does with each folder.
type meddler struct {
	context.Context
	left int
	do   func()
}

func (m *meddler) Err() error {
	if m.left--; m.left == 0 {
		m.do()
	}
	return m.Context.Err()
}

// TestChangeWhileReading: a skill that changes at any moment of its reading is
// read again, whole.
func TestChangeWhileReading(t *testing.T) {
	seen := map[string]bool{}
	for n := 1; n <= 30; n++ {
		dir := t.TempDir()
		generation(t, dir, 1)
		r := reader{max: Options{}.limits(), careful: true, dir: filepath.Join(dir, "s"), real: filepath.Join(dir, "s"), origin: Discovered}
		k, err := r.read(&meddler{Context: t.Context(), left: n, do: func() { generation(t, dir, 2) }})
		check(t, err)
		seen[judgeGeneration(t, &Snapshot{skills: []Skill{k}})] = true
	}
	if !seen["1"] || !seen["2"] {
		t.Errorf("the change never came before or never after the reading: %v", seen)
	}
}

// TestChangeWithoutEnd: a folder that changes in every attempt is left for later.
func TestChangeWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	generation(t, dir, 0)
	r := reader{max: Options{}.limits(), careful: true, dir: filepath.Join(dir, "s"), real: filepath.Join(dir, "s")}
	m := &meddler{Context: t.Context(), left: 1}
	g := 0
	m.do = func() {
		g++
		m.left = 1
		putFile(t, dir, "s/a.md", strings.Repeat("x", g))
	}
	if _, err := r.read(m); !errors.Is(err, errChanging) {
		t.Errorf("got %v", err)
	}
}

// judgeGeneration fails on a skill with files of two generations.
func judgeGeneration(t *testing.T, s *Snapshot) string {
	t.Helper()
	k, ok := s.Find("s")
	if !ok {
		t.Fatalf("the skill is gone: %v", s.Errors())
	}
	for _, f := range k.Files {
		if f.Kind != KindManifest && fmt.Sprint(f.Bytes) != k.Metadata["generation"] {
			t.Fatalf("generation %s has the file %s of generation %d", k.Metadata["generation"], f.Path, f.Bytes)
		}
	}
	return k.Metadata["generation"]
}

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	check(t, err)
	putFile(t, dir, "root/a/SKILL.md", manifest("a"))
	putFile(t, dir, "root/a/x/y/f", "x")
	putFile(t, dir, "root/a/.git/config", "x")
	putFile(t, dir, "root/bad/SKILL.md", "x")
	putFile(t, dir, "root/bad/z/f", "x")
	putFile(t, dir, "root/deep/er/f", "x")
	r := openRegistry(t, Options{Roots: []Root{{Dir: filepath.Join(dir, "root")}, {Dir: filepath.Join(dir, "gone/x/skills"), Optional: true}}})
	var got []string
	for _, p := range r.Places() {
		rel, err := filepath.Rel(dir, p.Dir)
		check(t, err)
		got = append(got, strings.TrimSuffix(filepath.ToSlash(rel)+" "+p.Only, " "))
	}
	want := []string{". gone", ". root", "root", "root/a", "root/a/x", "root/a/x/y", "root/bad", "root/bad/z", "root/deep", "root/deep/er"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLookupFollowsTheFileSystem: where names are found in any case, so does
// Lookup; the expectation is what the file system itself does.
func TestLookupFollowsTheFileSystem(t *testing.T) {
	k := one(t, map[string]string{"pdf/SKILL.md": manifest("pdf"), "pdf/docs/Guide.md": "x"})
	_, err := os.Stat(filepath.Join(k.Dir(), "DOCS/guide.md"))
	for _, folds := range []bool{err == nil, true, false} {
		k.folds = folds
		f, err := k.Lookup("DOCS/guide.md")
		if folds != (err == nil) || folds && f.Path != "docs/Guide.md" || !folds && !errors.Is(err, ErrNoFile) {
			t.Errorf("folds %v: %q, %v", folds, f.Path, err)
		}
	}
}

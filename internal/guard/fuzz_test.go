package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRead: whatever the path and wherever a link points, the host's own file
// system agrees that what was opened lies inside, and that what is said to be
// missing is.
func FuzzRead(f *testing.F) {
	for _, tt := range spellings() {
		f.Add(tt.name, "references")
		f.Add("link/"+tt.name, "../outside")
		f.Add("link", tt.name)
	}
	f.Add("link/secret.txt", "references/../../outside")
	f.Add("link", "../outside/secret.txt")
	f.Add("link/references/up/link/SKILL.md", ".")
	dir := tree(f)
	r := open(f, dir)
	real, err := filepath.EvalSymlinks(dir)
	check(f, err)
	f.Fuzz(func(t *testing.T, name, target string) {
		link := filepath.Join(dir, "link")
		_ = os.Remove(link)
		_ = os.Symlink(target, link) // a target that the host refuses leaves no link
		clean, err := Clean(name)
		if err == nil {
			if twice, err := Clean(clean); err != nil || twice != clean || !filepath.IsLocal(clean) {
				t.Errorf("Clean(%q) = %q, and of that %q, %v", name, clean, twice, err)
			}
		}
		got, err := read(r, name)
		at, lost := filepath.EvalSymlinks(dir + "/" + name)
		switch {
		case err == nil:
			judgeOpened(t, real, at, lost, name, got)
		case errors.Is(err, fs.ErrNotExist) && lost == nil:
			t.Errorf("Open(%q) with link -> %q: %v, but the host finds %s", name, target, err, at)
		}
	})
}

// judgeOpened asks the host where a path leads and what is there.
func judgeOpened(t *testing.T, real, at string, lost error, name, got string) {
	t.Helper()
	if strings.Contains(got, canary) {
		t.Errorf("Open(%q) read the file outside", name)
	}
	rel, err := filepath.Rel(real, at)
	if lost != nil || err != nil || !filepath.IsLocal(rel) {
		t.Errorf("Open(%q) read %q, but the host finds %q: %v, %v", name, got, at, lost, err)
		return
	}
	if want, err := os.ReadFile(at); err != nil || string(want) != got {
		t.Errorf("Open(%q) read %q; the host reads %q, %v", name, got, want, err)
	}
}

// FuzzWrite: whatever the path and wherever a link points, what lies outside
// keeps its bytes, and what is said to be written is there.
func FuzzWrite(f *testing.F) {
	for _, tt := range spellings() {
		f.Add(tt.name, "references")
		f.Add("link", tt.name)
	}
	f.Add("link/secret.txt", "../outside")
	f.Add("link", "../outside/secret.txt")
	f.Add("link", "../outside/new.txt")
	f.Add("inside/../x", "references")
	f.Add("references/chain2.md", ".")
	dir := tree(f)
	r := open(f, dir)
	f.Fuzz(func(t *testing.T, name, target string) {
		link := filepath.Join(dir, "link")
		_ = os.RemoveAll(link)
		_ = os.Symlink(target, link)
		err := r.WriteFile(name, []byte("written"), 0o644)
		if got, failed := read(r, name); err == nil && (failed != nil || got != "written") {
			t.Errorf("WriteFile(%q) with link -> %q: reads back as %q, %v", name, target, got, failed)
		}
		outside := filepath.Join(filepath.Dir(dir), "outside")
		entries, failed := os.ReadDir(outside)
		secret, unread := os.ReadFile(filepath.Join(outside, "secret.txt"))
		if failed != nil || unread != nil || len(entries) != 1 || string(secret) != canary {
			t.Fatalf("WriteFile(%q) with link -> %q changed what lies outside: %v %q %v %v", name, target, entries, secret, failed, unread)
		}
		if above, failed := os.ReadDir(filepath.Dir(dir)); failed != nil || len(above) != 2 {
			t.Fatalf("WriteFile(%q) with link -> %q wrote beside the root: %v, %v", name, target, above, failed)
		}
	})
}

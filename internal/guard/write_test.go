package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteFile(t *testing.T) {
	tests := []struct {
		name  string
		wrote string // the file that has the text, below the root
		err   error
	}{
		{"new.md", "new.md", nil},
		{"references/new.md", "references/new.md", nil},
		{"SKILL.md", "SKILL.md", nil},
		{"inside.md", "references/api.md", nil},
		{"inside/new.md", "references/new.md", nil},
		{"inside/up/new.md", "new.md", nil},
		{"references/gone", "references/nothing", nil},
		{"missing/new.md", "", fs.ErrNotExist},
		{"references", "", ErrFolder},
		{"inside", "", ErrFolder},
		{".", "", ErrFolder},
		{"escape.md", "", ErrEscape},
		{"escape/new.txt", "", ErrEscape},
		{"absolute/new.txt", "", ErrEscape},
		{"slash/tmp/new.txt", "", ErrEscape},
		{"references/chain/new.txt", "", ErrEscape},
		{"references/chain2.md", "", ErrEscape},
		{"loop", "", ErrLoop},
		{"loop/x", "", ErrLoop},
		{"../outside/new.txt", "", ErrParent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			r := open(t, dir)
			err := r.WriteFile(tt.name, []byte("written"), 0o600)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			if err != nil && strings.Contains(err.Error(), filepath.Dir(dir)) {
				t.Errorf("the error tells a path of the host: %v", err)
			}
			if tt.wrote != "" {
				if text, err := os.ReadFile(filepath.Join(dir, tt.wrote)); err != nil || string(text) != "written" {
					t.Errorf("%s is %q, %v", tt.wrote, text, err)
				}
			}
			if diff := cmp.Diff([]string{"secret.txt"}, list(t, filepath.Join(filepath.Dir(dir), "outside"))); diff != "" {
				t.Error(diff)
			}
			for _, name := range append(list(t, dir), list(t, filepath.Join(dir, "references"))...) {
				if strings.HasPrefix(name, ".metier-") {
					t.Errorf("%s was left behind", name)
				}
			}
		})
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestHardLinks(t *testing.T) {
	dir := tree(t)
	outside := filepath.Join(filepath.Dir(dir), "outside", "secret.txt")
	if err := os.Link(outside, filepath.Join(dir, "hard.txt")); err != nil {
		t.Skipf("this host makes no hard links: %v", err)
	}
	r := open(t, dir)
	if text, err := read(r, "hard.txt"); err != nil || text != canary {
		t.Errorf("a hard link is read as %q, %v", text, err)
	}
	check(t, r.WriteFile("hard.txt", []byte("written"), 0o644))
	if text, err := read(r, "hard.txt"); err != nil || text != "written" {
		t.Errorf("after writing it is %q, %v", text, err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != canary {
		t.Errorf("the file's other name was written through: %q, %v", text, err)
	}
}

func TestWriteKeepsPermissions(t *testing.T) {
	dir := tree(t)
	r := open(t, dir)
	check(t, os.Chmod(filepath.Join(dir, "SKILL.md"), 0o750))
	check(t, r.WriteFile("SKILL.md", nil, 0o600))
	check(t, r.WriteFile("new.sh", nil, 0o755))
	for name, want := range map[string]fs.FileMode{"SKILL.md": 0o750, "new.sh": 0o755} {
		info, err := os.Stat(filepath.Join(dir, name))
		check(t, err)
		if probe := writable(t); info.Mode().Perm() != want && probe == want {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// writable is what becomes of mode 0750 here: some hosts know fewer bits.
func writable(t *testing.T) fs.FileMode {
	t.Helper()
	name := filepath.Join(t.TempDir(), "probe")
	check(t, os.WriteFile(name, nil, 0o600))
	check(t, os.Chmod(name, 0o750))
	info, err := os.Stat(name)
	check(t, err)
	return info.Mode().Perm()
}

func TestCreateIsSeenWhole(t *testing.T) {
	dir := tree(t)
	r := open(t, dir)
	p, err := r.Create("SKILL.md", 0o644)
	check(t, err)
	if _, err := p.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if text, _ := read(r, "SKILL.md"); text != "skill" {
		t.Errorf("before Commit the file is %q", text)
	}
	check(t, p.Close())
	check(t, p.Close())
	if text, _ := read(r, "SKILL.md"); text != "skill" {
		t.Errorf("after Close without Commit the file is %q", text)
	}
	p, err = r.Create("SKILL.md", 0o644)
	check(t, err)
	_, err = p.WriteString("whole")
	check(t, errors.Join(err, p.Sync(), p.Commit(), p.Close()))
	if text, _ := read(r, "SKILL.md"); text != "whole" {
		t.Errorf("after Commit the file is %q", text)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := tree(t)
	r := open(t, dir)
	check(t, r.MkdirAll("a/b/c", 0o755))
	check(t, r.MkdirAll("a/b", 0o755))
	check(t, r.WriteFile("a/b/c/x", nil, 0o644))
	for name, want := range map[string]error{"../x": ErrParent, "escape/x": ErrEscape, "a/CON": ErrReserved} {
		if err := r.MkdirAll(name, 0o755); !errors.Is(err, want) {
			t.Errorf("MkdirAll(%q): %v", name, err)
		}
	}
	if err := r.MkdirAll("SKILL.md/x", 0o755); err == nil {
		t.Error("a folder was made below a file")
	}
}

// TestFoldsCase asks the file system of the test's own folder in a second way.
func TestFoldsCase(t *testing.T) {
	dir := tree(t)
	_, err := os.Stat(filepath.Join(dir, "skill.MD"))
	want := err == nil
	r := open(t, dir)
	if got, err := r.FoldsCase("SKILL.md"); err != nil || got != want {
		t.Errorf("FoldsCase: %v, %v; the file system says %v", got, err, want)
	}
	if _, err := r.FoldsCase("gone.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FoldsCase of a missing file: %v", err)
	}
	if want {
		return
	}
	check(t, os.Symlink("SKILL.md", filepath.Join(dir, "skill.MD")))
	check(t, os.Link(filepath.Join(dir, "references/api.md"), filepath.Join(dir, "references/API.MD")))
	for _, name := range []string{"SKILL.md", "references/api.md", "inside/api.md"} {
		if got, err := r.FoldsCase(name); err != nil || got {
			t.Errorf("FoldsCase(%q) beside a link of the other case: %v, %v", name, got, err)
		}
	}
}

// TestAddFile: a file is made whole, or what has its name stays.
func TestAddFile(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.AddFile("a.sh", []byte("one"), 0o755); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.sh")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if err := root.AddFile("a.sh", []byte("two"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "a.sh")); string(text) != "one" {
		t.Errorf("it was replaced: %q", text)
	}
	// A link that leads nowhere yet is there, too, and is not written through.
	if err := os.Symlink(filepath.Join(outside, "new"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := root.AddFile("link", []byte("x"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link: %v", err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := root.AddFile("out/x", []byte("x"), 0o644); !errors.Is(err, ErrEscape) {
		t.Errorf("through a link: %v", err)
	}
	if err := root.AddFile("../x", nil, 0o644); !errors.As(err, new(*PathError)) {
		t.Errorf("outside: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRemove: a file or a link goes, and nothing that a link leads to.
func TestRemove(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kept := filepath.Join(outside, "kept")
	steps := []error{
		os.WriteFile(kept, nil, 0o600), os.WriteFile(filepath.Join(dir, "a"), nil, 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700),
		os.Symlink(kept, filepath.Join(dir, "link")), os.Symlink(outside, filepath.Join(dir, "out")),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Remove("a"), root.Remove("link"), root.Remove("out")); err != nil {
		t.Error(err)
	}
	if err := root.Remove("d"); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder: %v", err)
	}
	if err := root.Remove("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("twice: %v", err)
	}
	if err := root.Remove("../kept"); !errors.As(err, new(*PathError)) {
		t.Errorf("outside: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

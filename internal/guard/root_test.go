package guard

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const canary = "canary: these bytes lie outside the root"

// tree makes a root with links of every kind beside a canary file, and gives
// back the root's directory.
func tree(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	for _, d := range []string{"root/references/deep", "root/node_modules/x", "outside"} {
		check(t, os.MkdirAll(filepath.Join(top, d), 0o755))
	}
	files := map[string]string{
		"outside/secret.txt":        canary,
		"root/SKILL.md":             "skill",
		"root/references/api.md":    "api",
		"root/references/deep/a.md": "deep",
		"root/node_modules/x/y.js":  "js",
	}
	for name, text := range files {
		check(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o644))
	}
	links := map[string]string{
		"inside.md":            "references/api.md",
		"inside":               "references",
		"escape.md":            "../outside/secret.txt",
		"escape":               "../outside",
		"absolute":             filepath.Join(top, "outside"),
		"slash":                "/",
		"loop":                 "loop",
		"references/up":        "..",
		"references/out":       "../../outside",
		"references/gone":      "nothing",
		"references/chain":     "../escape",
		"references/chain2.md": "../inside/../escape.md",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("this host makes no symbolic links: %v", err)
		}
	}
	return dir
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *Root {
	t.Helper()
	r, err := OpenRoot(dir)
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

func read(r *Root, name string) (string, error) {
	f, err := r.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestOpen(t *testing.T) {
	r := open(t, tree(t))
	tests := []struct {
		name, want string
		err        error
	}{
		{"SKILL.md", "skill", nil},
		{"./references/api.md", "api", nil},
		{"inside.md", "api", nil},
		{"inside/deep/a.md", "deep", nil},
		{"references/up/SKILL.md", "skill", nil},
		{"references", "", ErrFolder},
		{"inside", "", ErrFolder},
		{".", "", ErrFolder},
		{"missing.md", "", fs.ErrNotExist},
		{"references/gone", "", fs.ErrNotExist},
		{"escape.md", "", ErrEscape},
		{"escape/secret.txt", "", ErrEscape},
		{"absolute/secret.txt", "", ErrEscape},
		{"slash/etc/passwd", "", ErrEscape},
		{"references/out/secret.txt", "", ErrEscape},
		{"references/chain/secret.txt", "", ErrEscape},
		{"references/chain2.md", "", ErrEscape},
		{"../outside/secret.txt", "", ErrParent},
	}
	for _, tt := range tests {
		got, err := read(r, tt.name)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Open(%q) = %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), filepath.Dir(r.root.Name())) {
			t.Errorf("Open(%q): the error tells a path of the host: %v", tt.name, err)
		}
	}
	if _, err := read(r, "loop"); err == nil {
		t.Error("Open of a link to itself succeeded")
	}
}

func TestEverySpellingIsRefusedByTheDiskToo(t *testing.T) {
	r := open(t, tree(t))
	for _, tt := range spellings() {
		if tt.err == nil {
			continue
		}
		if _, err := r.Open(tt.name); !errors.Is(err, tt.err) {
			t.Errorf("Open(%q) = %v; want %v", tt.name, err, tt.err)
		}
		if _, err := r.Stat(tt.name); !errors.Is(err, tt.err) {
			t.Errorf("Stat(%q) = %v; want %v", tt.name, err, tt.err)
		}
		if _, err := r.ReadDir(tt.name); !errors.Is(err, tt.err) {
			t.Errorf("ReadDir(%q) = %v; want %v", tt.name, err, tt.err)
		}
	}
}

func TestReadDir(t *testing.T) {
	r := open(t, tree(t))
	entries, err := r.ReadDir("inside")
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"api.md", "chain", "chain2.md", "deep", "gone", "out", "up"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := r.ReadDir("SKILL.md"); !errors.Is(err, ErrNoFolder) {
		t.Errorf("ReadDir of a file: %v", err)
	}
}

func TestWalk(t *testing.T) {
	r := open(t, tree(t))
	skip := func(name string) bool { return name == "node_modules" }
	got := map[string]string{}
	for e, err := range r.Walk(t.Context(), skip) {
		switch {
		case errors.Is(err, ErrEscape):
			got[e.Path] = "escape"
		case err != nil:
			got[e.Path] = "error"
		case e.Link != "":
			got[e.Path] = "-> " + e.Link
		case e.Info.IsDir():
			got[e.Path] = "dir"
		default:
			got[e.Path] = "file"
		}
	}
	want := map[string]string{
		"SKILL.md": "file", "references": "dir", "references/api.md": "file", "references/deep": "dir",
		"references/deep/a.md": "file", "inside": "-> references", "inside.md": "-> references/api.md",
		"references/up": "-> .", "references/gone": "error", "loop": "error",
		"escape": "escape", "escape.md": "escape", "absolute": "escape", "slash": "escape",
		"references/out": "escape", "references/chain": "escape", "references/chain2.md": "escape",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWalkEnds(t *testing.T) {
	r := open(t, tree(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range r.Walk(ctx, nil) {
		cancel()
		last = err
		n++
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after %d entries the walk ended with %v", n, last)
	}
	for range r.Walk(t.Context(), nil) {
		break
	}
}

func TestOpenRootMissing(t *testing.T) {
	if _, err := OpenRoot(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

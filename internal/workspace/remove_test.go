package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemove: a working directory goes, whatever is in it, and nothing that its
// links lead to.
func TestRemove(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "keep", "x"), "x")
	const deep = 200
	scratch := filepath.Join(t.TempDir(), "s")
	write(t, filepath.Join(scratch, "a", "b", "c"), "x")
	write(t, filepath.Join(scratch, ".up-1", "b", "c"), "x")
	write(t, filepath.Join(scratch, "closed", "in", "x"), "x")
	root, err := os.OpenRoot(scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	steps := []error{
		os.Symlink(outside, filepath.Join(scratch, "out")), os.Symlink(filepath.Join(outside, "keep"), filepath.Join(scratch, "a", "out")),
		os.Chmod(filepath.Join(scratch, "closed", "in"), 0), os.Chmod(filepath.Join(scratch, "closed"), 0), os.Chmod(filepath.Join(scratch, "a"), 0o500),
		dig(root, deep), os.Chmod(scratch, 0),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	if err := Remove(scratch); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "keep", "x")); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}

// dig makes folders in folders, further down than a path can tell.
func dig(root *os.Root, depth int) error {
	at, name := root, strings.Repeat("d", 40)
	for i := range depth {
		if err := at.Mkdir(name, 0o700); err != nil {
			return err
		}
		next, err := at.OpenRoot(name)
		if err != nil {
			return err
		}
		if i > 0 {
			_ = at.Close()
		}
		at = next
	}
	return at.Close()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

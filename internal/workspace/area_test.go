package workspace

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestArea: what a dead process left is removed, whatever its scripts made of it;
// what a living one works in stays, and so does what is none of ours.
func TestArea(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system marks no directories: their age tells")
	}
	parent := filepath.Join(t.TempDir(), "scratch")
	logger := slog.New(slog.DiscardHandler)
	alive, err := OpenArea(parent, logger)
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(parent, areaPrefix+"dead", "run-1", "closed")
	other := filepath.Join(parent, "somebody-elses")
	for _, dir := range []string{filepath.Join(closed, "inner"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	next, err := OpenArea(parent, logger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(parent, areaPrefix+"dead")); err == nil {
		t.Error("what a dead process left is still there")
	}
	for _, dir := range []string{alive.dir, other} {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s was removed: %v", dir, err)
		}
	}
	if alive.dir == next.dir {
		t.Error("two processes work in one directory")
	}
	for _, s := range []*Area{alive, next} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(s.dir); err == nil {
			t.Errorf("%s is left behind", s.dir)
		}
	}
}

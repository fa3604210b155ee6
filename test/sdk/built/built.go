// Package built makes the program for tests that run it as users do: as a
// process of its own.
//
// It starts nothing and keeps nothing: the binary goes with the test. It serves
// tests only.
//
// Start at [Metier].
package built

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Root is the folder of the program's go.mod, as an absolute path.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod here or above: run the test inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// Metier builds the program and returns the path of the binary, which goes at
// the test's end. It has the race detector if the test has it: a race then shows
// in the exit status.
func Metier(t testing.TB) string {
	t.Helper()
	root := Root(t)
	for _, dir := range []string{"go.mod", "go.sum", "cmd", "internal", "skill"} {
		DependOn(t, filepath.Join(root, dir))
	}
	binary := filepath.Join(t.TempDir(), "metier")
	args := []string{"build", "-buildvcs=false", "-o", binary}
	if raceEnabled() {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/metier")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build metier: %v\n%s", err, out)
	}
	return binary
}

// DependOn opens a file, or all files of a folder but installed packages, so that the go command does
// not answer with an older result when they have changed: it cannot know what a
// test builds or runs.
func DependOn(t testing.TB, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".venv")):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatalf("depend on %s: %v", path, err)
	}
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// askPython prints the version if that is one that the pinned packages run on,
// and if virtual environments can be made with it.
const askPython = `import sys, venv, ensurepip
print(sys.version)
sys.exit(sys.version_info < (3, 11))`

// pythonFor is the interpreter of a virtual environment that holds what a
// folder's requirements.txt lists. It lies in the folder, as .venv, and is made
// when it is missing, and anew when the list or the machine's Python is another.
func pythonFor(t *testing.T, dir string) string {
	t.Helper()
	const remedy = "install Python 3.11 or later with venv"
	need(t, remedy, "python3")
	version, err := exec.CommandContext(t.Context(), "python3", "-c", askPython).Output()
	if err != nil {
		t.Skipf("SKIPPED, nothing was tested: the python3 here is too old or has no venv; %s: %s%v", remedy, version, err)
	}
	list, err := os.ReadFile(filepath.Join(dir, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	home, err := filepath.Abs(filepath.Join(dir, ".venv"))
	if err != nil {
		t.Fatal(err)
	}
	note := string(version) + string(list)
	if !environmentIs(home, note) {
		makeEnvironment(t, dir, home, note)
	}
	return interpreter(home)
}

func interpreter(home string) string { return filepath.Join(home, "bin", "python") }

// noteOf is where an environment tells what it was made of.
func noteOf(home string) string { return filepath.Join(home, "made-of.txt") }

func environmentIs(home, note string) bool {
	have, err := os.ReadFile(noteOf(home))
	if err != nil || string(have) != note {
		return false
	}
	_, err = os.Stat(interpreter(home))
	return err == nil
}

// makeEnvironment makes it under another name and moves it into place when it is
// whole, so a run that was broken off leaves no half of one.
func makeEnvironment(t *testing.T, dir, home, note string) {
	t.Helper()
	fresh, err := os.MkdirTemp(dir, ".venv-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(fresh) }) // after the move there is nothing
	if fresh, err = filepath.Abs(fresh); err != nil {
		t.Fatal(err)
	}
	command(t, dir, nil, "python3", "-m", "venv", fresh)
	// The list is complete, and nothing of it is built or run to be installed.
	command(t, dir, nil, interpreter(fresh), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "-r", "requirements.txt")
	command(t, dir, nil, interpreter(fresh), "-m", "pip", "--disable-pip-version-check", "check")
	if err := os.WriteFile(noteOf(fresh), []byte(note), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	// Another run may have been quicker.
	if err := os.Rename(fresh, home); err != nil && !environmentIs(home, note) {
		t.Fatal(err)
	}
}

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// Language are the variables that a launch gets from this host: language and time
// zone, and what programs cannot start without on Windows. Everything else may be a
// secret and stays here (seed 1, "Running scripts").
func Language(environ []string) []string {
	var env []string
	language := false
	for _, name := range inherited() {
		value, ok := lookup(environ, name)
		if !ok || value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == '\x7f' }) {
			continue
		}
		language = language || name == "LANG" || name == "LC_ALL"
		env = append(env, name+"="+value)
	}
	if !language && runtime.GOOS != "windows" {
		env = append(env, "LANG=C.UTF-8") // else some programs write no more than ASCII
	}
	return env
}

func inherited() []string {
	names := []string{"LANG", "LC_ALL", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE")
	}
	return names
}

// lookup finds a variable in an environment, the last one of a name as programs do.
func lookup(environ []string, name string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		n, value, _ := strings.Cut(e, "=")
		if n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			return value, true
		}
	}
	return "", false
}

// Extra is what a launch sees and finds beside what all launches of the workspace do.
type Extra struct {
	// Read are files and directories that may be read.
	Read []string
	// Imports are directories in which Python looks for modules first.
	Imports []string
	// Env are more variables.
	Env []string
}

// Launch is a launch in the workspace, without its program and its bounds: the
// folders it sees, and its environment. dir is where it starts, inside the work
// folder and relative to it, as [Workspace.Resolve] gives it.
func (w *Workspace) Launch(purpose sandbox.Purpose, dir string, x Extra) sandbox.Launch {
	programs := w.programs()
	read := []string{w.State()}
	for _, i := range programs {
		read = append(read, i.Read...)
	}
	for _, p := range w.packages() {
		read = append(read, p.Dir)
	}
	read = append(read, x.Read...)
	slices.Sort(read)
	env := append(w.environ(programs, x.Imports), x.Env...)
	if slices.Contains(w.o.Direct, purpose) {
		env = append(env, w.direct...)
	}
	return sandbox.Launch{
		Purpose: purpose,
		Dir:     filepath.Join(w.Work(), filepath.FromSlash(dir)),
		Env:     env,
		Write:   []string{w.Work(), w.Temp(), w.Saved()},
		Read:    slices.Compact(read),
		Hide:    w.hidden(read),
		Disk:    w.disk(),
	}
}

// disk is how large the workspace may grow: as the limit workspace says, or less if the
// operator has set less for each launch.
func (w *Workspace) disk() int64 {
	most := w.o.Limits.Get(config.WorkspaceBytes)
	if w.o.Limits.IsSet(config.SandboxDisk) {
		most = min(most, w.o.Limits.Get(config.SandboxDisk))
	}
	return most
}

// Own is a program of a kind that the conversation itself unpacked into .local/bin of
// its work folder; false when there is none. It is hostile like all that is there.
func (w *Workspace) Own(kind interpreter.Kind) (interpreter.Interpreter, bool) {
	names := []string{string(kind)}
	if kind == interpreter.Python {
		names = []string{"python3", "python"}
	}
	for _, name := range names {
		real, err := filepath.EvalSymlinks(filepath.Join(w.Work(), localDir, "bin", name))
		if err != nil || !sandbox.Within(w.Work(), real) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return interpreter.Interpreter{Kind: kind, Path: real, Bin: []string{filepath.Dir(real)}}, true
		}
	}
	return interpreter.Interpreter{}, false
}

// Interpreter is the program of this host that runs a kind of script.
func (w *Workspace) Interpreter(kind interpreter.Kind) (interpreter.Interpreter, error) {
	return w.o.Interpreters.Find(kind)
}

func (w *Workspace) programs() []interpreter.Interpreter {
	var found []interpreter.Interpreter
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node, interpreter.Bash} {
		if i, err := w.Interpreter(kind); err == nil {
			found = append(found, i)
		}
	}
	return found
}

// hidden are the directories to hide that are there, without those that are shown as
// a whole.
func (w *Workspace) hidden(read []string) []string {
	var hide []string
	for _, dir := range w.o.Hide {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(real) || filepath.Dir(real) == real {
			continue
		}
		shown := slices.ContainsFunc(read, func(r string) bool { return sandbox.Within(r, real) })
		if !shown && !slices.Contains(hide, real) {
			hide = append(hide, real)
		}
	}
	return hide
}

// environ is the whole environment of a launch (B1 8.5).
func (w *Workspace) environ(programs []interpreter.Interpreter, imports []string) []string {
	join := func(dirs []string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	work, own := w.Work(), filepath.Join(w.Work(), localDir)
	modules := filepath.Join(own, "python")
	var bin, node []string
	python := append(slices.Clone(imports), modules)
	for _, p := range w.packages() {
		bin = append(bin, p.Bin...)
		switch p.Kind {
		case interpreter.Python:
			python = append(python, p.Imports...)
		case interpreter.Node:
			node = append(node, p.Imports...)
		}
	}
	for _, i := range programs {
		python = append(python, i.Packages...)
	}
	// What the conversation brought itself goes before what the host has.
	bin = append(bin, filepath.Join(own, "bin"), w.shims())
	bin = append(bin, w.o.Interpreters.Search(programs...)...)
	env := []string{
		"PATH=" + join(bin), "HOME=" + work,
		"TMPDIR=" + w.Temp(), "TEMP=" + w.Temp(), "TMP=" + w.Temp(),
		"PYTHONPATH=" + join(python), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		// What a program installs by itself, where it has a network: into the work folder,
		// no source is built and no script of a package runs.
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1", "PIP_ONLY_BINARY=:all:", "PIP_TARGET=" + modules,
		"NPM_CONFIG_PREFIX=" + own, "NPM_CONFIG_IGNORE_SCRIPTS=true", "NPM_CONFIG_UPDATE_NOTIFIER=false", "NPM_CONFIG_FUND=false",
	}
	if len(node) > 0 {
		env = append(env, "NODE_PATH="+join(node))
	}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+work)
	}
	return append(env, Language(w.o.Environ)...)
}

// writeShims makes "python" mean the Python of this host, and "python3" as well where
// the host has none (B1 8.8). There is never one for pip: installs are the host's.
func (w *Workspace) writeShims() error {
	if runtime.GOOS == "windows" || w.o.NoShims {
		return nil // a launch finds python.exe by itself
	}
	found, err := w.Interpreter(interpreter.Python)
	if err != nil {
		return nil // nothing to lead to: the shell's own "not found" is true
	}
	text := "#!/bin/sh\nexec " + bash.Quote(found.Path) + ` "$@"` + "\n"
	for _, name := range []string{"python", "python3"} {
		if err := writeNew(filepath.Join(w.shims(), name), text, 0o755); err != nil {
			return fmt.Errorf("write the shim %s: %w", name, err)
		}
	}
	return nil
}

// writeNew writes a file of the host's own unless it is there.
func writeNew(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

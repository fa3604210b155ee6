package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

// launchers is the folder in [workspace.Repairs] for what runs the copies. No skill has
// a name like it.
const launchers = ".run"

// launcher runs a copy in the place of the script that it is of: with the same modules
// to import, the same argv[0] and __file__ (B1 15.8). Errors name the copy.
const launcher = `# Runs the copy of a skill's script in the place of that script. Change the copy, not this.
import os
import sys

script = %s
folders = [%s]
copy = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), %s))
with open(copy, "rb") as file:
    code = compile(file.read(), copy, "exec", dont_inherit=True)
sys.argv[0] = __file__ = script
sys.path[0:1] = folders
del os, sys, script, folders, copy, file
exec(globals().pop("code"))
`

// traceFrame is a frame of a traceback of Python.
var traceFrame = regexp.MustCompile(`(?m)^\s*File "([^"\n]+)", line \d+`)

// repair gives the model a copy of a script that fails by its own fault, with the way to
// run it, and says so; empty when the script is not to blame, as far as can be told
// (B1 15.8).
func (w *work) repair(ctx context.Context, r report) string {
	if w.place.NoRecovery || !w.place.Files || w.with.Kind != interpreter.Python || r.ended.Ended != sandbox.Exited || r.ended.OK() {
		return ""
	}
	frames := traceFrame.FindAllStringSubmatch(r.output(), -1)
	if len(frames) == 0 || frames[len(frames)-1][1] != w.name() || len(r.hinted) > 0 {
		return ""
	}
	if f := r.read(ctx); f.Class != diagnose.Code && f.Class != diagnose.APIMiss {
		return ""
	}
	text, err := w.lend(ctx, r)
	if err != nil && ctx.Err() == nil {
		// The outcome stands without it. It may be the model that is in the way.
		w.scripts.Logger.DebugContext(ctx, "no copy of a script to repair", "skill", w.skill.Name, "path", w.file.Path, "error", err)
	}
	return text
}

// lend puts the copy and its launcher into the workspace, where they are not there yet,
// and tells of them.
func (w *work) lend(ctx context.Context, r report) (string, error) {
	page, err := w.skill.Read(ctx, w.file.Path, 0, w.scripts.Limits.Get(config.FileSize))
	if err != nil {
		return "", err
	}
	if page.Binary || page.More() || !utf8.ValidString(w.path()) {
		return "", errors.New("it cannot be copied as text")
	}
	at := path.Join(workspace.Repairs, w.skill.Name, w.file.Path)
	runs := path.Join(workspace.Repairs, launchers, w.skill.Name, w.file.Path)
	root, err := w.place.Workspace.Files()
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := add(root, at, page.Text); err != nil {
		return "", err
	}
	if err := add(root, runs, w.launcher(at, runs)); err != nil {
		return "", err
	}
	copied, err := w.read(root, at)
	if err != nil {
		return "", err
	}
	shown := relative(r.here(), at)
	command := w.command(relative(r.here(), runs))
	if copied != page.Text {
		return fmt.Sprintf(hintOwnCopy, shown, command), nil
	}
	return w.show(r, at, shown, copied) + fmt.Sprintf(hintRepair, shown, command), nil
}

// add makes a file and its folders unless it is there.
func add(root *guard.Root, name, text string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.AddFile(name, []byte(text), 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// read is a file of the work folder.
func (w *work) read(root *guard.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, w.scripts.Limits.Get(config.FileSize)))
	return string(text), err
}

// launcher is the text of what runs a copy.
func (w *work) launcher(copied, from string) string {
	// Python itself puts the script's folder first.
	folders := []string{jsonString(filepath.Dir(w.path()))}
	for _, dir := range w.folders()[:1] {
		folders = append(folders, jsonString(dir))
	}
	return fmt.Sprintf(launcher, jsonString(w.path()), strings.Join(folders, ", "), jsonString(relative(path.Dir(from), copied)))
}

// command runs a launcher with the script's arguments, for the shell.
func (w *work) command(launcher string) string {
	words := []string{"python3", bash.Argument(launcher)}
	if runtime.GOOS == "windows" {
		words[0] = "python"
	}
	for _, arg := range w.args {
		words = append(words, bash.Argument(arg))
	}
	return strings.Join(words, " ")
}

// show is the place in the copy that the error comes from. What it shows, the model has
// seen.
func (w *work) show(r report, at, shown, text string) string {
	output := strings.ReplaceAll(r.output(), `File "`+w.name()+`"`, `File "`+shown+`"`)
	hint, ok := diagnose.Repair(output, func(name string) ([]byte, bool) { return []byte(text), name == shown })
	if !ok {
		return ""
	}
	for _, n := range hint.Shown {
		w.place.Workspace.Seen.Some(at, []byte(text), n, n)
	}
	return hint.Sentence() + "\n"
}

// relative is a path of the work folder as seen from a folder in it.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(rel)
}

package skill

import (
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/skill"
)

// script is a script that is to be launched.
type script struct {
	skill skill.Skill
	file  skill.File
	// dir is the skill's directory, links resolved.
	dir string
	// kind says what runs it, with is the one; beside are the other interpreters, which
	// it may start itself.
	kind   interpreter.Kind
	with   interpreter.Interpreter
	beside []interpreter.Interpreter
	args   []string
	// packages are those that its call asks for, and others counts further calls beside
	// it, which are not carried out.
	packages []string
	others   int
}

// path is the script's file on this host.
func (c script) path() string { return filepath.Join(c.dir, filepath.FromSlash(c.file.Path)) }

// name is the script as a model reads it.
func (c script) name() string { return c.skill.Name + "/" + c.file.Path }

func (c script) interpreters() []interpreter.Interpreter {
	return append([]interpreter.Interpreter{c.with}, c.beside...)
}

// environ is the whole environment of a launch in scratch.
func (s *Set) environ(c script, scratch string) []string {
	temp := filepath.Join(scratch, tempName)
	join := func(dirs []string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	env := []string{
		"PATH=" + join(s.scripts.Interpreters.Search(c.interpreters()...)),
		"HOME=" + scratch, "PWD=" + scratch,
		"TMPDIR=" + temp, "TEMP=" + temp, "TMP=" + temp,
		"PYTHONPATH=" + join(c.imports()), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
	}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+scratch)
	}
	return append(env, workspace.Language(s.scripts.Environ)...)
}

// argv is the program and its arguments.
func (c script) argv() []string { return append([]string{c.with.Path, c.path()}, c.args...) }

// folders are where a script's own modules are: at the skill's top, and beside it.
func (c script) folders() []string {
	dirs := []string{c.dir}
	if at := filepath.Dir(c.path()); at != c.dir {
		dirs = append(dirs, at)
	}
	return dirs
}

// imports are where Python looks for modules: the script's folders, and the packages of
// a virtual environment.
func (c script) imports() []string {
	dirs := c.folders()
	for _, i := range c.interpreters() {
		dirs = append(dirs, i.Packages...)
	}
	return dirs
}

package skill

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/skill"
)

// script is a script that is ready to be launched.
type script struct {
	skill skill.Skill
	file  skill.File
	// dir is the skill's directory, links resolved.
	dir string
	// with runs it; beside are the other interpreters, which it may start itself.
	with   interpreter.Interpreter
	beside []interpreter.Interpreter
	args   []string
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

// imports are where Python looks for modules: the skill's top, the script's folder,
// and the packages of a virtual environment.
func (c script) imports() []string {
	dirs := []string{c.dir}
	if at := filepath.Join(c.dir, filepath.FromSlash(path.Dir(c.file.Path))); at != c.dir {
		dirs = append(dirs, at)
	}
	for _, i := range c.interpreters() {
		dirs = append(dirs, i.Packages...)
	}
	return dirs
}

package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
)

// Dialect is the language of a shell, by the name that a model knows.
type Dialect string

// The dialects. Zsh and Ksh are taken only by name.
const (
	Bash       Dialect = "bash"
	Sh         Dialect = "sh"
	Zsh        Dialect = "zsh"
	Ksh        Dialect = "ksh"
	PowerShell Dialect = "PowerShell"
)

// Program is a shell of this host.
type Program struct {
	Dialect Dialect
	// Argv is the program, by absolute path, and what stands before a script's path.
	Argv []string
	// Read is what a launch must see of it, beside the system's own directories.
	Read []string
}

// Find is the shell that commands are run with: the one that the operator named, by
// its path or by a name that PATH finds; without a name bash or else sh, and on
// Windows pwsh or else Windows PowerShell. What is called bash on the PATH of a Windows
// host may be a door to another system, so it is taken only if it was named (B1 9.15).
func Find(named string, o interpreter.Options) (Program, error) {
	return finder{o: o, windows: runtime.GOOS == "windows"}.find(named)
}

type finder struct {
	o       interpreter.Options
	windows bool
}

func (f finder) find(named string) (Program, error) {
	if named != "" {
		return f.named(named)
	}
	names := []string{"sh"}
	if f.windows {
		names = []string{"pwsh", "powershell"}
	} else if found, err := f.o.Find(interpreter.Bash); err == nil {
		return Program{Dialect: Bash, Argv: arguments(Bash, found.Path), Read: found.Read}, nil
	}
	for _, name := range names {
		if path, ok := f.look(name); ok {
			d := dialectOf(path)
			return Program{Dialect: d, Argv: arguments(d, path)}, nil
		}
	}
	return Program{}, fmt.Errorf("find a shell: no directory of PATH has %s: install one, or name one with --code-exec-shell", strings.Join(names, " or "))
}

// named is the shell of an operator's choice.
func (f finder) named(name string) (Program, error) {
	path := name
	if !strings.ContainsAny(name, `/\`) {
		found, ok := f.look(name)
		if !ok {
			return Program{}, fmt.Errorf("find the shell %q: no directory of PATH has it: give --code-exec-shell its path", name)
		}
		path = found
	}
	if !filepath.IsAbs(path) {
		return Program{}, fmt.Errorf("find the shell %q: give --code-exec-shell an absolute path", name)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = f.judge(real)
	}
	if err != nil {
		return Program{}, fmt.Errorf("find the shell %q: %w", name, err)
	}
	d := dialectOf(path)
	if d == "" {
		return Program{}, fmt.Errorf("find the shell %q: its language is not known here: give --code-exec-shell a bash, sh, dash, ash, busybox, zsh, ksh, pwsh or powershell", name)
	}
	if filepath.Base(real) == filepath.Base(path) {
		// A launch sees the program, and not the links that lead to it. Under another name
		// it may be another program: sh of busybox.
		path = real
	}
	return Program{Dialect: d, Argv: arguments(d, filepath.Clean(path)), Read: []string{real}}, nil
}

// look finds a program in the directories that launches have on PATH.
func (f finder) look(name string) (string, bool) {
	if f.windows && !strings.EqualFold(filepath.Ext(name), ".exe") {
		name += ".exe"
	}
	for _, dir := range f.o.Search() {
		path := filepath.Join(dir, name)
		if f.judge(path) == nil {
			return path, true
		}
	}
	return "", false
}

func (f finder) judge(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || !f.windows && info.Mode()&0o111 == 0:
		return errors.New("it is no program")
	}
	return nil
}

// stem is the name of a program without ".exe" and version: "bash" of "bash-5.2".
func stem(path string) string {
	base := strings.ToLower(filepath.Base(path))
	return strings.TrimRight(strings.TrimSuffix(base, ".exe"), "0123456789.-")
}

// dialectOf is the language of a shell by its name; empty when it is not known.
func dialectOf(path string) Dialect {
	switch stem(path) {
	case "bash":
		return Bash
	case "sh", "dash", "ash", "busybox":
		return Sh
	case "zsh":
		return Zsh
	case "ksh", "mksh":
		return Ksh
	case "pwsh", "powershell":
		return PowerShell
	}
	return ""
}

// arguments keep a shell from reading files of its own first.
func arguments(d Dialect, path string) []string {
	switch {
	case d == Bash:
		return []string{path, "--noprofile", "--norc"}
	case d == Zsh:
		return []string{path, "-f"}
	case d == PowerShell:
		return []string{path, "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"}
	case stem(path) == "busybox":
		return []string{path, "sh"}
	}
	return []string{path}
}

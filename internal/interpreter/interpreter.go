// Package interpreter finds the program that runs a kind of script on this host,
// and what must be seen of the file system for it to run.
//
// It reads files and starts no process: version managers (pyenv, rbenv and their
// kin, asdf, mise, Volta) put small programs called shims on PATH, and a shim would
// run the manager, which a confined launch must not see. So the shim's choice is
// worked out here from the manager's own files, and the real program is named; if
// that cannot be done, the next one on PATH is taken. It never gives a directory
// that would show the operator's home.
//
// Start at [Options.Find], then [Options.Search].
package interpreter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Kind is a language of scripts.
type Kind string

// The kinds.
const (
	Python Kind = "python"
	Node   Kind = "node"
	Bash   Kind = "bash"
)

// Options say where to look. They hold what the environment of this program says;
// the package reads no environment itself.
type Options struct {
	// Path is the PATH of this program.
	Path string
	// Home is the operator's home directory; empty when there is none.
	Home string
	// Dir is the directory in which this program was started. What lies below it may
	// come from anywhere (a cloned repository, a download), so no program is taken
	// from there, unless it is the root, a directory of the system, or above or equal
	// to Home.
	Dir string
	// The variables by which version managers are moved; empty for their defaults:
	// PYENV_ROOT, ASDF_DATA_DIR, MISE_DATA_DIR and VOLTA_HOME.
	PyenvRoot, AsdfData, MiseData, VoltaHome string
	// System lists the directories that every launch sees; nil is what this
	// operating system has.
	System []string
}

// Interpreter is a program that runs scripts.
type Interpreter struct {
	Kind Kind
	// Path is the program itself: absolute and free of links.
	Path string
	// Version is what the names on the way to the program tell, such as "3.11" or
	// "20.11.0"; empty when they do not.
	Version string
	// Read are the directories and files, beside the system's own, that it needs to
	// see: absolute and free of links.
	Read []string
	// Bin are the directories of the program and its tools, for PATH.
	Bin []string
	// Packages are the directories of a virtual environment's packages, for
	// PYTHONPATH: the program is that of the environment's base, which does not find
	// them itself.
	Packages []string
}

// NotFoundError says that no program of a kind can be used.
type NotFoundError struct {
	Kind Kind
	// Skipped has a sentence for each program that was found and not taken.
	Skipped []string
}

// Error says what was looked at and what to do.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("find %s: no directory of PATH has one that can be used", e.Kind)
	if len(e.Skipped) > 0 {
		text += " (" + strings.Join(e.Skipped, "; ") + ")"
	}
	return text + ": install it for all users, or put its own directory on PATH"
}

// Reasons for which a program is passed over.
var (
	errShim   = errors.New("is a shim of a version manager that names no installed version")
	errSystem = errors.New("is a shim that leads to the next one on PATH")
	errScript = errors.New("is a script that starts something else")
	errOther  = errors.New("is another program under this name")
	errWrite  = errors.New("can be changed by everyone")
	errRun    = errors.New("is not a program")
	errWide   = errors.New("lies in a directory that holds a home")
)

// The versions of Python that are asked for by name, newest first, before python3
// (B1 8.8). What is newer or older is taken only under the plain name.
const (
	newestPython = 14
	oldestPython = 10
)

// names are the file names to look for, the best first.
func (k Kind) names() ([]string, error) {
	switch k {
	case Python:
		var names []string
		for minor := newestPython; minor >= oldestPython; minor-- {
			names = append(names, fmt.Sprintf("python3.%d", minor))
		}
		return append(names, plainPython()...), nil
	case Node:
		return []string{"node", "nodejs"}, nil
	case Bash:
		return []string{"bash"}, nil
	}
	return nil, fmt.Errorf("find interpreter: there is no kind %q", k)
}

func plainPython() []string {
	if runtime.GOOS == "windows" {
		return []string{"python", "python3"}
	}
	return []string{"python3"}
}

// stems are what the names of the real programs begin with.
func (k Kind) stems() []string {
	if k == Python {
		return []string{"python", "pypy"}
	}
	return []string{string(k)}
}

// Find is the interpreter of a kind: for Python the virtual environment that comes
// first on PATH, or else the newest that PATH has (seed 1, "Running scripts"). It
// fails with a [*NotFoundError].
func (o Options) Find(k Kind) (Interpreter, error) {
	names, err := k.names()
	if err != nil {
		return Interpreter{}, err
	}
	dirs := o.dirs()
	if k == Python {
		if found, ok := o.activated(dirs); ok {
			return found, nil
		}
	}
	missing := &NotFoundError{Kind: k}
	for _, name := range names {
		for _, dir := range dirs {
			file := filepath.Join(dir, name+exe())
			if _, err := os.Lstat(file); err != nil {
				continue
			}
			found, err := o.take(k, name, file)
			if err == nil {
				return found, nil
			}
			missing.Skipped = append(missing.Skipped, file+" "+err.Error())
		}
	}
	return Interpreter{}, missing
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// take makes an interpreter of a file on PATH.
func (o Options) take(k Kind, name, file string) (Interpreter, error) {
	if root, ok := shims(file); ok {
		behind, err := o.behind(k, name, root)
		if err != nil {
			return Interpreter{}, err
		}
		file = behind
	}
	if k == Python {
		if root, ok := environment(file); ok {
			return o.virtual(file, root)
		}
	}
	real, err := o.real(k, file)
	if err != nil {
		return Interpreter{}, err
	}
	return o.interpreter(k, real)
}

// real is the program that a file leads to.
func (o Options) real(k Kind, file string) (string, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", broken(err)
	}
	if filepath.Base(real) == "volta-shim"+exe() {
		if real, err = o.volta(k); err != nil {
			return "", err
		}
	}
	if _, shim := shims(real); shim {
		return "", errShim
	}
	return real, judge(k, real)
}

// broken says what is wrong with a link without the path, which the caller names.
func broken(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("leads nowhere: %w", err)
}

// judge reports what keeps a file from being a program of a kind. Its name and its
// first bytes tell the real program from the many that start something else.
func judge(k Kind, real string) error {
	base := strings.ToLower(filepath.Base(real))
	if !slices.ContainsFunc(k.stems(), func(stem string) bool { return strings.HasPrefix(base, stem) }) {
		return errOther
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return errRun
	}
	if runtime.GOOS != "windows" {
		switch {
		case info.Mode().Perm()&0o111 == 0:
			return errRun
		case info.Mode().Perm()&0o002 != 0:
			return errWrite
		}
	}
	f, err := os.Open(real)
	if err != nil {
		return errRun
	}
	defer f.Close()
	head := make([]byte, 2)
	if _, err := io.ReadFull(f, head); err != nil {
		return errRun
	}
	if string(head) == "#!" {
		return errScript
	}
	return nil
}

// interpreter describes a real program.
func (o Options) interpreter(k Kind, real string) (Interpreter, error) {
	found := Interpreter{Kind: k, Path: real, Version: version(real), Bin: []string{filepath.Dir(real)}}
	var err error
	found.Read, err = o.needs(real, found.Version)
	return found, err
}

// within reports whether a clean path is dir or below it.
func within(dir, path string) bool {
	sep := string(filepath.Separator)
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, sep)+sep))
}

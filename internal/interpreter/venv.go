package interpreter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environmentFile marks a virtual environment and names its base.
const environmentFile = "pyvenv.cfg"

// environment is the root of the virtual environment that a file on PATH belongs to.
func environment(file string) (string, bool) {
	bin, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return "", false
	}
	root := filepath.Dir(bin)
	info, err := os.Stat(filepath.Join(root, environmentFile))
	return root, err == nil && info.Mode().IsRegular()
}

// activated is the virtual environment whose python comes first on PATH: whoever
// put it there chose it.
func (o Options) activated(dirs []string) (Interpreter, bool) {
	for _, dir := range dirs {
		for _, name := range []string{"python3", "python"} {
			file := filepath.Join(dir, name+exe())
			if _, err := os.Lstat(file); err != nil {
				continue
			}
			root, ok := environment(file)
			if !ok {
				return Interpreter{}, false
			}
			found, err := o.virtual(file, root)
			return found, err == nil
		}
	}
	return Interpreter{}, false
}

// virtual is the base of a virtual environment, with the environment's packages
// and tools. The base is started rather than the environment's own link to it,
// because the way of that link may lead through what a launch does not see.
func (o Options) virtual(file, root string) (Interpreter, error) {
	real, err := o.real(Python, file)
	if err != nil || within(root, real) { // a copy, which needs its base as well
		if real, err = o.base(root, filepath.Base(file)); err != nil {
			return Interpreter{}, err
		}
	}
	found, err := o.interpreter(Python, real)
	if err != nil {
		return Interpreter{}, err
	}
	found.Packages = packages(root, found.Version)
	if o.seen(root) {
		return found, nil
	}
	if o.wide(root) {
		found.Read = append(found.Read, found.Packages...)
		return found, nil
	}
	found.Read = append(found.Read, root)
	found.Bin = slices.Insert(found.Bin, 0, filepath.Join(root, filepath.Base(resolved(filepath.Dir(file)))))
	return found, nil
}

// base is the program in the directory that an environment's file calls its home.
func (o Options) base(root, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, environmentFile))
	if err != nil {
		return "", broken(err)
	}
	for line := range strings.Lines(string(text)) {
		key, home, _ := strings.Cut(line, "=")
		home = strings.TrimSpace(home)
		if strings.TrimSpace(key) != "home" || !filepath.IsAbs(home) {
			continue
		}
		for _, n := range []string{name, "python3" + exe(), "python" + exe()} {
			if real, err := o.real(Python, filepath.Join(home, n)); err == nil && !within(root, real) {
				return real, nil
			}
		}
	}
	return "", errOther
}

// packages are the directories of an environment's packages, links resolved, as
// far as they lie in it.
func packages(root, version string) []string {
	pattern := "python3*"
	if version != "" {
		pattern = "python" + version
	}
	var found []string
	for _, p := range []string{filepath.Join("lib", pattern), filepath.Join("lib64", pattern), "Lib"} {
		matches, err := filepath.Glob(filepath.Join(root, p, "site-packages"))
		if err != nil {
			continue // the root has a name that looks like a pattern
		}
		for _, m := range matches {
			if real := resolved(m); isDir(real) && within(root, real) && !slices.Contains(found, real) {
				found = append(found, real)
			}
		}
	}
	return found
}

package interpreter

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// system lists the directories that every launch sees.
func (o Options) system() []string {
	if o.System != nil {
		return o.System
	}
	dirs := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	if runtime.GOOS == "darwin" {
		dirs = append(dirs, "/System", "/Library", "/opt/homebrew")
	}
	return dirs
}

// seen reports whether a launch sees a path without being shown it. On Windows
// nothing is hidden from one.
func (o Options) seen(path string) bool {
	return runtime.GOOS == "windows" || slices.ContainsFunc(o.system(), func(dir string) bool { return within(dir, path) })
}

// dirs are the directories of PATH from which programs are taken, links resolved.
//
// One that everyone may write to is not among them, also if it is sticky: that
// keeps others from replacing a file, and not from adding a python3.14 of their own.
func (o Options) dirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(o.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.Contains(dirs, real) || o.foreign(real) {
			continue
		}
		info, err := os.Stat(real)
		if err != nil || !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
			continue
		}
		dirs = append(dirs, real)
	}
	return dirs
}

// foreign reports whether a directory lies below the one where the program was
// started, and that says something about whose it is.
func (o Options) foreign(dir string) bool {
	here := resolved(o.Dir)
	if here == "" || filepath.Dir(here) == here || o.seen(here) || within(here, resolved(o.Home)) {
		return false
	}
	return within(here, dir)
}

// resolved is a path without links, or as it is when it leads nowhere.
func resolved(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// needs are the directories and files that a program must see of what a launch
// does not see anyway.
func (o Options) needs(real, version string) ([]string, error) {
	if o.seen(real) {
		return nil, nil
	}
	prefix := prefixOf(real)
	if o.Home != "" && prefix == filepath.Join(resolved(o.Home), ".local") {
		// What lies there belongs to many programs.
		return narrow(real, prefix, version), nil
	}
	if o.wide(prefix) {
		return nil, errWide
	}
	return []string{prefix}, nil
}

// prefixOf is the directory of the installation that a program belongs to: the
// store of a package manager whose packages need each other, or what is above its
// folder "bin".
func prefixOf(real string) string {
	for _, store := range []string{"/nix/store", "/gnu/store"} {
		if within(store, real) {
			return store
		}
	}
	sep := string(filepath.Separator)
	if brew, _, found := strings.Cut(real, sep+"Cellar"+sep); found {
		return brew
	}
	bin := filepath.Dir(real)
	switch filepath.Base(bin) {
	case "bin", "sbin", "Scripts":
		return filepath.Dir(bin)
	}
	return bin
}

// narrow is a program alone, with its library if that lies beside it.
func narrow(real, prefix, version string) []string {
	read := []string{real}
	if library := resolved(filepath.Join(prefix, "lib", "python"+version)); version != "" && isDir(library) && within(prefix, library) {
		read = append(read, library)
	}
	return read
}

// wide reports whether a directory holds much more than an installation: it is the
// root, or right below it, or it holds a home.
func (o Options) wide(dir string) bool {
	if above := filepath.Dir(dir); above == dir || filepath.Dir(above) == above {
		return true
	}
	if home := resolved(o.Home); home != "" && within(dir, home) {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".ssh"))
	return err == nil
}

// Search is the PATH for a launch that sees some interpreters: their own
// directories, then those of the host's PATH that are seen, then the system's usual
// ones. Of the interpreters' own, the system's come last, so that "python3" in a shell
// script is the Python that was found here.
func (o Options) Search(found ...Interpreter) []string {
	var dirs, read []string
	add := func(more ...string) {
		for _, dir := range more {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, i := range found {
		add(slices.DeleteFunc(slices.Clone(i.Bin), o.seen)...)
		read = append(read, i.Read...)
	}
	for _, i := range found {
		add(i.Bin...)
	}
	for _, dir := range o.dirs() {
		if o.seen(dir) || slices.ContainsFunc(read, func(r string) bool { return within(r, dir) }) {
			add(dir)
		}
	}
	if runtime.GOOS != "windows" {
		add("/usr/local/bin", "/usr/bin", "/bin")
	}
	return dirs
}

//go:build unix

package interpreter

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is the content of a fixture that stands for a real program, script that
// of a shim.
const (
	program = "\x7fELF"
	script  = "#!/bin/sh\nexec manager \"$@\"\n"
)

// host is a fixture: files by their paths, all below one directory that "$R" stands
// for. "-> x" makes a link, "dir MODE" a directory of a mode.
type host map[string]string

func (h host) build(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range h {
		at := filepath.Join(root, name)
		check(t, os.MkdirAll(filepath.Dir(at), 0o755))
		text = strings.ReplaceAll(text, "$R", root)
		switch target, link := strings.CutPrefix(text, "-> "); {
		case link:
			check(t, os.Symlink(target, at))
		case text == "dir":
			check(t, os.MkdirAll(at, 0o755))
		case text == "not executable":
			check(t, os.WriteFile(at, []byte(program), 0o644))
		default:
			check(t, os.WriteFile(at, []byte(text), 0o755))
		}
	}
	return root
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// example is a host and what is found there. Paths are written from its root.
type example struct {
	name string
	kind Kind
	host host
	// path is the PATH, dir where the program was started.
	path, dir string
	set       func(o *Options)
	// want is the program, or what the error says after the host's root is left out.
	want, fails string
	version     string
	read        []string
	packages    []string
	bin         []string
}

func (e example) options(root string) Options {
	o := Options{
		Path:   strings.ReplaceAll(e.path, "$R", root),
		Home:   filepath.Join(root, "home/u"),
		Dir:    filepath.Join(root, "work"),
		System: []string{filepath.Join(root, "usr"), filepath.Join(root, "bin")},
	}
	if e.dir != "" {
		o.Dir = filepath.Join(root, e.dir)
	}
	if e.set != nil {
		e.set(&o)
	}
	return o
}

func (e example) run(t *testing.T) {
	root := e.host.build(t)
	o := e.options(root)
	kind := e.kind
	if kind == "" {
		kind = Python
	}
	got, err := o.Find(kind)
	short := func(text string) string { return strings.ReplaceAll(text, root+"/", "") }
	if e.want == "" {
		if _, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(short(err.Error()), e.fails) {
			t.Fatalf("got %+v, %v", got, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	all := func(paths []string) []string {
		var out []string
		for _, p := range paths {
			out = append(out, short(p))
		}
		return out
	}
	if short(got.Path) != e.want || got.Version != e.version || got.Kind != kind {
		t.Errorf("found %s version %q", short(got.Path), got.Version)
	}
	if diff := cmp.Diff(e.read, all(got.Read)); diff != "" {
		t.Errorf("read: %s", diff)
	}
	if diff := cmp.Diff(e.packages, all(got.Packages)); diff != "" {
		t.Errorf("packages: %s", diff)
	}
	bin := e.bin
	if bin == nil {
		bin = []string{filepath.Dir(e.want)}
	}
	if diff := cmp.Diff(bin, all(got.Bin)); diff != "" {
		t.Errorf("bin: %s", diff)
	}
}

func TestFind(t *testing.T) {
	for _, e := range append(plainHosts(), managedHosts()...) {
		t.Run(e.name, e.run)
	}
}

func plainHosts() []example {
	return []example{
		{name: "plain", host: host{"usr/bin/python3": program}, path: "$R/usr/bin", want: "usr/bin/python3"},
		{name: "through a link", host: host{"usr/bin/python3": "-> python3.11", "usr/bin/python3.11": program}, path: "$R/usr/bin", want: "usr/bin/python3.11", version: "3.11"},
		{
			name: "the newest by name", host: host{"usr/bin/python3": program, "usr/bin/python3.9": program, "usr/local/bin/python3.10": program, "usr/bin/python3.12": program},
			path: "$R/usr/local/bin:$R/usr/bin", want: "usr/bin/python3.12", version: "3.12",
		},
		{name: "too old to be asked for by name", host: host{"usr/bin/python3.9": program}, path: "$R/usr/bin", fails: "install it for all users"},
		{name: "python alone is no python3", host: host{"usr/bin/python": program}, path: "$R/usr/bin", fails: "find python"},
		{name: "bash", kind: Bash, host: host{"bin": "-> usr/bin", "usr/bin/bash": program}, path: "$R/bin", want: "usr/bin/bash"},
		{name: "bash that is busybox", kind: Bash, host: host{"usr/bin/bash": "-> busybox", "usr/bin/busybox": program}, path: "$R/usr/bin", fails: "is another program"},
		{name: "nodejs", kind: Node, host: host{"usr/bin/nodejs": program}, path: "$R/usr/bin", want: "usr/bin/nodejs"},
		{name: "alternatives", kind: Node, host: host{"usr/bin/node": "-> $R/etc/node", "etc/node": "-> $R/usr/bin/nodejs", "usr/bin/nodejs": program}, path: "$R/usr/bin", want: "usr/bin/nodejs"},
		{name: "in a prefix of its own", host: host{"srv/tools/py/bin/python3.12": program}, path: "$R/srv/tools/py/bin", want: "srv/tools/py/bin/python3.12", version: "3.12", read: []string{"srv/tools/py"}},
		{
			name: "Homebrew", host: host{"home/brew/bin/python3": "-> ../Cellar/python@3.12/3.12.4/bin/python3.12", "home/brew/Cellar/python@3.12/3.12.4/bin/python3.12": program},
			path: "$R/home/brew/bin", want: "home/brew/Cellar/python@3.12/3.12.4/bin/python3.12", version: "3.12", read: []string{"home/brew"},
		},

		{name: "nothing", host: host{"usr/bin/perl": program}, path: "$R/usr/bin", fails: "no directory of PATH has one that can be used: install it"},
		{name: "no PATH", host: host{"usr/bin/python3": program}, fails: "no directory of PATH"},
		{name: "a broken link", host: host{"opt/a/bin/python3": "-> gone", "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "links in a circle", host: host{"opt/a/bin/python3": "-> python", "opt/a/bin/python": "-> python3", "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "only a broken link", host: host{"opt/a/bin/python3": "-> gone"}, path: "$R/opt/a/bin", fails: "opt/a/bin/python3 leads nowhere"},
		{name: "not executable", host: host{"opt/a/bin/python3": "not executable", "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "a folder", host: host{"opt/a/bin/python3": "dir", "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "empty", host: host{"opt/a/bin/python3": "", "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "a wrapper script", host: host{"opt/a/bin/python3": script, "usr/bin/python3": program}, path: "$R/opt/a/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "only a wrapper script", host: host{"opt/a/bin/python3": script}, path: "$R/opt/a/bin", fails: "opt/a/bin/python3 is a script"},
		{name: "a snap", kind: Node, host: host{"snap/bin/node": "-> $R/usr/bin/snap", "usr/bin/snap": program, "usr/bin/node": program}, path: "$R/snap/bin:$R/usr/bin", want: "usr/bin/node"},

		{name: "a relative entry", host: host{"usr/bin/python3": program}, path: "bin:.::../usr/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "an entry in the working directory", host: host{"work/bin/python3.14": program, "usr/bin/python3": program}, path: "$R/work/bin:$R/work:$R/usr/bin", want: "usr/bin/python3"},
		{name: "an entry that leads into the working directory", host: host{"work/bin/python3.14": program, "opt/bin": "-> $R/work/bin", "usr/bin/python3": program}, path: "$R/opt/bin:$R/usr/bin", want: "usr/bin/python3"},
		{
			name: "started in the home", dir: "home/u", host: host{"home/u/.nvm/versions/node/v20.11.0/bin/node": program}, kind: Node, path: "$R/home/u/.nvm/versions/node/v20.11.0/bin",
			want: "home/u/.nvm/versions/node/v20.11.0/bin/node", version: "20.11.0", read: []string{"home/u/.nvm/versions/node/v20.11.0"},
		},
		{name: "started in a directory of the system", dir: "usr/bin", host: host{"usr/bin/python3": program}, path: "$R/usr/bin", want: "usr/bin/python3"},

		{name: "prefix is the home", host: host{"home/u/bin/python3.12": program, "usr/bin/python3": program}, path: "$R/home/u/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "prefix is the home and nothing else", host: host{"home/u/bin/python3.12": program}, path: "$R/home/u/bin", fails: "home/u/bin/python3.12 lies in a directory that holds a home"},
		{name: "prefix holds the home", host: host{"home/bin/python3.12": program, "home/u/x": "x", "usr/bin/python3": program}, path: "$R/home/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "prefix holds someone's keys", host: host{"home/v/bin/python3.12": program, "home/v/.ssh/id": "x", "usr/bin/python3": program}, path: "$R/home/v/bin:$R/usr/bin", want: "usr/bin/python3"},
		{name: "beside no folder bin", host: host{"home/u/python3.12": program, "usr/bin/python3": program}, path: "$R/home/u:$R/usr/bin", want: "usr/bin/python3"},
		{
			name: "in .local", host: host{"home/u/.local/bin/python3.12": program, "home/u/.local/lib/python3.12/os.py": "x", "home/u/.local/share/keyrings/k": "x"}, path: "$R/home/u/.local/bin",
			want: "home/u/.local/bin/python3.12", version: "3.12", read: []string{"home/u/.local/bin/python3.12", "home/u/.local/lib/python3.12"},
		},
		{
			name: "in .local, no library", kind: Node, host: host{"home/u/.local/bin/node": program}, path: "$R/home/u/.local/bin",
			want: "home/u/.local/bin/node", read: []string{"home/u/.local/bin/node"},
		},
		{
			name: "linked from .local", host: host{"home/u/.local/bin/python3.12": "-> ../share/uv/python/cpython-3.12.4-linux/bin/python3.12", "home/u/.local/share/uv/python/cpython-3.12.4-linux/bin/python3.12": program},
			path: "$R/home/u/.local/bin", want: "home/u/.local/share/uv/python/cpython-3.12.4-linux/bin/python3.12", version: "3.12", read: []string{"home/u/.local/share/uv/python/cpython-3.12.4-linux"},
		},
	}
}

// TestWritableByAll: neither a directory nor a program that everyone can change is
// used, a sticky directory included.
func TestWritableByAll(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky, 0o757} {
		root := host{"opt/a/bin/python3.14": program, "usr/bin/python3": program}.build(t)
		check(t, os.Chmod(filepath.Join(root, "opt/a/bin"), mode))
		o := example{path: "$R/opt/a/bin:$R/usr/bin"}.options(root)
		if got, err := o.Find(Python); err != nil || got.Path != filepath.Join(root, "usr/bin/python3") {
			t.Errorf("mode %v: %s, %v", mode, got.Path, err)
		}
	}
	root := host{"opt/a/bin/python3.14": program, "usr/bin/python3": program}.build(t)
	check(t, os.Chmod(filepath.Join(root, "opt/a/bin/python3.14"), 0o777))
	o := example{path: "$R/opt/a/bin:$R/usr/bin"}.options(root)
	if got, err := o.Find(Python); err != nil || got.Path != filepath.Join(root, "usr/bin/python3") {
		t.Errorf("a program of mode 777: %s, %v", got.Path, err)
	}
}

// TestRelativeEntries: a program in the directory that this program happens to be in
// is not found through PATH.
func TestRelativeEntries(t *testing.T) {
	root := host{"opt/a/bin/python3.14": program, "opt/a/python3.14": program, "usr/bin/python3": program}.build(t)
	t.Chdir(root)
	o := example{path: "opt/a/bin::.:./opt/a/bin:opt/a:$R/usr/bin"}.options(root)
	if got, err := o.Find(Python); err != nil || got.Path != filepath.Join(root, "usr/bin/python3") {
		t.Errorf("%s, %v", got.Path, err)
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := (Options{}).Find("cobol"); err == nil {
		t.Error("there is no such kind")
	}
}

// TestSearch: programs come first, and what a launch does not see is left out.
func TestSearch(t *testing.T) {
	root := host{
		"usr/bin/bash": program, "usr/sbin": "dir", "usr/local/bin": "dir", "opt/other/bin": "dir", "home/u/.cargo/bin": "dir",
		"home/u/.nvm/versions/node/v20.11.0/bin/node": program, "home/u/.nvm/versions/node/v20.11.0/tools": "dir",
	}.build(t)
	o := example{path: "$R/home/u/.cargo/bin:$R/opt/other/bin:$R/usr/sbin:relative:$R/usr/bin:$R/home/u/.nvm/versions/node/v20.11.0/tools:$R/home/u/.nvm/versions/node/v20.11.0/bin"}.options(root)
	var found []Interpreter
	for _, k := range []Kind{Bash, Node} {
		i, err := o.Find(k)
		check(t, err)
		found = append(found, i)
	}
	var got []string
	for _, dir := range o.Search(found...) {
		got = append(got, strings.TrimPrefix(dir, root+"/"))
	}
	want := []string{"home/u/.nvm/versions/node/v20.11.0/bin", "usr/bin", "usr/sbin", "home/u/.nvm/versions/node/v20.11.0/tools", "/usr/local/bin", "/usr/bin", "/bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWide: neither the root nor what lies right below it is ever shown.
func TestWide(t *testing.T) {
	for _, dir := range []string{"/", "/opt", "/home", "/root", "/srv"} {
		if !(Options{}).wide(dir) {
			t.Errorf("%s may be shown", dir)
		}
	}
	if (Options{}).wide("/opt/nothing-of-this-name") {
		t.Error("an installation may not be shown")
	}
	if p := prefixOf("/nix/store/x-python3-3.12/bin/python3.12"); p != "/nix/store" {
		t.Error(p)
	}
}

// TestThisHost finds what the machine of the test has, if it has any.
func TestThisHost(t *testing.T) {
	home, err := os.UserHomeDir()
	check(t, err)
	o := Options{Path: os.Getenv("PATH"), Home: home, PyenvRoot: os.Getenv("PYENV_ROOT")}
	for _, k := range []Kind{Python, Node, Bash} {
		got, err := o.Find(k)
		if missing, ok := errors.AsType[*NotFoundError](err); ok {
			t.Logf("%v", missing)
			continue
		}
		check(t, err)
		if real, err := filepath.EvalSymlinks(got.Path); err != nil || real != got.Path {
			t.Errorf("%s is not canonical: %s, %v", got.Path, real, err)
		}
		for _, dir := range got.Read {
			if within(dir, home) || dir == "/" {
				t.Errorf("%s is shown for %s", dir, got.Path)
			}
		}
		t.Logf("%+v", got)
	}
}

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

func newTest(t *testing.T) *Workspace {
	t.Helper()
	w, err := New(Options{Area: t.TempDir(), Interpreters: interpreter.Options{Path: os.Getenv("PATH")}, Environ: []string{"LANG=de_DE.UTF-8", "SECRET=x", "TZ=a\nb"}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestLayout: the folders of B1 8.1 are there, come back when they are lost, and go.
func TestLayout(t *testing.T) {
	w := newTest(t)
	dirs := []string{w.Work(), w.State(), w.Saved(), w.Jobs(), w.Temp()}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	w.Seen.Whole("a", []byte("x"))
	w.Use(Packages{Kind: interpreter.Node, Imports: []string{"/sets/n/node_modules"}})
	if lost, err := w.Restore(); lost || err != nil {
		t.Errorf("restored without need: %t %v", lost, err)
	}
	if err := os.RemoveAll(w.base); err != nil {
		t.Fatal(err)
	}
	if lost, err := w.Restore(); !lost || err != nil {
		t.Errorf("lost is not told: %t %v", lost, err)
	}
	if w.Seen.Know("a", []byte("x")) != Unread {
		t.Error("what was seen of lost files is still remembered")
	}
	if to, err := os.Readlink(filepath.Join(w.Work(), "node_modules")); err != nil || to != "/sets/n/node_modules" {
		t.Errorf("the packages of Node are not found any more: %q, %v", to, err)
	}
	released := 0
	w.Use(Packages{Kind: interpreter.Python, Release: func() { released++ }})
	w.Use(Packages{Kind: interpreter.Python, Release: func() { released += 10 }})
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(w.base); !errors.Is(err, fs.ErrNotExist) || released != 11 {
		t.Errorf("after close: %v, released %d", err, released)
	}
	if _, err := w.Restore(); err == nil {
		t.Error("a closed workspace comes back")
	}
}

// TestLock: one at a time, and nobody waits longer than asked.
func TestLock(t *testing.T) {
	w := newTest(t)
	unlock, err := w.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Lock(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("two at a time: %v", err)
	}
	unlock()
	waiting, began := make(chan error), make(chan struct{})
	hold, err := w.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		close(began)
		unlock, err := w.Lock(context.Background())
		if err == nil {
			unlock()
		}
		waiting <- err
	}()
	<-began
	hold()
	<-waiting // it may have had its turn, or not
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Lock(context.Background()); !errors.Is(err, errClosed) {
		t.Errorf("whoever waits for a closed workspace hangs: %v", err)
	}
}

// TestResolve: a model's path leads into the work folder or is refused.
func TestResolve(t *testing.T) {
	w := newTest(t)
	write(t, filepath.Join(w.Work(), "src", "deep", "a.py"), "x")
	at := func(dir string) {
		if err := os.WriteFile(filepath.Join(w.Saved(), cwdName), []byte(dir+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ cwd, path, want string }{
		{"", "a.py", "a.py"},
		{"", " ./a.py\n", "a.py"},
		{"src", "a.py", "src/a.py"},
		{"src", "../b.py", "b.py"},
		{"src/deep", "../../b.py", "b.py"},
		{"src", "~/b.py", "b.py"},
		{"src", "~", "."},
		{"src", ".", "src"},
		{"gone", "a.py", "a.py"},
		{"src", filepath.Join("{work}", "x", "y"), "x/y"},
		{"src", "{work}", "."},
		{"", "../x", ""},
		{"src", "../../x", ""},
		{"src", "~/../x", ""},
		{"", "/etc/passwd", ""},
		{"", "{work}/../state/x", ""},
		{"", "", ""},
		{"", `C:\x`, ""},
		{"", `a\b`, ""},
		{"", "a/\x00", ""},
	}
	for _, tt := range tests {
		at(filepath.Join(w.Work(), tt.cwd))
		got, err := w.Resolve(strings.ReplaceAll(tt.path, "{work}", w.Work()))
		if tt.want == "" {
			if _, refused := errors.AsType[*guard.PathError](err); !refused {
				t.Errorf("in %q %q leads to %q, %v", tt.cwd, tt.path, got, err)
			}
			continue
		}
		if got != tt.want || err != nil {
			t.Errorf("in %q %q leads to %q, %v; want %q", tt.cwd, tt.path, got, err, tt.want)
		}
	}
	at(filepath.Join(w.Work(), "src"))
	if got := w.Shown("a.py"); got != "../a.py" {
		t.Errorf("shown as %q", got)
	}
}

// TestCurrent: what the shell left is not believed.
func TestCurrent(t *testing.T) {
	w := newTest(t)
	file := filepath.Join(w.Saved(), cwdName)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(w.Work(), "out")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Work(), "in", "x"), "x")
	for text, want := range map[string]string{
		filepath.Join(w.Work(), "in") + "\n":      "in",
		outside:                                   ".",
		filepath.Join(w.Work(), "out"):            ".",
		filepath.Join(w.Work(), "in", "x"):        ".",
		filepath.Join(w.Work(), "in", "..", ".."): ".",
		w.Work() + "x":                            ".",
		"in":                                      ".",
		strings.Repeat("x", 200<<10):              ".",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := w.Current(); got != want {
			t.Errorf("%.80q: at %q, want %q", text, got, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(outside, "cwd")
	write(t, real, filepath.Join(w.Work(), "in"))
	if err := os.Symlink(real, file); err != nil {
		t.Fatal(err)
	}
	if got := w.Current(); got != "." {
		t.Errorf("a link is followed: %q", got)
	}
}

// TestLaunch: what a launch sees, and that no secret is in it.
func TestLaunch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of this test are those of Unix")
	}
	hide, shown := t.TempDir(), t.TempDir()
	w, err := New(Options{
		Area: t.TempDir(), Interpreters: interpreter.Options{Path: os.Getenv("PATH")},
		Environ: []string{"LANG=de_DE.UTF-8", "SECRET=x", "TZ=a\nb", "PYTHONPATH=/x"}, Hide: []string{hide, shown, filepath.Join(hide, "missing"), "/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Use(Packages{Kind: interpreter.Python, Dir: "/sets/p", Imports: []string{"/sets/p/lib"}, Bin: []string{"/sets/p/bin"}})
	w.Use(Packages{Kind: interpreter.Node, Dir: "/sets/n", Imports: []string{"/sets/n/node_modules"}})
	l := w.Launch(sandbox.Shell, "src", Extra{Read: []string{shown}, Imports: []string{"/skill"}, Env: []string{"MINE=1"}})
	l.Argv = []string{"/bin/true"}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range l.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	path := strings.Split(env["PATH"], ":")
	local := slices.Index(path, filepath.Join(w.Work(), ".local", "bin"))
	shims := slices.Index(path, w.shims())
	system := slices.Index(path, "/usr/bin")
	if path[0] != "/sets/p/bin" || local != 1 || shims != 2 || system < shims {
		t.Errorf("PATH is %s", path)
	}
	want := map[string]string{
		"HOME": w.Work(), "TMPDIR": w.Temp(), "NODE_PATH": "/sets/n/node_modules", "MINE": "1", "LANG": "de_DE.UTF-8", "TZ": "", "SECRET": "",
		"PYTHONPATH": "/skill:" + filepath.Join(w.Work(), ".local", "python") + ":/sets/p/lib",
	}
	for name, value := range want {
		if name == "PYTHONPATH" && strings.HasPrefix(env[name], value) {
			continue
		}
		if env[name] != value {
			t.Errorf("%s=%s, want %s", name, env[name], value)
		}
	}
	if l.Dir != filepath.Join(w.Work(), "src") || !slices.Contains(l.Read, "/sets/n") || !slices.Contains(l.Read, w.State()) {
		t.Errorf("dir %s, read %s", l.Dir, l.Read)
	}
	if real, _ := filepath.EvalSymlinks(hide); !slices.Equal(l.Hide, []string{real}) {
		t.Errorf("hidden: %s", l.Hide)
	}
	if slices.Contains(l.Write, w.State()) {
		t.Error("commands may write the host's own files")
	}
}

// TestShims: python is there and is the interpreter that was found.
func TestShims(t *testing.T) {
	w := newTest(t)
	found, err := w.Interpreter(interpreter.Python)
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("this host has no Python")
	}
	text, err := os.ReadFile(filepath.Join(w.shims(), "python"))
	if err != nil || string(text) != "#!/bin/sh\nexec '"+found.Path+"' \"$@\"\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(w.shims(), "pip")); err == nil {
		t.Error("there is a shim for pip")
	}
	o := w.o
	o.NoShims = true
	w, err = New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	if _, err := os.Stat(filepath.Join(w.shims(), "python")); err == nil {
		t.Error("there is a shim that nobody wants")
	}
}

// TestOwn: only a program inside the work folder counts as the conversation's own.
func TestOwn(t *testing.T) {
	w := newTest(t)
	bin := filepath.Join(w.Work(), ".local", "bin")
	write(t, filepath.Join(bin, "node"), "x")
	if _, ok := w.Own(interpreter.Node); ok && runtime.GOOS != "windows" {
		t.Error("a file that is no program counts")
	}
	if err := os.Chmod(filepath.Join(bin, "node"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, ok := w.Own(interpreter.Node); !ok || got.Path != filepath.Join(bin, "node") {
		t.Errorf("%+v %t", got, ok)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(bin, "python3")); err != nil {
		t.Fatal(err)
	}
	if got, ok := w.Own(interpreter.Python); ok {
		t.Errorf("a link out of the workspace counts: %+v", got)
	}
}

// TestSeen holds what is remembered against a plain list of lines.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSeen(config.Values{})
		text := []byte(strings.Repeat("line\n", rapid.IntRange(1, 12).Draw(t, "lines")))
		n := Lines(text)
		seen := make([]bool, n+1)
		for range rapid.IntRange(0, 6).Draw(t, "reads") {
			first := rapid.IntRange(1, n).Draw(t, "first")
			last := rapid.IntRange(first, n).Draw(t, "last")
			s.Some("f", text, first, last)
			for i := first; i <= last; i++ {
				seen[i] = true
			}
		}
		first := rapid.IntRange(1, n).Draw(t, "from")
		last := rapid.IntRange(first, n).Draw(t, "to")
		if got, want := s.Knows("f", text, first, last), !slices.Contains(seen[first:last+1], false); got != want {
			t.Fatalf("knows %d-%d: %t, want %t", first, last, got, want)
		}
		all, none := !slices.Contains(seen[1:], false), !slices.Contains(seen[1:], true)
		switch got := s.Know("f", text); {
		case all && got != Fresh, none && got != Unread, !all && !none && got != Partial:
			t.Fatalf("know: %d, seen %v", got, seen)
		}
		if got := s.Know("f", append(text, 'x')); !none && got != Stale {
			t.Fatalf("a changed file: %d", got)
		}
	})
}

// TestSeenBound: the file seen the longest ago is forgotten.
func TestSeenBound(t *testing.T) {
	limits, err := config.Values{}.Set(config.SeenKept, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := newSeen(limits)
	for _, name := range []string{"a", "b", "a", "c"} {
		s.Whole(name, nil)
	}
	if s.Know("b", nil) != Unread || s.Know("a", nil) != Fresh || s.Know("c", nil) != Fresh {
		t.Error("the wrong one is forgotten")
	}
	s.Forget("a")
	if s.Know("a", nil) != Unread {
		t.Error("a file that is gone is known")
	}
}

// FuzzResolve: no spelling leads out.
func FuzzResolve(f *testing.F) {
	area := f.TempDir()
	w, err := New(Options{Area: area})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"a", "../a", "~/..", w.Work() + "/../x", "a/../../b", "./~x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, err := w.Resolve(name); err == nil && !filepath.IsLocal(filepath.FromSlash(got)) {
			t.Errorf("%q leads to %q", name, got)
		}
	})
}

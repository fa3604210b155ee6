package packages

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/native"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// confined is a runner that confines for real.
type confined struct{ backend sandbox.Backend }

func (c confined) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	limits := config.Values{}
	l.Memory, l.Processes = limits.Get(config.SandboxMemory), limits.Get(config.SandboxProcs)
	return sandbox.Run(ctx, c.backend, l)
}

func confining(t testing.TB) confined {
	t.Helper()
	found := native.Find(t.Context(), native.Options{SetUp: config.Values{}.Duration(config.SandboxSetUp)})
	if found.Backend == nil {
		t.Skipf("nothing confines launches here: %v", found.Problem)
	}
	t.Cleanup(func() { check(t, found.Backend.Close()) })
	return confined{found.Backend}
}

func hostPrograms(t testing.TB) interpreter.Options {
	t.Helper()
	home, err := os.UserHomeDir()
	check(t, err)
	return interpreter.Options{Path: os.Getenv("PATH"), Home: home, PyenvRoot: os.Getenv("PYENV_ROOT")}
}

// local is a store over a registry of this test, and a real backend.
func local(t testing.TB, environ ...string) *Store {
	t.Helper()
	limits, err := config.Values{}.Set(config.InstallTime, 60)
	check(t, err)
	s, err := Open(Options{
		Dir: filepath.Join(tempDir(t), "packages"), Runner: confining(t), Front: front(t, environ...), Interpreters: hostPrograms(t), Limits: limits,
		Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	return s
}

// run starts a program as a shell of the workspace would, and gives what it printed.
func (s *Store) run(t testing.TB, use interpreter.Interpreter, env []string, argv ...string) string {
	t.Helper()
	dir := tempDir(t)
	r, err := s.o.Runner.Run(t.Context(), sandbox.Launch{
		Purpose: sandbox.Shell, Argv: argv, Dir: dir, Write: []string{dir}, Read: append(use.Read, s.o.Dir), Env: append(env, "HOME="+dir),
		Output: 1 << 16, Deadline: time.Minute, Disk: 1 << 20,
	})
	check(t, err)
	return r.Stdout.Text() + r.Stderr.Text()
}

func wants(t testing.TB, names ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts real installers")
	}
	for _, kind := range names {
		if _, err := hostPrograms(t).Find(interpreter.Kind(kind)); err != nil {
			t.Skip(err)
		}
	}
}

// TestRealPip: a real pip in a real sandbox installs a wheel, what it needs, and a
// program that works; nothing of the operator's credential is in the set.
func TestRealPip(t *testing.T) {
	wants(t, "python")
	r := newRegistry(t)
	s := local(t, r.environ()...)
	set, err := s.Install(t.Context(), Request{Kind: interpreter.Python, Add: []Spec{{Name: "Demo.App", Extras: []string{"more"}, Version: ">=1,<2"}, {Name: "absent", Marker: `python_version < "3"`}}})
	check(t, err)
	defer set.Close()
	want := []Installed{{"demo-app", "1.5"}, {"extra", "1.0"}, {"helper", "2.0"}}
	if diff := cmp.Diff(want, set.Names); diff != "" {
		t.Fatal(diff)
	}
	python, err := hostPrograms(t).Find(interpreter.Python)
	check(t, err)
	env := []string{"PYTHONPATH=" + strings.Join(set.Python, ":"), "PATH=/usr/bin:/bin"}
	if got := s.run(t, python, env, filepath.Join(set.Bin[0], "demo-app")); got != "demo 1.5 with helper 2.0\n" {
		t.Errorf("the program says %q", got)
	}
	if got := s.run(t, python, env, "/bin/sh", "-c", "echo x > "+set.Dir+"/tree/new || echo refused"); !strings.Contains(got, "refused") {
		t.Errorf("a set can be written to: %q", got)
	}
	check(t, filepath.WalkDir(s.o.Dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(at)
			check(t, err)
			if strings.Contains(string(data), secret) || strings.Contains(string(data), "127.0.0.1") {
				t.Errorf("%s holds an address or a credential", at)
			}
		}
		return err
	}))
	// The next one holds what was there before, and asks nobody about what is known.
	before := r.count()
	again, err := s.Install(t.Context(), Request{Kind: interpreter.Python, Add: []Spec{{Name: "Demo.App", Extras: []string{"more"}, Version: ">=1,<2"}, {Name: "absent", Marker: `python_version < "3"`}}})
	check(t, err)
	again.Close()
	if again.Dir != set.Dir || r.count() != before {
		t.Errorf("%d more requests, and the set is %s", r.count()-before, again.Dir)
	}
}

// TestRealEnvironment: the Python of a virtual environment, made in a sandbox by the
// Python that packages are for, finds a set that a real pip has installed.
func TestRealEnvironment(t *testing.T) {
	wants(t, "python")
	r := newRegistry(t)
	s := local(t, r.environ()...)
	set, err := s.Install(t.Context(), Request{Kind: interpreter.Python, Add: []Spec{{Name: "helper"}}})
	check(t, err)
	defer set.Close()
	python, err := hostPrograms(t).Find(interpreter.Python)
	check(t, err)
	env := []string{"PYTHONPATH=" + strings.Join(set.Python, ":"), "PATH=/usr/bin:/bin"}
	got := s.run(t, python, env, "/bin/sh", "-c", python.Path+" -m venv --without-pip v && v/bin/python -c 'import helper, sys; print(helper.__name__, sys.prefix != sys.base_prefix)'")
	if got != "helper True\n" {
		t.Errorf("it says %q", got)
	}
}

// TestRealPipFails: each way to fail has its own sentence, without an address or a path.
func TestRealPipFails(t *testing.T) {
	wants(t, "python")
	r := newRegistry(t)
	s := local(t, r.environ()...)
	type row struct {
		name   string
		have   string
		add    string
		reason Reason
	}
	tests := []row{
		{"conflict", "old-fan", "new-fan", Conflict},
		{"wrong hash", "", "tampered", Damaged},
	}
	more := []row{
		{"only source", "", "sourceonly", NoWheel},
		{"no package", "", "nosuchthing", NoPackage},
		{"no version", "", "demo-app==9", NoVersion},
		{"no wheel", "", "foreign", NoWheel},
		{"cut", "", "cut", Damaged},
		{"elsewhere", "", "elsewhere", NotAllowed},
		{"denied", "", "locked", Denied},
		{"failing", "", "failing", NoAnswer},
		{"no page", "", "nopage", Damaged},
	}
	if thorough() {
		tests = append(tests, more...)
	}
	t.Run("all", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				_, err := s.Install(t.Context(), Request{Kind: interpreter.Python, Have: specs(tt.have), Add: specs(tt.add)})
				r.judge(t, err, tt.reason)
			})
		}
	})
	if left := s.left(t); left != 0 {
		t.Errorf("%d stages are left", left)
	}
}

// TestRealNpm: a real npm, in the same way. No script of a package runs.
func TestRealNpm(t *testing.T) {
	wants(t, "node")
	r := newRegistry(t)
	s := local(t, r.environ()...)
	if _, err := s.plan(Request{Kind: interpreter.Node, Add: specs("tool")}); err != nil {
		t.Skip(err)
	}
	set, err := s.Install(t.Context(), Request{Kind: interpreter.Node, Add: []Spec{{Name: "tool", Version: "^1.0"}, {Name: "@corp/lib"}}})
	check(t, err)
	defer set.Close()
	if diff := cmp.Diff([]Installed{{"@corp/lib", "1.0.0"}, {"dep", "1.0.0"}, {"tool", "1.2.0"}}, set.Names); diff != "" {
		t.Fatal(diff)
	}
	node, err := hostPrograms(t).Find(interpreter.Node)
	check(t, err)
	env := []string{"NODE_PATH=" + set.NodePath, "PATH=" + filepath.Dir(node.Path) + ":/usr/bin:/bin"}
	if got := s.run(t, node, env, filepath.Join(set.Bin[0], "tool")); got != "tool 1.2.0 with dep 1.0.0\n" {
		t.Errorf("the program says %q", got)
	}
	if _, err := os.Stat(filepath.Join(set.NodePath, "tool", "ran")); err == nil {
		t.Error("a script of a package has run")
	}
	type row struct {
		name, add, version string
		reason             Reason
	}
	tests := []row{{"conflict", "picky", "", Conflict}}
	more := []row{
		{"no package", "nosuchthing", "", NoPackage},
		{"no version", "tool", "9.9.9", NoVersion},
		{"wrong hash", "tampered", "", Damaged},
		{"elsewhere", "elsewhere", "", NotAllowed},
		{"denied", "locked", "", Denied},
	}
	if thorough() {
		tests = append(tests, more...)
	}
	t.Run("all", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				_, err := s.Install(t.Context(), Request{Kind: interpreter.Node, Have: []Spec{{Name: "dep", Version: "2.0.0"}}, Add: []Spec{{Name: tt.add, Version: tt.version}}})
				r.judge(t, err, tt.reason)
			})
		}
	})
}

// TestRealTogether: of two packages, the failure names the one that cannot be had, and
// nothing of the other is kept.
func TestRealTogether(t *testing.T) {
	for kind, add := range map[interpreter.Kind][]Spec{
		interpreter.Python: {{Name: "helper"}, {Name: "No.Such-Thing"}},
		interpreter.Node:   {{Name: "dep"}, {Name: "no-such-thing"}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			wants(t, string(kind))
			s := local(t, newRegistry(t).environ()...)
			if _, err := s.plan(Request{Kind: kind, Add: add}); err != nil {
				t.Skip(err)
			}
			_, err := s.Install(t.Context(), Request{Kind: kind, Add: add})
			f, ok := errors.AsType[*Failure](err)
			if !ok || f.Reason != NoPackage || registry.Fold(f.Package) != "no-such-thing" {
				t.Errorf("%+v", err)
			}
			if sets, err := os.ReadDir(s.sets()); err != nil || len(sets) > 0 {
				t.Errorf("%d sets are kept: %v", len(sets), err)
			}
		})
	}
}

// thorough reports whether every case is run: each costs a start of pip or npm. What is
// left out otherwise, TestExplain has with words that were recorded.
func thorough() bool { return os.Getenv("METIER_INSTALLS_LIVE") != "" }

// TestLive installs from the operator's own registries. It runs only where
// METIER_INSTALLS_LIVE says so: make installs-live.
func TestLive(t *testing.T) {
	if !thorough() {
		t.Skip("METIER_INSTALLS_LIVE is not set: make installs-live sets it")
	}
	home, err := os.UserHomeDir()
	check(t, err)
	settings, err := registry.ReadSettings(registry.Surroundings{Environ: os.Environ(), Home: home})
	check(t, err)
	f, err := registry.New(registry.Options{Settings: settings})
	check(t, err)
	t.Cleanup(f.Close)
	s, err := Open(Options{Dir: filepath.Join(tempDir(t), "packages"), Runner: confining(t), Front: f, Interpreters: hostPrograms(t)})
	check(t, err)
	for kind, name := range map[interpreter.Kind]string{interpreter.Python: "tabulate", interpreter.Node: "left-pad"} {
		set, err := s.Install(t.Context(), Request{Kind: kind, Add: []Spec{{Name: name}}})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		defer set.Close()
		if len(set.Names) == 0 || !strings.EqualFold(set.Names[0].Name, name) {
			t.Errorf("%s: %+v", kind, set)
		}
		t.Logf("%s: %v", kind, set.Names)
	}
}

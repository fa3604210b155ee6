package shell

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if string(want) != got {
		t.Errorf("%s differs; run the test with -update to see how. It is now:\n%s", path, got)
	}
}

// step is how a scripted session answers a command.
type step func(c shell.Command) (shell.Outcome, error)

// session is a scripted [Session]: each command takes the next step, and the last one
// again and again.
type session struct {
	mu     sync.Mutex
	steps  []step
	ran    []shell.Command
	jobs   []shell.Command
	jobErr error
	limits config.Values
}

func (s *session) Run(_ context.Context, c shell.Command) (shell.Outcome, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c)
	var do step
	if len(s.steps) > 0 {
		do = s.steps[0]
	}
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.mu.Unlock()
	if do == nil {
		return exits(0, "", "")(c)
	}
	return do(c)
}

func (s *session) Background(_ context.Context, c shell.Command) (shell.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobErr != nil {
		return shell.Job{}, s.jobErr
	}
	s.jobs = append(s.jobs, c)
	id := fmt.Sprint("job-", len(s.jobs))
	return shell.Job{ID: id, Shown: "../state/.jobs/" + id + ".log"}, nil
}

func (s *session) Timeout(asked time.Duration) time.Duration {
	if usual := s.limits.Duration(config.CodeTime); asked <= 0 {
		return usual
	}
	return min(asked, s.limits.Duration(config.CodeLongest))
}

func text(s string) sandbox.Output { return sandbox.Output{Head: []byte(s), Total: int64(len(s))} }

// exits is an outcome by itself, after 1.2 s.
func exits(code int, stdout, stderr string) step {
	return func(shell.Command) (shell.Outcome, error) {
		return shell.Outcome{
			Result: sandbox.Result{Ended: sandbox.Exited, Exit: code, Stdout: text(stdout), Stderr: text(stderr), Wall: 1200 * time.Millisecond},
			Ran:    ".", Dir: ".",
		}, nil
	}
}

// changed is an outcome with something else in it.
func changed(s step, change func(*shell.Outcome)) step {
	return func(c shell.Command) (shell.Outcome, error) {
		out, err := s(c)
		change(&out)
		return out, err
	}
}

func fails(err error) step {
	return func(shell.Command) (shell.Outcome, error) { return shell.Outcome{}, err }
}

// installer is a scripted [Installer]: what fails has its reason there.
type installer struct {
	mu       sync.Mutex
	fail     map[string]*packages.Failure
	requests []packages.Request
	before   func()
	dir      string
	bin      []string
}

func (i *installer) Install(_ context.Context, r packages.Request) (packages.Set, error) {
	if i.before != nil {
		i.before()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, r)
	set := packages.Set{Dir: i.dir, Python: []string{i.dir}, NodePath: filepath.Join(i.dir, "node_modules"), Bin: i.bin}
	for _, s := range r.Add {
		if f := i.fail[s.Name]; f != nil {
			return packages.Set{}, f
		}
	}
	for _, s := range append(r.Have, r.Add...) {
		set.Names = append(set.Names, packages.Installed{Name: s.Name, Version: "1.0"})
	}
	return set, nil
}

// asked are the names of all requests, in their order.
func (i *installer) asked() string {
	var names []string
	for _, r := range i.requests {
		for _, s := range r.Add {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, " ")
}

// runner is a scripted [Runner].
type runner struct {
	mu  sync.Mutex
	out string
	err error
	ran []sandbox.Launch
}

func (r *runner) Run(_ context.Context, l sandbox.Launch) (sandbox.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, l)
	return sandbox.Result{Ended: sandbox.Exited, Stdout: text(r.out)}, r.err
}

// bench is a set in a new workspace, with scripted rooms around it.
type bench struct {
	*Set
	t       testing.TB
	w       *workspace.Workspace
	session *session
	install *installer
	runner  *runner
	patches []string
}

func facts() Facts {
	return Facts{
		Dialect: "bash", System: "linux/amd64", Backend: "native", Policy: "full confinement", Holds: true, Installs: true, Files: true,
		Timeout: 120 * time.Second, Longest: 600 * time.Second,
	}
}

// newBench makes a bench; change, which may be nil, changes its options.
func newBench(t testing.TB, change func(*Options), steps ...step) *bench {
	t.Helper()
	w, err := workspace.New(workspace.Options{Area: t.TempDir(), Interpreters: interpreter.Options{Path: os.Getenv("PATH")}, Environ: []string{"LANG=C.UTF-8"}})
	check(t, err)
	t.Cleanup(func() { check(t, w.Close(context.Background())) })
	b := &bench{t: t, w: w, session: &session{steps: steps}, install: &installer{dir: filepath.Join(t.TempDir(), "set")}, runner: &runner{}}
	o := Options{
		Workspace: w, Session: b.session, Facts: facts(), Installer: b.install, Runner: b.runner,
		Capabilities: sandbox.Capabilities{Backend: "native", All: []sandbox.Capability{
			{Aspect: sandbox.Writes, Held: true},
			{Aspect: sandbox.Home, Held: true},
			{Aspect: sandbox.NoNetwork, Held: true},
			{Aspect: sandbox.Tree, Held: true},
			{Aspect: sandbox.Hidden, Held: true},
		}},
		Patch: func(_ context.Context, text string) (journal.Result, error) {
			b.patches = append(b.patches, text)
			return journal.Result{Text: "Patched.", OK: true}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	b.Set = New(o)
	return b
}

// call sends arguments as they are.
func (b *bench) call(arguments string) journal.Result {
	b.t.Helper()
	r, err := b.Invoke(b.t.Context(), llm.Call{ID: "1", Name: Name, Arguments: arguments}, tool.Env{})
	check(b.t, err)
	return r
}

// run sends a command, and more arguments by name and value.
func (b *bench) run(command string, more ...any) journal.Result {
	b.t.Helper()
	args := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	data, err := json.Marshal(args, json.Deterministic(true))
	check(b.t, err)
	return b.call(string(data))
}

// lines are the lines that reached the session.
func (b *bench) lines() []string {
	var all []string
	for _, c := range append(b.session.ran, b.session.jobs...) {
		all = append(all, c.Line)
	}
	return all
}

func (b *bench) write(name, data string) {
	b.t.Helper()
	path := filepath.Join(b.w.Work(), filepath.FromSlash(name))
	check(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(b.t, os.WriteFile(path, []byte(data), 0o644))
}

// want compares a result's text and whether it is a success.
func (b *bench) want(r journal.Result, ok bool, parts ...string) {
	b.t.Helper()
	if r.OK != ok {
		b.t.Errorf("ok is %v:\n%s", r.OK, r.Text)
	}
	for _, part := range parts {
		if !strings.Contains(r.Text, part) {
			b.t.Errorf("%q is not in:\n%s", part, r.Text)
		}
	}
}

// never fails if the text has any of the parts.
func (b *bench) never(r journal.Result, parts ...string) {
	b.t.Helper()
	for _, part := range parts {
		if strings.Contains(r.Text, part) {
			b.t.Errorf("%q is in:\n%s", part, r.Text)
		}
	}
}

var errScripted = errors.New("no room on the device")

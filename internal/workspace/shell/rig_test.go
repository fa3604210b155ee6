package shell

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is longer than anything here takes on a busy machine.
const patience = 60 * time.Second

// programs are the shells of this host that a session may have.
func programs() map[string]Program {
	found := map[string]Program{}
	for _, name := range []string{"bash", "dash", "busybox", "zsh", "ksh"} {
		if p, err := Find(name, interpreter.Options{Path: os.Getenv("PATH")}); err == nil {
			found[name] = p
		}
	}
	return found
}

// common are those that a host has by itself.
func common() map[string]Program {
	found := programs()
	delete(found, "zsh")
	delete(found, "ksh")
	return found
}

func limits(t testing.TB, set map[config.Name]int64) config.Values {
	t.Helper()
	var v config.Values
	for name, value := range set {
		var err error
		v, err = v.Set(name, value)
		check(t, err)
	}
	return v
}

// rig is a session of a new workspace.
type rig struct {
	*Session
	t *testing.T
	w *workspace.Workspace
}

func newRig(t *testing.T, p Program, starter Starter, v config.Values) *rig {
	t.Helper()
	w, err := workspace.New(workspace.Options{Area: t.TempDir(), Interpreters: interpreter.Options{Path: os.Getenv("PATH")}, Environ: []string{"LANG=C.UTF-8"}, Limits: v})
	check(t, err)
	r := &rig{Session: New(w, Options{Program: p, Starter: starter}), t: t, w: w}
	t.Cleanup(func() {
		r.Close()
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// open is a launcher of a policy.
func open(t *testing.T, p sandbox.Policy) *launch.Launcher {
	t.Helper()
	l, err := launch.Open(t.Context(), launch.Options{Policy: p, Scratch: t.TempDir(), Search: os.Getenv("PATH")})
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	return l
}

// unconfined is a launcher that confines nothing.
func unconfined(t *testing.T) *launch.Launcher {
	t.Helper()
	return open(t, sandbox.Policy{Mode: sandbox.Off})
}

// each runs a test with every shell of a list, as nothing confines it.
func each(t *testing.T, list map[string]Program, test func(t *testing.T, r *rig)) {
	t.Helper()
	if len(list) == 0 {
		t.Skip("this host has none of the shells")
	}
	l := unconfined(t)
	for name, p := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, p, l, config.Values{}))
		})
	}
}

func (r *rig) run(c Command) Outcome {
	r.t.Helper()
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	out, err := r.Run(r.t.Context(), c)
	check(r.t, err)
	if out.Ended == sandbox.TimedOut && c.Timeout == patience {
		r.t.Errorf("it hung: %q", c.Line)
	}
	return out
}

// says is the output of a line.
func (r *rig) says(line string) string {
	r.t.Helper()
	out := r.run(Command{Line: line})
	return out.Stdout.Text() + out.Stderr.Text()
}

// want runs a line and compares its output.
func (r *rig) want(line, output string) {
	r.t.Helper()
	if got := r.says(line); got != output {
		r.t.Errorf("%s\nsays %q and not %q", line, got, output)
	}
}

// remembers reports whether a variable goes on with a value.
func (r *rig) remembers(name, value string) bool {
	return slices.ContainsFunc(r.vars, func(v variable) bool { return v.name == name && v.value == value })
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// played is a starter that runs nothing.
type played struct {
	err    error
	do     func(ctx context.Context, l sandbox.Launch)
	count  atomic.Int64
	result sandbox.Result
	last   sandbox.Launch
}

func (p *played) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	p.count.Add(1)
	p.last = l
	if p.err != nil {
		return nil, p.err
	}
	if p.do != nil {
		p.do(ctx, l)
	}
	return done(p.result), nil
}

type done sandbox.Result

func (d done) Wait() sandbox.Result { return sandbox.Result(d) }
func (done) Stop()                  {}

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

var errScripted = errors.New("no room")

// bashOnly is bash, for what only it has.
func bashOnly(t *testing.T) map[string]Program {
	t.Helper()
	p, ok := programs()["bash"]
	if !ok {
		t.Skip("this host has no bash")
	}
	return map[string]Program{"bash": p}
}

//go:build linux

package programtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/sandbox"
)

// Traits are what differs between backends.
type Traits struct {
	// Init says that the program of a launch has an init above it, so that it can be
	// killed from inside.
	Init bool
	// Strong says that a kernel of its own lies in between, which is slower and
	// whose processes and devices are none of the host's.
	Strong bool
	// Memory says that the memory of a whole tree is bounded.
	Memory bool
	// Temp is where the backend makes directories of its own.
	Temp string
}

// bench is where the cases of one backend run.
type bench struct {
	b      sandbox.Backend
	traits Traits
	root   string // a directory with all below
	work   string // the working directory
	skill  string // what may be read; beside it lies another, hidden one
}

// Run has a backend pass all cases.
func Run(t *testing.T, b sandbox.Backend, traits Traits) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"status", status},
		{"signal", signal},
		{"deadline", deadline},
		{"cancel", cancelled},
		{"stop", stopped},
		{"daemon", daemon},
		{"environment", environment},
		{"input", input},
		{"output", output},
		{"skill", skill},
		{"host", host},
		{"kernel", kernel},
		{"network", network},
		{"open network", openNetwork},
		{"proxy", proxied},
		{"owner", owner},
		{"places", places},
		{"memory", memory},
		{"processes", processes},
		{"tools", tools},
		{"at once", atOnce},
		{"nothing left", nothingLeft},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newBench(t, b, traits)) })
	}
}

func newBench(t *testing.T, b sandbox.Backend, traits Traits) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &bench{b: b, traits: traits, root: root, work: filepath.Join(root, "work"), skill: filepath.Join(root, "skills", "own")}
	for _, d := range []string{x.work, x.skill, filepath.Join(root, "skills", "other")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"skills/own/own.txt": "mine\n", "skills/other/other.txt": "theirs\n", "home.txt": "secret\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// launch is an ordinary launch of a line.
func (x *bench) launch(line string) sandbox.Launch {
	return sandbox.Launch{
		Purpose: sandbox.Script, Argv: []string{"/bin/bash", "-c", line}, Dir: x.work,
		Env:   []string{"PATH=/usr/bin:/bin", "HOME=" + x.work, "PWD=" + x.work},
		Write: []string{x.work}, Read: []string{x.skill}, Hide: []string{filepath.Dir(x.skill)},
		Deadline: 60 * time.Second, Output: 32 << 10, Memory: 1 << 30, Processes: 256, Disk: 256 << 20,
	}
}

func (x *bench) run(t *testing.T, l sandbox.Launch) sandbox.Result {
	t.Helper()
	r, err := sandbox.Run(t.Context(), x.b, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// line runs a line that is expected to succeed and returns what it wrote.
func (x *bench) line(t *testing.T, line string) string {
	t.Helper()
	r := x.run(t, x.launch(line))
	if !r.OK() {
		t.Fatalf("%s, status %d: %s%s", r.Ended, r.Exit, r.Stdout.Text(), r.Stderr.Text())
	}
	return r.Stdout.Text()
}

// refused runs an attempt that writes a line if it worked.
func (x *bench) refused(t *testing.T, attempt string) {
	t.Helper()
	r := x.run(t, x.launch("if "+attempt+"; then echo WORK''ED; fi; echo done"))
	if text := r.Stdout.Text(); strings.Contains(text, "WORKED") || !strings.Contains(text, "done") {
		t.Errorf("%s: %s, %q %q", attempt, r.Ended, text, r.Stderr.Text())
	}
}

func status(t *testing.T, x *bench) {
	r := x.run(t, x.launch("echo out; echo err >&2; exit 7"))
	got := []any{r.Ended, r.Exit, r.Signal, r.Stdout.Text()}
	if diff := cmp.Diff([]any{sandbox.Exited, 7, "", "out\n"}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.Stderr.Text(), "err\n") {
		t.Errorf("stderr is %q", r.Stderr.Text())
	}
	l := x.launch("")
	l.Argv = []string{"/usr/bin/printf", "%s|", "a b", "$HOME", "", "ä\n"}
	if r := x.run(t, l); r.Stdout.Text() != "a b|$HOME||ä\n|" {
		t.Errorf("arguments arrive as %q", r.Stdout.Text())
	}
	l.Argv = []string{"/nonexistent"}
	if r, err := sandbox.Run(t.Context(), x.b, l); err == nil && r.OK() {
		t.Error("a program that is not there ran")
	}
	l.Argv, l.Line = nil, "echo $0 | wc -l"
	if r := x.run(t, l); r.Stdout.Text() != "1\n" {
		t.Errorf("a line writes %q", r.Stdout.Text())
	}
}

func signal(t *testing.T, x *bench) {
	if !x.traits.Init {
		t.Skip("the program is process 1, which no signal from inside ends")
	}
	r := x.run(t, x.launch("kill -KILL $$"))
	if diff := cmp.Diff([]any{sandbox.Signalled, 137, "kill"}, []any{r.Ended, r.Exit, r.Signal}); diff != "" {
		t.Error(diff)
	}
}

// marker is an argument of sleep that no other process has.
func marker() string { return strconv.FormatInt(1e9+time.Now().UnixNano()%1e9, 10) }

// checkGone sees that no process has an argument.
func checkGone(t *testing.T, mark string) {
	t.Helper()
	if found := withArgument(mark); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

func withArgument(mark string) []string {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, f := range lines {
		text, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(text), mark) && f != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, f+": "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// stubborn ignores signals and leaves children of its own session.
func stubborn(mark string) string {
	return "trap '' TERM INT HUP; setsid sleep " + mark + " & setsid setsid sleep " + mark + " & echo started; while :; do sleep " + mark + "; done"
}

func deadline(t *testing.T, x *bench) {
	mark := marker()
	l := x.launch(stubborn(mark))
	l.Deadline = 1500 * time.Millisecond
	if x.traits.Strong {
		l.Deadline = 4 * time.Second
	}
	r := x.run(t, l)
	if r.Ended != sandbox.TimedOut || r.Stdout.Text() != "started\n" {
		t.Errorf("%s, %q %q", r.Ended, r.Stdout.Text(), r.Stderr.Text())
	}
	if r.Killing > 3*time.Second {
		t.Errorf("killing took %s", r.Killing)
	}
	checkGone(t, mark)
}

// begun starts a stubborn launch and waits until it runs.
func (x *bench) begun(ctx context.Context, t *testing.T, mark string) sandbox.Job {
	t.Helper()
	job, err := x.b.Start(ctx, x.launch("touch begun; "+stubborn(mark)))
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		if _, err := os.Stat(filepath.Join(x.work, "begun")); err == nil {
			return job
		}
	}
	job.Stop()
	t.Fatalf("it did not begin: %+v", job.Wait())
	return nil
}

func cancelled(t *testing.T, x *bench) {
	ctx, cancel := context.WithCancel(t.Context())
	mark := marker()
	job := x.begun(ctx, t, mark)
	cancel()
	if r := job.Wait(); r.Ended != sandbox.Cancelled {
		t.Errorf("%s", r.Ended)
	}
	checkGone(t, mark)
	if _, err := x.b.Start(ctx, x.launch("true")); err == nil {
		t.Error("a launch whose caller is gone started")
	}
}

func stopped(t *testing.T, x *bench) {
	mark := marker()
	job := x.begun(t.Context(), t, mark)
	job.Stop()
	job.Stop()
	if r := job.Wait(); r.Ended != sandbox.Cancelled {
		t.Errorf("%s", r.Ended)
	}
	checkGone(t, mark)
}

func daemon(t *testing.T, x *bench) {
	mark := marker()
	began := time.Now()
	if got := x.line(t, "(setsid setsid sleep "+mark+" &) ; sleep "+mark+" & disown; echo main"); got != "main\n" {
		t.Errorf("it wrote %q", got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	checkGone(t, mark)
}

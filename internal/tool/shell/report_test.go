package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// ended is an end of another kind.
func ended(e sandbox.Ended, signal string) step {
	return changed(exits(128, "so far\n", ""), func(o *shell.Outcome) { o.Ended, o.Signal = e, signal })
}

// keeps is a scripted [Artifacts].
type keeps struct{ err error }

func (k keeps) Before(context.Context) (artifact.Snapshot, error) { return artifact.Snapshot{}, k.err }

func (keeps) Keep(context.Context, artifact.Snapshot) (string, []journal.File) {
	return "Files:\n- [plot.png](/api/code/artifacts/0123456789abcdef/plot.png) (1 KiB)", []journal.File{{Name: "plot.png", Bytes: 1024}}
}

// result is one case of the golden file.
type result struct {
	name    string
	line    string
	more    []any
	change  func(*Options)
	prepare func(b *bench)
	steps   []step
}

func network(mode sandbox.NetworkMode, domains ...string) func(*Options) {
	return func(o *Options) { o.Facts.Network, o.Facts.Domains = mode, domains }
}

// endings are all ways to end.
func endings() []result {
	host := &shell.NotStartedError{InARow: 1, Err: errScripted}
	again := &shell.NotStartedError{InARow: 2, Err: errScripted}
	return []result{
		{name: "success", line: "echo hi", steps: []step{exits(0, "hi\n", "")}},
		{name: "both streams", line: "a", steps: []step{exits(0, "out", "err\n")}},
		{name: "silent", line: "true", steps: []step{exits(0, "", "")}},
		{name: "failure", line: "false", steps: []step{exits(3, "", "it broke\n")}},
		{name: "benign", line: "grep x a", steps: []step{exits(1, "", "")}},
		{name: "timed out", line: "sleep 9", more: []any{"timeout_ms", 5000}, steps: []step{ended(sandbox.TimedOut, "kill")}},
		{name: "timed out without a workspace", line: "sleep 9", change: func(o *Options) { o.Facts.Files = false }, steps: []step{ended(sandbox.TimedOut, "kill")}},
		{name: "memory", line: "a", steps: []step{ended(sandbox.OutOfMem, "kill")}},
		{name: "disk", line: "a", steps: []step{ended(sandbox.OutOfRoom, "kill")}},
		{name: "processes", line: "a", steps: []step{ended(sandbox.TooMany, "kill")}},
		{name: "signal", line: "a", steps: []step{ended(sandbox.Signalled, "segv")}},
		{name: "cancelled", line: "a", steps: []step{ended(sandbox.Cancelled, "kill")}},
		{name: "not started", line: "a", steps: []step{fails(host)}},
		{name: "not started twice", line: "a", steps: []step{fails(again)}},
		{name: "not started twice, no file tools", line: "a", change: func(o *Options) { o.Facts.Files = false }, steps: []step{fails(again)}},
		{name: "busy", line: "a", steps: []step{fails(fmt.Errorf("run a command: %w", sandbox.ErrBusy))}},
		{name: "a line for no shell", line: "a", steps: []step{fails(errors.New("run a command: it cannot be run"))}},
		{name: "refused", line: "a", change: func(o *Options) {
			o.Refusal = func() error { return errors.New("no sandbox holds what is required.") }
		}},
		{name: "background", line: "python3 -m http.server", more: []any{"run_in_background", true}},
		{name: "background, PowerShell", line: "a", more: []any{"run_in_background", true}, change: func(o *Options) { o.Facts.Dialect = "PowerShell" }},
		{name: "background, full", line: "a", more: []any{"run_in_background", true}, prepare: func(b *bench) { b.session.jobErr = shell.ErrJobs }},
		{name: "background, no workspace", line: "a", more: []any{"run_in_background", true}, change: func(o *Options) { o.Facts.Files = false }},
		{name: "background, install", line: "pip install numpy && a", more: []any{"run_in_background", true}},
		{name: "ampersand", line: "a &"},
		{name: "patch in a pipe", line: "apply_patch x | cat"},
		{name: "too long", line: strings.Repeat("a", 256<<10+1)},
		{name: "too long, no file tools", line: strings.Repeat("a", 256<<10+1), change: func(o *Options) { o.Facts.Files = false }},
		{name: "workdir outside", line: "a", more: []any{"workdir", "../.."}},
		{name: "workdir absolute", line: "a", more: []any{"workdir", "/etc"}},
		{name: "workdir missing", line: "a", more: []any{"workdir", "a b"}},
		{name: "workdir a file", line: "a", more: []any{"workdir", "a.txt"}, prepare: func(b *bench) { b.write("a.txt", "") }},
	}
}

// additions are all that may stand around an outcome.
func additions() []result {
	failing := map[string]*packages.Failure{"nope": {Reason: packages.NoPackage, Text: "No registry has a package of this name.", Package: "Nope"}}
	lose := func(b *bench) { check(b.t, os.RemoveAll(b.w.Work())) }
	numbered := make([]string, 40)
	for i := range numbered {
		numbered[i] = fmt.Sprint("line ", i)
	}
	long := strings.Join(numbered, "\n") + "\n"
	retyped := func(b *bench) step {
		return func(c shell.Command) (shell.Outcome, error) {
			b.write("a.txt", strings.Replace(long, "line 7\n", "line seven\n", 1))
			return exits(0, "", "")(c)
		}
	}
	trace := "Traceback (most recent call last):\n  File \"WORK/src/a.py\", line 2, in <module>\n    1 / 0\nZeroDivisionError: division by zero\n"
	return []result{
		{name: "moved", line: "cd src", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) { o.Dir, o.Moved = "src", true })}},
		{name: "still there", line: "ls", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) { o.Ran, o.Dir = "src", "src" })}},
		{name: "moved back", line: "cd", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) { o.Ran, o.Dir, o.Moved = "src", ".", true })}},
		{name: "moved outside, exports lost", line: "cd /", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) { o.Outside, o.Reset = true, true })}},
		{name: "not confined", line: "a", change: func(o *Options) { o.Capabilities = sandbox.Capabilities{Backend: "bare"} }},
		{name: "network open", line: "a", change: network(sandbox.NetworkOpen)},
		{name: "network proxied", line: "a", change: network(sandbox.NetworkProxied, "example.com")},
		{name: "cut", line: "a", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) {
			o.Stdout = sandbox.Output{Head: []byte("first"), Tail: []byte("last\n"), Total: 100_010}
			o.Stderr = sandbox.Output{Head: []byte("one\n"), Tail: []byte("two\n"), Total: 1008}
		})}},
		{name: "workspace lost", line: "ls", prepare: lose},
		{name: "workspace lost, refused", line: "a &", prepare: lose},
		{name: "workspace lost, patched", line: "apply_patch 'x'", prepare: lose},
		{name: "installed", line: "pip install numpy pandas==2.0"},
		{name: "installed behind a prompt", line: "!pip install numpy\n%cd src", steps: []step{changed(exits(0, "", ""), func(o *shell.Outcome) { o.Dir, o.Moved = "src", true })}},
		{name: "installed for an environment", line: "v/bin/pip install numpy"},
		{name: "install failed with an innocent one", line: "pip install numpy==1.0 nope pandas", prepare: func(b *bench) { b.install.fail = failing }},
		{name: "installed as a fallback", line: "pip install nope || pip install numpy || pip install pandas", prepare: func(b *bench) { b.install.fail = failing }},
		{name: "installed and run", line: "pip install numpy && python3 a.py", steps: []step{exits(0, "42\n", "")}},
		{name: "install failed", line: "pip install nope", prepare: func(b *bench) { b.install.fail = failing }},
		{name: "install failed, rest ran", line: "pip install nope; echo done", prepare: func(b *bench) { b.install.fail = failing }, steps: []step{exits(0, "done\n", "")}},
		{name: "install failed in a pipe", line: "pip install nope 2>&1 | tail -5", prepare: func(b *bench) { b.install.fail = failing }, steps: []step{exits(1, "", "")}},
		{name: "installs after one that failed", line: "pip install numpy; pip install nope; npm install left", prepare: func(b *bench) { b.install.fail = failing }},
		{name: "installs off", line: "pip install numpy", change: func(o *Options) { o.Installer, o.Facts.Installs = nil, false }},
		{name: "missing module, installs off", line: "python3 a.py", change: func(o *Options) { o.Installer, o.Facts.Installs = nil, false }, steps: []step{exits(1, "", missing("numpy"))}},
		{name: "missing module, not allowed", line: "python3 a.py", change: func(o *Options) { o.Facts.Packages = []string{"pandas"} }, steps: []step{exits(1, "", missing("numpy"))}},
		{name: "auto-install", line: "python3 a.py", steps: []step{exits(1, "", missing("PIL")), exits(0, "42\n", "")}},
		{name: "auto-install fails", line: "python3 a.py", prepare: func(b *bench) { b.install.fail = failing }, steps: []step{exits(1, "", missing("nope"))}},
		{name: "auto-install, not started again", line: "python3 a.py", steps: []step{exits(1, "", missing("PIL")), fails(fmt.Errorf("run a command: %w", sandbox.ErrBusy))}},
		{name: "repair", line: "python3 src/a.py", prepare: func(b *bench) {
			b.write("src/a.py", "x = 0\n1 / x\nprint(x)\n")
			b.session.steps = []step{exits(1, "", strings.ReplaceAll(trace, "WORK", b.w.Work()))}
		}},
		{name: "repair without file tools", line: "python3 src/a.py", change: func(o *Options) { o.Facts.Files = false }, prepare: func(b *bench) {
			b.write("src/a.py", "x = 0\n1 / x\nprint(x)\n")
			b.session.steps = []step{exits(1, "", strings.ReplaceAll(trace, "WORK", b.w.Work()))}
		}},
		{name: "repeated", line: "false", prepare: func(b *bench) { b.run("false") }, steps: []step{exits(1, "", "no\n")}},
		{name: "typed anew", line: "cat > a.txt <<'E'\n...\nE", prepare: func(b *bench) {
			b.write("a.txt", long)
			b.session.steps = []step{retyped(b)}
		}},
		{name: "written", line: "echo '1 +' > a.py", change: func(o *Options) {
			o.Artifacts = keeps{}
			o.Syntax = func(_ context.Context, files []tool.Written) string {
				return files[0].Shown + " does not parse: line 1."
			}
		}, prepare: func(b *bench) {
			b.session.steps = []step{func(c shell.Command) (shell.Outcome, error) {
				b.write("a.py", "1 +\n")
				return exits(0, "", "")(c)
			}}
		}},
		{name: "files not kept", line: "a", change: func(o *Options) { o.Artifacts = keeps{errScripted} }},
		{name: "all at once", line: "pip install nope; python3 src/a.py", change: func(o *Options) {
			o.Artifacts, o.Capabilities = keeps{}, sandbox.Capabilities{Backend: "bare"}
			o.Facts.Network = sandbox.NetworkOpen
		}, prepare: func(b *bench) {
			b.install.fail = failing
			b.session.steps = []step{changed(exits(1, "start\n", strings.ReplaceAll(trace, "WORK", b.w.Work())), func(o *shell.Outcome) {
				o.Dir, o.Moved, o.Reset = "src", true, true
			})}
			b.run("pip install nope; python3 src/a.py")
			check(b.t, os.RemoveAll(b.w.Work()))
		}},
	}
}

func missing(module string) string {
	return "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import " + module + "\nModuleNotFoundError: No module named '" + module + "'\n"
}

// TestResults pins the text of every way to end and of every addition, in the order of
// B1 9.11.
func TestResults(t *testing.T) {
	for name, list := range map[string][]result{"endings.txt": endings(), "additions.txt": additions()} {
		var b strings.Builder
		for _, c := range list {
			bench := newBench(t, c.change, c.steps...)
			if c.prepare != nil {
				c.prepare(bench)
			}
			r := bench.run(c.line, c.more...)
			fmt.Fprintf(&b, "== %s ==\nok: %v\n%s\n\n", c.name, r.OK, r.Text)
			if strings.Contains(r.Text, bench.w.Work()) {
				t.Errorf("%s names a path of this host: %s", c.name, r.Text)
			}
		}
		golden(t, name, b.String())
	}
}

// TestHostPaths: a host's own fault names no path of this host (B1 9.14, 10.10).
func TestHostPaths(t *testing.T) {
	b := newBench(t, nil)
	inside := filepath.Dir(b.w.Work())
	b.session.steps = []step{fails(&shell.NotStartedError{InARow: 1, Err: fmt.Errorf("open %s: no room", filepath.Join(inside, "state", "command-1.sh"))})}
	r := b.run("a")
	b.want(r, false, "../state/command-1.sh: no room")
	b.never(r, inside)
	b.session.steps = []step{exits(0, b.w.Work()+"/a.py\n"+b.w.Temp()+"/x\n"+b.w.Jobs()+"/job-1.log\n", "")}
	r = b.run("a")
	b.want(r, true, "\na.py\n$TMPDIR/x\n../state/.jobs/job-1.log")
	b.run("pip install numpy; npm install left")
	b.session.steps = []step{exits(0, b.install.dir+"/numpy/core.py\n"+b.install.dir+"/node_modules/left/index.js\n", "")}
	b.want(b.run("a"), true, "\n(packages)/site-packages/numpy/core.py\n(packages)/node_modules/left/index.js")
}

// TestRoom: the output is cut to what the model's window has room for, and what the host
// says stays whole.
func TestRoom(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Artifacts = keeps{} })
	rapid.Check(t, func(t *rapid.T) {
		out := strings.Repeat("é stdout\n", rapid.IntRange(0, 4000).Draw(t, "stdout"))
		err := strings.Repeat("stderr ü\n", rapid.IntRange(0, 4000).Draw(t, "stderr"))
		room := rapid.IntRange(1200, 60_000).Draw(t, "room")
		b.session.steps = []step{exits(0, out, err)}
		r, fault := b.Invoke(context.Background(), llm.Call{Name: Name, Arguments: `{"command":"a"}`}, tool.Env{Room: room})
		if fault != nil || len(r.Text) > room {
			t.Fatalf("%d bytes and not %d: %v", len(r.Text), room, fault)
		}
		if !strings.HasPrefix(r.Text, "exit 0 (1.2 s, sandbox: native)") || !strings.HasSuffix(r.Text, "plot.png) (1 KiB)") || strings.Contains(r.Text, "\ufffd") {
			t.Fatal(r.Text)
		}
		if cut := len(out)+len(err)+400 > room; cut != strings.Contains(r.Text, "bytes left out") && len(out)+len(err) > room {
			t.Fatalf("%d bytes in %d: %s", len(out)+len(err), room, r.Text[:200])
		}
	})
}

// TestLeftOut: how much is left out is what was said less what is shown.
func TestLeftOut(t *testing.T) {
	b := newBench(t, nil, exits(0, strings.Repeat("a", 10_000), ""))
	r, err := b.Invoke(t.Context(), llm.Call{Name: Name, Arguments: `{"command":"a"}`}, tool.Env{Room: 2000})
	check(t, err)
	b.want(r, true, fmt.Sprintf("[... %d bytes left out ...]", 10_000-strings.Count(r.Text, "a")+strings.Count(r.Text, "sandbox: native")*strings.Count("sandbox: native", "a")))
}

// TestNotStarted: the end of the call, and nothing else, is an error; it is told what a
// command says while it runs.
func TestNotStarted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(t, nil, func(shell.Command) (shell.Outcome, error) {
		cancel(errScripted)
		return shell.Outcome{}, context.Canceled
	})
	if _, err := b.Invoke(ctx, llm.Call{Name: Name, Arguments: `{"command":"a"}`}, tool.Env{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	b = newBench(t, nil, func(c shell.Command) (shell.Outcome, error) {
		c.Watch(sandbox.Stdout, []byte("hello"))
		cancel(errScripted)
		return exits(0, "", "")(c)
	})
	var heard string
	env := tool.Env{Progress: func(p []byte) { heard += string(p) }}
	if _, err := b.Invoke(ctx, llm.Call{Name: Name, Arguments: `{"command":"a"}`}, env); !errors.Is(err, errScripted) || heard != "hello" {
		t.Errorf("%v, %q", err, heard)
	}
	unlock, err := b.w.Lock(t.Context())
	check(t, err)
	defer unlock()
	if _, err := b.Invoke(ctx, llm.Call{Name: Name, Arguments: `{"command":"a"}`}, env); !errors.Is(err, errScripted) {
		t.Error(err)
	}
}

// TestBackground is B1 9.10: what a job's shell has sent to its own background is
// waited for, since the end of the shell would end it.
func TestBackground(t *testing.T) {
	b := newBench(t, nil)
	b.want(b.run("python3 -m http.server &", "run_in_background", true), true, "job-1 runs in the background", "tail ../state/.jobs/job-1.log")
	b.want(b.run("make watch", "run_in_background", true, "workdir", "."), true, "job-2")
	if got := b.session.jobs; got[0].Line != "python3 -m http.server &\nwait\n" || got[1].Line != "make watch" || got[1].Workdir != "." || got[0].Workdir != "" {
		t.Errorf("%+v", got)
	}
	b = newBench(t, func(o *Options) { o.Facts.Dialect = "PowerShell" })
	b.run("a & ", "run_in_background", true)
	if got := b.session.jobs; got[0].Line != "a & " {
		t.Errorf("%+v", got)
	}
}

// TestNoJobs: a host on which nothing runs in the background says so.
func TestNoJobs(t *testing.T) {
	b := newBench(t, nil)
	b.session.jobErr = shell.ErrJobs
	limits, err := b.limits.Set(config.JobsAtOnce, 0)
	check(t, err)
	b.Set.limits = limits
	b.want(b.run("a", "run_in_background", true), false, noJobs)
}

// TestCommand: the session gets the line, the place, the time and what may be read.
func TestCommand(t *testing.T) {
	b := newBench(t, nil)
	b.Show([]string{"/skills/a"})
	b.write("src/a", "")
	b.run("make", "workdir", "./src/", "timeout_ms", 7000)
	c := b.session.ran[0]
	if c.Line != "make" || c.Workdir != "src" || c.Timeout != 7*time.Second || len(c.Extra.Read) != 1 {
		t.Errorf("%+v", c)
	}
	b.run("make")
	if c := b.session.ran[1]; c.Workdir != "" || c.Timeout != 120*time.Second {
		t.Errorf("%+v", c)
	}
}

package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// writes is a command that writes files.
func (b *bench) writes(s step, files ...string) {
	b.session.steps = []step{func(c shell.Command) (shell.Outcome, error) {
		for i := 0; i+1 < len(files); i += 2 {
			b.write(files[i], files[i+1])
		}
		return s(c)
	}}
}

// know is what the model knows of a file.
func (b *bench) know(name string) workspace.Knowledge {
	data, err := os.ReadFile(filepath.Join(b.w.Work(), name))
	check(b.t, err)
	return b.w.Seen.Know(name, data)
}

// TestIngest is B1 11.6: what a heredoc of the command holds word for word has been
// seen, also if the command failed; what a program wrote has not.
func TestIngest(t *testing.T) {
	body := "x = 1\nprint(x)\n"
	for name, c := range map[string]struct {
		line, data string
		want       workspace.Knowledge
	}{
		"a heredoc":         {"cat > a.py <<'E'\n" + body + "E", body, workspace.Fresh},
		"behind others":     {"mkdir x\ncat > a.py <<'E' && python3 a.py\n" + body + "E", body, workspace.Fresh},
		"with tabs":         {"cat > a.py <<-E\n\tx = 1\n\tprint(x)\n\tE\n", body, workspace.Fresh},
		"in a subshell":     {"(cat > a.py <<'E'\n" + body + "E\n)", body, workspace.Fresh},
		"through tee":       {"tee a.py <<'E'\n" + body + "E", body, workspace.Fresh},
		"changed by a pipe": {"sed s/1/2/ > a.py <<'E'\n" + body + "E", "x = 2\nprint(x)\n", workspace.Unread},
		"an expansion":      {"cat > a.py <<E\nx = $y\nE", "x = 5\n", workspace.Unread},
		"a program":         {"python3 gen.py > a.py", body, workspace.Unread},
		"a part":            {"head -n 1 > a.py <<'E'\n" + body + "E", "x = 1\n", workspace.Unread},
		"by chance":         {"python3 gen.py > a.py # x = 1", "x = 1", workspace.Unread},
		"nothing":           {"python3 gen.py > a.py", "", workspace.Unread},
		"another file":      {"cat > b.py <<'E'\n" + body + "E", body, workspace.Unread},
	} {
		b := newBench(t, nil)
		b.writes(exits(1, "", "x\n"), "a.py", c.data)
		b.run(c.line)
		if got := b.know("a.py"); got != c.want {
			t.Errorf("%s: %v and not %v", name, got, c.want)
		}
	}
	// What is added to a file that was known whole is known, too.
	b := newBench(t, nil)
	add := "cat >> a.py <<'E'\n" + body + "E"
	b.write("a.py", "import os\n")
	b.writes(exits(0, "", ""), "a.py", "import os\n"+body)
	if b.run(add); b.know("a.py") != workspace.Unread {
		t.Error("the beginning was never seen")
	}
	b.w.Seen.Whole("a.py", []byte("import os\n"+body))
	b.writes(exits(0, "", ""), "a.py", "import os\n"+body+body)
	if b.run(add); b.know("a.py") != workspace.Fresh {
		t.Error("all of it was seen")
	}
}

// TestIngestPlace: the file is the one where the command ran.
func TestIngestPlace(t *testing.T) {
	b := newBench(t, nil)
	b.write("src/keep", "")
	b.writes(exits(0, "", ""), "src/a.py", "x\n", "src/in/b.py", "y\n")
	b.run("cat > a.py <<'E'\nx\nE\ncd in && cat > b.py <<'E'\ny\nE", "workdir", "src")
	if b.know("src/a.py") != workspace.Fresh || b.know("src/in/b.py") != workspace.Fresh {
		t.Error(b.know("src/a.py"), b.know("src/in/b.py"))
	}
}

// TestSyntax is B1 10.11: the files that a successful command wrote, with the paths that
// the line has for them.
func TestSyntax(t *testing.T) {
	var asked []tool.Written
	syntax := func(o *Options) {
		o.Syntax = func(_ context.Context, files []tool.Written) string { asked = files; return "They parse." }
	}
	b := newBench(t, syntax)
	b.write("src/old.py", "old\n")
	b.write("src/same.py", "same\n")
	b.writes(exits(0, "", ""), "src/a.py", "a\n", "src/old.py", "old\nnew\n", "src/b.json", "{}\n")
	line := "echo a > a.py; echo new >> old.py; echo same > same.py; cat b.txt | tee ../src/b.json; cat x > /dev/null; sort > $OUT"
	b.want(b.run(line, "workdir", "src"), true, "\n\nThey parse.")
	var got []string
	for _, w := range asked {
		got = append(got, w.Path+"="+w.Shown+"="+string(w.Data))
	}
	if want := "src/a.py=a.py=a\n src/old.py=old.py=old\nnew\n src/b.json=../src/b.json={}\n"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	for name, s := range map[string]step{"failed": exits(1, "", "x\n"), "timed out": ended(sandbox.TimedOut, "kill")} {
		b = newBench(t, syntax)
		b.writes(s, "a.py", "a\n")
		if r := b.run("echo a > a.py"); strings.Contains(r.Text, "parse") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
	b = newBench(t, syntax)
	b.never(b.run("echo a > gone.py"), "parse")
	b = newBench(t, func(o *Options) { syntax(o); o.NoRecovery = true })
	b.writes(exits(0, "", ""), "a.py", "a\n")
	b.never(b.run("echo a > a.py"), "parse")
}

// TestRewrites is B1 10.8: whatever the command's end, and not for what is added to.
func TestRewrites(t *testing.T) {
	old := strings.Repeat("the same line\n", 10)
	for i := range 30 {
		old += fmt.Sprint("line ", i, "\n")
	}
	for name, c := range map[string]struct {
		line  string
		want  bool
		other func(*Options)
	}{
		"written":       {line: "cat > a.txt <<'E'\nx\nE", want: true},
		"added to":      {line: "cat >> a.txt <<'E'\nx\nE"},
		"by a program":  {line: "python3 a.py"},
		"no file tools": {line: "cat > a.txt <<'E'\nx\nE", other: func(o *Options) { o.Facts.Files, o.Patch = false, nil }},
		"recovery off":  {line: "cat > a.txt <<'E'\nx\nE", other: func(o *Options) { o.NoRecovery = true }},
	} {
		b := newBench(t, c.other)
		b.write("a.txt", old)
		b.writes(exits(1, "", "x\n"), "a.txt", strings.Replace(old, "line 7\n", "line seven\n", 1))
		if r := b.run(c.line); strings.Contains(r.Text, "a.txt was typed anew") != c.want {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestRepeats is B1 10.7: across calls, by what was typed, and not for an answer.
func TestRepeats(t *testing.T) {
	b := newBench(t, nil, exits(1, "", "x\n"))
	b.never(b.run("make  test"), "failed")
	b.want(b.run("make test"), false, "failed before, exactly as it is")
	b.want(b.run("make \t test "), false, "has now failed 3 times")
	b.never(b.run("make other"), "failed before")
	b.never(b.run("grep x a"), "failed before")
	b.never(b.run("grep x a"), "failed before")
	b.session.steps = []step{exits(0, "", "")}
	b.want(b.run("make test"), true)
	b.session.steps = []step{exits(1, "", "x\n")}
	b.never(b.run("make test"), "failed before")
	b.session.steps = []step{ended(sandbox.TimedOut, "kill")}
	b.want(b.run("make test"), false, "failed before, exactly as it is")

	b = newBench(t, nil)
	b.install.fail = map[string]*packages.Failure{"nope": failed("no package", "There is none.")}
	b.never(b.run("pip install nope"), "failed before")
	b.want(b.run("pip install nope"), false, "failed before, exactly as it is")
	b.never(b.run("pip install nope; echo a"), "failed before")
	b.want(b.run("pip install nope; echo a"), false, "exit 0, of the rest", "failed before, exactly as it is")

	b = newBench(t, func(o *Options) { o.NoRecovery = true }, exits(1, "", "x\n"))
	b.run("make test")
	b.never(b.run("make test"), "failed before")
}

// miss is the end of a program that asked a library for what it has not.
const miss = "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    json.dumpz(1)\nAttributeError: module 'json' has no attribute 'dumpz'\n"

// TestProbe is B1 10.6: a look at the library, with the host's variables; silent
// whenever it fails, and then the place in the code is shown as always.
func TestProbe(t *testing.T) {
	b := newBench(t, nil, exits(1, "", miss))
	if _, err := b.w.Interpreter("python"); err != nil {
		t.Skip("this host has no Python")
	}
	b.write("a.py", "import json\njson.dumpz(1)\n")
	b.runner.out = "\nmetier-probe 1\nwhat module json\nnear dumps dump\nhas dump dumps load loads\n"
	r := b.run("export PYTHONPATH=/tmp/mine; python3 a.py")
	b.want(r, false, "the module json has no dumpz. Nearest: dumps, dump.", "The error comes from a.py, line 2:", "2 | json.dumpz(1)")
	if strings.Index(r.Text, "Nearest") > strings.Index(r.Text, "The error comes from") {
		t.Error("what the library has comes first")
	}
	if len(b.runner.ran) != 1 {
		t.Fatalf("%d looks", len(b.runner.ran))
	}
	l := b.runner.ran[0]
	env := strings.Join(l.Env, "\n")
	if l.Purpose != sandbox.Probe || l.Network.Mode != sandbox.NetworkDenied || l.Deadline <= 0 || l.Output <= 0 || strings.Contains(env, "/tmp/mine") || !strings.Contains(env, "PYTHONPATH=") || l.Check() != nil {
		t.Errorf("%+v, %v", l, l.Check())
	}
	for name, spoil := range map[string]func(*bench){
		"an error":        func(b *bench) { b.runner.err = errScripted },
		"nothing":         func(b *bench) { b.runner.out = "" },
		"noise":           func(b *bench) { b.runner.out = "near dumps\nhas dumps\n" },
		"no runner":       func(b *bench) { b.o.Runner = nil },
		"no such program": func(b *bench) { b.runner.out = "\nmetier-probe 1\nwhat module json\n" },
	} {
		b := newBench(t, nil, exits(1, "", miss))
		b.write("a.py", "import json\njson.dumpz(1)\n")
		spoil(b)
		r := b.run("python3 a.py")
		b.want(r, false, "The error comes from a.py, line 2:")
		if strings.Contains(r.Text, "Nearest") || strings.Contains(r.Text, "installed library") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestRepairSeen: what a hint shows, the model has seen (B1 10.12).
func TestRepairSeen(t *testing.T) {
	b := newBench(t, nil)
	source := "def f(x):\n    return 1 / x\n\n\nf(0)\n" + strings.Repeat("#\n", 20)
	b.write("src/a.py", source)
	b.session.steps = []step{changed(exits(1, "", ""), func(o *shell.Outcome) {
		o.Ran, o.Dir = "src", "src"
		o.Stderr = text("Traceback (most recent call last):\n  File \"" + b.w.Work() + "/src/a.py\", line 5, in <module>\n    f(0)\n  File \"" + b.w.Work() + "/src/a.py\", line 2, in f\n    return 1 / x\nZeroDivisionError: division by zero\n")
	})}
	b.want(b.run("python3 a.py"), false, "The error comes from a.py, line 2:", `File "a.py", line 5`)
	if !b.w.Seen.Knows("src/a.py", []byte(source), 1, 5) || b.w.Seen.Knows("src/a.py", []byte(source), 1, 6) {
		t.Error("the ledger does not hold what was shown")
	}
}

// TestRepairPlace: the paths of an output are those that the next call can use.
func TestRepairPlace(t *testing.T) {
	for name, c := range map[string]struct {
		at, dir string
		moved   bool
		args    []any
		says    []string
	}{
		"cd before":     {".", "src", true, nil, []string{`File "a.py", line 2`, "The error comes from a.py, line 2:", "Working directory is now src"}},
		"cd back":       {"src", ".", true, nil, []string{`File "src/a.py", line 2`, "The error comes from src/a.py, line 2:"}},
		"workdir":       {"src", ".", false, []any{"workdir", "src"}, []string{`File "a.py", line 2`, "The error comes from a.py, line 2:", "A patch names this file src/a.py."}},
		"where it was":  {".", ".", false, nil, []string{"The error comes from src/a.py, line 2:"}},
		"cd afterwards": {".", "other", true, nil, []string{"The error comes from ../src/a.py, line 2:"}},
	} {
		b := newBench(t, nil)
		b.write("src/a.py", "x = 0\n1 / x\n")
		b.write("other/b.py", "")
		b.write("../state/shell/cwd", b.w.Work()+"/"+c.dir)
		b.session.steps = []step{changed(exits(1, "", ""), func(o *shell.Outcome) {
			o.Ran, o.Dir, o.Moved = c.at, c.dir, c.moved
			o.Stderr = text("Traceback (most recent call last):\n  File \"" + b.w.Work() + "/src/a.py\", line 2, in <module>\n    1 / x\nZeroDivisionError: division by zero\n")
		})}
		r := b.run("python3 a.py", c.args...)
		b.want(r, false, c.says...)
		if strings.Contains(r.Text, "A patch names") != (name == "workdir") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestHostile: an output that names files elsewhere shows none of them.
func TestHostile(t *testing.T) {
	b := newBench(t, nil)
	outside := filepath.Join(t.TempDir(), "secret.py")
	check(t, os.WriteFile(outside, []byte("hunter2\nhunter2\n"), 0o644))
	check(t, os.Symlink(outside, filepath.Join(b.w.Work(), "link.py")))
	for _, name := range []string{outside, "link.py", "../../../../../../" + outside, b.w.State() + "/../../x"} {
		b.session.steps = []step{exits(1, "", "Traceback (most recent call last):\n  File \""+name+"\", line 1, in <module>\n    x\nValueError: x\n")}
		b.never(b.run("python3 a.py > "+name), "hunter2")
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "hunter2\nhunter2\n" {
		t.Error("a file outside was changed")
	}
}

// TestFinds: programs of the host and of the conversation; a link out of the workspace
// tells nothing of what it leads to.
func TestFinds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the modes of files say nothing there")
	}
	b := newBench(t, nil)
	b.write(".local/bin/mine", "")
	check(t, os.Chmod(filepath.Join(b.w.Work(), ".local/bin/mine"), 0o755))
	b.write(".local/bin/dull", "")
	check(t, os.Symlink("/bin/sh", filepath.Join(b.w.Work(), ".local/bin/escaped")))
	r := &run{Set: b.Set}
	for name, want := range map[string]bool{"mine": true, "dull": false, "escaped": false, "sh": true, "no-such-program": false, "../mine": false, "": false} {
		if r.finds(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestDialects: what to write is said in the language of the shell.
func TestDialects(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "ksh", "sh", "PowerShell"} {
		b := newBench(t, func(o *Options) { o.Facts.Dialect = name }, exits(1, "", missing("aa")))
		b.write("lib/aa.py", "")
		r := b.run("python3 a.py")
		if strings.Contains(r.Text, "$env:PYTHONPATH") != (name == "PowerShell") {
			t.Errorf("%s:\n%s", name, r.Text)
		}
	}
}

// TestBenign is B1 10.9 in a result: the code is shown, and it is a success.
func TestBenign(t *testing.T) {
	b := newBench(t, nil, exits(1, "", ""))
	b.want(b.run("grep -rn x ."), true, "exit 1 (1.2 s, sandbox: native), no failure: nothing matched")
	b.want(b.run("python3 a.py"), false, "exit 1 (1.2 s, sandbox: native)\n")
	b.session.steps = []step{exits(2, "", "grep: a: no such file\n")}
	b.want(b.run("grep x a"), false, "exit 2 (")
	b.install.fail = map[string]*packages.Failure{"nope": failed("no package", "There is none.")}
	b.session.steps = []step{exits(1, "", "")}
	b.want(b.run("pip install nope; grep x a"), false, "exit 1, of the rest of the line alone")
}

// TestAtOnce: calls wait for each other.
func TestAtOnce(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Artifacts = keeps{} }, exits(1, "", missing("aa")))
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			line := []string{"python3 a.py", "pip install bb cc", "cat > a.py <<'E'\nx\nE", "apply_patch 'x'", "sleep 1 &", "ls > b", "make"}[i%7]
			arguments, err := json.Marshal(map[string]any{"command": line, "run_in_background": i%7 == 6})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := b.Invoke(t.Context(), llm.Call{Name: Name, Arguments: string(arguments)}, tool.Env{Progress: func([]byte) {}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

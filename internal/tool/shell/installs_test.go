package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

func failed(r packages.Reason, text string) *packages.Failure {
	return &packages.Failure{Reason: r, Text: text}
}

// TestInstalls is B1 13.10 to 13.12: in source order, none after a failure, and what is
// left of the line cannot pass for a success.
func TestInstalls(t *testing.T) {
	fail := map[string]*packages.Failure{"nope": failed(packages.NoPackage, "There is none.")}
	for line, want := range map[string]struct {
		ran   []string
		asked string
		ok    bool
	}{
		"pip install numpy":                                 {nil, "numpy", true},
		"pip install numpy && python3 a.py":                 {[]string{"true && python3 a.py"}, "numpy", true},
		"pip install -q numpy pandas; npm install left":     {nil, "numpy pandas left", true},
		"pip install nope":                                  {nil, "nope", false},
		"pip install nope | tail -5":                        {nil, "nope", false},
		"pip install nope 2>&1 | tail -5; echo done":        {[]string{"false 2>&1; echo done"}, "nope", false},
		"pip install nope || true":                          {nil, "nope", false},
		"pip install numpy && pip install nope && echo a":   {[]string{"true && false && echo a"}, "numpy nope", false},
		"pip install nope; pip install numpy; python3 a.py": {[]string{"false; false; python3 a.py"}, "nope", false},
		"pip --version":                                     {[]string{"pip --version"}, "", true},
		"cargo install x":                                   {nil, "", false},
		"pip install --index-url http://a b":                {nil, "", false},
	} {
		b := newBench(t, nil, exits(0, "", ""))
		b.install.fail = fail
		r := b.run(line)
		if diff := cmp.Diff(want.ran, b.lines()); diff != "" || b.install.asked() != want.asked || r.OK != want.ok {
			t.Errorf("%s: asked %q, ok %v\n%s\n%s", line, b.install.asked(), r.OK, diff, r.Text)
		}
	}
}

// TestNoFalseSuccess is the bug that seed 1 names: behind a failed install a pipe
// answered exit 0.
func TestNoFalseSuccess(t *testing.T) {
	fail := map[string]*packages.Failure{"nope": failed(packages.NoPackage, "There is none.")}
	for _, line := range []string{
		"pip install nope | tail -5", "pip install nope 2>&1 | tail -5", "pip install nope | tail -5; echo done", "pip install nope 2>&1 | tee log | tail -1 && echo done",
		"(pip install nope) | tail -5; true", "pip install nope || echo go on", "bash -c 'pip install nope' | tail -1", "if pip install nope; then a; fi",
	} {
		b := newBench(t, nil, exits(0, "done\n", ""))
		b.install.fail = fail
		r := b.run(line)
		first, _, _ := strings.Cut(r.Text, "\n")
		if r.OK || !strings.HasPrefix(first, "Not installed: nope") || strings.Contains(r.Text, "exit 0 (") {
			t.Errorf("%s: ok %v\n%s", line, r.OK, r.Text)
		}
		for _, ran := range b.lines() {
			if strings.Contains(ran, "pip") || strings.Contains(ran, "tail") {
				t.Errorf("%s: %q ran", line, ran)
			}
		}
	}
}

// TestAlready: what the workspace has is not installed again; the next set is made of
// all of it, and the later word on a name counts.
func TestAlready(t *testing.T) {
	b := newBench(t, nil)
	b.run("pip install numpy Ruamel.YAML")
	b.want(b.run("pip install numpy ruamel_yaml"), true, "Installed already in this session: numpy 1.0, ruamel_yaml 1.0.")
	if len(b.install.requests) != 1 {
		t.Errorf("%+v", b.install.requests)
	}
	b.want(b.run("pip install numpy==2.0 pandas"), true, "Installed with pip: numpy 1.0, pandas 1.0.")
	b.run("pip install 'uvicorn[standard]'")
	var have []string
	for _, s := range b.install.requests[2].Have {
		have = append(have, s.Name+s.Version)
	}
	if got := strings.Join(have, " "); got != "Ruamel.YAML numpy==2.0 pandas" {
		t.Error(got)
	}
	if set, ok := b.w.Packages(interpreter.Python); !ok || set.Dir != b.install.dir {
		t.Errorf("%+v", set)
	}
}

// TestManifests: a requirements file and a package.json come out of the workspace, by
// their paths from where the line starts (B1 13.6).
func TestManifests(t *testing.T) {
	b := newBench(t, nil)
	b.write("requirements.txt", "numpy==1.0\n# no\n\npandas\n")
	b.write("sub/requirements.txt", "scipy\n")
	b.write("sub/web/package.json", `{"dependencies":{"left":"^1.0.0","right":"2"}}`)
	b.write("empty/package.json", `{}`)
	b.want(b.run("pip install -r requirements.txt"), true, "numpy 1.0, pandas 1.0")
	b.want(b.run("cd sub && pip install -r requirements.txt"), true, "scipy 1.0")
	b.want(b.run("pip install -r requirements.txt", "workdir", "sub"), true, "already")
	b.want(b.run("cd web && npm install", "workdir", "sub"), true, "Installed what package.json lists: left 1.0, right 1.0.")
	b.want(b.run("cd sub/web && npm ci || npm install"), false, "package-lock.json", "there is no such file")
	b.want(b.run("cd sub/web && npm install"), true, "Installed what package.json lists: left 1.0, right 1.0.")
	b.want(b.run("cd empty && npm install"), true, "which is nothing")
	r := b.run("pip install -r nowhere.txt")
	b.want(r, false, "there is no such file")
	outside := filepath.Join(t.TempDir(), "secret.txt")
	check(t, os.WriteFile(outside, []byte("hunter2\n"), 0o644))
	check(t, os.Symlink(outside, filepath.Join(b.w.Work(), "link.txt")))
	for _, name := range []string{outside, "../../../etc/passwd", "link.txt"} {
		r := b.run("pip install -r " + name)
		b.want(r, false)
		b.never(r, "hunter2", "root:")
	}
	if got := b.install.asked(); got != "numpy pandas scipy left right" {
		t.Error(got)
	}
}

// TestProvided is B1 13.16: what the host's Python has needs no install, also where none
// may be made. It is looked up once, isolated from what the model has put anywhere.
func TestProvided(t *testing.T) {
	if _, err := (interpreter.Options{Path: os.Getenv("PATH")}).Find(interpreter.Python); err != nil {
		t.Skip("this host has no Python")
	}
	b := newBench(t, func(o *Options) { o.Installer, o.Facts.Installs = nil, false })
	b.runner.out = "noise\n" + providedMark + "numpy\nruamel.yaml\nPillow\n"
	b.want(b.run("pip install numpy Ruamel_Yaml pillow==9"), true, "Here already without an install, in the version that the host has: numpy, Ruamel_Yaml, pillow.")
	b.want(b.run("pip install pandas"), false, "installing is not enabled")
	b.want(b.run("npm install numpy"), false, "installing is not enabled")
	if len(b.runner.ran) != 1 {
		t.Fatalf("%d looks", len(b.runner.ran))
	}
	if l := b.runner.ran[0]; l.Purpose != sandbox.Probe || l.Argv[1] != "-I" || l.Deadline <= 0 || l.Output <= 0 || l.Check() != nil {
		t.Errorf("%+v, %v", l, l.Check())
	}
	b.write(".local/bin/python3", "#!/bin/sh\n")
	check(t, os.Chmod(filepath.Join(b.w.Work(), ".local/bin/python3"), 0o755))
	b.want(b.run("pip install numpy"), false, "installing is not enabled")

	b = newBench(t, nil)
	b.runner.err = errScripted
	b.want(b.run("pip install numpy"), true, "Installed with pip: numpy 1.0.")
	b.runner.err, b.runner.out = nil, providedMark+"pandas\n"
	b.want(b.run("pip install pandas scipy"), true, "Here already without an install: pandas.", "Installed with pip: scipy 1.0.")
	b.want(b.run("ls"), true)
	if len(b.runner.ran) != 2 {
		t.Errorf("%d looks", len(b.runner.ran))
	}
}

// chain is a program that misses one package after the other.
func chain(names ...string) []step {
	var steps []step
	for _, n := range names {
		steps = append(steps, exits(1, "", missing(n)))
	}
	return append(steps, exits(0, "42\n", ""))
}

// TestAutoInstall is B1 10.1: missing packages are installed and the command is run
// again, but not for ever.
func TestAutoInstall(t *testing.T) {
	b := newBench(t, nil, chain("aa", "bb", "cc", "dd", "ee")...)
	b.want(b.run("python3 a.py"), true, "installed aa 1.0", "installed ee 1.0", "exit 0", "42")
	if b.install.asked() != "aa bb cc dd ee" || len(b.session.ran) != 6 {
		t.Errorf("%s, %d runs", b.install.asked(), len(b.session.ran))
	}

	b = newBench(t, nil, chain("aa", "bb", "cc", "dd", "ee", "ff", "gg")...)
	b.want(b.run("python3 a.py"), false, "exit 1", "No module named 'ff'", "pip install ff")
	if b.install.asked() != "aa bb cc dd ee" || len(b.session.ran) != 6 {
		t.Errorf("%s, %d runs", b.install.asked(), len(b.session.ran))
	}
	b.want(b.run("python3 a.py"), true, "installed gg 1.0")
	if b.install.asked() != "aa bb cc dd ee ff gg" && b.install.asked() != "aa bb cc dd ee gg" {
		t.Error(b.install.asked())
	}
}

// TestAutoInstallStops: when it is of no use.
func TestAutoInstallStops(t *testing.T) {
	// It is there and yet missing.
	b := newBench(t, nil, exits(1, "", missing("aa")))
	b.want(b.run("python3 a.py"), false, "installed aa 1.0", "aa is installed for this conversation")
	if b.install.asked() != "aa" || len(b.session.ran) != 2 {
		t.Errorf("%s, %d runs", b.install.asked(), len(b.session.ran))
	}
	// It cannot be installed; the reason is said once. It is not tried again unless the
	// reason may have passed.
	for reason, tries := range map[packages.Reason]string{packages.NoPackage: "aa", packages.NoAnswer: "aa aa"} {
		b = newBench(t, nil, exits(1, "", missing("aa")))
		b.install.fail = map[string]*packages.Failure{"aa": failed(reason, "It is not to be had.")}
		for range 2 {
			r := b.run("python3 a.py")
			b.want(r, false, "It is not to be had")
			if n := strings.Count(r.Text, "not to be had"); n != 1 {
				t.Errorf("%d times:\n%s", n, r.Text)
			}
		}
		if b.install.asked() != tries {
			t.Errorf("%s: %s", reason, b.install.asked())
		}
	}
	// A later success makes up for a failure before.
	b.install.fail = nil
	b.want(b.run("pip install aa"), true)
	if _, is := b.lostBefore(interpreter.Python, "AA"); is {
		t.Error("it still counts as lost")
	}
	for name, c := range map[string]struct {
		change  func(*Options)
		prepare func(*bench)
		out     step
	}{
		"its own file":     {prepare: func(b *bench) { b.write("lib/aa.py", "") }, out: exits(1, "", missing("aa"))},
		"its own package":  {prepare: func(b *bench) { b.write("aa/__init__.py", "") }, out: exits(1, "", missing("aa"))},
		"not listed":       {change: func(o *Options) { o.Facts.Packages = []string{"bb"} }, out: exits(1, "", missing("aa"))},
		"installs off":     {change: func(o *Options) { o.Installer = nil }, out: exits(1, "", missing("aa"))},
		"recovery off":     {change: func(o *Options) { o.NoRecovery = true }, out: exits(1, "", missing("aa"))},
		"python's own":     {out: exits(1, "", missing("tkinter"))},
		"timed out":        {out: changed(exits(1, "", missing("aa")), func(o *shell.Outcome) { o.Ended = sandbox.TimedOut })},
		"it succeeded":     {out: exits(0, "", missing("aa"))},
		"it is no failure": {out: exits(1, missing("aa"), "")},
	} {
		line := "python3 a.py"
		if name == "it is no failure" {
			line = "cat log | grep aa"
		}
		b := newBench(t, c.change, c.out)
		if c.prepare != nil {
			c.prepare(b)
		}
		if r := b.run(line); b.install.asked() != "" || len(b.session.ran) != 1 {
			t.Errorf("%s: %q\n%s", name, b.install.asked(), r.Text)
		}
	}
}

// TestAutoInstallNode: Node's packages come from its own registry, by their exact names.
func TestAutoInstallNode(t *testing.T) {
	b := newBench(t, nil, exits(1, "", "Error: Cannot find module '@a/b/c'\nRequire stack:\n- a.js\n"), exits(0, "", ""))
	b.want(b.run("node a.js"), true, `"@a/b" was missing: installed @a/b 1.0`)
	if r := b.install.requests[0]; r.Kind != interpreter.Node {
		t.Errorf("%+v", r)
	}
	set, ok := b.w.Packages(interpreter.Node)
	if !ok || !strings.HasSuffix(set.Imports[0], "node_modules") {
		t.Errorf("%+v", set)
	}
}

// TestAutoInstallTime: the second run has what is left of the call's time, and when that
// is nothing the model is told to run it again.
func TestAutoInstallTime(t *testing.T) {
	for name, c := range map[string]struct {
		install time.Duration
		runs    int
		says    string
	}{
		"quick": {3 * time.Second, 2, "and ran the command again"},
		"slow":  {11 * time.Second, 1, "That took all the time of the call, so run the command again"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil, exits(1, "", missing("aa")), ended(sandbox.TimedOut, "kill"))
			b.install.before = func() { <-time.After(c.install) }
			r := b.run("python3 a.py", "timeout_ms", 10_000)
			b.want(r, false, c.says)
			if len(b.session.ran) != c.runs {
				t.Fatalf("%s: %d runs", name, len(b.session.ran))
			}
			b.never(r, "failed before", "Install it and run")
			if c.runs == 2 {
				if got := b.session.ran[1].Timeout; got != 7*time.Second {
					t.Errorf("it had %v", got)
				}
				b.want(r, false, "Stopped after 7 s, which was left of its time after an install")
			}
			b.session.steps = []step{exits(1, "", "other\n")}
			b.never(b.run("python3 a.py"), "failed before")
		})
	}
}

// TestAutoInstallPlace: a command that had moved the session before it failed begins
// where it began, and what is told is where the whole call began and ended.
func TestAutoInstallPlace(t *testing.T) {
	moves := func(s step) step {
		return changed(s, func(o *shell.Outcome) { o.Ran, o.Dir, o.Moved = ".", "sub", true })
	}
	again := changed(exits(0, "SUB/x\n", ""), func(o *shell.Outcome) { o.Ran, o.Dir = "sub", "sub" })
	b := newBench(t, nil, moves(exits(1, "", missing("aa"))))
	b.write("sub/a", "")
	b.session.steps = append(b.session.steps, changed(again, func(o *shell.Outcome) { o.Stdout = text(b.w.Work() + "/sub/x\n") }))
	b.want(b.run("cd sub && python3 a.py"), true, "Working directory is now sub", "\nx")
	if got := b.session.ran[1].Line; got != "cd "+bash.Argument(b.w.Work())+"; cd sub && python3 a.py" {
		t.Error(got)
	}
	b = newBench(t, func(o *Options) { o.Facts.Dialect = "PowerShell" }, moves(exits(1, "", missing("aa"))), again)
	b.run("cd sub; python3 a.py")
	if got := b.session.ran[1].Line; got != "Set-Location -LiteralPath '"+b.w.Work()+"'; cd sub; python3 a.py" {
		t.Error(got)
	}
}

// TestFallback: what stands behind an "||" of an install is tried where that has failed,
// makes up for it, and is not wanted where it has not.
func TestFallback(t *testing.T) {
	fail := map[string]*packages.Failure{"nope": failed(packages.NoPackage, "There is none."), "never": failed(packages.NoPackage, "There is none.")}
	for line, want := range map[string]struct {
		ran   []string
		asked string
		ok    bool
	}{
		"pip install nope || pip install good":                      {nil, "nope good", true},
		"pip install good || pip install nope":                      {nil, "good", true},
		"pip install nope || pip install never || pip install good": {nil, "nope never good", true},
		"pip install nope || pip install good || pip install never": {nil, "nope good", true},
		"pip install nope || pip install never; python3 a.py":       {[]string{"false || false; python3 a.py"}, "nope never", false},
		"pip install nope || npm i good; python3 a.py":              {[]string{"false || true; python3 a.py"}, "nope good", true},
		"pip install never; pip install nope || pip install good":   {nil, "never", false},
		"pip install nope && pip install good":                      {nil, "nope", false},
		"missing || pip install good":                               {[]string{"missing || true"}, "good", true},
		"missing || pip install nope":                               {[]string{"missing || false"}, "nope", false},
	} {
		b := newBench(t, nil, exits(0, "", ""))
		b.install.fail = fail
		r := b.run(line)
		if diff := cmp.Diff(want.ran, b.lines()); diff != "" || b.install.asked() != want.asked || r.OK != want.ok {
			t.Errorf("%s: asked %q, ok %v\n%s\n%s", line, b.install.asked(), r.OK, diff, r.Text)
		}
	}
}

// TestInnocent: a package is not blamed for another one that was asked for with it, and
// may be installed later without being asked for.
func TestInnocent(t *testing.T) {
	b := newBench(t, nil, chain("good")...)
	b.install.fail = map[string]*packages.Failure{"bad": {Reason: packages.NoPackage, Text: "There is no bad.", Package: "Bad"}}
	r := b.run("pip install good bad==1")
	b.want(r, false, "Not installed: bad==1. There is no bad.", "Not installed either, because pip installs all of a command or nothing: good. Ask for that again without bad==1.")
	if _, lost := b.lostBefore(interpreter.Python, "good"); lost {
		t.Error("good is held for lost")
	}
	if _, lost := b.lostBefore(interpreter.Python, "bad"); !lost {
		t.Error("bad is not held for lost")
	}
	b.want(b.run("python3 a.py"), true, "installed good 1.0")

	// Who is to blame is not always known: by what a package needs, or by all together.
	for _, f := range []packages.Failure{
		{Reason: packages.NoPackage, Text: "There is no other.", Package: "other"},
		{Reason: packages.Conflict, Text: "They do not go together."},
		{Reason: packages.NoRoom, Text: "It is too much."},
	} {
		b := newBench(t, nil)
		b.install.fail = map[string]*packages.Failure{"bad": &f}
		b.want(b.run("pip install good bad"), false, "Not installed: good, bad. "+f.Text)
		for _, name := range []string{"good", "bad"} {
			if _, lost := b.lostBefore(interpreter.Python, name); lost {
				t.Errorf("%s: %s is held for lost", f.Reason, name)
			}
		}
		b.want(b.run("pip install bad"), false, "Not installed: bad. "+f.Text)
		if _, lost := b.lostBefore(interpreter.Python, "bad"); !lost {
			t.Errorf("%s: bad is not held for lost", f.Reason)
		}
	}
	// A registry that does not answer is about all of them.
	b = newBench(t, nil)
	b.install.fail = map[string]*packages.Failure{"bad": failed(packages.NoAnswer, "No answer.")}
	b.run("pip install good bad")
	if l, lost := b.lostBefore(interpreter.Python, "good"); !lost || !l.passing {
		t.Errorf("%+v", l)
	}
}

// TestEnvironment: the host's own packages say nothing about a virtual environment, whose
// Python is told where packages went, and whether they fit it.
func TestEnvironment(t *testing.T) {
	python, err := (interpreter.Options{Path: os.Getenv("PATH")}).Find(interpreter.Python)
	if err != nil {
		t.Skip("this host has no Python")
	}
	b := newBench(t, nil)
	b.runner.out = providedMark + "six\n"
	b.want(b.run("pip install six"), true, "Here already without an install: six.")
	const kept = "Packages are kept for the conversation and not in a virtual environment"
	for _, line := range []string{"v/bin/pip install six", "v/bin/python -m pip install six==1.0", ". v/bin/activate && pip install 'six>=1'", filepath.Join(b.w.Work(), "v/bin/pip") + " install 'six<9'"} {
		r := b.run(line)
		b.want(r, true, "Installed with pip: six 1.0.", kept)
		b.never(r, "Here already")
		b.Set.specs = map[interpreter.Kind][]packages.Spec{}
	}
	r := b.run(python.Path + " -m pip install six")
	b.want(r, true, "Here already without an install: six.")
	b.never(r, kept)
	b.want(b.run(filepath.Join(filepath.Dir(python.Path), "python3.999")+" -m pip install 'six<8'"), true, "Installed with pip: six 1.0.", kept)
	b.Set.specs = map[interpreter.Kind][]packages.Spec{}
	// A link of the workspace to the host's Python is not the host's.
	check(t, os.MkdirAll(filepath.Join(b.w.Work(), "v/bin"), 0o755))
	check(t, os.Symlink(python.Path, filepath.Join(b.w.Work(), "v/bin/python")))
	b.want(b.run(filepath.Join(b.w.Work(), "v/bin/python")+" -m pip install six"), true, "Installed with pip: six 1.0.", kept)

	// A name with another version in it is that of another Python, and so is PyPy's.
	others := map[string]bool{"pip3.3": true, "python3.3 -m pip": true, "pypy3 -m pip": true, "pip3": false}
	if python.Version != "" {
		others["pip"+python.Version] = false
	}
	for name, other := range others {
		b.Set.specs = map[interpreter.Kind][]packages.Spec{}
		r := b.run(name + " install six")
		if !other {
			b.want(r, true, "Here already without an install: six.")
			b.never(r, kept)
			continue
		}
		b.want(r, true, "Installed with pip: six 1.0.", kept)
		if host := minor(python.Version); host != "" {
			program, _, _ := strings.Cut(name, " ")
			b.want(r, true, program+" is not of the Python that packages are made for here, which is Python "+host+": those with compiled parts cannot be imported in another one. Run the code with python3.")
		}
	}
	b.Set.specs = map[interpreter.Kind][]packages.Spec{}
	b.want(b.run("PATH=\"$PWD/v/bin:$PATH\" pip install six"), true, "Installed with pip: six 1.0.", kept)

	for _, cfg := range []string{"home = /x\nversion = 3.3.1\n", "version_info = 3.3.1.final.0\n"} {
		b.write("v/pyvenv.cfg", cfg)
		want := "The virtual environment v runs Python 3.3, and packages are made for Python " + minor(python.Version) + " here"
		if python.Version == "" {
			want = kept
		}
		b.want(b.run("v/bin/pip install six"), true, want)
	}
	b.write("sub/v/pyvenv.cfg", "version = "+python.Version+".9\n")
	b.never(b.run("cd sub && v/bin/pip install six attrs; v/bin/python a.py"), "The virtual environment")
	b.write("v/pyvenv.cfg", "version = 3.3.1\n")
	if python.Version != "" {
		b.want(b.run("cd v/bin && ./pip install attrs"), true, "The virtual environment v runs Python 3.3")
	}

	b = newBench(t, func(o *Options) { o.Installer, o.Facts.Installs = nil, false })
	b.runner.out = providedMark + "six\n"
	b.want(b.run("v/bin/pip install six"), false, "installing is not enabled")
}

// TestRunners: npx runs what is installed, for the conversation or in the workspace, and
// fetches nothing.
func TestRunners(t *testing.T) {
	b := newBench(t, nil)
	b.want(b.run("npx tsc"), false, "`npx` fetches a package in order to run it", "write `npm install typescript` as a command before, then `tsc`")
	b.want(b.run("uvx ruff check"), false, "write `pip install ruff` as a command before, then `ruff`")
	b.write("app/node_modules/.bin/eslint", "#!/bin/sh\n")
	b.want(b.run("cd app && npx eslint ."), false, "`npx` fetches")
	check(t, os.Chmod(filepath.Join(b.w.Work(), "app/node_modules/.bin/eslint"), 0o755))
	bin := filepath.Join(b.install.dir, "node_modules", ".bin")
	b.install.bin = []string{bin}
	check(t, os.MkdirAll(bin, 0o755))
	check(t, os.WriteFile(filepath.Join(bin, "tsc"), []byte("#!/bin/sh\n"), 0o755))
	b.run("npm install typescript && npx tsc")
	b.run("npx --yes tsc --noEmit && python3 a.py")
	b.run("cd app && npx eslint .")
	b.run("npx eslint .", "workdir", "app")
	b.want(b.run("npx eslint ."), false, "`npx` fetches")
	if diff := cmp.Diff([]string{"true && tsc", "tsc --noEmit && python3 a.py", "cd app && node_modules/.bin/eslint .", "node_modules/.bin/eslint ."}, b.lines()); diff != "" {
		t.Error(diff)
	}
	if o := b.Packages().Options(t.Context()); !o.Program("tsc") || o.Program("eslint") || !o.Program("app/node_modules/.bin/eslint") || o.Program("../x") {
		t.Error("the record of packages does not tell which programs are there")
	}
}

// TestInstallFault: a fault of the host is an error, and so is the end of the call.
func TestInstallFault(t *testing.T) {
	for _, line := range []string{"pip install aa", "python3 a.py"} {
		b := newBench(t, nil, exits(1, "", missing("aa")))
		b.o.Installer = broken{}
		if _, err := b.Invoke(t.Context(), llm.Call{Name: Name, Arguments: `{"command":"` + line + `"}`}, tool.Env{}); err == nil || !strings.Contains(err.Error(), "no room on the device") {
			t.Error(err)
		}
	}
}

type broken struct{}

func (broken) Install(context.Context, packages.Request) (packages.Set, error) {
	return packages.Set{}, fmt.Errorf("store: %w", errScripted)
}

// TestInstallProgress: who watches a call hears of its installs.
func TestInstallProgress(t *testing.T) {
	b := newBench(t, nil)
	var heard string
	_, err := b.Invoke(t.Context(), llm.Call{Name: Name, Arguments: `{"command":"pip install aa bb"}`}, tool.Env{Progress: func(p []byte) { heard += string(p) }})
	if check(t, err); heard != "[installing aa, bb]\n" {
		t.Error(heard)
	}
}

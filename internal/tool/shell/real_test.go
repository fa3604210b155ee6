package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/tool/file"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
	"github.com/metier-run/metier/internal/workspace/syntax"
)

// realBench is a set over a real shell, confined as it is by default. Only its installer
// is scripted: it installs the module "made".
func realBench(t *testing.T) *bench {
	t.Helper()
	home, err := os.UserHomeDir()
	check(t, err)
	programs := interpreter.Options{Path: os.Getenv("PATH"), Home: home, PyenvRoot: os.Getenv("PYENV_ROOT")}
	if _, err := programs.Find(interpreter.Python); err != nil {
		t.Skip(err)
	}
	program, err := shell.Find("", programs)
	if err != nil {
		t.Skip(err)
	}
	l, err := launch.Open(t.Context(), launch.Options{Policy: sandbox.DefaultPolicy(), Scratch: t.TempDir(), Search: os.Getenv("PATH")})
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	if err := l.Problem(); err != nil {
		t.Skip(err)
	}
	area, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	w, err := workspace.New(workspace.Options{Area: area, Interpreters: programs, Environ: []string{"LANG=C.UTF-8"}})
	check(t, err)
	session := shell.New(w, shell.Options{Program: program, Starter: l})
	t.Cleanup(func() {
		session.Close()
		check(t, w.Close(context.Background()))
	})
	checker := syntax.New(syntax.Options{Runner: l, Interpreters: programs})
	dir := filepath.Join(area, "set")
	check(t, os.Mkdir(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "made.py"), []byte("answer = 42\n"), 0o644))
	b := &bench{t: t, w: w, install: &installer{dir: dir}}
	f := facts()
	f.Dialect = string(program.Dialect)
	b.Set = New(Options{
		Workspace: w, Session: session, Facts: f, Capabilities: l.Capabilities(), Runner: l, Installer: b.install,
		Patch: file.New(file.Options{Workspace: w}).ApplyPatch,
		Syntax: func(ctx context.Context, files []tool.Written) string {
			var all []syntax.File
			for _, f := range files {
				all = append(all, syntax.File{Path: f.Shown, Data: f.Data})
			}
			verdicts, err := checker.Check(ctx, syntax.Place{Temp: w.State()}, all)
			if err != nil {
				t.Error(err)
			}
			return syntax.Report(verdicts)
		},
	})
	return b
}

// TestReal walks through what a model does: it writes, runs, reads, repairs and runs
// again.
func TestReal(t *testing.T) {
	b := realBench(t)
	b.want(b.run("cat > app.py <<'EOF'\nimport sys\n\ndef half(n):\n    return n / 0\n\nprint(half(int(sys.argv[1])))\nEOF"), true, "exit 0 (", "app.py")
	if b.know("app.py") != workspace.Fresh {
		t.Error("what it wrote, it has seen")
	}
	r := b.run("python app.py 84")
	b.want(r, false, "exit 1 (", `File "app.py", line 4, in half`, "ZeroDivisionError", "The error comes from app.py, line 4:", "4 |     return n / 0")
	b.never(r, b.w.Work())
	b.want(b.run("python app.py 84"), false, "failed before, exactly as it is")
	b.want(b.run("apply_patch <<EOF\n*** Begin Patch\n*** Update File: app.py\n@@ def half(n):\n-    return n / 0\n+    return n / 2  # $n\n*** End Patch\nEOF"), true, "app.py")
	b.want(b.run("grep -c '# $n' app.py && python app.py 84"), true, "\n1\n42.0")
	b.want(b.run("grep nothing app.py"), true, "exit 1 (", "no failure")

	b.want(b.run("mkdir -p sub/in; cd sub; export WORD='a b'"), true, "Working directory is now sub")
	b.want(b.run("echo $WORD; pwd"), true, "\na b\n.", "Working directory is now sub")
	b.want(b.run("pwd", "workdir", "in"), true, "Working directory is now sub")
	b.want(b.run("pwd; cd /; pwd"), true, "The command ended outside of the working directory")
	b.want(b.run("if true; then\n  nonsense-program\nfi"), false, "exit 127 (", "line 2 of the command: nonsense-program: ", "The program nonsense-program is not on this host")

	b.want(b.run("(echo up; sleep 600) &", "run_in_background", true), true, "job-1 runs in the background", "tail ../../state/.jobs/job-1.log")
	b.want(b.run("until grep -q up ../../state/.jobs/job-1.log; do sleep 0.02; done; tail ../../state/.jobs/job-1.log"), true, "\nup")
	began := time.Now()
	b.want(b.run("echo begun; sleep 600", "timeout_ms", 500), false, "Stopped after 0.5 s", "\nbegun")
	if time.Since(began) > 20*time.Second {
		t.Error("it was not stopped")
	}
}

// TestRealRecovery: installs, what the host has, and a look at a library, for real.
func TestRealRecovery(t *testing.T) {
	b := realBench(t)
	b.run("mkdir sub; cat > sub/m.py <<'EOF'\nimport os, made\nprint(made.answer, os.getcwd().endswith('sub'))\nEOF")
	b.want(b.run("cd sub && python3 m.py"), true, `The package for "made" was missing: installed made 1.0 and ran the command again.`, "Working directory is now sub", "\n42 True")
	b.want(b.run("cd ..; cat > j.py <<'EOF'\nimport json\nprint(json.dumpz({}))\nEOF\npython3 j.py"), false,
		"the module json has no dumpz. Nearest: dump", "The error comes from j.py, line 2:", "Working directory is the top again")
	if found, err := b.w.Interpreter(interpreter.Python); err == nil && !b.hostHas(found, "pip") {
		t.Skip("this Python has no pip of its own")
	}
	b.want(b.run("pip install --upgrade pip"), true, "Here already without an install: pip.")
	b.run("pip install no-such-package-anywhere")
	if got := b.install.asked(); got != "made no-such-package-anywhere" {
		t.Error(got)
	}
}

// TestRealEnvironment: an install in a virtual environment that a command has made goes to
// the conversation, where the environment's Python finds it; what the host's Python has is
// not there and is not said to be.
func TestRealEnvironment(t *testing.T) {
	b := realBench(t)
	if r := b.run("python -m venv --without-pip w"); !r.OK { // pip in it takes seconds, and is never run
		t.Skipf("this Python makes no virtual environment: %s", r.Text)
	}
	r := b.run("python -m venv --without-pip v; v/bin/pip install made && v/bin/python -c 'import made, sys; print(made.answer, sys.prefix != sys.base_prefix)'")
	b.want(r, true, "Installed with pip: made 1.0.", "not in a virtual environment", "\n42 True")
	b.never(r, "The virtual environment v runs Python")
	b.want(b.run("w/bin/python -c 'import made; print(made.answer)'"), true, "\n42")
	b.want(b.run(". v/bin/activate && pip install made && python -c 'import made; print(made.answer)'"), true, "Installed already in this session: made", "\n42")

	// A name that the host's Python has by itself, and the environment's has not.
	name := b.provided()
	if name == "" {
		t.Skip("this host's Python has no package of its own")
	}
	b.want(b.run("pip install "+name), true, "Here already without an install: "+name+".")
	r = b.run("PATH=\"$PWD/v/bin:$PATH\" pip install " + name + "; v/bin/python -c 'import made; print(made.answer)'")
	b.want(r, true, "Installed with pip: "+name+" 1.0.", "\n42")
	b.never(r, "Here already")
	delete(b.Set.specs, interpreter.Python) // the next one asks again
	r = b.run("v/bin/python -m pip install " + name)
	b.want(r, true, "Installed with pip: "+name+" 1.0.")
	b.never(r, "Here already")
}

// TestRealRunner: what a package brings runs behind npx, in any folder and without npm, and
// so does what lies in the workspace; a prompt before it is no part of it.
func TestRealRunner(t *testing.T) {
	b := realBench(t)
	bin := filepath.Join(b.install.dir, "bin")
	b.install.bin = []string{bin}
	check(t, os.Mkdir(bin, 0o755))
	check(t, os.WriteFile(filepath.Join(bin, "greet"), []byte("#!/bin/sh\necho \"hello $1\"\n"), 0o755))
	b.want(b.run("mkdir sub; npm install made && cd sub && npx --yes greet you"), true, "Installed with npm: made 1.0.", "\nhello you")
	b.want(b.run("$ npx greet 'all of you'"), true, "Before the command stood `$`", "\nhello all of you")
	b.write("sub/node_modules/.bin/own", "#!/bin/sh\necho \"own $1\"\n")
	check(t, os.Chmod(filepath.Join(b.w.Work(), "sub/node_modules/.bin/own"), 0o755))
	b.want(b.run("npx own 1; mkdir in; cd in; sh -c 'npx own 2'; timeout 9 npx -y own 3"), true, "\nown 1\nown 2\nown 3")
}

// provided is a package that this host's Python has by itself.
func (b *bench) provided() string {
	for name := range (&run{Set: b.Set}).ofHost(b.t.Context()) {
		return name
	}
	return ""
}

// hostHas reports whether a Python has a distribution beside its own library.
func (b *bench) hostHas(with interpreter.Interpreter, name string) bool {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(with.Path)), "lib", "python3*", "*-packages", name+"-*.dist-info"))
	return err == nil && len(found) > 0
}

// What the room asks for is what the workspace's rooms have.
var (
	_ Installer = (*packages.Store)(nil)
	_ Session   = (*shell.Session)(nil)
)

// TestRealShapes: heredocs and paths as a real shell takes them.
func TestRealShapes(t *testing.T) {
	b := realBench(t)
	// Two heredocs, one of them in a pipe, and text behind: nothing is lost on the way.
	b.want(b.run("cat <<'A' > one; cat <<B | tr a-z A-Z > two\nx $y\nA\nz\nB\ncat one two"), true, "\nx $y\nZ")
	r := b.run("echo \"$HOME\"; echo \"$TMPDIR\"; echo $PATH | tr : '\\n' | head -n 1; (echo x > /etc/metier-probe) 2>&1")
	b.want(r, false)
	b.never(r, b.w.Work())
	if !strings.Contains(r.Text, "$TMPDIR") {
		t.Error(r.Text)
	}
}

//go:build unix

package skill

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	unconfined "github.com/metier-run/metier/internal/sandbox/bare"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/install"
)

// realShop runs scripts for real in a workspace, as nothing confines them. A package
// that is asked for brings a module of its own name.
type realShop struct {
	*Set
	w       *workspace.Workspace
	packs   *fakePackages
	backend sandbox.Backend
}

func newRealShop(t *testing.T, files map[string]string) realShop {
	t.Helper()
	python := interpreter.Options{Path: os.Getenv("PATH")}
	if _, err := python.Find(interpreter.Python); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "forge", "SKILL.md"), "---\nname: forge\ndescription: Forges.\n---\nx\n")
	for name, text := range files {
		write(t, filepath.Join(dir, "forge", filepath.FromSlash(name)), text)
	}
	area, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := realShop{packs: packagesOn(), backend: unconfined.New(unconfined.Options{})}
	s.w, err = workspace.New(workspace.Options{Area: area, Interpreters: python, Environ: []string{"LANG=C.UTF-8"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.w.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.backend.Close(); err != nil {
			t.Error(err)
		}
	})
	s.packs.use = func(r install.Request) { s.w.Use(madeSet(t, s.packs.have, r.Kind.Interpreter())) }
	place := Place{Workspace: s.w, Applied: NewApplied(), Packages: s.packs, Files: true, Network: sandbox.NetworkOpen}
	s.Set = New(Options{Skills: load(t, dir), Runner: realRunner{s.backend}, Scripts: Scripts{
		Interpreters: python, Place: func(context.Context) (Place, error) { return place, nil },
	}})
	return s
}

// madeSet is a set of packages, of which each is a module that says its name.
func madeSet(t *testing.T, names map[string]bool, kind interpreter.Kind) workspace.Packages {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := workspace.Packages{Kind: kind, Dir: dir, Imports: []string{filepath.Join(dir, "node_modules")}}
	for name := range names {
		if kind == interpreter.Python {
			p.Imports = []string{filepath.Join(dir, "lib")}
			write(t, filepath.Join(dir, "lib", name+".py"), "NAME = '"+name+"'\n")
			continue
		}
		write(t, filepath.Join(dir, "node_modules", name, "index.js"), "module.exports = '"+name+"';\n")
	}
	return p
}

// TestRealAutoInstall: a script whose modules are missing runs in one call, and what one
// call leaves the next one finds.
func TestRealAutoInstall(t *testing.T) {
	s := newRealShop(t, map[string]string{
		"scripts/one.py":   "import listed, missing_a, missing_b, beside\nopen('left.txt', 'w').write('/'.join([listed.NAME, missing_a.NAME, missing_b.NAME, beside.NAME]))\n",
		"scripts/two.sh":   "cat left.txt; python3 -c 'import missing_a; print(missing_a.NAME)'\n",
		"lib/beside.py":    "NAME = 'own'\n",
		"beside.py":        "NAME = 'beside'\n",
		"requirements.txt": "listed\n",
	})
	r := invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/one.py"}`)
	if diff := cmp.Diff([]string{"pip: listed", "pip: missing_a", "pip: missing_b"}, s.packs.asked); !r.OK || diff != "" {
		t.Fatalf("%s\n%s", r.Text, diff)
	}
	if r := invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/two.sh"}`); !r.OK || !strings.Contains(r.Text, "listed/missing_a/missing_b/besidemissing_a") {
		t.Error(r.Text)
	}
}

// TestRealNode: the same for Node, whose message names no package but what it wanted.
func TestRealNode(t *testing.T) {
	if _, err := (interpreter.Options{Path: os.Getenv("PATH")}).Find(interpreter.Node); err != nil {
		t.Skip(err)
	}
	s := newRealShop(t, map[string]string{
		"scripts/one.js": "console.log(require('chalk') + '/' + require('lib/own.js'));\n", "lib/own.js": "module.exports = 'own';\n",
		"scripts/two.mjs":  "import fs from 'fs';\nimport name from 'zx';\nimport own from '../lib/own.js';\nimport chalk from 'chalk';\nconsole.log([name, own, chalk, typeof fs, process.argv.slice(2)].join('/'));\n",
		"scripts/file.mjs": "import './gone.mjs';\n",
	})
	r := invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/one.js"}`)
	if diff := cmp.Diff([]string{"npm: chalk"}, s.packs.asked); !r.OK || diff != "" || !strings.Contains(r.Text, "chalk/own") {
		t.Fatalf("%s\n%s", r.Text, diff)
	}
	r = invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/two.mjs","args":["a b"]}`)
	if diff := cmp.Diff([]string{"npm: chalk", "npm: zx"}, s.packs.asked); !r.OK || diff != "" || !strings.Contains(r.Text, "\nzx/own/chalk/object/a b\n") {
		t.Fatalf("%s\n%s", r.Text, diff)
	}
	if r := invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/file.mjs"}`); r.OK || len(s.packs.asked) != 2 || !strings.Contains(r.Text, "gone.mjs") {
		t.Error(r.Text)
	}
}

// TestRealRepair: the corrected copy runs by the command that the model is told, and
// sees what the script saw (B1 15.8).
func TestRealRepair(t *testing.T) {
	const text = "from __future__ import annotations\n\"\"\"A script.\"\"\"\nimport json, os, sys, beside, own\n" +
		"def here(): pass\n" +
		"json.dump([sys.argv, __file__, __name__, sys.path[:2], beside.NAME, own.NAME, os.getcwd(), sorted(n for n in globals() if n[0] != '_'), here.__module__], open(sys.argv[1], 'w'))\n" +
		"raise ValueError('wrong')\n"
	s := newRealShop(t, map[string]string{"scripts/one.py": text, "scripts/beside.py": "NAME = 'beside'\n", "own.py": "NAME = 'own'\n"})
	r := invoke(t, s.Set, RunName, `{"skill":"forge","path":"scripts/one.py","args":["saw.json","a b"]}`)
	if r.OK || !strings.Contains(r.Text, "6 | raise ValueError('wrong')") {
		t.Fatal(r.Text)
	}
	_, after, _ := strings.Cut(r.Text, "with the shell:\n")
	command, _, _ := strings.Cut(after, "\n")
	want := readFile(t, filepath.Join(s.w.Work(), "saw.json"))
	if err := os.Remove(filepath.Join(s.w.Work(), "saw.json")); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(s.w.Work(), workspace.Repairs, "forge", "scripts", "one.py")
	if out := s.shell(t, command); out.OK() || !strings.Contains(string(out.Stderr.Head), `skill-repairs/forge/scripts/one.py", line 6`) {
		t.Errorf("the copy as it is: %d %s", out.Exit, out.Stderr.Head)
	}
	write(t, copied, strings.Replace(text, "raise ValueError('wrong')", "print('mended')", 1))
	out := s.shell(t, command)
	if !out.OK() || string(out.Stdout.Head) != "mended\n" {
		t.Fatalf("%s: %d %s%s", command, out.Exit, out.Stdout.Head, out.Stderr.Head)
	}
	if diff := cmp.Diff(want, readFile(t, filepath.Join(s.w.Work(), "saw.json"))); diff != "" {
		t.Error(diff)
	}
}

// shell runs a command as the shell tool does.
func (s realShop) shell(t *testing.T, command string) sandbox.Result {
	t.Helper()
	bash, err := s.w.Interpreter(interpreter.Bash)
	if err != nil {
		t.Skip(err)
	}
	l := s.w.Launch(sandbox.Shell, ".", workspace.Extra{})
	l.Argv, l.Deadline, l.Output = []string{bash.Path, "-c", command}, time.Minute, 1<<16
	l.Network.Mode = sandbox.NetworkOpen
	out, err := sandbox.Run(t.Context(), s.backend, l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

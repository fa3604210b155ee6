package syntax

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// TestPython: Python's own parser, with its encodings, in one launch.
func TestPython(t *testing.T) {
	r, c := real(t, interpreter.Python)
	ran := filepath.Join(t.TempDir(), "ran")
	files := []File{
		{"good.py", []byte("def f(x: int) -> int:\n    return x\n")},
		{"runs.py", []byte("open(" + fmt.Sprintf("%q", ran) + ", 'w')\n")},
		{"warns.py", []byte("x = '\\d'\nassert (1, 2)\nif x is 1: pass\n")},
		{"latin.py", []byte("# -*- coding: latin-1 -*-\nx = '\xe9'\n")},
		{"bom.py", []byte("\xef\xbb\xbfx = 1\n")},
		{"crlf.py", []byte("def f():\r\n    return 1\r\n")},
		{"stub.pyi", []byte("def f() -> int: ...\n")},
		{"tool", []byte("#!/usr/bin/env python3\nprint(1)\n")},
		{"empty.py", nil},
		{"paren.py", []byte("import os\n\ndef f(:\n    pass\n\nprint(f())\n")},
		{"indent.py", []byte("def f():\n    if True:\n    pass\n")},
		{"tabs.py", []byte("def f():\n\tif 1:\n        x\n")},
		{"utf8.py", []byte("x = 1\ny = '\xe9'\n")},
		{"open.py", []byte("x = (1,\n  2\n")},
		{"sub/await.py", []byte("def f():\n    await x\n")},
	}
	verdicts := checkAll(t, c, files...)
	if len(r.launches) != 1 || len(verdicts) != len(files) {
		t.Fatalf("%d launches, verdicts on %v", len(r.launches), paths(verdicts))
	}
	for i, v := range verdicts {
		if want := i < 9; v.OK != want || !strings.HasPrefix(v.Language, "Python 3.") || v.Path != files[i].Path {
			t.Errorf("%+v", v)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the code of a file ran")
	}
	for i, want := range map[int]int{9: 3, 10: 3, 11: 3, 13: 1, 14: 2} {
		if verdicts[i].Line != want || verdicts[i].Message == "" {
			t.Errorf("%s: %+v", files[i].Path, verdicts[i])
		}
	}
	if text := verdicts[9].Sentence(); !strings.Contains(text, "paren.py does not parse (Python 3.") || !strings.Contains(text, ", line 3, column 7: SyntaxError: ") || !strings.Contains(text, "\n3 | def f(:\n4 |     pass\n") {
		t.Error(text)
	}
}

// TestNode: scripts and modules are told apart as Node does, and nothing runs.
func TestNode(t *testing.T) {
	r, c := real(t, interpreter.Node)
	ran := filepath.Join(t.TempDir(), "ran")
	files := []File{
		{"good.js", []byte("const a = require('nope'); module.exports = a\n")},
		{"runs.js", []byte("require('fs').writeFileSync(" + fmt.Sprintf("%q", ran) + ", '')\n")},
		{"return.js", []byte("#!/usr/bin/env node\nif (1) return\n")},
		{"module.js", []byte("import a from 'nope'\nexport default await a\n")},
		{"module.mjs", []byte("import a from 'nope'\nawait a\n")},
		{"script.cjs", []byte("const a = 1\n")},
		{"bom.js", []byte("\xef\xbb\xbflet a = 1\n")},
		{"tool", []byte("#!/usr/bin/env node\nlet a = 1\n")},
		{"plus.js", []byte("function f() {\n  return 1 +;\n}\n")},
		{"plus.mjs", []byte("import a from 'nope'\n\nlet x = ;\n")},
		{"modplus.js", []byte("import a from 'nope'\nlet y = 3 3\n")},
		{"import.cjs", []byte("let a\nimport x from 'y'\n")},
		{"end.js", []byte("function f() {\n")},
		{"brace.js", []byte("}); f(); (function () {\n")},
	}
	verdicts := checkAll(t, c, files...)
	if len(r.launches) != 1 || len(verdicts) != len(files) {
		t.Fatalf("%d launches, verdicts on %v", len(r.launches), paths(verdicts))
	}
	for i, v := range verdicts {
		if want := i < 8; v.OK != want || !strings.HasPrefix(v.Language, "Node ") {
			t.Errorf("%+v", v)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the code of a file ran")
	}
	for i, want := range map[int][2]int{8: {2, 13}, 9: {3, 9}, 10: {2, 11}, 11: {2, 1}, 12: {1, 0}, 13: {1, 1}} {
		if got := [2]int{verdicts[i].Line, verdicts[i].Column}; got != want && want[0] != 1 {
			t.Errorf("%s: at %v, not %v: %s", files[i].Path, got, want, verdicts[i].Message)
		}
	}
}

// TestMixed: verdicts stand with their own files, whatever the others are.
func TestMixed(t *testing.T) {
	r, c := real(t, interpreter.Python)
	found := checkAll(t, c,
		File{"a.json", []byte("{}")}, File{"a.txt", []byte("x")}, File{"bad.py", []byte("(")}, File{"b.json", []byte("{")}, File{"good.py", []byte("x = 1\n")},
	)
	got := ""
	for _, v := range found {
		got += fmt.Sprintf("%s %v ", v.Path, v.OK)
	}
	if got != "a.json true bad.py false b.json false good.py true " || len(r.launches) != 1 {
		t.Errorf("%s, %d launches", got, len(r.launches))
	}
}

// TestTypeScript: a host whose Node knows TypeScript says whether it parses, and an
// older one nothing.
func TestTypeScript(t *testing.T) {
	_, c := real(t, interpreter.Node)
	verdicts := checkAll(t, c,
		File{"good.ts", []byte("const a: number = 3\n")},
		File{"bad.ts", []byte("let b = 1\nconst a: number = ;\n")},
		File{"enum.ts", []byte("enum A { B }\n")},
	)
	switch len(verdicts) {
	case 0:
		t.Skip("this Node has no TypeScript")
	case 2:
		if !verdicts[0].OK || verdicts[1].OK || verdicts[1].Line != 2 {
			t.Errorf("%+v", verdicts)
		}
	default:
		t.Errorf("verdicts on %v", paths(verdicts))
	}
}

// TestLaunch: what is launched sees copies of the files and nothing else, and the bytes
// of the copies are those that were given.
func TestLaunch(t *testing.T) {
	o := interpreter.Options{Path: os.Getenv("PATH")}
	if _, err := o.Find(interpreter.Python); err != nil {
		t.Skip(err)
	}
	dir := temp(t)
	r := &rig{}
	r.answer = func(l sandbox.Launch) (sandbox.Result, error) {
		got, err := os.ReadFile(filepath.Join(l.Dir, "0"))
		if err != nil || string(got) != "x = '\xe9'\r\n" {
			t.Errorf("%q, %v", got, err)
		}
		return sandbox.Result{Stdout: sandbox.Output{Head: []byte("python 3.99\n0 ok\n")}}, nil
	}
	c := New(Options{Runner: r, Interpreters: o})
	found, err := c.Check(t.Context(), Place{Temp: dir, Hide: []string{"/hidden"}}, []File{{"a.py", []byte("x = '\xe9'\r\n")}})
	if err != nil || len(found) != 1 || !found[0].OK || found[0].Language != "Python 3.99" {
		t.Fatalf("%+v, %v", found, err)
	}
	l := r.launches[0]
	if l.Purpose != sandbox.Syntax || l.Network.Mode != sandbox.NetworkDenied || len(l.Write) != 1 || l.Write[0] != l.Dir || filepath.Dir(l.Dir) != dir || l.Hide[0] != "/hidden" || l.Deadline <= 0 || l.Output <= 0 {
		t.Errorf("%+v", l)
	}
	if info, err := os.Stat(l.Dir); err == nil || info != nil {
		t.Error("the copies are still there")
	}
}

// TestHostile: whatever a launch prints, there are verdicts on the files that were
// given, or none.
func TestHostile(t *testing.T) {
	o := interpreter.Options{Path: os.Getenv("PATH")}
	if _, err := o.Find(interpreter.Python); err != nil {
		t.Skip(err)
	}
	for output, want := range map[string]string{
		"":                                       "",
		"1 ok\n-1 ok\n99999999999999999999 ok\n": "",
		"0\n0 \n0 okay\n0 1\n0 1 2\n0 1 2 \n":    "",
		"0 a b c\n":                              "",
		"python 3.\x1b[31m\n0 1 1 a\x1b[31mb\u202e\n": "a.py does not parse (), line 1, column 1: a[31mb\n1 | x\nThe file stands as it was written. Correct this place with apply_patch before you use it.",
		"0 99 99 late\n":  "a.py does not parse (), line 1: late\n1 | x\nThe file stands as it was written. Correct this place with apply_patch before you use it.",
		"0 -5 -5 early\n": "a.py does not parse (): early (the parser does not say where)\nThe file stands as it was written. Correct this place with apply_patch before you use it.",
	} {
		r := &rig{answer: func(sandbox.Launch) (sandbox.Result, error) {
			return sandbox.Result{Stdout: sandbox.Output{Head: []byte(output)}}, nil
		}}
		found := checkAll(t, New(Options{Runner: r, Interpreters: o}), File{"a.py", []byte("x\n")})
		got := ""
		for _, v := range found {
			got += v.Sentence()
		}
		if got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
}

// TestNoLaunch: without a parser, a place or a launch there is no verdict, and the
// others stand.
func TestNoLaunch(t *testing.T) {
	o := interpreter.Options{Path: os.Getenv("PATH")}
	fails := &rig{answer: func(sandbox.Launch) (sandbox.Result, error) { return sandbox.Result{}, errors.New("refused") }}
	files := []File{{"a.py", []byte("def f(:")}, {"a.js", []byte("let = ;")}, {"a.json", []byte("{")}}
	for name, c := range map[string]*Checker{
		"refused":        New(Options{Runner: fails, Interpreters: o}),
		"no interpreter": New(Options{Runner: &rig{}, Interpreters: interpreter.Options{}}),
	} {
		if found := checkAll(t, c, files...); len(found) != 1 || found[0].Path != "a.json" {
			t.Errorf("%s: %+v", name, found)
		}
	}
	found, err := New(Options{Runner: &rig{}, Interpreters: o}).Check(t.Context(), Place{Temp: filepath.Join(t.TempDir(), "gone")}, files)
	if err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Options{}).Check(ctx, Place{}, files); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestPlacesOwn: a place's own interpreters go before the checker's.
func TestPlacesOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("looks for python3 on PATH")
	}
	r, c := real(t, interpreter.Python)
	none := interpreter.Options{}
	found, err := c.Check(t.Context(), Place{Temp: temp(t), Interpreters: &none}, []File{{"a.py", []byte("def f(:")}})
	if err != nil || len(found) != 0 || len(r.launches) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func FuzzLaunchOutput(f *testing.F) {
	f.Add("python 3.11\n0 ok\n1 3 4 SyntaxError: bad\n")
	f.Add("node 20.1\n1 ok\n[12 bytes dropped]\n0 -1 99999999999 x\n")
	f.Fuzz(func(t *testing.T, output string) {
		files := []File{{"a.py", []byte("one\ntwo\n")}, {"b.py", nil}}
		found := make([]*Verdict, len(files))
		launch{kind: interpreter.Python, files: []int{0, 1}}.read(output, found)
		for i, v := range found {
			if v == nil {
				continue
			}
			if text := v.of(files[i]).Sentence(); strings.ContainsAny(text, "\x00\x1b\r") || len(text) > 4000 {
				t.Errorf("%q", text)
			}
		}
	})
}

// BenchmarkCheck is what a verdict costs where nothing confines the launch.
func BenchmarkCheck(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	c := New(Options{Runner: &rig{}, Interpreters: interpreter.Options{Path: os.Getenv("PATH")}})
	for name, files := range map[string][]File{
		"python": {{"a.py", []byte("x = 1\n")}},
		"node":   {{"a.js", []byte("let x = 1\n")}},
		"module": {{"a.mjs", []byte("let x = ;\n")}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if found, err := c.Check(b.Context(), Place{Temp: dir}, files); err != nil || len(found) != 1 {
					b.Fatal(found, err)
				}
			}
		})
	}
}

package diagnose

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/bare"
)

const probeTime = 8 * time.Second

func reads(files map[string]string) func(string) ([]byte, bool) {
	return func(name string) ([]byte, bool) {
		text, ok := files[name]
		return []byte(text), ok
	}
}

// TestProbeArgs: what is looked for, where, and that the model's own modules are never
// imported.
func TestProbeArgs(t *testing.T) {
	python := func(form Form, owner, name string, files ...string) Miss {
		return Miss{Kind: interpreter.Python, Form: form, Owner: owner, Name: name, Files: files}
	}
	node := func(form Form, owner, name string, files ...string) Miss {
		return Miss{Kind: interpreter.Node, Form: form, Owner: owner, Name: name, Files: files}
	}
	files := map[string]string{
		"main.py":      "import os, sys as s\nimport numpy as np\nfrom pptx.util import Inches\nfrom helpers import x\nfrom . import y\nfrom __future__ import annotations\n",
		"helpers.py":   "import pandas\n",
		"pkg/run.py":   "import flask\n",
		"many.py":      "import a1, a2, a3, a4, a5, a6, a7, a8\n",
		"big.py":       "import big\n" + strings.Repeat("#", rootFileBytes),
		"cjs.js":       "const pk = require('pk')\nconst { Doc: D, save } = require('@s/two')\nconst own = require('./own')\nconst made = new pk.Doc()\nconst cls = require('cls').Sub\n",
		"esm.mjs":      "import def, { one as uno, two } from 'esm'\nimport * as ns from 'ns'\nimport type from './own.js'\nlet d = new uno()\nimport Only from 'only'\nconst o = new Only({a: 1})\n",
		"unknown.mjs":  "import P from 'pptxgenjs'\nconst p = new P()\nconst slide = p.addSlide()\n",
		"nopackage.js": "const x = thing()\n",
	}
	for _, e := range []struct {
		name    string
		miss    Miss
		command string
		want    []string
	}{
		{"module", python(ModuleName, "json", "dump_s", "main.py"), "python main.py", []string{"module", "json", "dump_s", "6", "json"}},
		{"own module", python(ModuleName, "helpers", "y", "main.py"), "python main.py", nil},
		{"part of own module", python(SubModule, "helpers.x", "y", "main.py"), "python main.py", nil},
		{"class, by the traceback", python(Attribute, "Slide", "note", "main.py"), "make", []string{"attribute", "Slide", "note", "6", "pptx.util", "os", "sys", "numpy"}},
		{"class, by the command", python(Attribute, "Slide", "note"), "cd x; python3 ./main.py --a", []string{"attribute", "Slide", "note", "6", "pptx.util", "os", "sys", "numpy"}},
		{"class, by -m", python(Attribute, "App", "runn"), "python -m pkg.run", []string{"attribute", "App", "runn", "6", "flask"}},
		{"class, in the command", python(Attribute, "array", "x"), `python -c "import numpy; numpy.array([1]).x"`, []string{"attribute", "array", "x", "6", "numpy"}},
		{"class, in a heredoc", python(Attribute, "array", "x"), "python3 - <<'E'\nimport numpy as np\nfrom scipy import stats\nE\n", []string{"attribute", "array", "x", "6", "scipy", "numpy"}},
		{"a class of Python", python(Attribute, "str", "x"), "python nothing.py", []string{"attribute", "str", "x", "6"}},
		{"at most six", python(Attribute, "X", "y", "many.py"), "", []string{"attribute", "X", "y", "6", "a1", "a2", "a3", "a4", "a5", "a6"}},
		{"a large file", python(Attribute, "X", "y", "big.py"), "", []string{"attribute", "X", "y", "6"}},
		{"keyword", python(Keyword, "DataFrame.drop", "colums", "helpers.py"), "", []string{"keyword", "DataFrame.drop", "colums", "6", "pandas"}},

		{"a required module", node(Member, "pk", "mak", "cjs.js"), "", []string{"member", "", "mak", "6", "object", "pk"}},
		{"deeper", node(Member, "pk.a.b", "mak", "cjs.js"), "", []string{"member", "a.b", "mak", "6", "object", "pk"}},
		{"a name of a module", node(Constructor, "", "D", "cjs.js"), "", []string{"constructor", "", "Doc", "6", "object", "@s/two"}},
		{"in a name of a module", node(Member, "save", "x", "cjs.js"), "", []string{"member", "save", "x", "6", "object", "@s/two"}},
		{"made", node(Member, "made", "addPages", "cjs.js"), "", []string{"member", "Doc", "addPages", "6", "made", "pk"}},
		{"below made", node(Member, "made.x", "addPages", "cjs.js"), "", nil},
		{"a property of require", node(Member, "cls", "x", "cjs.js"), "", []string{"member", "Sub", "x", "6", "object", "cls"}},
		{"own module, JavaScript", node(Member, "own", "x", "cjs.js"), "", []string{"member", "", "x", "6", "search", "pk", "@s/two", "cls"}},
		{"default import", node(Member, "", "def", "esm.mjs"), "", []string{"member", "", "default", "6", "object", "esm"}},
		{"renamed import", node(Constructor, "", "uno", "esm.mjs"), "", []string{"constructor", "", "one", "6", "object", "esm"}},
		{"made of an import", node(Member, "d", "x", "esm.mjs"), "", []string{"member", "one", "x", "6", "made", "esm"}},
		{"made of a default import", node(Member, "o", "x", "esm.mjs"), "", []string{"member", "", "x", "6", "made", "only"}},
		{"namespace import", node(Member, "ns", "x", "esm.mjs"), "", []string{"member", "", "x", "6", "object", "ns"}},
		{"an object of a call", node(Member, "slide", "addTexts", "unknown.mjs"), "", []string{"member", "", "addTexts", "6", "search", "pptxgenjs"}},
		{"this", node(Member, "this", "x", "unknown.mjs"), "", nil},
		{"no package", node(Member, "x", "y", "nopackage.js"), "", nil},
		{"own function", node(Member, "", "thing", "nopackage.js"), "", nil},
		{"export", node(Export, "pk", "makeThink"), "", []string{"export", "", "makeThink", "6", "object", "pk"}},
		{"subpath", node(SubPath, "@s/two", "sub/x"), "", []string{"subpath", "", "sub/x", "6", "object", "@s/two"}},
	} {
		p, ok := e.miss.Probe(e.command, reads(files), probeTime)
		if diff := cmp.Diff(e.want, p.Args); diff != "" || ok != (e.want != nil) {
			t.Errorf("%s: %v %s", e.name, ok, diff)
		}
		if ok && (p.Kind != e.miss.Kind || p.Source == "" || !slices.Contains(p.Argv(), p.Source)) {
			t.Errorf("%s: %+v", e.name, p)
		}
	}
	if _, ok := (Miss{}).Probe("x", reads(nil), probeTime); ok {
		t.Error("a program for nothing")
	}
	if _, ok := python(ModuleName, "json", "x").Probe("x", nil, probeTime); ok {
		t.Error("a program without files")
	}
}

// probe runs a command's probe as internal/tool/shell does, in a directory with files.
func probe(t *testing.T, kind interpreter.Kind, files map[string]string, output, command string) string {
	t.Helper()
	with, err := interpreter.Options{Path: os.Getenv("PATH")}.Find(kind)
	if err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, ok := lastMiss(output)
	if !ok {
		t.Fatalf("no miss in %q", output)
	}
	p, ok := m.Probe(command, reads(files), probeTime)
	if !ok {
		t.Fatalf("no program for %+v", m)
	}
	result, err := sandbox.Run(t.Context(), bare.New(bare.Options{}), sandbox.Launch{
		Purpose: sandbox.Probe, Argv: append([]string{with.Path}, p.Argv()...), Dir: dir, Write: []string{dir},
		Env: append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "env")), Network: sandbox.Network{Mode: sandbox.NetworkOpen},
		Deadline: 30 * time.Second, Output: 8 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "ran" }) {
		t.Error("the model's own code ran")
	}
	return ReadProbe(m, result.Stdout.Text())
}

// deck is a package of Python as one that is installed.
func deck() map[string]string {
	return map[string]string{
		"env/deck/__init__.py": "print('noise of the library')\nimport sys\nsys.stdout.flush()\nfrom .slides import Slide, open_deck\n",
		"env/deck/slides.py":   "import colorsys\nclass Slide:\n    notes_slide = 1\n    def add_text(self): pass\n    def _hidden(self): pass\n\ndef open_deck(path, *, read_only=False, **rest): pass\n",
		"env/deck/export.py":   "",
		"main.py":              "import deck\nopen('ran', 'w')\n",
		// The model's own files hide nothing that the probe or the library imports.
		"difflib.py":  "open('ran', 'w')\n",
		"inspect.py":  "open('ran', 'w')\n",
		"colorsys.py": "open('ran', 'w')\n",
	}
}

// TestProbePython runs the probe of each form on a real interpreter.
func TestProbePython(t *testing.T) {
	trace := func(header string) string {
		return "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    x\n" + header + "\n"
	}
	for header, want := range map[string]string{
		"AttributeError: 'Slide' object has no attribute 'note_slide'":                       "What the installed library has: the class Slide has no note_slide. Nearest: notes_slide. It has: add_text, notes_slide. Use one of these names.",
		"AttributeError: type object 'Slide' has no attribute 'addText'":                     "What the installed library has: the class Slide has no addText. Nearest: add_text. It has: add_text, notes_slide. Use one of these names.",
		"AttributeError: module 'deck' has no attribute 'Slides'. Did you mean: 'slides'?":   "What the installed library has: the module deck has no Slides. Nearest: slides, Slide. It has: Slide, export, open_deck, slides. Use one of these names.",
		"ImportError: cannot import name 'opendeck' from 'deck' (env/deck/__init__.py)":      "What the installed library has: the module deck has no opendeck. Nearest: open_deck. It has: Slide, export, open_deck, slides. Use one of these names.",
		"TypeError: open_deck() got an unexpected keyword argument 'readonly'":               "What the installed library has: the function open_deck takes no argument readonly. Nearest: read_only. It takes: path, read_only. Use one of these names.",
		"TypeError: Slide.add_text() got an unexpected keyword argument 'readonly'":          "",
		"AttributeError: 'Nowhere' object has no attribute 'x'":                              "",
		"AttributeError: module 'gone' has no attribute 'x'":                                 "",
		"AttributeError: 'str' object has no attribute 'uper'":                               "Nearest: upper",
		"TypeError: ArgumentParser.__init__() got an unexpected keyword argument 'discribe'": "",
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			got := probe(t, interpreter.Python, deck(), trace(header), "python3 main.py")
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("a part of a package", func(t *testing.T) {
		t.Parallel()
		m := submodule(Module{Tool: Pip, Name: "deck", Whole: "deck.exports"}, "")
		p, ok := m.Probe("python main.py", reads(deck()), probeTime)
		if want := []string{"submodule", "deck", "exports", "6", "deck"}; !ok || !slices.Equal(p.Args, want) {
			t.Errorf("%q", p.Args)
		}
	})
}

// TestProbeNode runs the probe of each form on a real Node.
func TestProbeNode(t *testing.T) {
	files := map[string]string{
		"node_modules/pk/package.json":  `{"name":"pk","version":"1.0.0","main":"i.js","exports":{".":"./i.js","./extra":"./i.js"}}`,
		"node_modules/pk/i.js":          "console.log('noise'); process.stdout.write('noise');\nclass Page { addText() {} }\nclass Doc { addPage() { return new Page() } save() {} }\nexports.makeThing = () => 1; exports.Doc = Doc; exports.Page = Page; exports.value = {inner: 1}\n",
		"node_modules/esm/package.json": `{"name":"esm","version":"1.0.0","type":"module","exports":"./i.js"}`,
		"node_modules/esm/i.js":         "export default class Chart { drawBars() {} static load() {} }\nexport const version = 1\n",
		"main.js":                       "require('fs').writeFileSync('ran', '')\nconst pk = require('pk')\nconst { Dock } = require('pk')\nconst d = new pk.Doc()\nconst page = d.addPage()\n",
		"main.mjs":                      "import Chart from 'esm'\nconst c = new Chart()\n",
	}
	stack := func(file, header string) string {
		return header + "\n    at go (" + file + ":1:43)\n    at Module._compile (node:internal/modules/cjs/loader:1:1)\n"
	}
	for output, want := range map[string]string{
		stack("main.js", "TypeError: pk.makeThink is not a function"):                                     "What the installed library has: the module pk has no makeThink. Nearest: makeThing. It has: Doc, Page, makeThing, value. Use one of these names.",
		stack("main.js", "TypeError: Dock is not a constructor"):                                          "the module pk has no Dock. Nearest: Doc.",
		stack("main.js", "TypeError: d.addPages is not a function"):                                       "the class Doc has no addPages. Nearest: addPage. It has: addPage, save.",
		stack("main.js", "TypeError: page.addTexts is not a function"):                                    "the class Page has no addTexts. Nearest: addText.",
		stack("main.js", "TypeError: page.nothing is not a function"):                                     "",
		stack("main.js", "TypeError: pk.value.innr is not a function"):                                    "the object value has no innr. Nearest: inner.",
		stack("main.mjs", "TypeError: c.drawBar is not a function"):                                       "the class Chart has no drawBar. Nearest: drawBars.",
		stack("main.mjs", "TypeError: Chart.lod is not a function"):                                       "has no lod. Nearest: load.",
		"SyntaxError: The requested module 'esm' does not provide an export named 'versions'\n":           "the module esm has no versions. Nearest: version.",
		"SyntaxError: Named export 'makeThink' not found. The requested module 'pk' is a CommonJS module": "Nearest: makeThing.",
		`Package subpath './extras' is not defined by "exports" in node_modules/pk/package.json`:          "the package pk has no extras. Nearest: extra. It has: extra.",
		"SyntaxError: The requested module 'gone' does not provide an export named 'versions'\n":          "",
	} {
		t.Run(output, func(t *testing.T) {
			t.Parallel()
			got := probe(t, interpreter.Node, maps.Clone(files), output, "node main.js")
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestProbeEnds: a library that hangs when it is imported is given up.
func TestProbeEnds(t *testing.T) {
	with, err := interpreter.Options{Path: os.Getenv("PATH")}.Find(interpreter.Python)
	if err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hang.py"), []byte("while True: pass\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := Miss{Kind: interpreter.Python, Form: ModuleName, Owner: "hang", Name: "x"}
	p, _ := m.Probe("", reads(nil), 3*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	result, err := sandbox.Run(ctx, bare.New(bare.Options{}), sandbox.Launch{
		Purpose: sandbox.Probe, Argv: append([]string{with.Path}, p.Argv()...), Dir: work, Write: []string{work},
		Env: append(os.Environ(), "PYTHONPATH="+dir), Network: sandbox.Network{Mode: sandbox.NetworkOpen}, Deadline: 15 * time.Second, Output: 1 << 10,
	})
	if err != nil || result.Ended != sandbox.Exited || result.Wall > 10*time.Second {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestReadProbe: what a library makes the probe print is not trusted.
func TestReadProbe(t *testing.T) {
	m := Miss{Kind: interpreter.Python, Form: Attribute, Owner: "Slide", Name: "note"}
	const mark = "metier-probe 1\n"
	for output, want := range map[string]string{
		"":                              "",
		"near a\nhas a\n":               "",
		mark:                            "",
		mark + "what class X":           "",
		mark + "near a.b c!\nhas a b\n": "What the installed library has: it has no note. Nearest: a.b. It has: a, b. Use one of these names.",
		mark + "what class Ignore all of it\nhas a\n":    "What the installed library has: it has no note. It has: a. Use one of these names.",
		mark + "what prompt X\nhas a\n":                  "What the installed library has: it has no note. It has: a. Use one of these names.",
		mark + "what class S\nhas a a \x1b[31mb\u202e\n": "What the installed library has: the class S has no note. It has: a. Use one of these names.",
		mark + "has a\nmore 7\n":                         "What the installed library has: it has no note. It has: a and 7 more. Use one of these names.",
		mark + "has a\nmore x\nmore -3\n":                "What the installed library has: it has no note. It has: a. Use one of these names.",
		"noise\n\n" + mark + "near a\n":                  "What the installed library has: it has no note. Nearest: a. Use one of these names.",
	} {
		if got := ReadProbe(m, output); got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
	many := mark + "has"
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		for _, d := range "abcdefgh" {
			many += " " + string(c) + string(d)
		}
	}
	if n := strings.Count(ReadProbe(m, many), ","); n != mostNames-1 {
		t.Errorf("%d names", n+1)
	}
}

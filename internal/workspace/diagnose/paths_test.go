package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func bench() Paths {
	return Paths{
		Root: "/srv/m/ws/s-1", Dir: "/srv/m/ws/s-1/work/src",
		Places:  []Named{{"/tmp/m-77", "$TMPDIR"}, {"/srv/m/packages/ab12", "PACKAGES"}},
		Wrapper: "/srv/m/ws/s-1/state/run-12.sh", Marker: 40,
	}
}

// TestPaths is B1 10.10.
func TestPaths(t *testing.T) {
	for text, want := range map[string]string{
		`File "/srv/m/ws/s-1/work/src/a.py", line 3`:            `File "a.py", line 3`,
		`File "/srv/m/ws/s-1/work/b.py", line 3`:                `File "../b.py", line 3`,
		`File "/srv/m/ws/s-1/work/lib/b c.py", line 3`:          `File "../lib/b c.py", line 3`,
		`File "/srv/m/ws/s-1/env/numpy/x.py", line 3`:           `File "../../env/numpy/x.py", line 3`,
		"/srv/m/ws/s-1/work/src":                                ".",
		"/srv/m/ws/s-1/work/src/":                               "./",
		"/srv/m/ws/s-1/work":                                    "..",
		"/srv/m/ws/s-1/work/":                                   "../",
		"/srv/m/ws/s-1":                                         "../..",
		"in /srv/m/ws/s-1/work/src.":                            "in ./.",
		"in /srv/m/ws/s-1/work/src, and":                        "in ., and",
		"at x (file:///srv/m/ws/s-1/work/src/a.mjs:1:2)":        "at x (a.mjs:1:2)",
		"at x (/srv/m/ws/s-1/work/src/a.js:1:2)":                "at x (a.js:1:2)",
		"-I/srv/m/ws/s-1/work/src/inc":                          "-Iinc",
		"PATH=/srv/m/ws/s-1/work/src/bin:/usr/bin":              "PATH=bin:/usr/bin",
		"'/srv/m/ws/s-1/work/src/a.txt'":                        "'a.txt'",
		`"/srv/m/ws/s-1/work/src\n"`:                            `".\n"`,
		"/srv/m/ws/s-1/work/srcs/a.py":                          "../srcs/a.py",
		"/srv/m/ws/s-1/work/src.bak/a.py":                       "../src.bak/a.py",
		"/srv/m/ws/s-12/work/a.py":                              "/srv/m/ws/s-12/work/a.py",
		"/other/srv/m/ws/s-1/work/a.py":                         "/other/srv/m/ws/s-1/work/a.py",
		"/srv/m/ws/s-1/work" + "/.hidden":                       "../.hidden",
		"/srv/m/ws/s-1/work/src/.hidden":                        ".hidden",
		"/tmp/m-77/x":                                           "$TMPDIR/x",
		"/tmp/m-77":                                             "$TMPDIR",
		"/tmp/m-777/x":                                          "/tmp/m-777/x",
		"/srv/m/packages/ab12/numpy/a.py":                       "PACKAGES/numpy/a.py",
		"/usr/lib/python3/os.py":                                "/usr/lib/python3/os.py",
		"mkdir: cannot create directory ‘/srv/m/ws/s-1/work/x’": "mkdir: cannot create directory ‘../x’",
		"/srv/m/ws/s-1/work/src/a.py:/srv/m/ws/s-1/work/b.py":   "a.py:../b.py",
		"no path": "no path",
		"":        "",
	} {
		if got := bench().Rewrite(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestPathsElsewhere: a directory that is not below the root makes nothing relative.
func TestPathsElsewhere(t *testing.T) {
	p := Paths{Root: "/srv/m/ws/s-1", Dir: "/srv/m/ws/s-12/work"}
	for _, text := range []string{"/srv/m/ws/s-12/work/a", "/srv/m/ws/a", "/srv/x", "/"} {
		if got := p.Rewrite(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestPathsOfWindows: drives, either separator, and escaped backslashes.
func TestPathsOfWindows(t *testing.T) {
	p := Paths{Root: `C:\m\s-1`, Dir: `C:\m\s-1\work\src`, Wrapper: `C:\m\s-1\state\run-1.ps1`, Marker: 3}
	for text, want := range map[string]string{
		`C:\m\s-1\work\src\a.py`:               "a.py",
		`C:\m\s-1\work\b.py`:                   "../b.py",
		`open 'C:\\m\\s-1\\work\\src\\a.py'`:   "open 'a.py'",
		"C:/m/s-1/work/src/a.py":               "a.py",
		"file:///C:/m/s-1/work/src/a.mjs:1":    "a.mjs:1",
		`C:\m\s-12\a`:                          `C:\m\s-12\a`,
		`At C:\m\s-1\state\run-1.ps1:5 char:2`: "At line 2 of the command",
	} {
		if got := p.Rewrite(text); strings.TrimRight(got, ": ") != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestWrapperLines is B1 9.5: what shells say of the wrapper, in the model's own line
// numbers.
func TestWrapperLines(t *testing.T) {
	const w = "/srv/m/ws/s-1/state/run-12.sh"
	for text, want := range map[string]string{
		w + ": line 43: foo: command not found": "line 3 of the command: foo: command not found",
		w + ": 43: foo: not found":              "line 3 of the command: foo: not found",
		w + ":43: command not found: foo":       "line 3 of the command: command not found: foo",
		w + "[43]: foo: not found":              "line 3 of the command: foo: not found",
		w + ": line 43: syntax error near unexpected token `)'\n" + w + ": line 43: `echo )'\n":  "line 3 of the command: syntax error near unexpected token `)'\nline 3 of the command: `echo )'\n",
		w + ": line 45: warning: here-document at line 42 delimited by end-of-file (wanted `E')": "line 5 of the command: warning: here-document at line 2 delimited by end-of-file (wanted `E')",
		w + ": syntax error at line 42: `<<' unmatched":                                          "line 2 of the command: syntax error: `<<' unmatched",
		w + ": line 41: unexpected EOF while looking for matching `\"' from line 41":             "line 1 of the command: unexpected EOF while looking for matching `\"' from line 1",
		w + ": line 12: cd: gone: No such file or directory":                                     "line 1 of the command: cd: gone: No such file or directory",
		w + ": No such file or directory":                                                        "the command: No such file or directory",
		"bash: " + w + ": line 43: x":                                                            "bash: line 3 of the command: x",
		w + ": line 99999999999999999999: x":                                                     "the command: line 99999999999999999999: x",
		"no wrapper: line 43: x":                                                                 "no wrapper: line 43: x",
	} {
		if got := bench().Rewrite(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
	if name, _ := missingCommand(bench().Rewrite(w + ": 43: foo: not found")); name != "foo" {
		t.Error("a rewritten message is not understood")
	}
	if name, _ := missingCommand(bench().Rewrite(w + ":43: command not found: foo")); name != "foo" {
		t.Error("zsh's rewritten message is not understood")
	}
}

// TestPathsEverywhere: wherever a path of the workspace stands between other words, it
// is gone, and all else stays.
func TestPathsEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := bench()
		word := rapid.StringMatching(`[a-z]{1,8}`)
		name := word.Draw(t, "name")
		dir := rapid.SampledFrom([]string{p.Dir, p.Root, "/srv/m/ws/s-1/work", "/tmp/m-77"}).Draw(t, "dir")
		before := word.Draw(t, "before") + rapid.SampledFrom([]string{" ", ": ", " '", ` "`, "=", " (", "\n", "\t"}).Draw(t, "open")
		after := rapid.SampledFrom([]string{" ", ":3 ", "' ", `" `, ") ", "\n"}).Draw(t, "close") + word.Draw(t, "after")
		got := p.Rewrite(before + dir + "/" + name + ".py" + after)
		if strings.Contains(got, dir) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, name+".py"+after) {
			t.Errorf("%q", got)
		}
	})
}

// TestRepairOfATest: where the place is in a test, the sentence sends to the code that it
// tests, and not to the test.
func TestRepairOfATest(t *testing.T) {
	sentence := func(name string) string {
		trace := "Traceback (most recent call last):\n  File \"" + name + "\", line 2, in <module>\n    assert total([1]) == 1\nAssertionError\n"
		h, ok := Repair(trace, func(string) ([]byte, bool) { return []byte("from app import total\nassert total([1]) == 1\n"), true })
		if !ok {
			t.Fatalf("%s: nothing found", name)
		}
		return h.Sentence()
	}
	golden(t, "repair_test.txt", sentence("tests/test_app.py")+"\n")
	for name, want := range map[string]bool{
		"test_app.py": true, "pkg/app_test.py": true, "app.test.js": true, "app.spec.ts": true, "tests/app.py": true, "src/__tests__/app.js": true, "test/app.js": true,
		"app.py": false, "latest_app.py": false, "contest.py": false, "test.py": false, "testing/app.py": false, "app.tests.py": false,
	} {
		if got := strings.Contains(sentence(name), repairTest); got != want || got == strings.Contains(sentence(name), repairHow) {
			t.Errorf("%s is a test: %t, want %t", name, got, want)
		}
	}
}

// TestRepair pins the sentence, and which lines count as seen (B1 10.12).
func TestRepair(t *testing.T) {
	files := map[string]string{
		"main.py":   "import lib\n\n\ndef main():\n    lib.go()\n\n\nmain()\n",
		"lib.py":    "def go():\n\tx = 1\n\ty = " + strings.Repeat("2 + ", 100) + "\x1b[31m2\n\treturn x / 0\n",
		"binary.py": "a\x00b\n",
		"ünï.js":    "1\n2\n3\n",
	}
	read := func(name string) ([]byte, bool) {
		text, ok := files[name]
		return []byte(text), ok
	}
	trace := "Traceback (most recent call last):\n  File \"main.py\", line 8, in <module>\n    main()\n  File \"main.py\", line 5, in main\n    lib.go()\n  File \"lib.py\", line 4, in go\n    return x / 0\n           ~~^~~\n%sZeroDivisionError: division by zero\n"
	h, ok := Repair(fmt.Sprintf(trace, ""), read)
	if !ok || h.Path != "lib.py" || h.Line != 4 || fmt.Sprint(h.Shown) != "[1 2 4]" {
		t.Fatalf("%+v", h)
	}
	golden(t, "repair.txt", h.Sentence()+"\n")
	h, ok = Repair(fmt.Sprintf(trace, "  File \"/usr/lib/python3.11/x.py\", line 4, in go\n    x\n"), read)
	if !ok || h.Path != "lib.py" {
		t.Errorf("past a package: %+v", h)
	}
	for name, output := range map[string]string{
		"nothing":        "",
		"no frame":       "Traceback (most recent call last):\nValueError\n",
		"cut":            "Traceback (most recent call last):\n  File \"main.py\", line 8, in <module>\n    main()\n",
		"elsewhere":      "Traceback (most recent call last):\n  File \"/x/main.py\", line 8, in <module>\n    main()\nValueError: x\n",
		"past the end":   "Traceback (most recent call last):\n  File \"main.py\", line 80, in <module>\n    main()\nValueError: x\n",
		"binary":         "Traceback (most recent call last):\n  File \"binary.py\", line 1, in <module>\n    main()\nValueError: x\n",
		"stack, no head": "    at x (ünï.js:2:1)\n",
	} {
		if h, ok := Repair(output, read); ok {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if h, ok := Repair("TypeError: x\n    at f (node:internal/x:1:1)\n    at async g (file:///%C3%BCn%C3%AF.js:2:1)\n", func(name string) ([]byte, bool) { return read(strings.TrimPrefix(name, "/")) }); !ok || h.Line != 2 {
		t.Errorf("escaped: %+v", h)
	}
	for output, want := range map[string]string{
		"tests/test_a.py:7: in test_it\n    f()\nlib/a.py:3: AssertionError\nE   assert 1 == 2\n":              "lib/a.py:3",
		"tests/test_a.py:7: AssertionError\nE   assert 1 == 2\n":                                               "tests/test_a.py:7",
		"Main.cs(3,5): error CS0103: The name":                                                                 "Main.cs:3",
		"main.rb:3:in `foo': undefined (NoMethodError)":                                                        "main.rb:3",
		"main.rb:3:in 'Object#foo': undefined method 'x' for nil (NoMethodError)":                              "main.rb:3",
		"PHP Parse error: syntax error in a.php on line 3":                                                     "a.php:3",
		"PHP Fatal error: Uncaught X in a.php:3":                                                               "a.php:3",
		"a.ts:3:5 - error TS2322: Type":                                                                        "a.ts:3",
		"thread 'main' panicked at 'boom', src/main.rs:3:5":                                                    "src/main.rs:3",
		"../x.c:3:1: error: y":                                                                                 "",
		"  location: 'a.test.js:3:1'\n":                                                                        "a.test.js:3",
		"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/usr/local/go/x.go:3 +0x1\n\tmain.go:7 +0x1d\n": "main.go:7",
	} {
		got := ""
		if h, ok := Repair(output, workspace); ok {
			got = fmt.Sprintf("%s:%d", h.Path, h.Line)
		}
		if got != want {
			t.Errorf("%q: %q, not %q", output, got, want)
		}
	}
	if _, ok := Repair(trace, nil); ok {
		t.Error("found without files")
	}
}

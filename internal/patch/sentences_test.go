package patch

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/guard"
)

// spoken is a case for a sentence.
type spoken struct {
	name   string
	files  map[string]string
	patch  string
	limits Limits
}

func spokenCases() []spoken {
	a := map[string]string{"a.py": "import os\n\ndef f():\n    return 1\n\ndef g():\n    return 1\n"}
	tabbed := map[string]string{"a.go": "func f() {\n\tif x {\n\t\treturn\n\t}\n}\n"}
	up := func(lines ...string) string { return env("*** Update File: a.py\n" + strings.Join(lines, "\n")) }
	cases := []spoken{
		{"empty", a, " \n", Limits{}},
		{"too long", a, env("*** Delete File: a.py"), Limits{PatchBytes: 10}},
		{"too many", a, env("*** Delete File: a.py", "*** Delete File: b"), Limits{PatchFiles: 1}},
		{"not text", a, "*** Begin Patch\n\xff\n", Limits{}},
		{"no begin", a, "change return 1 to return 2, please", Limits{}},
		{"unified", a, "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-import os\n+import sys\n", Limits{}},
		{"escaped in part", a, `*** Begin Patch\n*** Update File: a.py\n-import os\n+print("\t")\n*** End Patch`, Limits{}},
		{"escaped as a whole", a, `*** Begin Patch\n*** Update File: a.py\n-import os\n+import \"sys\"\n*** End Patch`, Limits{}},
		{"no end", a, "*** Begin Patch\n*** Delete File: a.py\n", Limits{}},
		{"begin inside", a, "*** Begin Patch\n*** Delete File: a.py\n*** Begin Patch\n*** End Patch\n", Limits{}},
		{"outside", a, env("*** Delete File: a.py") + "*** Delete File: b\n", Limits{}},
		{"prose around", a, "I do this:\n" + env("*** Delete File: a.py") + "Done now.\n", Limits{}},
		{"begin left out", a, "*** Delete File: a.py\n*** End Patch\n", Limits{}},
		{"no sections", a, env(""), Limits{}},
		{"no header", a, env("@@", "-import os"), Limits{}},
		{"unknown stars", a, env("*** Modify File: a.py"), Limits{}},
		{"late move", a, up("-import os", "*** Move to: b.py"), Limits{}},
		{"move alone", a, env("*** Move to: b.py"), Limits{}},
		{"absolute path", a, env("*** Delete File: /etc/passwd"), Limits{}},
		{"path above", a, env("*** Add File: ../x"), Limits{}},
		{"path of the folder", a, env("*** Add File: ./"), Limits{}},
		{"move to nowhere", a, env("*** Update File: a.py", "*** Move to: C:\\x"), Limits{}},
		{"added with some plus", a, env("*** Add File: b", "+one", "two"), Limits{}},
		{"added with a space", a, env("*** Add File: b", "+ one", "+   two"), Limits{}},
		{"added unsure", a, env("*** Add File: b", " one", " two"), Limits{}},
		{"added raw", a, env("*** Add File: b", "one", "  two"), Limits{}},
		{"deleted with lines", a, env("*** Delete File: a.py", "-import os"), Limits{}},
		{"no hunk", a, up(), Limits{}},
		{"empty hunk", a, up("@@ def f():", "@@"), Limits{}},
		{"no header after the end", a, up("-    return 1", "*** End of File", "-import os"), Limits{}},
		{"no newline at one side", a, up("-    return 1", `\ No newline at end of file`, "+    return 2"), Limits{}},
		{"stand-in", a, up("@@ def f():", "-    return 1", "+    # ... existing code ..."), Limits{}},
		{"numbered new file", a, env("*** Add File: b", "+1 | one", "+2 | two"), Limits{}},
		{"exists", a, env("*** Add File: a.py", "+x"), Limits{}},
		{"missing for update", a, env("*** Update File: b.py", "-x"), Limits{}},
		{"missing for delete", a, env("*** Delete File: b.py"), Limits{}},
		{"deleted before", a, env("*** Delete File: a.py", "*** Update File: a.py", "-import os"), Limits{}},
		{"moved before", a, env("*** Update File: a.py", "*** Move to: b.py", "*** Update File: a.py", "-import os"), Limits{}},
		{"target exists", map[string]string{"a": "1\n", "b": "2\n"}, env("*** Update File: a", "*** Move to: b"), Limits{}},
		{"file too large", a, up("-import os"), Limits{FileBytes: 10}},
		{"result too large", map[string]string{"b": "1\n"}, env("*** Add File: c", "+too long a line"), Limits{FileBytes: 10}},
		{"too much together", a, env("*** Update File: a.py", "@@", "-import os"), Limits{TotalBytes: 70}},
		{"too much to read", a, env("*** Delete File: a.py"), Limits{TotalBytes: 10}},
		{"not UTF-16", map[string]string{"a": "\xff\xfex"}, env("*** Update File: a", "-x"), Limits{}},
		{"not UTF-8", map[string]string{"a": "caf\xe9\ntea\n"}, env("*** Update File: a", "-tea", "+th\u00e9"), Limits{}},
		{"miss", a, up("@@ def f():", "-    return 3", "+    return 2"), Limits{}},
		{"miss in words only", a, up("-def f(argument, f):", "+def f2():"), Limits{}},
		{"miss of all", a, up("-zebra(crossing)", "+x"), Limits{}},
		{"miss in an empty file", map[string]string{"a.py": ""}, up("-x", "+y"), Limits{}},
		{"miss by numbers", a, up("-4 |     return 1", "+    return 2"), Limits{}},
		{"miss by quotes", map[string]string{"a.py": "print('x')\n"}, up("-print(\u2018x\u2019)", "+print('y')"), Limits{}},
		{"miss by dots", a, up(" import os", " ...", "-def g():", "+def h():"), Limits{}},
		{"miss by air", a, up(" def f():", "", "-    return 1", "+    return 2"), Limits{}},
		{"done before", a, up("@@ def f():", " def f():", "-    return 0", "+    return 1", " "), Limits{}},
		{"above", a, up("@@ def g():", "-import os"), Limits{}},
		{"a long miss", a, up(strings.Repeat("-what is not there\n", 20) + "+x"), Limits{}},
		{"no place", a, up("+import sys"), Limits{}},
		{"no place by a missing anchor", a, up("@@ def h():", "+    x = 1"), Limits{}},
		{"empty line among new ones", a, up("@@ def f():", "+    x = 1", "", "+    y = 1"), Limits{}},
		{"contradicting header", a, up("@@ -40,1 +40,1 @@", "-    return 1", "+    return 2"), Limits{}},
		{"contradicting end", map[string]string{"a.py": "x\ny\nx\nz\n"}, up("-x", "*** End of File"), Limits{}},
		{"unsure indentation", a, up("@@ def f():", "-  return 1", "+     return 2"), Limits{}},
		{"unsure prefix", a, up("def f():", "+    x = 1"), Limits{}},
		{"a space behind the plus", a, up(" import os", "+ import sys"), Limits{}},
		{"plus of the file", map[string]string{"a.py": "x\nw\n+ y\n q\n"}, up("x", "-w", "+ y"), Limits{}},
		{"four misses", a, env("*** Delete File: b", "*** Delete File: c", "*** Delete File: d", "*** Delete File: e"), Limits{}},
		{"several places", a, up("-    return 1", "+    return 2"), Limits{}},
		{"many places", map[string]string{"a.py": "x\nx\nx\nx\nx\nx\n"}, up("-x", "+y"), Limits{}},
		{"anchor twice", map[string]string{"a.py": "def f():\n  1\ndef f():\n  2\n"}, up("@@ def f():", "+  0"), Limits{}},
		{"anchor is the first line", a, up("@@ def f():", " def f():", "-    return 1"), Limits{}},
		{"inserted", a, up("@@ def f():", "+    x = 1"), Limits{}},
		{"inserted below a second anchor", a, up("@@ class A:", "@@ def f():", "+    x = 1"), Limits{}},
		{"indentation of kept lines", a, up(" def f():", "-  return 1"), Limits{}},
		{"indentation of new lines", tabbed, env("*** Update File: a.go", "     if x {", "-        return", "+        return nil"), Limits{}},
		{"not at the end", a, up("-def f():", "+def h():", "*** End of File"), Limits{}},
		{"bare lines", a, up("def f():", "-    return 1", "+    return 2", "", "def g():"), Limits{}},
		{"lines of a unified diff", a, up("--- a/a.py", "+++ b/a.py", "@@ -3,2 +3,2 @@ import os", " def f():", "-    return 1", "+    return 2"), Limits{}},
		{"all kinds", map[string]string{"a": "1\n", "b": "2\n", "c": "3\n", "d": "4\n"}, env("*** Update File: a", "-1", "+one", "*** Update File: b", "*** Move to: e", "*** Delete File: c", "*** Add File: f", "+6", "*** Update File: d", " 4"), Limits{}},
		{"nothing at all", map[string]string{"d": "4\n"}, env("*** Update File: d", " 4"), Limits{}},
	}
	return append(cases, jsonCases(a)...)
}

func jsonCases(a map[string]string) []spoken {
	var cases []spoken
	for _, c := range [][2]string{
		{"no JSON", `{"type":`},
		{"no operation", `{"old_string":"a","new_string":"b"}`},
		{"no operations", `[1]`},
		{"type", `{"type":"rename_file","path":"a.py"}`},
		{"no type", `[{"path":"a.py","diff":"-x"}]`},
		{"key", `{"type":"update_file","path":"a.py","old_string":"x"}`},
		{"value", `{"type":"update_file","path":"a.py","diff":1}`},
		{"no path", `{"type":"update_file","diff":"-x"}`},
		{"no diff", `{"type":"update_file","path":"a.py"}`},
		{"two paths", `{"type":"delete_file","path":"a.py","file":"b"}`},
		{"diff and content", `{"type":"update_file","path":"a.py","diff":"-x","content":"x"}`},
		{"delete with lines", `{"type":"delete_file","path":"a.py","diff":"-x"}`},
		{"move of a delete", `{"type":"delete_file","path":"a.py","move_to":"b"}`},
		{"diff as content", `{"type":"update_file","path":"a.py","content":"@@\n-x\n+y"}`},
		{"another envelope", `{"type":"update_file","path":"a.py","diff":"*** Begin Patch\n*** Delete File: a.py\n*** End Patch"}`},
		{"stars in a diff", `{"type":"update_file","path":"a.py","diff":"-import os\n*** Delete File: b"}`},
		{"stars in a new file", `{"type":"create_file","path":"b","diff":"+x\n*** End of File"}`},
	} {
		cases = append(cases, spoken{"JSON: " + c[0], a, c[1], Limits{}})
	}
	return cases
}

// TestSentences pins every sentence that a model can read, whole.
func TestSentences(t *testing.T) {
	var b strings.Builder
	for _, c := range spokenCases() {
		d := newDisk(c.files)
		p, err := Parse(c.patch, guard.Clean, c.limits)
		var change Change
		if err == nil {
			if change, err = p.Resolve(context.Background(), d, c.limits); err == nil {
				err = change.Apply(context.Background(), d)
			}
		}
		fmt.Fprintf(&b, "=== %s\n%s\n", c.name, outcome(change, err))
		if err == nil {
			b.WriteString("--- " + show(d.texts()))
		}
		b.WriteString("\n")
	}
	for _, e := range []error{
		&UndoneError{Path: "a", Err: errDisk},
		&UndoneError{Path: "a", Err: errMeanwhile, Lost: []string{"b", "c"}},
		refuse(0, sayChangedSince, "a"),
	} {
		fmt.Fprintf(&b, "=== %T\n%v\n\n", e, e)
	}
	golden(t, "sentences.txt", b.String())
}

// TestNoSentenceIsUnpinned: each constant of prompts.go is in the golden file.
func TestNoSentenceIsUnpinned(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "sentences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := string(data)
	verbs := regexp.MustCompile(`%(\[\d\])?[a-z]`)
	for name, text := range prompts(t) {
		parts := verbs.Split(text, -1)
		longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
		if !strings.Contains(pinned, strings.TrimSpace(longest)) {
			t.Errorf("no case shows %s: %q", name, text)
		}
		if strings.Contains(text, "!") {
			t.Errorf("%s shouts: %q", name, text)
		}
	}
}

// prompts are the string constants of prompts.go.
func prompts(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "prompts.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		ast.Inspect(spec.Values[0], func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[spec.Names[0].Name] += text
			}
			return true
		})
		return true
	})
	if len(found) < 50 {
		t.Fatalf("only %d constants: %v", len(found), slices.Sorted(maps.Keys(found)))
	}
	return found
}

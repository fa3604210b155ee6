package diagnose

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestAttempts is B1 10.7.
func TestAttempts(t *testing.T) {
	a := NewAttempts(3)
	if w := a.Record("python a.py", true); w != "" {
		t.Errorf("the first time: %q", w)
	}
	if w := a.Record(" python\n  a.py ", true); w != repeatTwice {
		t.Errorf("the second time, spaced otherwise: %q", w)
	}
	if w := a.Record("python a.py", true); w != fmt.Sprintf(repeatMany, 3) {
		t.Errorf("the third time: %q", w)
	}
	if w := a.Record("python b.py", true); w != "" {
		t.Errorf("another command: %q", w)
	}
	if w := a.Record("python a.py", false); w != "" {
		t.Errorf("a success: %q", w)
	}
	if w := a.Record("python a.py", true); w != "" {
		t.Errorf("after a success: %q", w)
	}
	for i := range 4 { // fills the table, which is then cleared
		a.Record(fmt.Sprint("command ", i), true)
	}
	if w := a.Record("python b.py", true); w != "" {
		t.Errorf("after the table was cleared: %q", w)
	}
	if len(a.failed) > 3 {
		t.Errorf("%d commands are remembered", len(a.failed))
	}
	none := NewAttempts(0)
	none.Record("x", true)
	if w := none.Record("x", true); w != "" || len(none.failed) != 0 {
		t.Errorf("a table for nothing: %q", w)
	}
}

// TestAttemptsAtOnce: of the same command tried many times at once, all but the first
// are warned of.
func TestAttemptsAtOnce(t *testing.T) {
	a := NewAttempts(10)
	var all sync.WaitGroup
	var warned atomic.Int64
	for range 50 {
		all.Go(func() {
			if a.Record("x", true) != "" {
				warned.Add(1)
			}
		})
	}
	all.Wait()
	if warned.Load() != 49 {
		t.Errorf("%d warnings", warned.Load())
	}
}

// TestBenign is B1 10.9.
func TestBenign(t *testing.T) {
	for command, want := range map[string]string{
		"grep x a":                       "grep",
		"egrep x a":                      "egrep",
		"fgrep x a":                      "fgrep",
		"/usr/bin/grep x a":              "grep",
		"LC_ALL=C grep x a":              "grep",
		"command grep x a":               "grep",
		"env A=b grep x a":               "grep",
		"rg x":                           "rg",
		"find . -name x":                 "find",
		"diff a b":                       "diff",
		"cmp a b":                        "cmp",
		"test -f a":                      "test",
		"[ -f a ]":                       "[",
		"[[ -f a ]]":                     "[[",
		"git diff --quiet":               "git diff",
		"git -C sub diff --exit-code":    "git diff",
		"git --no-pager grep x":          "git grep",
		"cat a | grep x":                 "grep",
		"echo hi; grep x a":              "grep",
		"echo hi\ngrep x a":              "grep",
		"cd sub && grep x a":             "grep",
		"false || grep x a":              "grep",
		"(cd sub; grep x a)":             "grep",
		"{ grep x a; }":                  "grep",
		"for f in *; do grep x $f; done": "grep",
		"if true; then grep x a; fi":     "grep",
		"time grep x a":                  "grep",
		"grep x a > out 2>/dev/null":     "grep",
		"set -e\ngrep x a":               "grep",
		"grep x <<E\ny\nE\n":             "grep",
	} {
		if name, ok := Benign(command, 1, ""); !ok || name != want || BenignMeaning(name) == "" {
			t.Errorf("%q: %q, %v", command, name, ok)
		}
	}
	for _, command := range []string{
		"", "python a.py", "grep x a | python b.py", "grep x a && python b.py", "grep x a; false", "! grep x a", "grep x a &",
		"grepx a", "git status", "git", "echo grep", "if true; then grep x a; else python b.py; fi", "xargs grep x", "bash -c 'grep x a'",
		"grep x a; exit 1", "function f() { grep x a; }", "case a in a) grep x a;; esac", "grep 'x", "((0))", "let 0", "cat a",
	} {
		if name, ok := Benign(command, 1, ""); ok {
			t.Errorf("%q: %q", command, name)
		}
	}
	for _, exit := range []int{0, 2, 127, -1} {
		if _, ok := Benign("grep x a", exit, ""); ok {
			t.Errorf("exit %d", exit)
		}
	}
	// Where an earlier command may have failed, its words decide.
	for _, command := range []string{"cd gone && grep x a", "set -e\npython a.py\ngrep x a", "set -euo pipefail; python a.py | grep x", "python a.py && grep x a"} {
		if _, ok := Benign(command, 1, "it went wrong\n"); ok {
			t.Errorf("%q is benign although something was said", command)
		}
	}
	for _, command := range []string{"grep x a", "cat gone | grep x", "cat gone; grep x a"} {
		if _, ok := Benign(command, 1, "cat: gone: No such file\n"); !ok {
			t.Errorf("%q is not benign", command)
		}
	}
}

// TestRedirects: the files that a line writes to, from where it began.
func TestRedirects(t *testing.T) {
	for command, want := range map[string]string{
		"echo a > a.txt":                            "a.txt",
		"cat > a.py <<'EOF'\nx > y\nEOF\n":          "a.py",
		"cat <<EOF > src/a.py\n$x\nEOF\n":           "src/a.py",
		"cat <<EOF >> a.py\nx\nEOF\n":               "a.py+",
		"echo a >a; echo b >>a":                     "a",
		"echo a >>a; echo b >a":                     "a",
		"cd src && cat > a.py <<E\nE\n":             "src/a.py",
		"cd src\ncd ..\necho x >a.py":               "a.py",
		"cd /abs; echo > a":                         "/abs/a",
		"cd $X; echo > a":                           "",
		"cd; echo > a":                              "",
		"cd - && echo > a":                          "",
		"cd $X; echo > /abs/a":                      "/abs/a",
		"(cd src; echo > a); echo > b":              "src/a b",
		"echo a | tee a b >/dev/null":               "a b",
		"echo a | tee -a a":                         "a+",
		"echo a &> a":                               "a",
		"echo a >| a":                               "a",
		"echo a 2>&1":                               "",
		"echo a > $X":                               "",
		"echo a > \"a b.txt\"":                      "a b.txt",
		"echo a > 'a'\\ b":                          "a b",
		"echo a > *.txt":                            "",
		"echo a > ~/x":                              "",
		"for f in a b; do echo $f > out; done":      "out",
		"if true; then echo > a; else echo > b; fi": "a b",
		"while read x; do echo > a; done < in":      "a",
		"{ echo; } > a":                             "a",
		"echo > ./a":                                "a",
		"echo > ../a":                               "../a",
		"echo 'x":                                   "",
		"time echo > a":                             "a",
	} {
		var got []string
		for _, r := range Redirects(command) {
			if r.Append {
				r.Path += "+"
			}
			got = append(got, r.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

// TestDeepLines: a line that nests deep costs next to nothing.
func TestDeepLines(t *testing.T) {
	for _, command := range []string{strings.Repeat("(", 200000), strings.Repeat("$(", 100000), strings.Repeat("if ", 60000), strings.Repeat("${a[", 50000), strings.Repeat("x ", 1<<18)} {
		if _, ok := parse(command); ok {
			t.Error("parsed")
		}
	}
	if _, ok := parse(strings.Repeat("(echo; ", 100) + strings.Repeat(")", 100)); !ok {
		t.Error("a line of some depth is not parsed")
	}
}

func numberedLines(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprint("line ", i+1))
	}
	return lines
}

func text(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// TestRewrites is B1 10.8.
func TestRewrites(t *testing.T) {
	change := func(lines []string, at ...int) []string {
		out := append([]string(nil), lines...)
		for _, i := range at {
			out[i] = "changed \x1b[31m" + fmt.Sprint(i+1)
		}
		return out
	}
	forty := numberedLines(40)
	note := Rewrites([]Rewrite{
		{"a.py", text(forty), text(change(forty, 3))},
		{"b.py", text(forty), text(change(forty, 3, 9, 10, 11, 12, 13, 14, 15))},
		{"c.py", text(forty), text(append(append([]string(nil), forty[:20]...), append([]string{"new one", "new two"}, forty[20:]...)...))},
		{"d.py", text(forty), text(append(append([]string(nil), forty[:10]...), forty[12:]...))},
	}, 1<<20)
	golden(t, "rewrites.txt", note)
	for name, f := range map[string]Rewrite{
		"the same":      {"a", text(forty), text(forty)},
		"short":         {"a", text(forty[:29]), text(change(forty[:29], 3))},
		"cut short":     {"a", text(forty), text(change(forty[:26], 3))},
		"mostly new":    {"a", text(numberedLines(90)), text(append(numberedLines(40), strings.Split(strings.Repeat("x\n", 50), "\n")...))},
		"few come back": {"a", text(forty), text(change(forty, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30))},
		"binary":        {"a", append(text(forty), 0), append(text(change(forty, 3)), 0)},
		"large":         {"a", text(forty), text(append(change(forty, 3), strings.Repeat("x", 1<<20)))},
		"new":           {"a", nil, text(forty)},
		"not UTF-8":     {"a", append(text(forty), 0xff), text(change(forty, 3))},
	} {
		if got := Rewrites([]Rewrite{f}, 1<<20); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	var many []Rewrite
	for i := range 20 {
		many = append(many, Rewrite{fmt.Sprint("f", i), text(forty), text(change(forty, 3))})
	}
	if n := strings.Count(Rewrites(many, 1<<20), "typed anew"); n != rewriteFiles {
		t.Errorf("%d files are looked at", n)
	}
	if Rewrites(nil, 1) != "" {
		t.Error("something is said of nothing")
	}
}

// TestCompare: never more lines count as the same than keep their order.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "", "}", "x", "y"}), 0, 12)
		before, after := lines.Draw(t, "before"), lines.Draw(t, "after")
		same, changed := compare(before, after)
		if most := common(before, after); same > most || same+len(changed) != len(after) {
			t.Errorf("%d the same of at most %d, %d changed of %d", same, most, len(changed), len(after))
		}
		if cmp.Equal(before, after) && same != len(after) {
			t.Errorf("equal, and %d the same", same)
		}
	})
}

// common is the length of the longest common subsequence, the plain way.
func common(a, b []string) int {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				best[i+1][j+1] = best[i][j] + 1
			} else {
				best[i+1][j+1] = max(best[i][j+1], best[i+1][j])
			}
		}
	}
	return best[len(a)][len(b)]
}

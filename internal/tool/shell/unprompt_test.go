package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/bash"
)

// TestUnprompted: what a terminal or a notebook shows before a command goes, and only
// that: what a shell means by the same signs stays.
func TestUnprompted(t *testing.T) {
	known := func(name string) bool { return slices.Contains([]string{"pip", "python3", "cd", "ls"}, name) }
	for line, want := range map[string]string{
		// Prompts.
		"!pip install x":    "pip install x",
		"%pip install -q x": "pip install -q x",
		"$ pip install x":   "pip install x",
		"$ python3 a.py":    "python3 a.py",
		"> python3 a.py":    "python3 a.py",
		"  $ ls\n\t!ls -l\n%cd a && ls\n> ls -l > log": "  ls\n\tls -l\ncd a && ls\nls -l > log",
		"$ cd a && $ ls":                              "cd a && $ ls",
		"$ A=1 ./x && !ls":                            "A=1 ./x && !ls",
		"!./run.sh | tail; ls":                        "./run.sh | tail; ls",
		"$ python3 - <<'E'\n$ ls\n> ls\n!ls\nE\n$ ls": "python3 - <<'E'\n$ ls\n> ls\n!ls\nE\nls",
		"(\n$ ls\n)":                                  "(\nls\n)",
		// What is none.
		"! pip install x":          "! pip install x",
		"!":                        "!",
		"!!":                       "!!",
		"!$x":                      "!$x",
		"$":                        "$",
		"$ $x":                     "$ $x",
		"$x ls":                    "$x ls",
		"'$' ls":                   "'$' ls",
		"$ <a ls":                  "$ <a ls",
		"%1":                       "%1",
		"%matplotlib inline":       "%matplotlib inline",
		"%%bash":                   "%%bash",
		"> log":                    "> log",
		"> python3":                "> python3",
		"> log python3 a.py":       "> log python3 a.py",
		">python3 a.py":            ">python3 a.py",
		">> python3 a.py":          ">> python3 a.py",
		"2> python3 a.py":          "2> python3 a.py",
		"> 'a b' ls":               "> 'a b' ls",
		"ls > python3 a.py":        "ls > python3 a.py",
		"echo '\n$ ls\n> ls\n!ls'": "echo '\n$ ls\n> ls\n!ls'",
		"echo \\\n$ ls":            "echo \\\n$ ls",
		"$ if true; then ls; fi":   "$ if true; then ls; fi",
		"ls":                       "ls",
		"cat <<E\n> ls\nE":         "cat <<E\n> ls\nE",
	} {
		got, prompts := unprompted(line, known)
		if got != want || (len(prompts) > 0) != (line != want) {
			t.Errorf("%q became %q, %q", line, got, prompts)
		}
	}
	if _, prompts := unprompted("$ ls\n!ls\n$ ls\n> ls -l\n%ls", known); !slices.Equal(prompts, []string{"`$`", "`!`", "`>`", "`%`"}) {
		t.Errorf("%q", prompts)
	}
}

// FuzzUnprompted: what is left of a line can be read as it could before, and lacks
// nothing but prompts.
func FuzzUnprompted(f *testing.F) {
	for _, seed := range []string{"!pip install x", "$ ls\n> ls\n%ls", "$ cat <<E\n$ x\nE\n!ls", "> a b <c", "$ a=b c", "!a() {\n$ b\n}", "$ 'a'", "`\n$ a\n`"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, prompts := unprompted(line, func(string) bool { return true })
		if len(prompts) == 0 {
			if got != line {
				t.Errorf("%q became %q", line, got)
			}
			return
		}
		if _, err := bash.Parse(got); err != nil {
			t.Errorf("%q became %q: %v", line, got, err)
		}
		drop := strings.NewReplacer("$", "", "!", "", "%", "", ">", "", "'", "", `"`, "", "\\", "", " ", "", "\t", "", "\n", "")
		if drop.Replace(got) != drop.Replace(line) {
			t.Errorf("%q became %q", line, got)
		}
	})
}

// TestPrompts: the command runs without its prompts, and the result says so in one line.
// It is one for PowerShell, where "%" is a command, and without recovery.
func TestPrompts(t *testing.T) {
	b := newBench(t, nil)
	r := b.run("!pip install numpy\n$ python3 a.py")
	b.want(r, true, "Installed with pip: numpy 1.0.")
	if n := strings.Count(r.Text, "a terminal or a notebook shows"); n != 1 || !strings.HasPrefix(r.Text, "Before the command stood `!`, `$`, ") {
		t.Errorf("%d times:\n%s", n, r.Text)
	}
	b.run("> python3 b.py")
	b.run("! true")
	if got := b.lines(); !slices.Equal(got, []string{"true\npython3 a.py", "python3 b.py", "! true"}) {
		t.Errorf("%q", got)
	}
	for _, change := range []func(*Options){func(o *Options) { o.Facts.Dialect = "PowerShell" }, func(o *Options) { o.NoRecovery = true }} {
		b = newBench(t, change)
		b.run("$ python3 a.py")
		if got := b.lines(); !slices.Equal(got, []string{"$ python3 a.py"}) {
			t.Errorf("%q", got)
		}
	}
}

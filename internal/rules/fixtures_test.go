package rules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestFixtures runs each rule over small modules that break it. A fixture is an
// archive with the module's files; its comment says what it shows, and its file
// "want" lists the problems in order, each as place, colon, part of the text.
// What is not listed must not be found.
func TestFixtures(t *testing.T) {
	for _, r := range All() {
		files, err := filepath.Glob(filepath.Join("testdata", r.Name, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Errorf("rule %s has no fixture that breaks it in testdata/%s (%v)", r.Name, r.Name, err)
		}
		breaks := false
		for _, file := range files {
			t.Run(strings.TrimSuffix(r.Name+"/"+filepath.Base(file), ".txtar"), func(t *testing.T) {
				tree, want := unpack(t, file)
				breaks = breaks || len(want) > 0
				if diff := cmp.Diff(want, abridge(r.Run(tree), want)); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
			})
		}
		if !breaks {
			t.Errorf("no fixture of rule %s wants a problem: the rule may find nothing at all", r.Name)
		}
	}
}

// unpack writes a fixture's module into a folder and loads it.
func unpack(t *testing.T, file string) (*Tree, []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse([]byte(placeholders().Replace(string(data))))
	root := t.TempDir()
	var want []string
	hasMod := false
	for _, f := range archive.Files {
		if f.Name == "want" {
			want = strings.FieldsFunc(string(f.Data), func(r rune) bool { return r == '\n' })
			continue
		}
		hasMod = hasMod || f.Name == "go.mod"
		write(t, filepath.Join(root, f.Name), f.Data)
	}
	if !hasMod {
		write(t, filepath.Join(root, "go.mod"), []byte("module example.test/m\n\ngo 1.26\n"))
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if cache := filepath.Join(root, "_cache"); exists(cache) {
		tree.ModCache = cache
	}
	return tree, want
}

// placeholders stand in fixtures for what no committed file may name, and for
// many lines.
func placeholders() *strings.Replacer {
	return strings.NewReplacer(
		"<registry>", hosts()[2],
		"<workplace>", "/wor"+"k/main",
		"<outside>", outside,
		"<800 lines>", strings.Repeat("\n", 799),
		"<79 lines>", strings.Repeat("\t_ = 0\n", 78)+"\t_ = 0",
	)
}

// abridge cuts each problem down to the wanted line that it matches, if one
// does.
func abridge(found []Problem, want []string) []string {
	var lines []string
	for _, p := range found {
		line := p.String()
		i := slices.IndexFunc(want, func(w string) bool {
			place, part, _ := strings.Cut(w, ": ")
			return strings.HasPrefix(line, place+": ") && strings.Contains(line, part)
		})
		if i >= 0 {
			line = want[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSizes tries both sides of each limit of size.
func TestSizes(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\t_ = 0\n", n) }
	tests := []struct {
		name, body string
		check      func(*Tree) []Problem
		want       []string
	}{
		{"file of 800", "package a\n" + strings.Repeat("\n", 799), checkFileSize, []string{".: the p90"}},
		{"file of 801", "package a\n" + strings.Repeat("\n", 800), checkFileSize, []string{".: the p90", "a.go: the file has 801"}},
		{"file of 449", "package a\n" + strings.Repeat("\n", 448), checkFileSize, nil},
		{"file of 450", "package a\n" + strings.Repeat("\n", 449), checkFileSize, []string{".: the p90"}},
		{"func of 40", "package a\nfunc f() {\n" + lines(38) + "}\n", checkFuncSize, []string{".: the p90"}},
		{"func of 80", "package a\nfunc f() {\n" + lines(78) + "}\n", checkFuncSize, []string{".: the p90"}},
		{"func of 81", "package a\nfunc f() {\n" + lines(79) + "}\n", checkFuncSize, []string{".: the p90", "a.go:2: f has 81"}},
		{"func of 39", "package a\nfunc f() {\n" + lines(37) + "}\n", checkFuncSize, nil},
		{"table", "package a\nfunc f() []int {\nreturn []int{\n" + strings.Repeat("1,\n", 200) + "}\n}\n", checkFuncSize, nil},
		{
			"function in a table",
			"package a\nfunc f() any {\nreturn []func(){\nfunc() {\n" + lines(90) + "},\n}\n}\n",
			checkFuncSize,
			[]string{".: the p90", "a.go:2: f has 95"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "go.mod"), []byte("module example.test/m\n"))
			write(t, filepath.Join(root, "a.go"), []byte(tt.body))
			tree, err := Load(root)
			if err != nil {
				t.Fatal(err)
			}
			found := Rule{tt.name, tt.check}.Run(tree)
			if diff := cmp.Diff(tt.want, abridge(found, tt.want)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestP90(t *testing.T) {
	upTo := func(n int) []int {
		s := make([]int, n)
		for i := range s {
			s[i] = n - i
		}
		return s
	}
	for n, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 9, 11: 10, 100: 90} {
		if got := p90(upTo(n)); got != want {
			t.Errorf("p90 of 1 to %d = %d, want %d", n, got, want)
		}
	}
}

// TestTexts: what git ignores is no text of the project, what is merely not
// committed yet is.
func TestTexts(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{".gitignore": "/bin/\n", "bin/out": "x", "docs/new.md": "x"} {
		write(t, filepath.Join(root, name), []byte(text))
	}
	before, err := listTexts(root)
	if err != nil {
		t.Fatal(err)
	}
	git := exec.CommandContext(t.Context(), "git", "init", "-q", root)
	git.Env = withoutGit(os.Environ())
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	after, err := listTexts(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", "docs/new.md"}
	for what, got := range map[string][]string{"without git": before, "with git": after} {
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), []byte("module example.test/m\n"))
	write(t, filepath.Join(root, "a/b/c.go"), []byte("package b\n"))
	if got, err := FindRoot(filepath.Join(root, "a", "b")); err != nil || got != root {
		t.Errorf("FindRoot from below = %q, %v, want %q", got, err, root)
	}
	if got, err := FindRoot(string(filepath.Separator)); err == nil {
		t.Errorf("FindRoot from the top = %q, want an error", got)
	}
}

func TestEscapePath(t *testing.T) {
	if got, want := escapePath("github.com/BurntSushi/toml"), "github.com/!burnt!sushi/toml"; got != want {
		t.Errorf("escapePath = %q, want %q", got, want)
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func workingDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(fmt.Errorf("working directory: %w", err))
	}
	return dir
}

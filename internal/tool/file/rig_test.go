package file

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// rig is a set on a workspace of its own.
type rig struct {
	testing.TB
	w   *workspace.Workspace
	set *Set
	env tool.Env
	// kept are the paths that were to be kept, and parsed those whose syntax was asked.
	kept, parsed []string
	syntax       string
}

func newRig(t testing.TB, limits ...any) *rig {
	t.Helper()
	var values config.Values
	for i := 0; i < len(limits); i += 2 {
		var err error
		if values, err = values.Set(limits[i].(config.Name), int64(limits[i+1].(int))); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.New(workspace.Options{Area: t.TempDir(), Limits: values})
	if err != nil {
		t.Fatal(err)
	}
	b := &rig{TB: t, w: w}
	b.set = New(Options{
		Workspace: w,
		Syntax: func(_ context.Context, files []tool.Written) string {
			for _, f := range files {
				b.parsed = append(b.parsed, f.Path+"="+f.Shown)
				if got := b.read(f.Path); got != string(f.Data) {
					t.Errorf("%s: %q was checked, and %q was written", f.Path, f.Data, got)
				}
			}
			return b.syntax
		},
		Keep: func(_ context.Context, paths []string) (string, []journal.File) {
			b.kept = append(b.kept, paths...)
			return "", nil
		},
	})
	return b
}

func (b *rig) path(rel string) string { return filepath.Join(b.w.Work(), filepath.FromSlash(rel)) }

func (b *rig) put(rel, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(rel)), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.path(rel), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// read is what a file holds, or "(none)".
func (b *rig) read(rel string) string {
	b.Helper()
	data, err := os.ReadFile(b.path(rel))
	if os.IsNotExist(err) {
		return "(none)"
	}
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// cd puts the shell into a folder.
func (b *rig) cd(rel string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.w.Saved(), "cwd"), []byte(b.path(rel)), 0o600); err != nil {
		b.Fatal(err)
	}
}

// raw is a call with arguments as a model wrote them.
func (b *rig) raw(name, arguments string) journal.Result {
	b.Helper()
	r, err := b.set.Invoke(context.Background(), llm.Call{ID: "1", Name: name, Arguments: arguments}, b.env)
	if err != nil {
		b.Fatalf("%s(%s): %v", name, arguments, err)
	}
	if strings.HasPrefix(r.Text, strings.TrimRight(nothing, ". ")) == r.OK || !r.Workspace {
		b.Errorf("%s(%s): OK is %t for %q", name, arguments, r.OK, r.Text)
	}
	return r
}

// call is a call with names and values in turn.
func (b *rig) call(name string, arguments ...any) journal.Result {
	b.Helper()
	return b.raw(name, object_(arguments...))
}

func object_(arguments ...any) string {
	m := map[string]any{}
	for i := 0; i < len(arguments); i += 2 {
		m[arguments[i].(string)] = arguments[i+1]
	}
	text, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (b *rig) patch(lines ...string) journal.Result {
	b.Helper()
	return b.call(PatchName, "patch", "*** Begin Patch\n"+strings.Join(lines, "\n")+"\n*** End Patch")
}

// want checks that a result is as good as said and holds texts.
func (b *rig) want(r journal.Result, ok bool, texts ...string) {
	b.Helper()
	if r.OK != ok {
		b.Errorf("OK is %t: %s", r.OK, r.Text)
	}
	for _, text := range texts {
		if !strings.Contains(r.Text, text) {
			b.Errorf("%q is not in %q", text, r.Text)
		}
	}
}

// holds checks the content of a file.
func (b *rig) holds(rel, want string) {
	b.Helper()
	if diff := cmp.Diff(want, b.read(rel)); diff != "" {
		b.Errorf("%s: %s", rel, diff)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run the test with -update if that is meant\n%s", file, diff)
	}
}

// story is a golden file of calls and their answers.
type story struct{ strings.Builder }

func (s *story) tell(title string, r journal.Result) {
	state := "refused"
	if r.OK {
		state = "ok"
	}
	fmt.Fprintf(s, ">>> %s (%s)\n%s\n\n", title, state, r.Text)
}

func numberedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func utf16le(s string) string { return string(patch.Encode(s, patch.Little)) }

package syntax

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/bare"
)

var update = flag.Bool("update", false, "write the golden files")

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
		t.Errorf("%s (run with -update if that is right):\n%s", name, diff)
	}
}

// rig runs launches for real and keeps them, or answers them itself.
type rig struct {
	answer func(l sandbox.Launch) (sandbox.Result, error)

	mu       sync.Mutex
	launches []sandbox.Launch
}

func (r *rig) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	r.mu.Lock()
	r.launches = append(r.launches, l)
	r.mu.Unlock()
	if err := l.Check(); err != nil {
		return sandbox.Result{}, err
	}
	if r.answer != nil {
		return r.answer(l)
	}
	l.Network.Mode = sandbox.NetworkOpen // the backend below confines nothing
	return sandbox.Run(ctx, bare.New(bare.Options{}), l)
}

// temp is a directory free of links, and the test that nothing is left in it.
func temp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return dir
}

func real(t *testing.T, kind interpreter.Kind) (*rig, *Checker) {
	t.Helper()
	o := interpreter.Options{Path: os.Getenv("PATH")}
	if _, err := o.Find(kind); err != nil {
		t.Skip(err)
	}
	r := &rig{}
	return r, New(Options{Runner: r, Interpreters: o, Environ: os.Environ()})
}

func checkAll(t *testing.T, c *Checker, files ...File) []Verdict {
	t.Helper()
	found, err := c.Check(t.Context(), Place{Temp: temp(t)}, files)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// told are the verdicts as a model reads them, without the version of the parser.
func told(verdicts []Verdict) string {
	var b strings.Builder
	for _, v := range verdicts {
		v.Language, _, _ = strings.Cut(v.Language, " ")
		b.WriteString(v.Sentence() + "\n")
	}
	return b.String()
}

func paths(verdicts []Verdict) []string {
	var names []string
	for _, v := range verdicts {
		names = append(names, v.Path)
	}
	return slices.Clip(names)
}

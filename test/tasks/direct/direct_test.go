package direct_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/task"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path, err := direct.PythonPath(context.Background()); err == nil {
		_ = os.Setenv("PATH", path) // without it the tests only take longer
	}
	goleak.VerifyTestMain(m)
}

func testdata(name string) string { return filepath.Join("..", "testdata", name) }

func load(t *testing.T) []task.Task {
	t.Helper()
	tasks, err := task.Load(testdata("tasks"))
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// host is a workspace with the files of a task.
func host(t *testing.T, k task.Task) *direct.Host {
	t.Helper()
	index, err := filepath.Abs(testdata("index"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := direct.New(t.TempDir(), index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if err := k.Lay(h.Work); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestThirtyTasks(t *testing.T) {
	if n := len(load(t)); n != 30 {
		t.Errorf("there are %d tasks, want 30", n)
	}
}

// A checker that cannot fail proves nothing: it refuses the state of the
// beginning and one that looks done, and takes the one that is.
func TestCheckers(t *testing.T) {
	if name := direct.Missing(); name != "" {
		t.Skipf("%s is not on this host", name)
	}
	for i, k := range load(t) {
		t.Run(k.Name, func(t *testing.T) {
			if testing.Short() && i%4 != 0 {
				t.Skip("costly: a quarter of the tasks are enough in a hurry")
			}
			t.Parallel()
			h := host(t, k)
			refuses(t, k, h, "of the beginning")

			files, err := k.Files()
			if err != nil {
				t.Fatal(err)
			}
			trees := task.Trees(files, k.Rounds)
			for i, r := range k.Rounds {
				if i == k.Half.After {
					refusesHalf(t, k, h)
				}
				asRecorded(t, i, r, trees[i], h)
				if err := h.Play(t.Context(), []task.Round{r}); err != nil {
					t.Errorf("round %d: %v", i+1, err)
				}
			}
			if err := k.Check(t.Context(), task.Bare, h.Work); err != nil {
				t.Error(err)
			}
		})
	}
}

// refusesHalf makes the state half done, sees the checker refuse it, and goes back.
func refusesHalf(t *testing.T, k task.Task, h *direct.Host) {
	t.Helper()
	base := filepath.Dir(h.Work)
	before, err := direct.Tree(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Play(t.Context(), []task.Round{k.Half.Calls}); err != nil {
		t.Errorf("half done: %v", err)
	}
	refuses(t, k, h, "half done")
	after, err := direct.Tree(base)
	if err != nil {
		t.Fatal(err)
	}
	for name := range after {
		if err := os.Remove(filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range before {
		name = filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
}

// asRecorded sees that the files which a round's patches name are what the recorded
// writes and patches say: faults are made from these.
func asRecorded(t *testing.T, i int, r task.Round, tree task.Tree, h *direct.Host) {
	t.Helper()
	have, err := direct.Tree(h.Work)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r {
		sections, _ := task.ParsePatch(c.Text("patch")) // none for other tools
		for _, s := range sections {
			if name := tree.Find(s.Path); s.Verb == "Update" && string(have[name]) != string(tree[name]) {
				t.Errorf("round %d: %s is not what the recorded calls say: %q", i+1, name, have[name])
			}
		}
	}
}

func refuses(t *testing.T, k task.Task, h *direct.Host, state string) {
	t.Helper()
	if err := k.Check(t.Context(), task.Bare, h.Work); !errors.Is(err, task.ErrNotDone) {
		t.Errorf("the checker says %v of the state %s, want %v", err, state, task.ErrNotDone)
	}
}

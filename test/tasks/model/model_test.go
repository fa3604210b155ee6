package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/task"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	if path, err := direct.PythonPath(context.Background()); err == nil {
		_ = os.Setenv("PATH", path) // without it the tests only take longer
	}
	goleak.VerifyTestMain(m)
}

func testdata(name string) string { return filepath.Join("..", "testdata", name) }

func openBook(t testing.TB) (*Book, []task.Task) {
	t.Helper()
	tasks, err := task.Load(testdata("tasks"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBook(tasks, testdata("detours"))
	if err != nil {
		t.Fatal(err)
	}
	return b, tasks
}

func TestRunID(t *testing.T) {
	for _, r := range []Run{
		{Task: "09-crlf-settings", Seed: 7},
		{Task: "09-crlf-settings", Faults: []string{"fenced-patch", "lost-end"}, Seed: 1, Tag: "b-2"},
		{Task: "09-crlf-settings", Faults: []string{"fenced-patch"}, Plain: true},
	} {
		got, err := ParseRun(r.ID())
		if err != nil {
			t.Errorf("ParseRun(%q): %v", r.ID(), err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("ParseRun(%q) differs (-want +got):\n%s", r.ID(), diff)
		}
	}
	for _, bad := range []string{"", "gpt", "@1", "+fenced-patch@1", "09@x"} {
		if r, err := ParseRun(bad); err == nil && r.Task != "fenced-patch" {
			t.Errorf("ParseRun(%q) = %v, want an error", bad, r)
		}
	}
}

func FuzzParseRun(f *testing.F) {
	f.Add("09-crlf-settings+fenced-patch@1#x")
	f.Add("a~b@18446744073709551615")
	f.Fuzz(func(t *testing.T, id string) {
		r, err := ParseRun(id)
		if err != nil {
			return
		}
		again, err := ParseRun(r.ID())
		if err != nil {
			t.Fatalf("ParseRun(%q), the ID of %q: %v", r.ID(), id, err)
		}
		if again.ID() != r.ID() {
			t.Errorf("the ID %q of %q reads as %q", r.ID(), id, again.ID())
		}
	})
}

// The rules take the examples beside them for what they are, and the table and the
// makers agree.
func TestTable(t *testing.T) {
	faults, err := Faults()
	if err != nil {
		t.Fatal(err)
	}
	left := makers()
	for _, f := range faults {
		if _, ok := left[f.Name]; !ok && f.Detour != "" {
			t.Errorf("%s has no maker", f.Name)
		}
		delete(left, f.Name)
		if f.Title == "" || f.Source == "" || len(f.Examples) < 2 {
			t.Errorf("%s lacks a title, a source or two examples", f.Name)
		}
		verdicts := map[Verdict]bool{}
		for _, e := range f.Examples {
			tool := task.Shell
			for _, name := range []string{task.ApplyPatch, task.ReadFile} {
				if ok, err := f.expand("{{ok}}", nil, name); err == nil && e.Then == Done && ok.MatchString(e.Text) || e.Then == Pass {
					tool = name
					break
				}
			}
			got, err := f.judge(e.Text, e.Later, f.Words, tool)
			if err != nil || got != e.Then {
				t.Errorf("%s takes %q for %q (%v), want %q", f.Name, e.Text, got, err, e.Then)
			}
			verdicts[got] = true
		}
		if len(verdicts) < 2 {
			t.Errorf("the examples of %s are all %v: one must show the other side", f.Name, verdicts)
		}
		if got, err := f.judge("", false, f.Words, task.ApplyPatch); err != nil || got != f.Otherwise {
			t.Errorf("%s takes an empty answer for %q (%v): a rule reads what is not there", f.Name, got, err)
		}
	}
	for name := range left {
		t.Errorf("the maker %s is of no fault in faults.toml", name)
	}
	if len(faults) < 10 {
		t.Errorf("there are %d faults, want ten at least", len(faults))
	}
}

// What a host says when it knows nothing must help nobody: no rule for told may
// match it, whatever the words are.
func TestUselessAnswersTellNothing(t *testing.T) {
	faults, err := Faults()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"Error", "Error: failed", "exit 1 (0.1s, sandbox: bwrap)\n\n(no output)", "exit 2 (0.1s)\n\nTraceback (most recent call last):\nValueError: 3",
		"No change was made.", "No change was made: invalid input", "refused", "exit 127 (0.0s)\n\nbash: x: command not found",
	} {
		for _, f := range faults {
			if got, err := f.judge(text, false, f.Words, task.Shell); err != nil || got == Told {
				t.Errorf("%s takes %q for %q (%v)", f.Name, text, got, err)
			}
		}
	}
}

// Every fault can be made in every task: where, is in the golden file.
func TestPlaces(t *testing.T) {
	b, tasks := openBook(t)
	var out strings.Builder
	for _, f := range b.Faults() {
		var own []string
		for _, k := range tasks {
			p, err := b.NewPlan(Run{Task: k.Name, Faults: []string{f.Name}, Seed: 1})
			if err != nil {
				t.Error(err)
				continue
			}
			checkPlan(t, p)
			if p.Detours == 0 {
				own = append(own, k.Name[:2])
			}
		}
		fmt.Fprintf(&out, "%s: %d of %d tasks of their own: %s\n", f.Name, len(own), len(tasks), strings.Join(own, " "))
	}
	compareGolden(t, "places.golden", out.String())
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), run with -update:\n%s", name, diff)
	}
}

func checkPlan(t *testing.T, p Plan) {
	t.Helper()
	id := p.Run.ID()
	if len(p.injections) == 0 && p.idle == nil {
		t.Errorf("%s: no fault is made", id)
	}
	taken := map[int]bool{}
	for _, in := range p.injections {
		for _, s := range in.claims() {
			if s < 0 || s >= len(p.Steps) || taken[s] {
				t.Errorf("%s: step %d of %d is changed twice or does not exist", id, s, len(p.Steps))
			}
			taken[s] = true
		}
		if len(in.look) == 0 && slices.Contains(in.fault.Flounder, look) || in.tool == "" {
			t.Errorf("%s: the fault has no look around or no tool", id)
		}
		spoiled := len(in.silent) > 0 || len(in.fix) == 0 || !reflect.DeepEqual(in.faulty, p.Steps[in.at])
		if !spoiled {
			t.Errorf("%s: the spoiled round is the right one", id)
		}
		for _, r := range append([]Rule{}, in.fault.Rules...) {
			if _, err := in.fault.expand(r.When, in.words, in.tool); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}

// Two faults never change the same step, and the plain twin of a plan has its steps.
func TestPairs(t *testing.T) {
	b, tasks := openBook(t)
	faults := b.Faults()
	for i, k := range tasks {
		for a, f := range faults {
			for c, g := range faults {
				// A fifteenth of the pairs in each task, each pair in some.
				if a == c || (a+c*5+i)%15 != 0 {
					continue
				}
				run := Run{Task: k.Name, Faults: []string{f.Name, g.Name}, Seed: uint64(i)}
				p, err := b.NewPlan(run)
				if err != nil {
					t.Fatal(err)
				}
				checkPlan(t, p)
				run.Plain = true
				plain, err := b.NewPlan(run)
				if err != nil || !reflect.DeepEqual(p.Steps, plain.Steps) || len(plain.injections) > 0 {
					t.Fatalf("%s: the plain twin has other steps, or faults (%v)", run.ID(), err)
				}
			}
		}
	}
}

func TestPlansAreTheSameAgain(t *testing.T) {
	b, tasks := openBook(t)
	places := map[int]bool{}
	for seed := range uint64(8) {
		run := Run{Task: tasks[4].Name, Faults: []string{"other-arguments"}, Seed: seed}
		p, err := b.NewPlan(run)
		if err != nil {
			t.Fatal(err)
		}
		run.Tag = "again"
		q, err := b.NewPlan(run)
		if err != nil {
			t.Fatal(err)
		}
		if p.injections[0].at != q.injections[0].at {
			t.Errorf("seed %d gives step %d, then step %d", seed, p.injections[0].at, q.injections[0].at)
		}
		places[p.injections[0].at] = true
	}
	if len(places) < 2 {
		t.Errorf("eight seeds make the fault in the same place: %v", places)
	}
}

package model

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/task"
)

var really = flag.Bool("really", false, "carry out every fault in every task with real programs")

// hand carries out right calls.
type hand interface {
	do(t *testing.T, c task.Call) string
	// check sees whether the task is done.
	check(t *testing.T) error
}

// memory is a hand that runs no program: it keeps the files that the recorded calls
// write.
type memory struct {
	tree, want task.Tree
}

func newMemory(b *Book, p Plan) *memory {
	files := b.files[p.Run.Task]
	end := task.Trees(files, append(slices.Clone(p.Steps), task.Round{}))
	return &memory{tree: maps.Clone(files), want: end[len(p.Steps)]}
}

func (m *memory) do(t *testing.T, c task.Call) string {
	t.Helper()
	switch c.Tool {
	case task.WriteFile:
		m.tree[c.Text("path")] = []byte(c.Text("content"))
		return "Created " + c.Text("path")
	case task.ApplyPatch:
		if err := m.tree.Apply(c.Text("patch")); err != nil {
			t.Errorf("a right patch does not apply: %v\n%s", err, c.Text("patch"))
		}
		return "Patched (+1 -1)"
	case task.ReadFile:
		return string(m.tree[m.tree.Find(c.Text("path"))])
	}
	if name, text, ok := typed(c.Text("command")); ok {
		m.tree[name] = []byte(text)
	}
	return "exit 0 (0.1s)"
}

// typed is a file that a command types by a heredoc.
func typed(command string) (name, text string, ok bool) {
	rest, ok := strings.CutPrefix(command, "cat > ")
	name, text, found := strings.Cut(rest, " <<'END'\n")
	return name, strings.TrimSuffix(text, "END"), ok && found
}

func (m *memory) check(*testing.T) error {
	if maps.EqualFunc(m.want, m.tree, bytes.Equal) {
		return nil
	}
	return fmt.Errorf("the files are not what the right rounds make (-want +got):\n%s", cmp.Diff(m.want, m.tree))
}

// real is a hand of real programs.
type real struct {
	*direct.Host
	task task.Task
}

func newReal(t *testing.T, b *Book, p Plan) real {
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
	k := b.tasks[p.Run.Task]
	if err := k.Lay(h.Work); err != nil {
		t.Fatal(err)
	}
	return real{Host: h, task: k}
}

func (r real) do(t *testing.T, c task.Call) string {
	t.Helper()
	result, err := r.Do(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return result.Text
}

func (r real) check(t *testing.T) error { return r.task.Check(t.Context(), task.Bare, r.Work) }

// puppet is a host that answers spoiled rounds with the examples of faults.toml: one
// that helps, or one that does not.
type puppet struct {
	hand
	helpful bool
	session *session
}

// example is what this host says to a spoiled round.
func (p puppet) example(f *Fault) Example {
	want := []Verdict{Learned, Done, Told, Pass}
	if !p.helpful {
		want = []Verdict{Lost, Pass, Done}
	}
	for _, v := range want {
		for _, e := range f.Examples {
			if e.Then == v && !e.Later {
				return e
			}
		}
	}
	return Example{Then: f.Otherwise}
}

// answer carries out a move and gives what the model sees of it.
func (p puppet) answer(t *testing.T, m Move) string {
	t.Helper()
	if m.Kind != Faulty && m.Kind != Again {
		return p.all(t, m.Calls)
	}
	if right := p.session.plan.Steps[m.in.at]; len(right) > 1 && m.Kind == Faulty {
		for i, c := range m.Calls { // the others of the round are right
			if reflect.DeepEqual(c, right[i]) {
				p.do(t, c)
			}
		}
	}
	e := p.example(m.in.fault)
	switch {
	case len(m.in.fix) == 0, len(m.in.fault.Later) > 0 && m.Kind == Faulty:
		p.all(t, m.Calls)
	case e.Then == Done || e.Then == Learned:
		for _, r := range m.in.fix {
			p.all(t, r)
		}
	}
	if m.Kind == Again && p.helpful && len(m.in.fix) == 0 {
		e.Then, e.Text = Told, "This same command has failed 2 times. It will fail again."
	}
	text := e.Text
	for name, word := range m.in.fault.Words {
		text = strings.ReplaceAll(text, word, m.in.words[name])
	}
	if e.Then == Done && m.in.tool != task.ApplyPatch {
		text += map[string]string{task.Shell: "\nexit 0 (0.1s)", task.ReadFile: "\na, line 1 to 2 of 2:", task.WriteFile: "\nCreated a"}[m.in.tool]
	}
	return text
}

func (p puppet) all(t *testing.T, round task.Round) string {
	t.Helper()
	var seen []string
	for _, c := range round {
		text := p.do(t, c)
		// A hand in memory cannot see what a program would.
		if _, ok := p.hand.(*memory); ok && c.Tool == task.Shell && len(p.session.armed) > 0 {
			for _, e := range p.session.armed[0].fault.Examples {
				if e.Later {
					text = e.Text
				}
			}
		}
		seen = append(seen, text)
	}
	return strings.Join(seen, "\n\n")
}

// play plays a plan to its end and checks the workspace.
func play(t *testing.T, plan Plan, h hand, helpful bool) []Move {
	t.Helper()
	s := newSession(plan, 24)
	p := puppet{hand: h, helpful: helpful, session: s}
	seen := ""
	for range 60 {
		m, err := s.next(seen, false)
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == Answer {
			if err := h.check(t); err != nil {
				t.Errorf("%s: %v\n%s", plan.Run.ID(), err, story(s.moves()))
			}
			return s.moves()
		}
		seen = p.answer(t, m)
	}
	t.Fatalf("%s does not end:\n%s", plan.Run.ID(), story(s.moves()))
	return nil
}

// sent is the size of all calls.
func sent(t *testing.T, moves []Move) int {
	t.Helper()
	size := 0
	for _, m := range moves {
		calls, err := encode(m.Calls, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			size += len(c.Function.Arguments)
		}
	}
	return size
}

// story is a conversation for a reader of a failed test.
func story(moves []Move) string {
	var b strings.Builder
	for i, m := range moves {
		fmt.Fprintf(&b, "%d %s %s %.300s\n    -> %s: %.300s\n", i+1, m.Kind, m.Fault, fmt.Sprint(m.Calls), m.Verdict, m.Seen)
	}
	return b.String()
}

// Whatever the host says, every fault ends in every task, the files are right, and a
// host that helps costs fewer rounds than one that does not. How many, all tasks
// together, is in the golden file.
func TestPolicy(t *testing.T) {
	b, tasks := openBook(t)
	var out strings.Builder
	out.WriteString("requests over all tasks: without the fault, with help, without help\n")
	for _, f := range b.Faults() {
		if f.Detour == "" {
			continue // the limit needs the server
		}
		var plain, helped, alone int
		for _, k := range tasks {
			plan, err := b.NewPlan(Run{Task: k.Name, Faults: []string{f.Name}, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			good := play(t, plan, newMemory(b, plan), true)
			bad := play(t, plan, newMemory(b, plan), false)
			plain, helped, alone = plain+plan.Baseline(), helped+len(good), alone+len(bad)
			// A hand in memory shows no traceback to copy a path from.
			if saved := len(bad) - len(good); f.Measure == "rounds" && saved <= 0 && plan.injections[0].seen == nil {
				t.Errorf("%s: help saves %d rounds\n%s\n%s", plan.Run.ID(), saved, story(good), story(bad))
			}
			if saved := sent(t, bad) - sent(t, good); f.Measure == "bytes" && saved <= 0 {
				t.Errorf("%s: help saves %d bytes\n%s\n%s", plan.Run.ID(), saved, story(good), story(bad))
			}
			if len(good) > plan.Baseline()+2 {
				t.Errorf("%s: with help it takes %d rounds, without the fault %d\n%s", plan.Run.ID(), len(good), plan.Baseline(), story(good))
			}
		}
		fmt.Fprintf(&out, "%s: %d %d %d\n", f.Name, plain, helped, alone)
	}
	compareGolden(t, "policy.golden", out.String())
}

func TestPolicyInPairs(t *testing.T) {
	b, tasks := openBook(t)
	faults := b.Faults()
	for i, f := range faults {
		for j, g := range faults {
			if f.Detour == "" || g.Detour == "" || i == j {
				continue
			}
			k := tasks[(i*7+j)%len(tasks)]
			plan, err := b.NewPlan(Run{Task: k.Name, Faults: []string{f.Name, g.Name}, Seed: uint64(i)})
			if err != nil {
				t.Fatal(err)
			}
			good := play(t, plan, newMemory(b, plan), true)
			if bad := play(t, plan, newMemory(b, plan), false); len(good) > len(bad) {
				t.Errorf("%s: with help it takes %d rounds, without %d\n%s\n%s", plan.Run.ID(), len(good), len(bad), story(good), story(bad))
			}
		}
	}
}

// The same with real programs, whose answers to later rounds are real: a few, or all
// with -really.
func TestPolicyWithPrograms(t *testing.T) {
	if name := direct.Missing(); name != "" {
		t.Skipf("%s is not on this host", name)
	}
	if testing.Short() {
		t.Skip("costly: starts programs")
	}
	b, tasks := openBook(t)
	few := map[string]string{"broken-syntax": "16-diff-of-outputs", "ambiguous-hunk": "26-exported-variable", "path-from-trace": "09-crlf-settings", "forgotten-install": "07-install-requirements"}
	for _, f := range b.Faults() {
		for _, k := range tasks {
			if f.Detour == "" || few[f.Name] != k.Name && !*really {
				continue
			}
			t.Run(f.Name+"/"+k.Name, func(t *testing.T) {
				t.Parallel()
				plan, err := b.NewPlan(Run{Task: k.Name, Faults: []string{f.Name}, Seed: 3})
				if err != nil {
					t.Fatal(err)
				}
				good := play(t, plan, newReal(t, b, plan), true)
				bad := play(t, plan, newReal(t, b, plan), false)
				if f.Measure == "rounds" && len(good) >= len(bad) {
					t.Errorf("with help it takes %d rounds, without %d\n%s\n%s", len(good), len(bad), story(good), story(bad))
				}
			})
		}
	}
}

// A run without faults is the recorded rounds and the answer.
func TestPlainRun(t *testing.T) {
	b, tasks := openBook(t)
	plan, err := b.NewPlan(Run{Task: tasks[8].Name, Faults: []string{"forgotten-install", "guessed-api"}, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	moves := play(t, plan, newMemory(b, plan), false)
	if len(moves) != plan.Baseline() || slices.ContainsFunc(moves[:len(moves)-1], func(m Move) bool { return m.Kind != Right }) {
		t.Errorf("the run is not %d right rounds and the answer:\n%s", plan.Baseline()-1, story(moves))
	}
}

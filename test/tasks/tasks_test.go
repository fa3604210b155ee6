package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/model"
	"github.com/metier-run/metier/test/tasks/task"
)

func TestMain(m *testing.M) {
	if err := narrowPath(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

// stage is a place before the scripted model.
func stage(t *testing.T) (*place, *model.Handler, []model.Fault) {
	t.Helper()
	if name := direct.Missing(); name != "" {
		t.Skipf("%s is not on this host", name)
	}
	p, stop, err := openPlace(t.Context(), options{data: "testdata"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	book, err := model.NewBook(p.tasks, filepath.Join("testdata", "detours"))
	if err != nil {
		t.Fatal(err)
	}
	m := model.New(book, model.Options{})
	url, end, err := serve(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	p.upstream = app.Upstream{URL: url + "/v1", Type: "openai"}
	able(t, p)
	return p, m, book.Faults()
}

// able skips where nothing confines commands.
func able(t *testing.T, p *place) {
	t.Helper()
	b, err := p.open(t.Context(), true)
	if err != nil {
		t.Skip(err)
	}
	b.close()
}

// TestClasses plays every second class of mistakes in one task each, with recovery on and off,
// and some pairs. That each class saves rounds is for the whole sweep to show: one place
// is not enough to see it in all of them.
func TestClasses(t *testing.T) {
	p, m, faults := stage(t)
	tasks := slices.DeleteFunc(slices.Clone(p.tasks), isGo) // these take a warm cache
	var jobs []job
	for i := range faults {
		if i%2 != 0 || testing.Short() && i%6 != 0 {
			continue
		}
		jobs = append(jobs, aloneJobs(tasks[i%len(tasks):][:1], faults[i:][:1], 1)...)
	}
	jobs = append(jobs, pairJobs(tasks, faults, 3, 1)...)
	results, err := p.playAll(t.Context(), m, jobs, 2, func(int, result) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.err != nil {
			t.Error(r.tell())
		}
	}
	sum := tabulate(faults, results, 1)
	on, off := 0, 0
	for _, r := range sum.rows {
		for _, w := range r.worse {
			t.Error(w)
		}
		if r.fault.Measure != bytesMeasure {
			on, off = on+r.on, off+r.off
		}
	}
	for _, w := range sum.pairs.worse {
		t.Error(w)
	}
	if on >= off || sum.pairs.on >= sum.pairs.off {
		t.Errorf("%d rounds with recovery and %d without; in pairs %d and %d", on, off, sum.pairs.on, sum.pairs.off)
	}
}

// TestReal has the scripted model stand for a real one, and the checker confined.
func TestReal(t *testing.T) {
	p, _, _ := stage(t)
	if err := p.keep("09-crlf-settings"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	o := options{model: "09-crlf-settings@1", upstream: p.upstream.URL}
	if err := p.real(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "4 rounds   3 calls") || !strings.Contains(got, "1 of 1 tasks done, 4 rounds, 3 calls") {
		t.Error(got)
	}
}

// TestConfined: a checker in the sandbox says yes and no, and ends.
func TestConfined(t *testing.T) {
	p, _, _ := stage(t)
	exec, stop, err := p.confine(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer stop()
	k := p.task("09-crlf-settings")
	h, err := direct.New(t.TempDir(), filepath.Join("testdata", "index"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := k.Lay(h.Work); err != nil {
		t.Fatal(err)
	}
	if err := k.Check(t.Context(), exec, h.Work); !errors.Is(err, task.ErrNotDone) {
		t.Errorf("the start: %v, want %v", err, task.ErrNotDone)
	}
	if err := h.Play(t.Context(), k.Rounds); err != nil {
		t.Fatal(err)
	}
	if err := k.Check(t.Context(), exec, h.Work); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestUntouched: a model that answers without a call has not done the task.
func TestUntouched(t *testing.T) {
	p := &place{tasks: []task.Task{{Name: "a"}}}
	b := &bench{p: p}
	b.begin(t.Context(), p.tasks[0])
	if !errors.Is(b.verdict, errUntouched) {
		t.Error(b.verdict)
	}
}

// TestNotDone: the checker of a run's task has the last word, whatever the model says.
func TestNotDone(t *testing.T) {
	p, _, _ := stage(t)
	b, err := p.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.begin(t.Context(), p.task("23-json-repair"))
	if err := b.ask(t.Context(), "09-crlf-settings@1", "Go."); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(b.verdict, task.ErrNotDone) {
		t.Errorf("%v, want %v", b.verdict, task.ErrNotDone)
	}
}

func TestTabulate(t *testing.T) {
	faults := []model.Fault{{Name: "a", Measure: "rounds"}, {Name: "b", Measure: bytesMeasure}, {Name: "c", Measure: "rounds", Fixed: "it cannot"}}
	play := func(on, off int, names ...string) []result {
		jobs := both(model.Run{Task: "t", Faults: names, Seed: 1})
		return []result{
			{job: jobs[0], rounds: on, bytes: 10 * on, baseline: 3},
			{job: jobs[1], rounds: off, bytes: 10 * off, baseline: 3},
		}
	}
	good := func() []result {
		return slices.Concat(play(3, 3), play(4, 6, "a"), play(3, 4, "b"), play(4, 4, "c"), play(5, 9, "a", "b"))
	}
	plain := result{job: job{run: model.Run{Task: "t", Faults: []string{"b"}, Plain: true}, recovery: true}, bytes: 25}
	fail := good()
	fail[3].err = errors.New("not done")
	for _, c := range []struct {
		name    string
		results []result
		want    []string
	}{
		{"good", append(good(), plain), nil},
		{"a task is not done", fail, []string{"t+a@1#off (recovery off): not done"}},
		{"stray rounds", append(play(3, 5), good()[2:]...), []string{"t@1#off (recovery off) took 5 rounds instead of 3"}},
		{"nothing saved", slices.Concat(good()[:2], play(4, 4, "a"), good()[4:]), []string{"a: recovery saves nothing; if no switch turns it off, say why in faults.toml"}},
		{"worse", slices.Concat(good()[:2], play(5, 4, "a"), good()[4:]), []string{"a: recovery makes it worse", "t+a@1 took 5 rounds with recovery and 4 without"}},
		{"no bytes saved", slices.Concat(good()[:4], play(4, 4, "b"), good()[6:]), []string{"b: recovery saves nothing; if no switch turns it off, say why in faults.toml"}},
		{"not fixed", slices.Concat(good()[:6], play(4, 5, "c"), good()[8:]), []string{"c: recovery is switched off here, and faults.toml says that it is not"}},
		{"pairs", append(good()[:8], play(5, 5, "a", "b")...), []string{"pairs: recovery saves nothing"}},
	} {
		sum := tabulate(faults, c.results, 1)
		if got := sum.judge(false); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	want := tableHead + `| none: the tasks as recorded | | 3 | 3 | 3 | 0 | 2 of 2 |
|  | ` + "`a`" + ` | 3 | 4 | 6 | 2 | 2 of 2 |
|  | ` + "`b`" + ` (bytes) | 25 | 30 | 40 | 10 | 3 of 3 |
|  | ` + "`c`" + ` * | 3 | 4 | 4 | 0 | 2 of 2 |
| **all of these, each alone** | | 6 | 8 | 10 | 2 | 7 of 7 |
| **1 pairs** | | 3 | 5 | 9 | 4 | 2 of 2 |
`
	if got := tabulate(faults, append(good(), plain), 1).markdown(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// TestPairJobs: the same seed draws the same pairs, of different faults, and spreads
// them.
func TestPairJobs(t *testing.T) {
	faults, err := model.Faults()
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := task.Load(filepath.Join("testdata", "tasks"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := pairJobs(tasks, faults, 60, 1)
	often := map[string]int{}
	for i, j := range jobs {
		if again := pairJobs(tasks, faults, 60, 1)[i]; again.String() != j.String() {
			t.Fatalf("%v is %v the second time", j, again)
		}
		f := j.run.Faults
		if f[0] == f[1] || j.recovery != (i%2 == 0) {
			t.Errorf("job %d is %v", i, j)
		}
		for _, name := range append(f, j.run.Task) {
			often[name]++
		}
	}
	for _, f := range faults {
		if n := often[f.Name]; n < 8 {
			t.Errorf("%s is in %d runs", f.Name, n)
		}
	}
	for _, k := range tasks {
		if n := often[k.Name]; n != 4 {
			t.Errorf("%s is played %d times", k.Name, n)
		}
	}
}

// TestPage: the page is of these classes.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	faults, err := model.Faults()
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	want := []string{pageHead, fixedHead, sourcesHead}
	for _, f := range faults {
		want = append(want, fmt.Sprintf("\n| %s | `%s`%s | ", f.Title, f.Name, marks(f)), fmt.Sprintf("\n| `%s` | %s |\n", f.Name, f.Source))
		if f.Fixed != "" {
			want = append(want, fmt.Sprintf("\n- `%s`: %s.\n", f.Name, f.Fixed))
		}
	}
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("docs/recovery.md lacks %q: run go run ./test/tasks -update", text)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		ok   bool
	}{
		{"", true},
		{"-update -seed 3 -pairs 10", true},
		{"-fault fenced-patch -task 1*", true},
		{"-model m -upstream http://127.0.0.1:1/v1 -off", true},
		{"-model m", false},
		{"-upstream http://127.0.0.1:1/v1", false},
		{"-update -task 1*", false},
		{"-workers 0", false},
		{"tasks", false},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// TestHang: a run whose time is up is a failure with a name.
func TestHang(t *testing.T) {
	p, m, _ := stage(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	b, err := p.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r := b.play(ctx, m, job{run: model.Run{Task: "09-crlf-settings", Seed: 1}, recovery: true})
	if r.err == nil || !strings.Contains(r.tell(), "09-crlf-settings@1 (recovery on)") {
		t.Error(r.tell())
	}
}

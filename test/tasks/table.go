package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/metier-run/metier/test/tasks/model"
)

// sums are what a group of runs took, each with recovery on and off.
type sums struct {
	runs, passed int // of the runs of both sorts
	// plain is what the same steps take without faults, on and off what they took.
	plain, on, off int
	// worse are runs that took more with recovery than without.
	worse []string
}

// row is a class of mistakes.
type row struct {
	fault model.Fault
	sums
}

// table is what came of a sweep.
type table struct {
	seed  uint64
	right sums
	rows  []row
	pairs sums
	// failed are runs whose task was not done, and stray those without faults that took
	// another number of rounds than is recorded.
	failed, stray []string
}

// tabulate sums results up.
func tabulate(faults []model.Fault, results []result, seed uint64) table {
	t := table{seed: seed}
	at := map[string]int{}
	for _, f := range faults {
		at[f.Name] = len(t.rows)
		t.rows = append(t.rows, row{fault: f})
	}
	on := map[string]int{}
	for _, r := range results {
		if r.err != nil {
			t.failed = append(t.failed, fmt.Sprintf("%v: %v", r.job, r.err))
		}
		s, measure := &t.pairs, "rounds"
		switch len(r.run.Faults) {
		case 0:
			s = &t.right
			if r.rounds != r.baseline {
				t.stray = append(t.stray, fmt.Sprintf("%v took %d rounds instead of %d", r.job, r.rounds, r.baseline))
			}
		case 1:
			row := &t.rows[at[r.run.Faults[0]]]
			s, measure = &row.sums, row.fault.Measure
		}
		s.add(r, measure, on)
	}
	return t
}

// add counts one result. on remembers what runs took with recovery: they come before
// their twins without.
func (s *sums) add(r result, measure string, on map[string]int) {
	took := r.rounds
	if measure == bytesMeasure {
		took = r.bytes
	}
	s.runs++
	if r.err == nil {
		s.passed++
	}
	twin := r.run
	twin.Tag = ""
	switch {
	case r.run.Plain:
		s.plain += took
		return
	case r.recovery:
		s.on += took
		on[twin.ID()] = took
	default:
		s.off += took
		if before := on[twin.ID()]; before > took {
			s.worse = append(s.worse, fmt.Sprintf("%s took %d %s with recovery and %d without", twin.ID(), before, measure, took))
		}
	}
	if measure != bytesMeasure && r.recovery {
		s.plain += r.baseline
	}
}

// judge names what is not as it should be. spelled says that the host has a python by
// that name, so that nobody can lack it.
func (t table) judge(spelled bool) []string {
	problems := append([]string(nil), t.failed...)
	problems = append(problems, t.stray...)
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, r := range t.rows {
		switch {
		case r.on > r.off:
			add("%s: recovery makes it worse", r.fault.Name)
		case r.fault.Name == "python-spelling" && spelled:
		case r.fault.Fixed == "" && r.on == r.off:
			add("%s: recovery saves nothing; if no switch turns it off, say why in faults.toml", r.fault.Name)
		case r.fault.Fixed != "" && r.on < r.off:
			add("%s: recovery is switched off here, and faults.toml says that it is not", r.fault.Name)
		}
		problems = append(problems, r.worse...)
	}
	problems = append(problems, t.pairs.worse...)
	if t.pairs.runs > 0 && t.pairs.on >= t.pairs.off {
		add("pairs: recovery saves nothing")
	}
	return problems
}

func (s sums) cells() string {
	return fmt.Sprintf("%d | %d | %d | %d | %d of %d", s.plain, s.on, s.off, s.off-s.on, s.passed, s.runs)
}

// markdown is the table of the page.
func (t table) markdown() string {
	var b strings.Builder
	b.WriteString(tableHead)
	fmt.Fprintf(&b, "| none: the tasks as recorded | | %s |\n", t.right.cells())
	all := sums{}
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | `%s`%s | %s |\n", r.fault.Title, r.fault.Name, marks(r.fault), r.cells())
		all.runs, all.passed = all.runs+r.runs, all.passed+r.passed
		if r.fault.Measure != bytesMeasure {
			all.plain, all.on, all.off = all.plain+r.plain, all.on+r.on, all.off+r.off
		}
	}
	fmt.Fprintf(&b, "| **all of these, each alone** | | %s |\n", all.cells())
	if t.pairs.runs > 0 {
		fmt.Fprintf(&b, "| **%d pairs** | | %s |\n", t.pairs.runs/2, t.pairs.cells())
	}
	return b.String()
}

// marks are the signs behind a fault's name that the text below the table explains.
func marks(f model.Fault) string {
	text := ""
	if f.Measure == bytesMeasure {
		text += " (bytes)"
	}
	if f.Fixed != "" {
		text += " *"
	}
	return text
}

// write writes the page.
func (t table) write(file string) error {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString(t.markdown())
	fmt.Fprintf(&b, pageTable, t.seed)
	b.WriteString(fixedHead)
	for _, r := range t.rows {
		if r.fault.Fixed != "" {
			fmt.Fprintf(&b, "- `%s`: %s.\n", r.fault.Name, r.fault.Fixed)
		}
	}
	b.WriteString(sourcesHead)
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.fault.Name, r.fault.Source)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/metier-run/metier/test/tasks/model"
	"github.com/metier-run/metier/test/tasks/task"
)

// bytesMeasure is the measure of faults that cost output and no round.
const bytesMeasure = "bytes"

// sweep plays what is to be played, shows what came of it, and fails when that is not
// what it should be.
func (p *place) sweep(ctx context.Context, o options, m *model.Handler, faults []model.Fault, out io.Writer) error {
	faults, err := o.chosen(faults)
	if err != nil {
		return err
	}
	jobs := slices.Concat(rightJobs(p.tasks, o.seed), aloneJobs(p.tasks, faults, o.seed))
	if o.fault == "" {
		jobs = append(jobs, pairJobs(p.tasks, faults, o.pairs, o.seed)...)
	}
	began := time.Now()
	results, err := p.playAll(ctx, m, jobs, o.workers, func(n int, r result) {
		if r.err != nil {
			fmt.Fprintf(out, "%v: %v\n", r.job, r.err)
		}
		if n%100 == 0 || n == len(jobs) {
			fmt.Fprintf(out, "%d of %d runs, %s\n", n, len(jobs), time.Since(began).Round(time.Second))
		}
	})
	if err != nil {
		return err
	}
	t := tabulate(faults, results, o.seed)
	fmt.Fprint(out, "\n"+t.markdown())
	problems := t.judge(spells())
	for _, problem := range problems {
		fmt.Fprintln(out, problem)
	}
	if len(problems) > 0 {
		return errUnproven
	}
	if o.update {
		return t.write(o.doc)
	}
	return nil
}

// chosen are the faults that the command line asks for.
func (o options) chosen(faults []model.Fault) ([]model.Fault, error) {
	if o.fault != "" {
		faults = slices.DeleteFunc(faults, func(f model.Fault) bool { return f.Name != o.fault })
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("there is no fault %q: see faults.toml", o.fault)
	}
	return faults, nil
}

// keep leaves the tasks whose names match a pattern; all if it is empty.
func (p *place) keep(pattern string) error {
	if pattern == "" {
		return nil
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(k task.Task) bool {
		ok, err := path.Match(pattern, k.Name)
		return err != nil || !ok
	})
	if len(p.tasks) == 0 {
		return fmt.Errorf("there is no task %q: give the name of a folder, or a pattern such as 1*", pattern)
	}
	return nil
}

// both is a run with recovery on and with recovery off.
func both(r model.Run) []job {
	on, off := r, r
	on.Tag, off.Tag = "on", "off"
	return []job{{on, true}, {off, false}}
}

// rightJobs are the tasks as they are recorded.
func rightJobs(tasks []task.Task, seed uint64) []job {
	var jobs []job
	for _, k := range tasks {
		jobs = append(jobs, both(model.Run{Task: k.Name, Seed: seed})...)
	}
	return jobs
}

// aloneJobs are each fault in each task. A fault that costs bytes is measured against
// the same steps without it.
func aloneJobs(tasks []task.Task, faults []model.Fault, seed uint64) []job {
	var jobs []job
	for _, f := range faults {
		for _, k := range tasks {
			r := model.Run{Task: k.Name, Faults: []string{f.Name}, Seed: seed}
			jobs = append(jobs, both(r)...)
			if f.Measure == bytesMeasure {
				r.Plain = true
				jobs = append(jobs, job{r, true})
			}
		}
	}
	return jobs
}

// pairJobs are n pairs of faults in tasks, all by chance: every fault is in as many
// pairs as any other, or one more, and so is every task.
func pairJobs(tasks []task.Task, faults []model.Fault, n int, seed uint64) []job {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	// deal gives numbers below a bound, each once before any comes again.
	deal := func(below int) func() int {
		var left []int
		return func() int {
			if len(left) == 0 {
				left = rng.Perm(below)
			}
			next := left[0]
			left = left[1:]
			return next
		}
	}
	fault, place := deal(len(faults)), deal(len(tasks))
	var jobs []job
	for range n {
		a, b := fault(), fault()
		for a == b {
			b = fault()
		}
		jobs = append(jobs, both(model.Run{
			Task: tasks[place()].Name, Faults: []string{faults[a].Name, faults[b].Name}, Seed: seed,
		})...)
	}
	return jobs
}

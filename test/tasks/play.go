package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/test/tasks/model"
	"github.com/metier-run/metier/test/tasks/task"
)

// job is one run, with the host's recovery on or off.
type job struct {
	run      model.Run
	recovery bool
}

func (j job) String() string {
	if j.recovery {
		return j.run.ID() + " (recovery on)"
	}
	return j.run.ID() + " (recovery off)"
}

// result is how a job ended.
type result struct {
	job
	// rounds are the generations, baseline those of a run without faults, and bytes the
	// size of all calls.
	rounds, baseline, bytes int
	// err says why the task is not done; nil when it is.
	err  error
	took time.Duration
	// moves are what the model did, for whoever asks why.
	moves []model.Move
}

// outOfRounds is the fault after which the user has to ask once more.
const outOfRounds = "out-of-rounds"

// play carries one job out.
func (b *bench) play(ctx context.Context, m *model.Handler, j job) result {
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, longestRun)
	defer stop()
	k := b.p.task(j.run.Task)
	b.begin(ctx, k)
	var err error
	if slices.Contains(j.run.Faults, outOfRounds) {
		_, err = b.chat(ctx, j.run.ID(), k.Prompt, func(turn.Outcome) bool {
			r, _ := m.Report(j.run)
			return !r.Ended
		})
	} else {
		err = b.ask(ctx, j.run.ID(), k.Prompt)
	}
	r := result{job: j, err: err, took: time.Since(began)}
	report, ok := m.Report(j.run)
	r.rounds, r.baseline, r.bytes, r.moves = report.Requests, report.Baseline, report.Bytes, report.Moves
	switch {
	case r.err != nil:
	case !ok || !report.Ended:
		r.err = fmt.Errorf("the model has given no answer after %d rounds", report.Requests)
	default:
		r.err = b.verdict
	}
	return r
}

// longestRun is more than any run takes: what takes longer hangs.
const longestRun = 5 * time.Minute

func (p *place) task(name string) task.Task {
	return p.tasks[slices.IndexFunc(p.tasks, func(t task.Task) bool { return t.Name == name })]
}

// playAll carries jobs out, so many at once, and gives the results in the order of the
// jobs. done is told of each; it is called by one goroutine at a time.
func (p *place) playAll(ctx context.Context, m *model.Handler, jobs []job, workers int, done func(n int, r result)) ([]result, error) {
	results := make([]result, len(jobs))
	var next atomic.Int64
	var mu sync.Mutex
	n := 0
	var failed error
	var group sync.WaitGroup
	for range min(workers, len(jobs)) {
		group.Go(func() {
			benches := map[bool]*bench{}
			defer func() {
				for _, b := range benches {
					b.close()
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) || ctx.Err() != nil {
					return
				}
				b := benches[jobs[i].recovery]
				if b == nil {
					var err error
					if b, err = p.open(ctx, jobs[i].recovery); err != nil {
						mu.Lock()
						failed = err
						mu.Unlock()
						return
					}
					benches[jobs[i].recovery] = b
				}
				results[i] = b.play(ctx, m, jobs[i])
				mu.Lock()
				n++
				done(n, results[i])
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	return results, failed
}

// tell shows what the model did and read in a run, for whoever asks why.
func (r result) tell() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d rounds for %d, %v\n", r.job, r.rounds, r.baseline, r.err)
	for i, m := range r.moves {
		fmt.Fprintf(&b, "--- %d %s %s verdict=%q\n", i+1, m.Kind, m.Fault, m.Verdict)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "%s %v\n", c.Tool, c.Args)
		}
		fmt.Fprintf(&b, "%s=> %s\n", m.Text, m.Seen)
	}
	return b.String()
}

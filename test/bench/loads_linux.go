package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// together measures launches without a pause: one after the other, and many at a
// time.
func (s *launches) together(ctx context.Context) error {
	l, err := s.trueLaunch()
	if err != nil {
		return err
	}
	for _, workers := range []int{1, s.size.together} {
		title, n := "true, back to back", s.size.batch
		if workers > 1 {
			title, n = fmt.Sprintf("true, %d at a time", workers), 2*s.size.batch
		}
		rates, walls := map[string][]float64{}, map[string][]float64{}
		for batch := range s.size.batches {
			for i := range s.ways {
				w := s.ways[(i+batch)%len(s.ways)]
				rate, took, err := w.crowd(ctx, l, n, workers)
				if err != nil {
					return err
				}
				rates[w.name], walls[w.name] = append(rates[w.name], rate), append(walls[w.name], took...)
			}
		}
		rate, late := s.rep.launchRow(title, "launches/s"), s.rep.launchRow(title, "ms, p90")
		for name := range rates {
			rate.Ways[name] = &figure{Value: median(rates[name]), Values: rates[name]}
			late.Ways[name] = &figure{Value: quantile(walls[name], 0.9)}
		}
		rate.aims(false)
		late.aims(false)
	}
	return nil
}

// crowd runs so many launches, some at a time, and returns the rate a second and
// what each took in ms. It ends when all is at rest, which is not in the rate.
func (w *way) crowd(ctx context.Context, l sandbox.Launch, n, workers int) (float64, []float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	walls := make([]float64, n)
	began := time.Now()
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				start := time.Now()
				if _, err := w.run(ctx, l); err != nil {
					cancel(err)
					return
				}
				walls[i-1] = ms(time.Since(start))
			}
		})
	}
	wg.Wait()
	rate := float64(n) / time.Since(began).Seconds()
	if err := context.Cause(ctx); err != nil {
		return 0, nil, err
	}
	if w.backend != nil {
		if _, err := w.family.rest(ctx, w.waiting); err != nil {
			return 0, nil, err
		}
	}
	return rate, walls, nil
}

// heap measures the same launch while this process, which is the host, has a large
// heap and while it has not, in turn.
func (s *launches) heap(ctx context.Context) error {
	l, err := s.trueLaunch()
	if err != nil {
		return err
	}
	s = s.without(bwrapStart) // it shares the way of a plain start
	small, large := map[string][]float64{}, map[string][]float64{}
	for range s.size.heapTurns {
		if err := s.collect(ctx, l, small); err != nil {
			return err
		}
		grown := touched(s.size.heap)
		err := s.collect(ctx, l, large)
		runtime.KeepAlive(grown)
		debug.FreeOSMemory()
		if err != nil {
			return err
		}
	}
	row := s.rep.launchRow(fmt.Sprintf("true, host %d MiB larger", s.size.heap>>20), "ms, p10")
	row.Aim = fmt.Sprintf("%.1fx", heapAim)
	for name := range large {
		low := quantile(large[name], lowest)
		a := against{To: "before", Ratio: low / quantile(small[name], lowest)}
		if name == warmStart || name == coldStart {
			a.Most = heapAim
		}
		row.Ways[name] = &figure{Value: low, Values: large[name], Ratios: []against{a}}
	}
	return nil
}

// without is the same with one way less.
func (s *launches) without(name string) *launches {
	less := *s
	less.ways = slices.DeleteFunc(slices.Clone(s.ways), func(w *way) bool { return w.name == name })
	return &less
}

// collect adds the times of a series.
func (s *launches) collect(ctx context.Context, l sandbox.Launch, walls map[string][]float64) error {
	all, err := s.series(ctx, l, s.size.heapRounds)
	for name, t := range all {
		walls[name] = append(walls[name], t.walls...)
	}
	return err
}

// touched is memory of which every page is in use.
func touched(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return b
}

// killAfter is the deadline of a launch that is to be killed: each tree has its
// shape by then.
const killAfter = 300 * time.Millisecond

// kill measures from the decision to kill a tree, at its deadline, until the last of
// it is gone.
func (s *launches) kill(ctx context.Context) error {
	w := s.way(warmStart)
	for _, tree := range []struct{ title, line string }{
		{"a busy loop", "while :; do :; done"},
		{"deaf daemons", "trap '' TERM INT HUP; for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'while :; do sleep 1; done' & done; while :; do wait; done"},
		// The first process forks once only, so that it is there until the deadline.
		{"a fork bomb", "b() { while :; do b & done; }; b 2>/dev/null & while :; do :; done"},
	} {
		l := s.launch()
		l.Argv, l.Line, l.Deadline = nil, tree.line, killAfter
		var took []float64
		for range s.size.kills {
			r, err := sandbox.Run(ctx, w.backend, l)
			if err != nil {
				return err
			}
			if r.Ended != sandbox.TimedOut {
				return fmt.Errorf("%s: %s with status %d, before its deadline: %s", tree.title, r.Ended, r.Exit, r.Stderr.Text())
			}
			took = append(took, ms(r.Killing))
			if _, err := w.family.rest(ctx, w.waiting); err != nil {
				return err
			}
		}
		middle, worst := s.rep.launchRow("killing "+tree.title, "ms, median"), s.rep.launchRow("killing "+tree.title, "ms, worst")
		middle.Ways[warmStart] = &figure{Value: median(took), Values: took}
		worst.Ways[warmStart] = &figure{Value: slices.Max(append(took, 0))}
	}
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// launches measures launches. This process is their host.
type launches struct {
	h    *house
	rep  *report
	size launchSizes
	ways []*way
	dir  string // the working directory
}

// runLaunches measures each workload whose name contains a text, with all ways in
// turn. Where the native backend does not work the report says so.
func runLaunches(ctx context.Context, h *house, rep *report, size launchSizes, only string) (err error) {
	if err := adopt(true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, adopt(false)) }()
	s := &launches{h: h, rep: rep, size: size, dir: filepath.Join(h.dir, "launches")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	if s.dir, err = filepath.EvalSymlinks(s.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		if _, ok := errors.AsType[*sandbox.Unavailable](err); ok {
			rep.NoLaunches = err.Error()
			return nil
		}
		return err
	}
	for _, w := range []struct {
		name string
		run  func(context.Context) error
	}{
		{launchTrue, s.smallest}, {launchPython, s.python}, {launchTogether, s.together}, {launchHeap, s.heap}, {launchKill, s.kill},
	} {
		if !strings.Contains(w.name, only) {
			continue
		}
		h.say("measuring %s", w.name)
		if err := w.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// open makes the ways and runs each once: a cold backend's first launch has an init
// that waited, which its later ones have not.
func (s *launches) open(ctx context.Context) error {
	s.ways = []*way{plainWay(plainStart, nil)}
	if w, err := s.bwrap(ctx); err != nil {
		s.h.say("without bubblewrap: %v", err)
	} else {
		s.ways = append(s.ways, w)
	}
	for _, name := range []string{warmStart, coldStart} {
		w, err := nativeWay(ctx, name, s.h.metier, name == coldStart)
		if err != nil {
			return err
		}
		s.ways = append(s.ways, w)
		if err := s.warmUp(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// bwrap is the way through bubblewrap, if that is here and works.
func (s *launches) bwrap(ctx context.Context) (*way, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	w := plainWay(bwrapStart, bwrapBefore(program))
	return w, s.try(ctx, w)
}

// warmUp tries a backend. Each numbers its control groups from one, by the id of
// their host: the first backend gets so far ahead that what lives of both never has
// the same number.
func (s *launches) warmUp(ctx context.Context, w *way) error {
	if w.name == coldStart {
		return s.try(ctx, w)
	}
	l, err := s.trueLaunch()
	if err == nil {
		_, _, err = w.crowd(ctx, l, 4*s.size.together, s.size.together)
	}
	return err
}

func (s *launches) try(ctx context.Context, w *way) error {
	l, err := s.trueLaunch()
	if err == nil {
		_, err = w.run(ctx, l)
	}
	return err
}

// close ends the backends, and reaps what their spawners may have left.
func (s *launches) close() error {
	var errs []error
	for _, w := range s.ways {
		if w.backend != nil {
			errs = append(errs, w.backend.Close())
		}
	}
	for pid := 1; pid > 0; { // no other child of this process runs now
		pid, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil) // an error ends it as well
	}
	return errors.Join(errs...)
}

// launch is a launch of a program with the default limits of a skill's script.
func (s *launches) launch(argv ...string) sandbox.Launch {
	limits := config.Values{}
	return sandbox.Launch{
		Purpose: sandbox.Script, Argv: argv, Dir: s.dir, Write: []string{s.dir},
		Env:      []string{"PATH=/usr/bin:/bin", "HOME=" + s.dir, "LANG=C.UTF-8"},
		Deadline: limits.Duration(config.ScriptTime), Output: limits.Get(config.ScriptOutput), Memory: limits.Get(config.SandboxMemory),
		Processes: limits.Get(config.SandboxProcs), Disk: limits.Get(config.SandboxDisk),
	}
}

func (s *launches) trueLaunch() (sandbox.Launch, error) {
	for _, name := range []string{"/usr/bin/true", "/bin/true"} {
		if _, err := os.Stat(name); err == nil {
			return s.launch(name), nil
		}
	}
	program, err := exec.LookPath("true")
	return s.launch(program), err
}

// pythonLaunch prefers the system's Python to one of a version manager.
func (s *launches) pythonLaunch() (sandbox.Launch, error) {
	found, err := interpreter.Options{Path: "/usr/bin:/bin"}.Find(interpreter.Python)
	if err != nil {
		home, _ := os.UserHomeDir() // empty when there is none
		found, err = interpreter.Options{
			Path: os.Getenv("PATH"), Home: home, Dir: s.dir, PyenvRoot: os.Getenv("PYENV_ROOT"), AsdfData: os.Getenv("ASDF_DATA_DIR"),
			MiseData: os.Getenv("MISE_DATA_DIR"),
		}.Find(interpreter.Python)
	}
	l := s.launch(found.Path, "-c", "pass")
	l.Read = found.Read
	return l, err
}

// timing is what launches of one way took.
type timing struct {
	walls []float64     // ms each
	cpu   time.Duration // of all
}

// series runs a launch each way in turn, a first round without counting it.
func (s *launches) series(ctx context.Context, l sandbox.Launch, rounds int) (map[string]*timing, error) {
	all := map[string]*timing{}
	for round := range rounds + 1 {
		if round == 1 {
			clear(all)
			if err := s.families(all, -1); err != nil {
				return nil, err
			}
		}
		for i := range s.ways {
			w := s.ways[(i+round)%len(s.ways)]
			if all[w.name] == nil {
				all[w.name] = &timing{}
			}
			if err := w.once(ctx, l, all[w.name]); err != nil {
				return nil, err
			}
		}
	}
	return all, s.families(all, 1)
}

// families adds what the families have used so far, times a sign.
func (s *launches) families(all map[string]*timing, sign time.Duration) error {
	for _, w := range s.ways {
		if w.backend == nil {
			continue
		}
		used, err := w.family.spent()
		if err != nil {
			return err
		}
		if all[w.name] == nil {
			all[w.name] = &timing{}
		}
		all[w.name].cpu += sign * used
	}
	return nil
}

// background is how long a family is left alone before it is looked at: looking
// costs this process more than what a backend does in it after a launch.
const background = 20 * time.Millisecond

// once is one launch. What this process uses meanwhile, and shortly after it, is the
// launch's.
func (w *way) once(ctx context.Context, l sandbox.Launch, t *timing) error {
	host, began := clock(unix.CLOCK_PROCESS_CPUTIME_ID), time.Now()
	used, err := w.run(ctx, l)
	t.walls = append(t.walls, ms(time.Since(began)))
	if err != nil {
		return err
	}
	if w.backend == nil {
		t.cpu += used + clock(unix.CLOCK_PROCESS_CPUTIME_ID) - host
		return nil
	}
	if err := pause(ctx, background); err != nil {
		return err
	}
	t.cpu += clock(unix.CLOCK_PROCESS_CPUTIME_ID) - host
	_, err = w.family.rest(ctx, w.waiting)
	return err
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func (s *launches) smallest(ctx context.Context) error {
	l, err := s.trueLaunch()
	if err != nil {
		return err
	}
	all, err := s.series(ctx, l, s.size.rounds)
	if err != nil {
		return err
	}
	s.times("true", all)
	return s.ready(ctx, l, s.size.rounds/4+1)
}

// ready measures how long after a launch the next one finds an init again.
func (s *launches) ready(ctx context.Context, l sandbox.Launch, rounds int) error {
	w := s.way(warmStart)
	var waits []float64
	for range rounds {
		if _, err := w.run(ctx, l); err != nil {
			return err
		}
		ended := time.Now()
		since, err := w.family.rest(ctx, w.waiting)
		if err != nil {
			return err
		}
		waits = append(waits, ms(since.Sub(ended)))
	}
	s.rep.launchRow("true, until the next init is ready", "ms, median").Ways[w.name] = &figure{Value: median(waits), Values: waits}
	return nil
}

func (s *launches) way(name string) *way {
	return s.ways[slices.IndexFunc(s.ways, func(w *way) bool { return w.name == name })]
}

func (s *launches) python(ctx context.Context) error {
	l, err := s.pythonLaunch()
	if _, ok := errors.AsType[*interpreter.NotFoundError](err); ok {
		s.h.say("without python3: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	all, err := s.series(ctx, l, s.size.pythons)
	if err != nil {
		return err
	}
	s.times("python3 -c pass", all)
	return nil
}

// times makes the rows of a series.
func (s *launches) times(title string, all map[string]*timing) {
	middle, low, cpu := s.rep.launchRow(title, "ms, median"), s.rep.launchRow(title, "ms, p10"), s.rep.launchRow(title, "ms CPU, mean")
	for name, t := range all {
		middle.Ways[name] = &figure{Value: median(t.walls), Values: t.walls}
		low.Ways[name] = &figure{Value: quantile(t.walls, lowest)}
		cpu.Ways[name] = &figure{Value: ms(t.cpu) / float64(cmp.Or(len(t.walls), 1))}
	}
	middle.aims(true)
	low.aims(false)
	cpu.aims(false)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// family is a backend's spawner and what that started, as /proc tells of them.
type family struct{ spawner int }

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	state  byte
	parent int
	// reaped is the processor time of all descendants that have ended.
	reaped time.Duration
}

func readStat(file string) (procStat, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return procStat{}, err
	}
	// The name before may hold anything, but no bracket closes after it.
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 15 {
		return procStat{}, fmt.Errorf("read %s: it is too short", file)
	}
	s := procStat{state: f[0][0]}
	var user, system int
	for _, n := range []struct {
		to   *int
		text []byte
	}{{&s.parent, f[1]}, {&user, f[13]}, {&system, f[14]}} {
		if *n.to, err = strconv.Atoi(string(n.text)); err != nil {
			return procStat{}, fmt.Errorf("read %s: %w", file, err)
		}
	}
	s.reaped = time.Duration(user+system) * tick
	return s, nil
}

func statFile(pid int) string { return filepath.Join(procFS, strconv.Itoa(pid), "stat") }

// children are the processes that a process started and has not reaped.
func children(parent int) ([]int, error) {
	names, err := filepath.Glob(filepath.Join(procFS, "[0-9]*"))
	if err != nil {
		return nil, err
	}
	var found []int
	for _, name := range names {
		s, err := readStat(filepath.Join(name, "stat"))
		if err != nil || s.parent != parent {
			continue // it ended meanwhile, or is none of ours
		}
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return nil, err
		}
		found = append(found, pid)
	}
	return found, nil
}

// newFamily finds the spawner that was started since.
func newFamily(before []int) (family, error) {
	now, err := children(os.Getpid())
	if err != nil {
		return family{}, err
	}
	now = slices.DeleteFunc(now, func(pid int) bool { return slices.Contains(before, pid) })
	if len(now) != 1 {
		return family{}, fmt.Errorf("the backend started %d processes, not one", len(now))
	}
	return family{now[0]}, nil
}

// spent is the processor time of the spawner and of all its descendants that have
// ended. One that still waits is not in it.
func (f family) spent() (time.Duration, error) {
	own, err := cpuTime(f.spawner)
	if err != nil {
		return 0, err
	}
	s, err := readStat(statFile(f.spawner))
	return own + s.reaped, err
}

// How a family is seen to be at rest: so many looks in a row, so far apart, found
// nobody who runs or wants to. It is given up after restTime.
const (
	restLooks = 3
	restEvery = 2 * time.Millisecond
	restTime  = 20 * time.Second
)

// rest waits until the last launch was reaped and so many processes wait for the
// next one. It returns when that was first seen.
func (f family) rest(ctx context.Context, waiting int) (since time.Time, err error) {
	end := time.Now().Add(restTime)
	for seen := 0; seen < restLooks; {
		quiet, err := f.quiet(waiting)
		switch {
		case err != nil:
			return since, err
		case !quiet:
			seen = 0
		default:
			if seen++; seen == 1 {
				since = time.Now()
			}
		}
		if time.Now().After(end) {
			return since, fmt.Errorf("the sandbox did not come to rest within %s", restTime)
		}
		if err := pause(ctx, restEvery); err != nil {
			return since, err
		}
	}
	return since, nil
}

func (f family) quiet(waiting int) (bool, error) {
	now, err := children(f.spawner)
	if err != nil || len(now) != waiting {
		return false, err
	}
	for _, pid := range append(now, f.spawner) {
		if sleeps, err := threadsAre(pid, func(state byte) bool { return state == 'S' }); err != nil || !sleeps {
			return false, err
		}
	}
	// A thread of the host that waits for the kernel makes a control group.
	return threadsAre(os.Getpid(), func(state byte) bool { return state != 'D' })
}

func threadsAre(pid int, good func(state byte) bool) (bool, error) {
	files, err := filepath.Glob(filepath.Join(procFS, strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(files) == 0 {
		return false, err // it ended meanwhile
	}
	for _, file := range files {
		s, err := readStat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
		case err != nil:
			return false, err
		case !good(s.state):
			return false, nil
		}
	}
	return true, nil
}

// clock is a processor time, such as that of this process.
func clock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

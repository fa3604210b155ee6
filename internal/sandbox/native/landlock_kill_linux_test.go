package native

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// marked are the processes whose command line holds a text.
func marked(mark string) []int {
	var s procs
	var found []int
	s.each(func(pid int) {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(text), mark) {
			found = append(found, pid)
		}
	})
	return found
}

// bomb forks without end and leaves sessions and parents; $0 is the mark.
const bomb = `exec python3 -c '
import os, signal, sys
for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
open("beat", "w").write("x")
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
' MARK`

const daemons = `for i in 1 2 3; do setsid bash -c 'trap "" TERM INT HUP; (sleep 1000; : MARK) & (setsid sleep 1000; : MARK) & sleep 1000; : MARK' MARK & done; echo x >beat; wait`

func TestBackendLandlockKilled(t *testing.T) {
	soon := func(l *sandbox.Launch) { l.Deadline = time.Second }
	stop := func(j sandbox.Job, _ context.CancelFunc) { j.Stop(); j.Stop() }
	gone := func(_ sandbox.Job, gone context.CancelFunc) { gone() }
	supervisor := func(j sandbox.Job, _ context.CancelFunc) { j.(*job).c.signal() }
	lifeline := func(j sandbox.Job, _ context.CancelFunc) {
		_ = j.(*job).c.conn.CloseRead()
		_ = j.(*job).c.conn.CloseWrite()
	}
	tests := []struct {
		name, line string
		end        func(sandbox.Job, context.CancelFunc)
		ended      sandbox.Ended
		change     func(*sandbox.Launch)
	}{
		{"deadline", "trap '' TERM INT HUP; echo x >beat; while :; do :; done; : MARK", nil, sandbox.TimedOut, soon},
		{"deadline with daemons", daemons, nil, sandbox.TimedOut, soon},
		{"deadline with a fork bomb", bomb, nil, sandbox.TimedOut, soon},
		{"stopped", "echo x >beat; kill -STOP $$; echo no MARK", nil, sandbox.TimedOut, soon},
		{"client gone", daemons, gone, sandbox.Cancelled, nil},
		{"stop", daemons, stop, sandbox.Cancelled, nil},
		{"stop of a fork bomb", bomb, stop, sandbox.Cancelled, nil},
		{"end before its daemons", daemons[:len(daemons)-len("; wait")], nil, sandbox.Exited, nil},
		{"supervisor killed", daemons, supervisor, sandbox.Signalled, nil},
		{"supervisor of a fork bomb killed", bomb, supervisor, sandbox.Signalled, nil},
		{"host gone", bomb, lifeline, sandbox.Signalled, nil},
	}
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				mark := fmt.Sprintf("mark-%d-%d-%t", os.Getpid(), i, b.own)
				l := plain(t, strings.ReplaceAll(tt.line, "MARK", mark))
				if tt.change != nil {
					tt.change(&l)
				}
				ctx, leave := context.WithCancel(context.Background())
				defer leave()
				j, err := b.Start(ctx, l)
				if err != nil {
					t.Fatal(err)
				}
				if tt.end != nil {
					awaitFile(t, filepath.Join(l.Dir, "beat"))
					tt.end(j, leave)
				}
				r := j.Wait()
				if left := marked(mark); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				if r.Ended != tt.ended || r.Killing > 5*time.Second {
					t.Errorf("it %s with %d after %s, want %s\n%s\n%s", r.Ended, r.Exit, r.Killing, tt.ended, r.Stdout.Text(), r.Stderr.Text())
				}
			})
		}
	})
}

func awaitFile(t *testing.T, name string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		<-tick.C
	}
	t.Fatal("it did not begin")
}

func TestBackendLandlockBounds(t *testing.T) {
	tests := []struct {
		name, line string
		ended      sandbox.Ended
		change     func(*sandbox.Launch)
	}{
		{"memory of one", "python3 -c 'b = b\"x\" * (600 << 20); print(len(b))'", "", func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"memory of many", "for i in 1 2 3 4; do python3 -c 'import time; b = b\"x\" * (150 << 20); time.sleep(2)' & done; for j in $(jobs -p); do wait $j || exit 9; done", sandbox.OutOfMem, func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"shared memory of many", "for i in 1 2 3; do python3 -c 'import mmap, time; m = mmap.mmap(-1, 250 << 20); m.write(b\"x\" * 1000); [m.__setitem__(i, 1) for i in range(0, 250 << 20, 4096)]; time.sleep(3)' & done; for j in $(jobs -p); do wait $j || exit 9; done", sandbox.OutOfMem, func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"memory that all share", "exec python3 -c 'import mmap, os, time; m = mmap.mmap(-1, 150 << 20); [m.__setitem__(i, 1) for i in range(0, 150 << 20, 4096)]; [os.fork() for i in range(2)]; s = sum(m[i] for i in range(0, 150 << 20, 4096)); time.sleep(0.5)'", sandbox.Exited, func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"a large file", "dd if=/dev/zero of=f bs=1M count=300 status=none; wc -c <f", "", func(l *sandbox.Launch) { l.Disk = 10 << 20 }},
		{"many files", "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero >f$i; done", sandbox.OutOfRoom, func(l *sandbox.Launch) { l.Disk = 20 << 20 }},
	}
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		for _, counted := range []bool{true, false} {
			if !counted {
				b.groups = &groups{}
			} else if b.groups.memory == "" {
				continue
			}
			for _, tt := range tests {
				t.Run(fmt.Sprintf("%s/%t", tt.name, counted), func(t *testing.T) {
					l := plain(t, tt.line)
					tt.change(&l)
					r := try(t, b, l)
					if tt.ended != "" && r.Ended != tt.ended || r.OK() != (tt.ended == sandbox.Exited) && tt.ended != "" {
						t.Errorf("it %s with %d, want %s\n%s\n%s", r.Ended, r.Exit, tt.ended, r.Stdout.Text(), r.Stderr.Text())
					}
					if n := strings.TrimSpace(r.Stdout.Text()); len(n) > 8 {
						t.Errorf("it got %s bytes", n)
					}
				})
			}
			t.Run(fmt.Sprintf("processes/%t", counted), func(t *testing.T) { boundProcesses(t, b) })
		}
	})
}

// boundProcesses: processes beyond the bound are refused, or end the launch.
func boundProcesses(t *testing.T, b *Landlock) {
	l := plain(t, `exec python3 -c '
import os, time
n = 0
for i in range(400):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        n += 1
    except OSError: break
open("count", "w").write(str(n))
time.sleep(1)
print("forks", n)
'`)
	r := try(t, b, l)
	refused := r.OK() && r.Stdout.Text() != "forks 400\n"
	if !refused && r.Ended != sandbox.TooMany {
		t.Errorf("%s %d %q %s", r.Ended, r.Exit, r.Stdout.Text(), r.Stderr.Text())
	}
}

// TestBackendLandlockNeighbours: the end of one launch touches no other, and no
// process of the host.
func TestBackendLandlockNeighbours(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		mine := exec.Command("/bin/sleep", "1000")
		mine.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := mine.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = mine.Process.Kill(); _ = mine.Wait() }()
		long := plain(t, "while [ ! -e end ]; do sleep 0.02; done; echo whole")
		j, err := b.Start(context.Background(), long)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			k, err := b.Start(context.Background(), plain(t, "sleep 1000 & setsid sleep 1000 & wait"))
			if err != nil {
				t.Fatal(err)
			}
			k.(*job).c.signal()
			k.Stop()
			k.Wait()
		}
		put(t, long.Dir+"/end", "", 0o644)
		if r := j.Wait(); !r.OK() || r.Stdout.Text() != "whole\n" {
			t.Errorf("%+v", r)
		}
		if err := unix.Kill(mine.Process.Pid, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestBackendLandlockSpawnerDies: launches go on, end whole, and new ones start.
func TestBackendLandlockSpawnerDies(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		mark := fmt.Sprintf("spawner-mark-%d-%t", os.Getpid(), b.own)
		j, err := b.Start(context.Background(), plain(t, strings.ReplaceAll(daemons, "MARK", mark)))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.base.spawner.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		j.Stop()
		if r := j.Wait(); r.Ended != sandbox.Cancelled || len(marked(mark)) > 0 {
			t.Errorf("%+v, left %v", r, marked(mark))
		}
		if r := try(t, b, plain(t, "echo again")); !r.OK() {
			t.Errorf("%+v", r)
		}
	})
}

func TestBackendLandlockLeavesNothing(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		launches := make([]sandbox.Launch, 8)
		for i := range launches {
			launches[i] = plain(t, "sleep 100 & setsid sleep 100 & f=$(mktemp -p .) && rm $f")
		}
		try(t, b, launches[0])
		b.base.background.Wait()
		b.base.groups = b.groups
		before := census(t, b.base)
		var all sync.WaitGroup
		for _, l := range launches {
			all.Go(func() {
				for range 5 {
					r, err := sandbox.Run(context.Background(), b, l)
					if err != nil || !r.OK() {
						t.Errorf("%s %d %s, %v", r.Ended, r.Exit, r.Stderr.Text(), err)
					}
				}
			})
		}
		all.Wait()
		b.base.background.Wait()
		if after := census(t, b.base); after.groups != before.groups || after.cells != before.cells || after.fds > before.fds+2*len(launches) {
			t.Errorf("before %+v, after %+v", before, after)
		}
		if len(b.slots) != 0 {
			t.Errorf("slots in use: %v", b.slots)
		}
	})
}

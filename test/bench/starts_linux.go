package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/native"
)

// way is one way to start a program.
type way struct {
	name string
	// run starts the launch's program and returns when all of its tree is gone,
	// with the processor time of what was reaped for it, as far as the kernel tells at
	// once.
	run func(ctx context.Context, l sandbox.Launch) (time.Duration, error)
	// The rest is set when a backend starts the program.
	backend sandbox.Backend
	family  family
	waiting int // how many inits wait for the next launch
}

// plainWay starts a program with nothing around it, or with another program and its
// arguments before it. Output goes through pipes, as it does for a launch that is
// confined.
func plainWay(name string, before func(l sandbox.Launch) []string) *way {
	return &way{name: name, run: func(_ context.Context, l sandbox.Launch) (time.Duration, error) {
		argv := l.Argv
		if before != nil {
			argv = append(before(l), argv...)
		}
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = l.Dir, l.Env
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%s: %w: %s", name, err, stderr.Bytes())
		}
		orphans, err := reapGroup(cmd.Process.Pid)
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + orphans, err
	}}
}

// adopt has the kernel hand over what a program leaves behind: bubblewrap does not
// always wait for the process that it is in the new namespace, which would be
// missing in its processor time.
func adopt(yes bool) error {
	on := uintptr(0)
	if yes {
		on = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)
}

// reapGroup waits for all that is left of a process group and returns its processor
// time.
func reapGroup(group int) (time.Duration, error) {
	var sum time.Duration
	for {
		var used unix.Rusage
		_, err := unix.Wait4(-group, nil, 0, &used)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return sum, nil
		case err != nil:
			return 0, fmt.Errorf("reap what a program left: %w", err)
		default:
			sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
}

// bwrapBefore are the arguments that confine as nearly as bubblewrap can as the
// native backend does: the same parts of the host, new namespaces, no capabilities.
func bwrapBefore(program string) func(l sandbox.Launch) []string {
	args := []string{program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	for _, file := range []string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl/certs"} {
		args = append(args, "--ro-bind-try", file, file)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm")
	return func(l sandbox.Launch) []string {
		all := append([]string(nil), args...)
		for _, dir := range l.Read {
			all = append(all, "--ro-bind", dir, dir)
		}
		for _, dir := range l.Write {
			all = append(all, "--bind", dir, dir)
		}
		return append(all, "--chdir", l.Dir, "--")
	}
}

// nativeWay opens the native backend. Its processes are those of the binary that is
// measured. Each way has a spawner of its own, so that /proc tells them apart.
func nativeWay(ctx context.Context, name, exe string, cold bool) (*way, error) {
	before, err := children(os.Getpid())
	if err != nil {
		return nil, err
	}
	found := native.Find(ctx, native.Options{Exe: exe, Cold: cold, SetUp: config.Values{}.Duration(config.SandboxSetUp)})
	if found.Problem != nil {
		return nil, found.Problem
	}
	w := &way{name: name, backend: found.Backend, waiting: 1}
	if cold {
		w.waiting = 0
	}
	if w.family, err = newFamily(before); err != nil {
		return nil, errors.Join(err, w.backend.Close())
	}
	w.run = func(ctx context.Context, l sandbox.Launch) (time.Duration, error) {
		r, err := sandbox.Run(ctx, w.backend, l)
		if err == nil && !r.OK() {
			err = fmt.Errorf("%s: %s with status %d: %s", name, r.Ended, r.Exit, r.Stderr.Text())
		}
		return 0, err // the family tells
	}
	return w, nil
}

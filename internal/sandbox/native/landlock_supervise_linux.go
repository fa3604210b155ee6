package native

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisorMain minds a launch where there are no namespaces. It is in the domain
// of its launch, but outside of the one that its program is confined to, so that it
// can end the program and the program cannot reach it.
func supervisorMain() int {
	if err := becomeSupervisor(); err != nil {
		return complain(err)
	}
	if send(control, report{Kind: isReady}) != nil {
		return 1
	}
	o, fds, err := takeOrder()
	if err != nil {
		return complain(err)
	}
	if err := supervise(o, fds); err != nil {
		endDomain(noChildren)
		return complain(err)
	}
	return 0
}

func becomeSupervisor() error {
	// What the host's own parent left open must not reach a program.
	if err := unix.CloseRange(control, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return step(err, "mark inherited descriptors")
	}
	spare()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return step(err, "hide the supervisor")
	}
	// Orphans of the program become children of this process, so that they can be
	// reaped.
	return step(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become a parent of orphans")
}

// supervise confines a thread, starts the program from it, and minds it to its end.
// The descriptors are the outputs, the working directory, and the parts of the host's
// files.
func supervise(o order, fds []int) error {
	const fixed = 3
	if len(fds) < fixed {
		return errors.New("the order came without outputs and a directory")
	}
	parts := fds[fixed:]
	if err := o.reachable(parts); err != nil {
		return err
	}
	if err := unix.Fchdir(fds[2]); err != nil {
		return step(err, "enter %s", o.Dir)
	}
	l, err := newLock(o, -1)
	if err != nil {
		return err
	}
	if err := l.grants(o, parts); err != nil {
		return err
	}
	if err := o.limitShared(); err != nil {
		return err
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return step(err, "open /dev/null")
	}
	started := make(chan program)
	go runLocked(l, o, [3]int{null, fds[0], fds[1]}, started)
	p := <-started
	if p.err != nil {
		return p.err
	}
	for _, fd := range append([]int{null, l.ruleset}, fds...) {
		_ = unix.Close(fd)
	}
	if err := send(control, report{Kind: isStarted}); err != nil {
		endDomain(noChildren)
		return nil // nobody is there
	}
	return mindDomain(o, p)
}

// program is a program that was started, or why not.
type program struct {
	pid, pidfd int
	err        error
}

// runLocked locks the thread that it runs on for good, and starts the program
// from it. The other threads of this process stay as they are.
func runLocked(l *lock, o order, files [3]int, started chan<- program) {
	runtime.LockOSThread()
	p := program{pidfd: -1, err: l.lockThread()}
	if p.err == nil {
		heed()
		var err error
		p.pid, err = syscall.ForkExec(o.Argv[0], o.Argv, &syscall.ProcAttr{
			Env: o.Env, Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
			Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &p.pidfd, Pdeathsig: unix.SIGKILL},
		})
		p.err = step(err, "start %s in %s", o.Argv[0], o.Dir)
	}
	started <- p
	select {} // the kernel takes the end of this thread for the death of the parent
}

func (l *lock) lockThread() error {
	if err := thisThread(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); err != nil {
		return step(err, "clear the ambient capabilities")
	}
	return l.with(thisThread, 0)
}

// limitShared sets the limits of a launch. The kernel counts the processes of a user,
// and one who is not the launch's own may have others, also where they cannot be seen
// from here. Where that leaves no limit that would do, mindDomain counts.
func (o *order) limitShared() error {
	processes, own := o.Processes, *o
	if !o.OwnUser {
		own.Processes = 0
	}
	if err := setLimits(own); err != nil || o.OwnUser || processes == 0 || os.Getuid() == 0 {
		return err
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &old); err != nil {
		return step(err, "read the limit of processes")
	}
	most := min(uint64(userThreads(os.Getuid())+processes+ownThreads), old.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: old.Max}); err != nil {
		return step(err, "limit processes")
	}
	if _, err := syscall.ForkExec("/dev/null/none", []string{""}, &syscall.ProcAttr{Files: []uintptr{}}); errors.Is(err, unix.EAGAIN) {
		return step(unix.Setrlimit(unix.RLIMIT_NPROC, &old), "restore the limit of processes")
	}
	o.Count = false
	return step(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}), "limit processes")
}

// userThreads counts the threads of a user that can be seen.
func userThreads(uid int) int64 {
	var s procs
	var n int64
	s.each(func(pid int) {
		if info, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil && isOwner(info, uid) {
			n += s.threads(pid)
		}
	})
	return n
}

// mindDomain waits for the end of the program or of the host, and ends what is left.
// It does all on one thread, as mind does.
func mindDomain(o order, p program) error {
	var looks procs
	every := reapEvery
	if o.Sample || o.Count {
		every = sampleEvery
	}
	for {
		watched := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}, {Fd: control, Events: unix.POLLIN}}
		_, err := unix.Poll(watched, int(every.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return step(err, "wait for the program")
		}
		if watched[1].Revents != 0 { // the host has closed its end, or asks for the end
			endDomain(noChildren)
			return nil
		}
		if status, ended, _ := reap(p.pid); ended {
			err := send(control, report{Kind: isExited, Status: int(status)})
			endDomain(noChildren)
			return err
		}
		switch {
		case looks.exceeds(o):
			_ = send(control, report{Kind: isOutOfMem}) // its end is waited for
		case o.Count && looks.threadsOf() > o.Processes+ownThreads:
			_ = send(control, report{Kind: isTooMany})
			_ = unix.Kill(-1, unix.SIGKILL) // they grow faster than the host acts
		}
	}
}

// exceeds reports whether all processes of the launch together have more memory than
// they may, where that is looked at: first by what is quick to tell and counts
// twice what two processes share, then exactly.
func (s *procs) exceeds(o order) bool {
	return o.Sample && s.memory((*procs).quick) > o.Memory && s.memory((*procs).exact) > o.Memory
}

// memory is that of all processes of the launch by some measure, threadsOf how many
// threads they have.
func (s *procs) memory(measure func(*procs, int) int64) (sum int64) {
	s.mine(func(pid int) { sum += measure(s, pid) })
	return sum
}

func (s *procs) threadsOf() (sum int64) {
	s.mine(func(pid int) { sum += s.threads(pid) })
	return sum
}

// mine calls f with the id of each process of the launch but this one: only those can
// be signalled from here.
func (s *procs) mine(f func(pid int)) {
	self := os.Getpid()
	s.each(func(pid int) {
		if pid != self && unix.Kill(pid, 0) == nil {
			f(pid)
		}
	})
}

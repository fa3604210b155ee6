package native

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answerKept starts a supervisor. Beside the descriptors of an init's answer goes
// the end of a pipe on which one byte says that nothing of the launch is left.
//
// A thread stays behind for each supervisor. It is in the domain that the
// supervisor is born in, and of its user, so that its kill(-1) reaches what the
// supervisor left if that was killed.
func answerKept(r spawnRequest) error {
	// What a dead supervisor leaves becomes a child of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return refuse("become a parent of orphans", err)
	}
	ours, theirs, err := pair()
	if err != nil {
		return refuse("make a control socket", err)
	}
	defer unix.Close(ours)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(theirs)
		return refuse("make a pipe", err)
	}
	started := make(chan keptChild)
	go keep(r, theirs, pipe[1], started)
	child := <-started
	_ = unix.Close(theirs)
	if child.err != nil {
		_ = unix.Close(pipe[0])
		_ = unix.Close(child.pidfd) // none is fine
		return refuse(stepKeep, child.err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(child.pidfd)
	return send(control, spawnReply{PID: child.pid}, child.pidfd, ours, pipe[0])
}

type keptChild struct {
	pid, pidfd int
	err        error
}

// keep starts a supervisor from a thread of its own, waits for its end, and ends what
// it left.
func keep(r spawnRequest, socket, swept int, started chan<- keptChild) {
	runtime.LockOSThread() // never unlocked: the thread ends with its domain
	defer unix.Close(swept)
	child := keptChild{pidfd: -1}
	child.err = enterDomain()
	if child.err == nil {
		attr := &syscall.SysProcAttr{Setsid: true, PidFD: &child.pidfd}
		if r.OuterU != 0 {
			attr.Credential = &syscall.Credential{Uid: uint32(r.OuterU), Gid: uint32(r.OuterG)}
		}
		child.pid, child.err = start(supervisorName, socket, attr)
	}
	pid, failed := child.pid, child.err != nil
	if !failed && r.OuterU != 0 {
		become := func() error { return becomeUser(r.OuterU, r.OuterG) }
		if child.err = become(); child.err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	started <- child
	if failed {
		return
	}
	await(pid)
	endDomain(noneLeft)
	_, _ = unix.Write(swept, []byte{1}) // the host may be gone
}

// becomeUser gives the calling thread another user, and with it no capabilities.
func becomeUser(uid, gid int) error {
	none := uintptr(0)
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, none, 0},
		{unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, no := unix.RawSyscall(call[0], call[1], call[2], call[3]); no != 0 {
			return no
		}
	}
	return nil
}

// enterDomain puts the calling thread, and all that it will start, into a Landlock
// domain that can signal itself and nothing else. It confines no files yet.
func enterDomain() error {
	if err := thisThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); err != nil {
		return step(err, "refuse new privileges")
	}
	// Only who may drop the bounding set has anything in it that counts.
	if err := dropBounding(); err != nil && !errors.Is(err, unix.EPERM) {
		return step(err, "drop the bounding set")
	}
	// A domain that says nothing of moving files between directories refuses it, also
	// to those inside of it that allow it.
	ruleset, err := newRuleset(unix.LandlockRulesetAttr{Handled_access_fs: rightsRefer, Scoped: landlockScopes})
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return step(err, "open /")
	}
	defer unix.Close(root)
	if err := (&lock{ruleset: ruleset}).grant(root, rightsRefer); err != nil {
		return step(err, "allow moving files")
	}
	return step(thisThread(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0, 0, 0, 0), "enter a Landlock domain")
}

// landlockScopes are what a domain keeps to itself beside files.
const landlockScopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL

func newRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if no != 0 {
		return -1, step(no, "make a Landlock ruleset")
	}
	return int(fd), nil
}

// How often the end of a domain is looked for.
const firstLook, longestLook = 200 * time.Microsecond, 20 * time.Millisecond

// endDomain kills every process of this thread's domain but its own, until empty
// finds none, not even one that nobody has reaped. The kernel goes through them all
// while none can be added, so that no number of forks gets away.
func endDomain(empty func() bool) {
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		_ = unix.Kill(-1, unix.SIGKILL) // it reports nothing that could be used
		if empty() {
			return
		}
		time.Sleep(pause) // the kernel reports no end of a domain
	}
}

// noChildren reaps, and reports whether this process has no child left: what was
// orphaned below it is its child too.
func noChildren() bool {
	_, _, alone := reap(0)
	return alone
}

// noneLeft reaps, and reports whether none of this thread's domain is left. It looks
// at each process that there is, because those of other domains are children of this
// one as well. After a kill of all there are no new ones to miss.
func noneLeft() bool {
	reapOrphans()
	var s procs
	self, left := os.Getpid(), false
	s.each(func(pid int) { left = left || pid != self && unix.Kill(pid, 0) == nil })
	return !left
}

// reapOrphans reaps children of this process that are in this thread's domain. Those
// of other domains are left to their threads.
func reapOrphans() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		// struct siginfo has the id behind three ints and a gap.
		pid := int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), siginfoPID)))
		if err != nil || pid <= 0 || unix.Kill(pid, 0) != nil {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

const siginfoPID = 16

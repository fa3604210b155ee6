package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is how a program and its descendants are found and killed.
//
// There is nothing that a process inherits and cannot leave, so descendants are
// observed while they run and remembered. One that starts, calls setsid and loses
// its parent between two looks is not found.
type tree struct {
	cmd   Command
	queue int // tells of the program's end before it is reaped
	pid   int
	start uint64

	mu   sync.Mutex
	seen map[member]bool
}

func newTree(_ Launch, cmd Command) (*tree, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, fmt.Errorf("make an event queue: %w", err)
	}
	unix.CloseOnExec(queue)
	return &tree{cmd: cmd, queue: queue, seen: map[member]bool{}}, nil
}

func (t *tree) attr() *syscall.SysProcAttr {
	closeOnExec()
	attr := &syscall.SysProcAttr{Setsid: true}
	if u := t.cmd.User; u != nil {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID}
	}
	return attr
}

func (t *tree) spawn(path string, args []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, args, attr)
}

func (t *tree) adopt(p *os.Process) error {
	t.pid = p.Pid
	for _, r := range rows() {
		if r.pid == t.pid {
			t.start = r.start
		}
	}
	return nil
}

func (t *tree) release(*os.Process) error { return nil }

func (t *tree) close() { _ = unix.Close(t.queue) }

// kill ends the process group.
func (t *tree) kill() {
	if t.pid > 1 {
		t.observe() // while the children still have their parents
		_ = unix.Kill(-t.pid, unix.SIGKILL)
	}
}

// tracks reports whether descendants have to be observed as long as they have their
// parents.
func (t *tree) tracks() bool { return true }

func (t *tree) observe() { t.alive() }

// sweep kills what is left of the tree and reports whether there was anything.
func (t *tree) sweep() bool { return sweepUntilGone(t.alive, t.end) }

// alive finds what is there of the tree, and remembers it.
func (t *tree) alive() []member {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := family(rows(), func(r row) bool {
		return r.start >= t.start && (r.pid == t.pid || r.group == t.pid || r.session == t.pid || t.seen[r.member])
	})
	for _, m := range found {
		t.seen[m] = true
	}
	return found
}

// end kills one process if it still is the one that was found.
func (t *tree) end(m member) {
	for _, r := range rows() {
		if r.member == m {
			_ = unix.Kill(m.pid, unix.SIGKILL)
		}
	}
}

// zombie is the state SZOMB of sys/proc.h.
const zombie = 5

// rows are all processes of the host.
func rows() []row {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var found []row
	for _, k := range all {
		r := row{
			member: member{pid: int(k.Proc.P_pid), start: uint64(k.Proc.P_starttime.Nano())},
			parent: int(k.Eproc.Ppid),
			group:  int(k.Eproc.Pgid),
			dead:   k.Proc.P_stat == zombie,
		}
		if r.session, err = unix.Getsid(r.pid); err != nil {
			r.session = -1
		}
		found = append(found, r)
	}
	return found
}

// await waits until the program has ended, and leaves it to be reaped.
func (t *tree) await(p *os.Process) {
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], p.Pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for {
		var events [1]unix.Kevent_t
		n, err := unix.Kevent(t.queue, change[:], events[:], nil)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return // ESRCH: it has ended already
		}
	}
}

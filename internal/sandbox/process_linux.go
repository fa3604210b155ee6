package sandbox

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is how a program and its descendants are found and killed.
//
// A process group and a session are left by setsid, and the parent of a process is
// forgotten when it ends. So every process of the tree is marked by an inherited
// value that only root can raise and that nothing has a use for: an odd,
// very high limit on the time of real-time scheduling. A process that lowers it on
// purpose, after setsid and the death of its parent, is not found; nor is one that
// forks and ends before it can be looked at, again and again.
type tree struct {
	cmd    Command
	launch Launch
	pid    int
	start  uint64
	mark   uint64 // 0 when it could not be set
	held   bool   // before its first instruction, by this thread
}

// realTime is the base of marks, in microseconds: some 146,000 years.
const realTime = uint64(1) << 62

func newTree(l Launch, cmd Command) (*tree, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return &tree{cmd: cmd, launch: l, mark: realTime | binary.NativeEndian.Uint64(b[:])>>3}, nil
}

func (t *tree) attr() *syscall.SysProcAttr {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		closeOnExec()
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	if u := t.cmd.User; u != nil {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID}
	}
	return attr
}

// spawn starts the program and holds it before its first instruction, so that no
// child of it is without the mark and the limits. The kernel does that for a
// tracer; where it lets nobody trace, the program runs at once. A traced program
// gains nothing from being set-user-ID, which is as well.
func (t *tree) spawn(path string, args []string, attr *os.ProcAttr) (*os.Process, error) {
	attr.Sys.Ptrace = !t.cmd.Contained || t.cmd.Limit
	p, err := os.StartProcess(path, args, attr)
	if attr.Sys.Ptrace && errors.Is(err, os.ErrPermission) {
		attr.Sys.Ptrace = false
		p, err = os.StartProcess(path, args, attr)
	}
	t.held = err == nil && attr.Sys.Ptrace
	return p, err
}

// adopt marks and limits the program.
func (t *tree) adopt(p *os.Process) error {
	t.pid = p.Pid
	if t.held {
		if err := awaitStop(t.pid); err != nil {
			return fmt.Errorf("hold the program: %w", err)
		}
	}
	if r, ok := readRow(p.Pid); ok {
		t.start = r.start
	}
	limit := unix.Rlimit{Cur: t.mark, Max: t.mark}
	if unix.Prlimit(t.pid, unix.RLIMIT_RTTIME, &limit, nil) != nil {
		t.mark = 0 // then it is found by its session and its parents
	}
	if t.cmd.Limit {
		return t.limit()
	}
	return nil
}

// awaitStop waits until a traced program is loaded and stopped.
func awaitStop(pid int) error {
	for {
		var w unix.WaitStatus
		_, err := unix.Wait4(pid, &w, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case w.Stopped():
			return nil
		default:
			return errors.New("it was killed")
		}
	}
}

// limit sets the limits of the program that the launch has.
func (t *tree) limit() error {
	for _, x := range []struct {
		name     string
		resource int
		value    int64
		set      bool
	}{
		{"core dumps", unix.RLIMIT_CORE, 0, true},
		{"the size of a file", unix.RLIMIT_FSIZE, t.launch.Disk, t.launch.Disk > 0},
		{"memory", unix.RLIMIT_DATA, t.launch.Memory, t.launch.Memory > 0},
	} {
		if !x.set {
			continue
		}
		if err := lower(t.pid, x.resource, uint64(x.value)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("limit %s: %w", x.name, err)
		}
	}
	return nil
}

// lower sets a limit of a process, to less if less is all that it may have.
func lower(pid, resource int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return err
	}
	value = min(value, old.Max)
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}

// release lets the program run. It has to be the thread that started it.
func (t *tree) release(*os.Process) error {
	if !t.held {
		return nil
	}
	if err := unix.PtraceDetach(t.pid); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("let the program run: %w", err)
	}
	return nil // or it was killed meanwhile
}

func (t *tree) close() {}

// kill ends the process group, which no process can leave meanwhile.
func (t *tree) kill() {
	if t.pid > 1 {
		_ = unix.Kill(-t.pid, unix.SIGKILL) // none left is fine
	}
}

// tracks reports whether descendants have to be observed as long as they have their
// parents.
func (t *tree) tracks() bool { return false }

func (t *tree) observe() {}

// sweep kills what is left of the tree and reports whether there was anything.
func (t *tree) sweep() bool { return sweepUntilGone(t.alive, t.end) }

// alive finds what is left of the tree.
func (t *tree) alive() []member {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var rows []row
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if r, ok := readRow(pid); ok && r.start >= t.start {
			rows = append(rows, r)
		}
	}
	return family(rows, t.owns)
}

// owns reports whether a process belongs to the tree by itself.
func (t *tree) owns(r row) bool {
	return r.pid == t.pid || r.session == t.pid || r.group == t.pid || t.marked(r)
}

// marked reports whether a process has the mark.
func (t *tree) marked(r row) bool {
	if t.mark == 0 || r.dead {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(r.pid) + "/limits")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if rest, found := bytes.CutPrefix(line, []byte("Max realtime timeout")); found {
			return slices.Contains(strings.Fields(string(rest)), strconv.FormatUint(t.mark, 10))
		}
	}
	return false
}

// end kills one process, and never one that got its number since.
func (t *tree) end(m member) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return // gone
	}
	defer func() { _ = unix.Close(fd) }()
	if r, ok := readRow(m.pid); ok && r.member == m {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // refused or gone: the sweep sees which
	}
}

// await waits until the program has ended, and leaves it to be reaped.
func (t *tree) await(p *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Places in /proc/PID/stat after the name, which may hold anything, and its
// bracket (proc_pid_stat(5) numbers them from 3).
const (
	statState, statParent, statGroup, statSession = 0, 1, 2, 3
	statThreads, statStart                        = 17, 19
)

// readRow reads what /proc says of a process.
func readRow(pid int) (row, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return row{}, false
	}
	return parseRow(pid, string(text))
}

func parseRow(pid int, text string) (row, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= statStart {
		return row{}, false
	}
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return -1
		}
		return n
	}
	start, err := strconv.ParseUint(fields[statStart], 10, 64)
	if err != nil {
		return row{}, false
	}
	r := row{member: member{pid, start}, parent: number(statParent), group: number(statGroup), session: number(statSession)}
	// A first thread that has ended shows the same state while others still run.
	r.dead = strings.Contains("ZXx", fields[statState]) && number(statThreads) <= 1
	return r, true
}

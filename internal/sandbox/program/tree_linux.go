package program

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// Process is a process of the host that no other one can be mistaken for.
type Process struct {
	PID int
	fd  int
}

// HoldProcess opens a process. It must not have been reaped yet.
func HoldProcess(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return &Process{PID: pid, fd: fd}, nil
}

// Kill kills it. When it is the first of its process namespace, all in there die
// with it.
func (p *Process) Kill() { _ = unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0) } // gone is fine

// Gone waits until the process, and so all of its process namespace, has
// ended, for as long as wait. It reports whether it has.
func (p *Process) Gone(wait time.Duration) bool {
	end := time.Now().Add(wait)
	for {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		if n > 0 || left == 0 {
			return n > 0
		}
	}
}

// Close forgets the process.
func (p *Process) Close() { _ = unix.Close(p.fd) }

// sampleEvery is how often the memory of a tree is looked at.
const sampleEvery = 50 * time.Millisecond

// Memory looks at a process and its descendants every now and then until they hold
// more than limit bytes that are not the host's files, or ctx ends. It is the reason
// to kill the tree, or empty.
func Memory(ctx context.Context, pid int, limit int64) sandbox.Ended {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
		// The quick look counts memory twice that a process shares with its
		// children; only when that is too much, the slow one tells.
		if sum(pid, quick) > limit && sum(pid, exact) > limit {
			return sandbox.OutOfMem
		}
	}
}

// sum adds up what measure says of a process and all below it.
func sum(pid int, measure func(dir string) int64) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
	total := measure(dir)
	for child := range childrenOf(pid) {
		total += sum(child, measure)
	}
	return total
}

// quick and exact are the bytes that a process holds of its own, in memory or
// swapped out. What cannot be read exactly is taken as the quick look has it.
func quick(dir string) int64 { return kilobytes(dir+"/status", "RssAnon", "RssShmem", "VmSwap") }

func exact(dir string) int64 {
	if n := kilobytes(dir+"/smaps_rollup", "Pss_Anon", "Pss_Shmem", "SwapPss"); n > 0 {
		return n
	}
	return quick(dir)
}

// kilobytes adds up lines of a file of /proc, in bytes.
func kilobytes(file string, names ...string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	var total int64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); slices.Contains(names, name) && len(fields) > 0 {
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				total += n << 10
			}
		}
	}
	return total
}

// Limits are limits of each process of a launch; NPROC counts those of the
// launch's user namespace.
func Limits(l sandbox.Launch) []Limit {
	all := []Limit{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, lockedRAM},
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, queueBytes},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, openFiles},
		{"RLIMIT_SIGPENDING", unix.RLIMIT_SIGPENDING, pending},
	}
	for _, x := range []Limit{
		{"RLIMIT_CPU", unix.RLIMIT_CPU, processorTime(l)},
		// Not the address space: engines of WebAssembly reserve far more of it than they
		// use.
		{"RLIMIT_DATA", unix.RLIMIT_DATA, uint64(max(l.Memory, 0))},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, uint64(max(l.Disk, 0))},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, uint64(max(l.Processes, 0))},
	} {
		if x.Value > 0 {
			all = append(all, x)
		}
	}
	return all
}

// Limit is a limit of a process.
type Limit struct {
	Name     string
	Resource int
	Value    uint64
}

// Resource limits that no operator sets: what a program needs, and no more.
const (
	openFiles  = 4096
	lockedRAM  = 64 << 10
	queueBytes = 800 << 10
	pending    = 4096
)

// processorTime is what one process can use until the deadline on all processors,
// and some more; it stops what the deadline missed. 0 is no limit.
func processorTime(l sandbox.Launch) uint64 {
	if l.Deadline <= 0 {
		return 0
	}
	const slack, processors = 10, 64
	return uint64(l.Deadline.Seconds())*processors + slack
}

// Apply sets limits of a process that runs as a user, each to less if less is all
// that it may have. A host that is root but without CAP_SYS_RESOURCE, as in
// containers, may do so only as that user.
func Apply(limits []Limit, pid int, user *sandbox.User) error {
	err := apply(limits, pid)
	if user == nil || !errors.Is(err, unix.EPERM) {
		return err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its user
		done <- func() error {
			if _, _, no := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(user.GID), uintptr(user.GID), uintptr(user.GID)); no != 0 {
				return no
			}
			if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user.UID), uintptr(user.UID), uintptr(user.UID)); no != 0 {
				return no
			}
			return apply(limits, pid)
		}()
	}()
	return <-done
}

func apply(limits []Limit, pid int) error {
	for _, x := range limits {
		var old unix.Rlimit
		err := unix.Prlimit(pid, x.Resource, nil, &old)
		if err == nil {
			value := min(x.Value, old.Max)
			err = unix.Prlimit(pid, x.Resource, &unix.Rlimit{Cur: value, Max: value}, nil)
		}
		if err != nil {
			return fmt.Errorf("set %s: %w", x.Name, err)
		}
	}
	return nil
}

// Below reports whether the process descends from another one, and so, while that
// one lives, is the process that it was thought to be.
func (p *Process) Below(ancestor int) bool {
	const deepest = 8
	at := p.PID
	for range deepest {
		if at = parentOf(at); at == ancestor {
			return !p.Gone(0)
		}
		if at <= 1 {
			break
		}
	}
	return false
}

// KillTree ends a process that has children which leave its session, and all of
// them, before it is itself reaped. It must be a child of this process, and its
// tree must still be its own.
func KillTree(pid int) {
	const longest = 2 * time.Second
	_ = unix.Kill(pid, unix.SIGSTOP) // it makes no more of them
	for end := time.Now().Add(longest); time.Now().Before(end); {
		left := children(pid)
		if len(left) == 0 {
			break
		}
		for _, child := range left {
			if p, err := HoldProcess(child); err == nil {
				if p.Below(pid) {
					p.Kill()
					p.Gone(longest)
				}
				p.Close()
			}
		}
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

// children are all that descend from a process and are not dead, the deepest
// first.
func children(pid int) []int {
	var all []int
	for child := range childrenOf(pid) {
		all = append(all, children(child)...)
		if p, err := HoldProcess(child); err == nil {
			if !p.Gone(0) {
				all = append(all, child)
			}
			p.Close()
		}
	}
	return all
}

// childrenOf are the children of all threads of a process.
func childrenOf(pid int) iter.Seq[int] {
	return func(yield func(int) bool) {
		dir := "/proc/" + strconv.Itoa(pid) + "/task"
		threads, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, t := range threads {
			text, err := os.ReadFile(dir + "/" + t.Name() + "/children")
			if err != nil {
				continue
			}
			for _, word := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(word); err == nil && !yield(child) {
					return
				}
			}
		}
	}
}

// parentOf is the parent of a process; 0 if there is none.
func parentOf(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "PPid:"); found {
			parent, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				return 0
			}
			return parent
		}
	}
	return 0
}

package native

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// spawnRequest asks the spawner for a process. The reply carries descriptors.
type spawnRequest struct {
	// Holder asks for a user namespace instead of an init: one that maps Inner
	// to Outer, for an idmapped mount. The descriptor is the namespace.
	Holder bool
	// Keep asks for a supervisor instead of an init: see answerKept.
	Keep         bool
	InnerU       int
	InnerG       int
	OuterU       int
	OuterG       int
	ShareNetwork bool
}

// spawnReply answers with a pid and, beside it, the descriptor of the process and
// of its control socket, or of the namespace.
type spawnReply struct {
	PID   int
	Fault *fault
}

// fault is a step that failed in a child.
type fault struct {
	Step  string
	Errno int
	Text  string
}

func (f *fault) err() error {
	if f.Errno != 0 {
		return syscall.Errno(f.Errno)
	}
	return errors.New(f.Text)
}

// newFault is the step and the cause of err in a form that travels.
func newFault(step string, err error) *fault {
	f := &fault{Step: step, Text: err.Error()}
	if s, ok := errors.AsType[*stepError](err); ok {
		f.Step, f.Text = s.step, s.err.Error()
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		f.Errno = int(no)
	}
	return f
}

// stepError names what was tried.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// step is err with the name of what was tried, or nil.
func step(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &stepError{step: fmt.Sprintf(format, args...), err: err}
}

// report is what init tells the host, in this order: ready, listening if the
// network is proxied, started, exited; or a fault at any time.
type report struct {
	Kind   string
	Fault  *fault
	Status int // wait status, with exited
	// Alone says, with exited, that init has no process left but itself.
	Alone  bool
	NoProc bool
}

// The kinds of reports.
const (
	isReady     = "ready"
	isListening = "listening"
	isStarted   = "started"
	isExited    = "exited"
	isFault     = "fault"
	isOutOfMem  = "memory"
	isTooMany   = "processes"
)

// order is what init is to run. It comes in a memory file, beside which the
// descriptors of its mounts travel.
type order struct {
	Argv, Env []string
	Dir       string
	Mounts    []mount
	Hide      []string
	Proxied   bool
	OpenNet   bool
	Filter    []byte

	Memory, Processes, Disk, CPU int64
	Tmp, Shared                  int64
	// Sample has init itself watch the memory of the tree.
	Sample bool

	// The rest is for a supervisor. Count has it watch the number of threads; OwnUser
	// says that nobody else has its user; FilterFD refuses to change metadata through
	// open files.
	Count, OwnUser, FilterFD bool
}

// mount is a part of the host's files that the launch sees.
type mount struct {
	Path  string
	Write bool
	// FD is the place of the descriptor among those of the mounts; -1 when init opens
	// Path itself and compares it with Dev and Ino.
	FD       int
	Dev, Ino uint64
}

// largest is the size of the largest message on a control socket. What may be
// longer travels in a memory file.
const largest = 8 << 10

// mostFDs is how many descriptors one message carries: fewer than the kernel's
// own limit of 253.
const mostFDs = 128

// send writes one message with descriptors to a raw socket.
func send(fd int, v any, fds ...int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return retry(func() error { return unix.Sendmsg(fd, data, rights, nil, unix.MSG_NOSIGNAL) })
}

// receive reads one message; io.EOF would be a message of no bytes, which nobody
// sends, so that it is an error.
func receive(fd int, v any) ([]int, error) {
	data, oob := make([]byte, largest), make([]byte, unix.CmsgSpace(4*mostFDs))
	var n, oobn int
	err := retry(func() (err error) {
		n, oobn, _, _, err = unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return nil, err
	}
	fds, err := descriptors(oob[:oobn])
	if err == nil && n == 0 {
		err = errGone
	}
	if err == nil {
		err = json.Unmarshal(data[:n], v)
	}
	return fds, err
}

var errGone = errors.New("the other end is gone")

func descriptors(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range messages {
		got, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // not descriptors
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// memory is an anonymous file with the JSON of v, positioned at its start.
func memory(v any) (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "order")
	err = json.MarshalWrite(f, v)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

package native

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// lock is what takes all power from this process, for good: no new privileges,
// Landlock, no capabilities, and the system call filter. It goes on every thread, so
// that init is as confined as the program that it starts.
type lock struct {
	abi     int // of Landlock; 0 when the kernel has none
	ruleset int
	filter  []unix.SockFilter
	extra   []unix.SockFilter // refuses some calls more; may be empty
	self    int               // this binary, for a build that cannot reach all its threads
}

// The rights of Landlock by the version of its interface that brought them.
const (
	rightsFirst    = 1<<13 - 1
	rightsRefer    = unix.LANDLOCK_ACCESS_FS_REFER
	rightsTruncate = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsIoctl    = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsRead     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsDevices  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// landlockABI is the version of the kernel's interface, or 0.
func landlockABI() int {
	abi, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 {
		return 0
	}
	return int(abi)
}

// rights are all that an interface can refuse.
func rights(abi int) uint64 {
	all := uint64(rightsFirst)
	if abi >= 2 {
		all |= rightsRefer
	}
	if abi >= 3 {
		all |= rightsTruncate
	}
	if abi >= 5 {
		all |= rightsIoctl
	}
	return all
}

// newLock reads the filter of an order.
func newLock(o order, self int) (*lock, error) {
	l := &lock{abi: landlockABI(), ruleset: -1, self: self}
	for i := 0; i+8 <= len(o.Filter); i += 8 {
		l.filter = append(l.filter, unix.SockFilter{
			Code: uint16(o.Filter[i]) | uint16(o.Filter[i+1])<<8, Jt: o.Filter[i+2], Jf: o.Filter[i+3],
			K: uint32(o.Filter[i+4]) | uint32(o.Filter[i+5])<<8 | uint32(o.Filter[i+6])<<16 | uint32(o.Filter[i+7])<<24,
		})
	}
	if refused := o.refused(); len(refused) > 0 {
		l.extra = refusing(refused)
	}
	if len(l.filter) == 0 {
		return nil, step(errors.New("it is empty"), "read the system call filter")
	}
	return l, nil
}

// rules makes the rules of Landlock, on the paths of the new root. In front of them
// stand the mounts; these rules hold should one of those be wrong.
func (l *lock) rules(o order) error {
	if l.abi == 0 {
		return nil
	}
	all := rights(l.abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: all}
	if l.abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if no != 0 {
		return step(no, "make a Landlock ruleset")
	}
	l.ruleset = int(fd)
	use := uint64(rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	change := all &^ rightsDevices
	grants := map[string]uint64{
		"/": rightsRead, "/dev": (use | rightsTruncate | rightsIoctl) & all, "/tmp": change, "/dev/shm": change,
	}
	for _, m := range o.Mounts {
		if m.Write {
			grants[m.Path] = change
		}
	}
	for name, allowed := range grants {
		at, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return step(err, "open %s", name)
		}
		err = l.grant(at, allowed)
		_ = unix.Close(at)
		if err != nil {
			return step(err, "allow %s", name)
		}
	}
	return nil
}

func (l *lock) grant(at int, allowed uint64) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: allowed, Parent_fd: int32(at)}
	_, _, no := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(l.ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if no != 0 {
		return no
	}
	return nil
}

// each is a system call on every thread of this process.
type each func(trap, a1, a2, a3, a4, a5, a6 uintptr) error

func everyThread(trap, a1, a2, a3, a4, a5, a6 uintptr) error {
	if _, _, no := syscall.AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, a6); no != 0 {
		return no
	}
	return nil
}

func thisThread(trap, a1, a2, a3, a4, a5, a6 uintptr) error {
	if _, _, no := unix.RawSyscall6(trap, a1, a2, a3, a4, a5, a6); no != 0 {
		return no
	}
	return nil
}

// lastCapability is the number of the newest one that is dropped; kernels know
// fewer and refuse the rest.
const lastCapability = 63

// beginLock takes away what building the root has no need of, from this thread, which
// is the one that starts the program: new privileges, and the bounding set. The
// filter takes the first from all threads later. To empty the set on all would stop
// each of them forty times, and keeps nothing from a thread that has no capability and
// can gain none.
func beginLock() error {
	if err := thisThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); err != nil {
		return step(err, "refuse new privileges")
	}
	return step(dropBounding(), "drop the bounding set")
}

func dropBounding() error {
	for c := uintptr(0); c <= lastCapability; c++ {
		err := thisThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // the kernel knows no more
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply locks all threads and then runs.
//
// A build with cgo cannot reach all its threads. There one thread is locked and
// becomes this binary again, which ends the others, and goes on with what was left
// to do.
func (l *lock) apply(run func() error, o order, out [2]int) error {
	err := l.with(everyThread, unix.SECCOMP_FILTER_FLAG_TSYNC)
	switch {
	case errors.Is(err, unix.ENOTSUP): // and nothing was done
		return l.applyAlone(o, out)
	case err != nil:
		return err
	}
	return run()
}

// with takes the rest of the power away, by calls on the threads that there are. The
// capabilities include the ambient ones, and the filter brings its own refusal of new
// privileges to all threads.
func (l *lock) with(call each, flags uintptr) error {
	if l.ruleset >= 0 {
		if err := call(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(l.ruleset), 0, 0, 0, 0, 0); err != nil {
			return step(err, "enforce Landlock")
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	err := call(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0, 0, 0, 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if err != nil {
		return step(err, "drop the capabilities")
	}
	if len(l.extra) > 0 {
		if err := install(l.extra); err != nil { // the next one brings it to all threads
			return err
		}
	}
	program := unix.SockFprog{Len: uint16(len(l.filter)), Filter: &l.filter[0]}
	_, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(&program)
	if no != 0 {
		return step(no, "install the system call filter")
	}
	return nil
}

// applyAlone locks the current thread and becomes the locked process. Which
// descriptors that has, its arguments say.
func (l *lock) applyAlone(o order, out [2]int) error {
	runtime.LockOSThread()
	text, err := memory(o)
	if err != nil {
		return step(err, "keep the order")
	}
	defer text.Close()
	if l.ruleset >= 0 {
		err := l.grant(l.self, unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_READ_FILE)
		// A copy in memory has no place among files, and Landlock no say in it.
		if err != nil && !errors.Is(err, unix.EBADFD) {
			return step(err, "allow this binary")
		}
	}
	args := []string{lockedName}
	for _, fd := range []int{int(text.Fd()), out[0], out[1], control} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return step(err, "keep a descriptor")
		}
		args = append(args, strconv.Itoa(fd))
	}
	if err := l.with(thisThread, 0); err != nil {
		return err
	}
	return step(become(l.self, args), "start this binary again")
}

// become replaces this process by the binary behind a descriptor, with no
// environment.
func become(binary int, args []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	var empty byte
	var none *byte
	_, _, no := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(binary), uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&none)), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(argv)
	return no
}

// lockedMain goes on where applyAlone stopped.
func lockedMain() int {
	if err := goOn(os.Args[1:]); err != nil {
		return complain(err)
	}
	return 0
}

func goOn(args []string) error {
	spare()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	var fds []int
	for _, arg := range args {
		fd, err := strconv.Atoi(arg)
		if err != nil {
			return step(err, "read the descriptors")
		}
		unix.CloseOnExec(fd)
		fds = append(fds, fd)
	}
	if len(fds) < 3 {
		return step(errors.New("there are too few"), "read the descriptors")
	}
	f := os.NewFile(uintptr(fds[0]), "order")
	defer f.Close()
	var o order
	if err := json.UnmarshalRead(f, &o); err != nil {
		return step(err, "read the order")
	}
	return runProgram(o, [2]int{fds[1], fds[2]})
}

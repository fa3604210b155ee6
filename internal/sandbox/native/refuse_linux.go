package native

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// install puts a filter before those of this thread.
func install(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := thisThread(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptrOf(&program), 0, 0, 0)
	runtime.KeepAlive(&program)
	return step(err, "install a system call filter")
}

// refused are calls that an order refuses beside those of its filter:
// changes of modes, owners and attributes through an open file, which Landlock does
// not confine; and, where the memory of processes is looked at, memory that is in no
// process.
func (o order) refused() []uint32 {
	var all []uint32
	if o.FilterFD {
		all = append(all, unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR)
	}
	if o.Sample {
		all = append(all, unix.SYS_MEMFD_CREATE)
	}
	return all
}

// refusing is a filter that refuses some calls. The order's own refuses foreign
// architectures.
func refusing(refused []uint32) []unix.SockFilter {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for i, nr := range refused {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jt: uint8(len(refused) - i)})
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
}

package native

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastSignal is the highest number of a signal.
const lastSignal = 64

// deaf gives every signal its default action, which for process 1 of a namespace
// is to do nothing: the kernel drops what is sent from inside. The handlers of the
// Go runtime would let a program end its own init, and the filter cannot tell
// all threads of init by number.
//
// The runtime itself needs SIGURG, with which it asks its threads to yield.
func deaf() {
	var action struct{ handler, flags, restorer, mask uint64 }
	for n := uintptr(1); n <= lastSignal; n++ {
		if n != uintptr(unix.SIGURG) {
			// Those that cannot be set, SIGKILL and SIGSTOP, reach no process 1 either.
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
		}
	}
}

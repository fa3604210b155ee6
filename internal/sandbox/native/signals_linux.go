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
	for n := 1; n <= lastSignal; n++ {
		if n != int(unix.SIGURG) {
			setDefault(n)
		}
	}
}

// heed gives the signals that this process was started to ignore their default
// actions, because a program would be started to ignore them, too.
func heed() {
	const ignored = 1 // SIG_IGN
	for n := 1; n <= lastSignal; n++ {
		var action signalAction
		_, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&action)), unsafe.Sizeof(action.mask), 0, 0)
		if no == 0 && action.handler == ignored {
			setDefault(n)
		}
	}
}

// signalAction is the kernel's struct sigaction.
type signalAction struct{ handler, flags, restorer, mask uint64 }

// setDefault leaves those that cannot be set: SIGKILL and SIGSTOP.
func setDefault(n int) {
	var action signalAction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
}

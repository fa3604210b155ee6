package native

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// canaryCalls tries what only Linux has: a socket to the machine's host, which no
// network namespace holds back, and more namespaces, in which a program gains
// the capabilities that it was denied.
func canaryCalls() {
	if fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); err == nil {
		_ = unix.Close(fd)
		fmt.Println(CanaryVsock)
	}
	// The kernel refuses this to a process of several threads, by another error,
	// whether or not it would be let in; so ask for what may be had.
	if err := unix.Unshare(unix.CLONE_NEWUSER); err == nil || err == unix.EINVAL {
		fmt.Println(CanaryNamespace)
	}
}

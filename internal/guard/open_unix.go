//go:build unix

package guard

import "syscall"

// openFlags keep an open from waiting for a FIFO's other end and from making a
// terminal ours, should a file turn into one after it was looked at.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

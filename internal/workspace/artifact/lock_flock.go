//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package artifact

import (
	"errors"
	"os"
	"syscall"
)

// claim marks a folder as in use for as long as the file is open and this process
// lives.
func claim(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	return f, nil
}

// abandoned reports whether nobody uses a folder any more.
func abandoned(dir string) bool {
	f, err := claim(dir)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written through it
	return true
}

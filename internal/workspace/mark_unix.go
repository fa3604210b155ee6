//go:build unix && !solaris && !illumos && !aix

package workspace

import (
	"errors"
	"os"
	"syscall"
)

// errInUse says that another process has marked a directory.
var errInUse = errors.New("in use by another process")

// markDir marks a directory for as long as the file is open and this process lives.
func markDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errInUse, f.Close())
	default:
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
}

// isAbandoned reports whether no living process has marked a directory.
func isAbandoned(dir string) bool {
	f, err := markDir(dir)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written through it
	return true
}

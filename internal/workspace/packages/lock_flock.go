//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package packages

import (
	"errors"
	"os"
	"syscall"
)

// mark says that this process uses a directory. The kernel takes it back when the
// process ends, however it ends.
type mark struct{ file *os.File }

func (m *mark) release() {
	if m != nil && m.file != nil {
		_ = m.file.Close() // nothing was written through it
	}
}

// claim marks a directory as in use: by others as well when shared, else by this process
// alone. It fails when the directory is gone, or marked in a way that does not go
// together.
func claim(dir string, shared bool) (*mark, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	// It may have been put away between the two calls.
	held, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(dir); err == nil && !os.SameFile(held, named) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &mark{file: f}, nil
}

// idle reports whether no process uses a set.
func idle(dir string) bool {
	m, err := claim(dir, false)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	m.release()
	return true
}

// abandoned reports whether nobody works in a stage any more.
func abandoned(dir string) bool { return idle(dir) }

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package packages

import (
	"os"
	"path/filepath"
	"time"
)

// mark is nothing here: time tells.
type mark struct{}

func (m *mark) release() {}

// claim looks only whether a directory is there.
func claim(dir string, _ bool) (*mark, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return &mark{}, nil
}

// untouched is longer than any install takes, and than a set goes unused while a process
// has it.
const untouched = 24 * time.Hour

// idle reports whether no other process has begun to use a set of late.
func idle(dir string) bool { return older(filepath.Join(dir, recordName)) }

// abandoned reports whether nobody works in a stage any more.
func abandoned(dir string) bool { return older(dir) }

func older(path string) bool {
	info, err := os.Stat(path)
	return err != nil || time.Since(info.ModTime()) > untouched
}

//go:build unix

package skill

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ours reports whether this user owns a directory, by the rules of Git: root's
// are not everybody's, and under sudo those of the caller count as well.
func ours(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // nobody's, so what is above it counts
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && owns(int(stat.Uid), os.Geteuid(), os.Getenv("SUDO_UID"))
}

func owns(owner, user int, sudo string) bool {
	return owner == user || (user == 0 && sudo == strconv.Itoa(owner))
}

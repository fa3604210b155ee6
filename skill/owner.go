package skill

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/metier-run/metier/internal/guard"
)

// ours reports whether this user owns a directory, by the rules of Git: root's
// are not everybody's, and under sudo those of the caller count as well. Where the
// system has no owners, all are ours.
func ours(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // nobody's, so what is above it counts
	}
	owner, known := guard.Owner(info)
	return !known || owns(owner, os.Geteuid(), os.Getenv("SUDO_UID"))
}

func owns(owner, user int, sudo string) bool {
	return owner == user || (user == 0 && sudo == strconv.Itoa(owner))
}

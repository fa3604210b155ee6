//go:build unix

package guard

import (
	"io/fs"
	"syscall"
)

// Owner is the user who owns a file, where the system has such a thing.
func Owner(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

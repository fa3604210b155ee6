//go:build unix

package cli

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user who owns a file, where the system has such a thing.
func ownerOf(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

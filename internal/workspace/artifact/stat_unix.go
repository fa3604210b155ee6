//go:build unix

package artifact

import (
	"io/fs"
	"syscall"
)

// identity is a file's inode and how many names it has.
func identity(info fs.FileInfo) (inode, names uint64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 1
	}
	return uint64(stat.Ino), uint64(stat.Nlink)
}

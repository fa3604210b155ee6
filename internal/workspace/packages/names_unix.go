//go:build unix

package packages

import (
	"io/fs"
	"syscall"
)

// names is how many names a file has.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

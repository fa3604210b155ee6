//go:build !unix

package artifact

import "io/fs"

// identity is unknown here without opening the file: size and time must do.
func identity(fs.FileInfo) (inode, names uint64) { return 0, 1 }

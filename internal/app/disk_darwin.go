package app

import "golang.org/x/sys/unix"

// disk is the kind of file system that holds a directory, and the bytes that are free
// for this user; negative when that is not known.
func disk(dir string) (kind string, free int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", -1
	}
	return unix.ByteSliceToString(s.Fstypename[:]), int64(s.Bavail) * int64(s.Bsize)
}

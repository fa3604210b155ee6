package app

import "golang.org/x/sys/unix"

// disk is the kind of file system that holds a directory, empty for a rare one, and
// the bytes that are free for this user; negative when that is not known.
func disk(dir string) (kind string, free int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", -1
	}
	return fileSystem(int64(s.Type)), int64(s.Bavail) * s.Bsize
}

// fileSystem is the name behind a magic number of statfs(2).
func fileSystem(magic int64) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	case 0x2fc12fc1:
		return "zfs"
	}
	return ""
}

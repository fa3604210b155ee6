package native

import (
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounts are made and moved by descriptor: a path of the host is resolved at
// most once, and a path of the new root never leaves it.

// tree is a detached copy of what lies at a path, with all that is mounted below
// it.
func tree(dir int, name string) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW)
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.OpenTree(dir, name, flags)
}

// The attributes of mounts.
const (
	attrRead  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrWrite = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrNode  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// setAttr adds attributes to a mount and to all below it, and keeps from it what the
// host mounts later.
func setAttr(fd int, set uint64) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: set, Propagation: unix.MS_PRIVATE})
}

// newFS is a detached mount of a new file system.
func newFS(kind string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		key, value, valued := strings.Cut(o, "=")
		if valued {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
}

// newRoot is the root that a launch gets, while init builds it.
type newRoot struct{ fd int }

// beneath resolves a path inside the root and nowhere else.
func beneath() *unix.OpenHow {
	return &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
}

func (r newRoot) open(name string) (int, error) {
	if name = strings.Trim(name, "/"); name == "" {
		name = "."
	}
	return unix.Openat2(r.fd, name, beneath())
}

// dir makes a directory and those above it, where they are missing.
func (r newRoot) dir(name string) error {
	_, err := r.made(name)
	return err
}

// made is dir that says whether anything had to be made.
func (r newRoot) made(name string) (bool, error) {
	if fd, err := r.open(name); err == nil {
		return false, unix.Close(fd)
	}
	parent, base := path.Split(path.Clean(name))
	if _, err := r.made(parent); err != nil {
		return false, err
	}
	fd, err := r.open(parent)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if err := unix.Mkdirat(fd, base, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return false, err
	}
	return true, nil
}

// file makes a file with a text, in a directory that it makes.
func (r newRoot) file(name, text string) error {
	if err := r.dir(path.Dir(name)); err != nil {
		return err
	}
	parent, err := r.open(path.Dir(name))
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	fd, err := unix.Openat(parent, path.Base(name), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// link makes a symbolic link.
func (r newRoot) link(target, name string) error {
	if err := r.dir(path.Dir(name)); err != nil {
		return err
	}
	parent, err := r.open(path.Dir(name))
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return unix.Symlinkat(target, parent, path.Base(name))
}

// attach moves a detached mount to a place, which it makes if it is missing.
func (r newRoot) attach(mount int, name string, isDir bool) error {
	at, err := r.open(name)
	if err != nil {
		if isDir {
			err = r.dir(name)
		} else {
			err = r.file(name, "")
		}
		if err != nil {
			return err
		}
		if at, err = r.open(name); err != nil {
			return err
		}
	}
	defer unix.Close(at)
	return onto(at, mount)
}

// attachNew mounts a new file system at a place.
func (r newRoot) attachNew(name, kind string, attr int, options ...string) error {
	fd, err := newFS(kind, attr, options...)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return r.attach(fd, name, true)
}

// isDir reports what a descriptor is open on.
func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

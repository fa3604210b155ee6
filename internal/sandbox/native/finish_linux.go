package native

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// finish adds what an order names, and makes the root the root.
func (r newRoot) finish(o order, fds []int) error {
	for _, m := range []struct {
		path string
		size int64
	}{{"/tmp", o.Tmp}, {"/dev/shm", o.Shared}} {
		if err := r.attachNew(m.path, "tmpfs", attrWrite, fmt.Sprintf("size=%d", m.size), fmt.Sprintf("nr_inodes=%d", tmpFiles), "mode=1777"); err != nil {
			return step(err, "mount %s", m.path)
		}
	}
	if err := r.again("/tmp", "/var/tmp"); err != nil {
		return step(err, "mount /var/tmp")
	}
	var hidden []string
	for _, c := range o.changes() {
		covered, err := c.apply(r, fds)
		if err != nil {
			return step(err, "show %s", c.path)
		}
		if covered {
			hidden = append(hidden, c.path)
		}
	}
	if o.OpenNet {
		if err := r.names(); err != nil {
			return err
		}
	}
	return r.enter(hidden)
}

// change is one thing that an order does to the root.
type change struct {
	path  string
	mount *mount // nil hides
}

// changes are what an order does, what lies above before what lies below, so that
// each stands as it was named last.
func (o order) changes() []change {
	var all []change
	for _, dir := range o.Hide {
		all = append(all, change{path: dir})
	}
	for i, m := range o.Mounts {
		all = append(all, change{path: m.Path, mount: &o.Mounts[i]})
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.path, b.path) })
	return all
}

// apply says whether it covered something.
func (c change) apply(r newRoot, fds []int) (bool, error) {
	if c.mount == nil {
		return r.empty(c.path, attrWrite) // until what lies below it is there
	}
	return false, r.mount(*c.mount, fds)
}

// tmpFiles bounds the files of a private temporary directory: each takes memory
// of the kernel however small it is.
const tmpFiles = 100_000

// mount shows one part of the host, by the descriptor that came with the order or
// by opening it and seeing that it is still what the host saw.
func (r newRoot) mount(m mount, fds []int) error {
	fd := -1
	switch {
	case m.FD >= len(fds):
		return errors.New("its descriptor did not come along")
	case m.FD >= 0:
		fd = fds[m.FD]
	default:
		own, err := ownTree(m)
		if err != nil {
			return err
		}
		defer unix.Close(own)
		fd = own
	}
	dir, err := isDir(fd)
	if err != nil {
		return err
	}
	return r.attach(fd, m.Path, dir)
}

// ownTree opens a path without following a link and compares it with what the
// host opened.
func ownTree(m mount) (int, error) {
	at, err := openExact(m.Path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, err
	}
	if st.Dev != m.Dev || st.Ino != m.Ino {
		return -1, errors.New("it was replaced meanwhile")
	}
	fd, err := tree(at, "")
	if err != nil {
		return -1, err
	}
	if err := setAttr(fd, m.attr()); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (m mount) attr() uint64 {
	if m.Write {
		return attrWrite
	}
	return attrRead
}

// openExact opens a path none of whose parts is a link.
func openExact(name string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// names lets a launch on the host's own network find names as the host does.
func (r newRoot) names() error {
	for _, name := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			continue // the host has none either
		}
		if err := r.file(name, string(text)); err != nil {
			return step(err, "write %s", name)
		}
	}
	return nil
}

// enter makes the new root the root, and drops the old one. Nothing can be added
// to it then, nor to what is hidden.
func (r newRoot) enter(hidden []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step(err, "make the mounts private")
	}
	if err := unix.Fchdir(r.fd); err != nil {
		return step(err, "enter the new root")
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return step(err, "make the new root the root")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return step(err, "drop the old root")
	}
	for _, name := range append([]string{"/", "/dev"}, hidden...) {
		at, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
		if err != nil {
			return step(err, "open %s", name)
		}
		err = unix.MountSetattr(at, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		_ = unix.Close(at)
		if err != nil {
			return step(err, "make %s read-only", name)
		}
	}
	return nil
}

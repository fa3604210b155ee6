package native

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// seen are the parts of the host that a launch sees, held open until its program
// runs.
type seen struct {
	held  []int // what was opened, so that it stays the same
	trees []int // mounts for init, when the host makes them
}

func (s *seen) fds() []int { return s.trees }

func (s *seen) close() {
	for _, fd := range append(s.held, s.trees...) {
		_ = unix.Close(fd)
	}
}

// mounts opens what a launch may read and write. A host that is root makes the
// mounts itself, with the owner of each mapped to the launch's user; otherwise init
// makes them, of the same things.
func (b *Backend) mounts(c *cell, l sandbox.Launch, o *order) (*seen, error) {
	s := &seen{}
	for _, part := range []struct {
		paths []string
		write bool
	}{{l.Read, false}, {l.Write, true}} {
		for _, p := range part.paths {
			if len(o.Mounts) == mostFDs-3 {
				return s, step(fmt.Errorf("at most %d files and directories can be shown", mostFDs-3), "show %s", p)
			}
			if err := b.see(s, c, o, mount{Path: p, Write: part.write, FD: -1}); err != nil {
				return s, step(err, "show %s", p)
			}
		}
	}
	return s, nil
}

func (b *Backend) see(s *seen, c *cell, o *order, m mount) error {
	at, err := openExact(m.Path)
	if errors.Is(err, unix.ELOOP) {
		return errLinked
	}
	if err != nil {
		return err
	}
	s.held = append(s.held, at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return errLinked
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && (kind != unix.S_IFREG || m.Write) {
		return errors.New("it is not a directory")
	}
	m.Dev, m.Ino = st.Dev, st.Ino
	if b.users.root {
		fd, err := b.mapped(c, at, m, st)
		if err != nil {
			return err
		}
		m.FD = len(s.trees)
		s.trees = append(s.trees, fd)
	}
	o.Mounts = append(o.Mounts, m)
	return nil
}

var errLinked = errors.New("a part of it is a symbolic link")

// owner is who owns a directory on disk, and as whose it is to appear.
type owner struct{ uid, gid, slot int }

// mapped is a detached mount in which what the owner of the directory owns is the
// launch's user's.
func (b *Backend) mapped(c *cell, at int, m mount, st unix.Stat_t) (int, error) {
	fd, err := tree(at, "")
	if err != nil {
		return -1, err
	}
	ns, err := b.ownerNamespace(owner{uid: int(st.Uid), gid: int(st.Gid), slot: c.slot})
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: m.attr() | unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd()), Propagation: unix.MS_PRIVATE,
	})
	if err != nil && !m.Write {
		// What others may read can be read without a mapping.
		err = setAttr(fd, m.attr())
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%w: %w", errNoMapping, err)
	}
	return fd, nil
}

var errNoMapping = errors.New("its file system cannot show it as another user's")

// ownerNamespace is the user namespace for an idmapped mount. They are few, and
// kept.
func (b *Backend) ownerNamespace(key owner) (*os.File, error) {
	b.mu.Lock()
	f := b.owners[key]
	b.mu.Unlock()
	if f != nil {
		return f, nil
	}
	u, g := b.users.outer(key.slot)
	_, fds, err := b.ask(spawnRequest{Holder: true, InnerU: key.uid, InnerG: key.gid, OuterU: u, OuterG: g})
	if err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		return nil, errors.New("the spawner sent no namespace")
	}
	f = os.NewFile(uintptr(fds[0]), "owner")
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.owners[key]; old != nil {
		_ = f.Close()
		return old, nil
	}
	b.owners[key] = f
	return f, nil
}

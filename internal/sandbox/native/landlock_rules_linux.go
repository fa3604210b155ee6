package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// uintptrOf is the address of a program for the kernel; the caller keeps it alive.
func uintptrOf(p *unix.SockFprog) uintptr { return uintptr(unsafe.Pointer(p)) }

// Rights by kind of file: Landlock refuses a rule that gives a file a right that
// only directories can have.
const (
	rightsOfFile   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | rightsTruncate | rightsIoctl
	rightsOfDevice = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | rightsTruncate | rightsIoctl
	rightsOfProc   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
)

// knownUsers are what programs read to name users. They cannot be replaced here, so
// that the names of this host's users show.
func knownUsers() []string { return []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"} }

// knownHosts are read by programs that find a name of the network.
func knownHosts() []string { return []string{"/etc/hosts", "/etc/resolv.conf", "/etc/host.conf"} }

// grants makes the rules of a launch. What the order names is granted by the
// descriptors that came with it, so that no path is resolved again.
func (l *lock) grants(o order, parts []int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights(l.abi), Scoped: landlockScopes}
	if !o.OpenNet {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	var err error
	if l.ruleset, err = newRuleset(attr); err != nil {
		return err
	}
	own := slices.Concat(system(), systemFiles(), knownUsers())
	if o.OpenNet {
		own = append(own, knownHosts()...)
	}
	for _, name := range own {
		if err := l.showSystem(name, rightsRead, o.Hide); err != nil {
			return step(err, "allow %s", name)
		}
	}
	if err := l.showSystem("/proc", rightsOfProc, nil); err != nil {
		return step(err, "allow /proc")
	}
	for _, n := range nodes() {
		if err := l.showSystem("/dev/"+n, rightsOfDevice, nil); err != nil {
			return step(err, "allow /dev/%s", n)
		}
	}
	for _, m := range o.Mounts {
		allowed := uint64(rightsRead)
		if m.Write {
			allowed = rights(l.abi) &^ rightsDevices &^ rightsIoctl
		}
		if err := l.show(m.Path, parts[m.FD], allowed, o.Hide); err != nil {
			return step(err, "allow %s", m.Path)
		}
	}
	return nil
}

// showSystem grants a part of the system, unless it is hidden or not there.
func (l *lock) showSystem(name string, allowed uint64, hide []string) error {
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(hide, func(h string) bool { return sandbox.Within(h, real) }) {
		return nil
	}
	at, err := openExact(real)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return l.show(real, at, allowed, hide)
}

// show grants what a descriptor is open on. Landlock cannot take out what lies below
// a rule, so where something is hidden below, its neighbours are granted one by one,
// all the way down; the directories between cannot be listed then.
func (l *lock) show(name string, at int, allowed uint64, hide []string) error {
	dir, err := isDir(at)
	if err != nil {
		return err
	}
	if !dir {
		allowed &= rightsOfFile
	}
	allowed &= rights(l.abi)
	if !dir || !slices.ContainsFunc(hide, func(h string) bool { return h != name && sandbox.Within(name, h) }) {
		return l.grant(at, allowed)
	}
	fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		if e.Type()&fs.ModeSymlink != 0 || slices.Contains(hide, path) {
			continue // what a link leads to is granted where it lies
		}
		if err := l.showEntry(fd, e.Name(), path, allowed, hide); err != nil {
			return err
		}
	}
	return nil
}

func (l *lock) showEntry(dir int, base, path string, allowed uint64, hide []string) error {
	at, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return l.show(path, at, allowed, hide)
}

// parts are the files of the host that an order names, held open: first the
// working directory, then a descriptor for each mount of the order.
type parts struct{ all []int }

func (p *parts) fds() []int { return p.all }

func (p *parts) close() {
	for _, fd := range p.all {
		_ = unix.Close(fd)
	}
}

// holdParts opens what a launch names and writes it into the order.
func holdParts(l sandbox.Launch, o *order) (*parts, error) {
	p := &parts{all: []int{-1}}
	for _, group := range []struct {
		paths []string
		write bool
	}{{l.Read, false}, {l.Write, true}} {
		for _, name := range group.paths {
			if len(o.Mounts) == mostFDs-4 {
				return p, step(fmt.Errorf("at most %d files and directories can be shown", mostFDs-4), "show %s", name)
			}
			if err := p.hold(mount{Path: name, Write: group.write, FD: len(o.Mounts)}, o); err != nil {
				return p, step(err, "show %s", name)
			}
		}
	}
	for _, h := range l.Hide {
		if w := slices.IndexFunc(l.Write, func(w string) bool { return sandbox.Within(w, h) }); w >= 0 && !slices.Contains(l.Write, h) {
			return p, step(fmt.Errorf("it lies below %s, which may be written, and Landlock cannot take it out", l.Write[w]), "hide %s", h)
		}
	}
	dir, err := p.dir(*o)
	if err != nil {
		return p, step(err, "open %s", l.Dir)
	}
	p.all[0] = dir
	return p, nil
}

func (p *parts) hold(m mount, o *order) error {
	at, err := openExact(m.Path)
	if errors.Is(err, unix.ELOOP) {
		return errLinked
	}
	if err != nil {
		return err
	}
	p.all = append(p.all, at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return errLinked
	case kind != unix.S_IFDIR && (kind != unix.S_IFREG || m.Write):
		return errors.New("it is not a directory")
	}
	m.Dev, m.Ino = st.Dev, st.Ino
	o.Mounts = append(o.Mounts, m)
	return nil
}

// dir opens the working directory from the directory that holds it.
func (p *parts) dir(o order) (int, error) {
	for i, m := range o.Mounts {
		if !m.Write || !sandbox.Within(m.Path, o.Dir) {
			continue
		}
		below, err := filepath.Rel(m.Path, o.Dir)
		if err != nil {
			return -1, err
		}
		how := beneath()
		how.Flags |= unix.O_DIRECTORY
		return unix.Openat2(p.all[1+i], below, how)
	}
	return -1, os.ErrNotExist
}

// reachable reports whether the supervisor's own user gets to what the order names,
// and whether it is still what the host opened.
func (o order) reachable(parts []int) error {
	for _, m := range o.Mounts {
		if m.FD < 0 || m.FD >= len(parts) {
			return step(errors.New("its descriptor did not come along"), "show %s", m.Path)
		}
		at, err := openExact(m.Path)
		if err != nil {
			return step(err, "reach %s as user %d", m.Path, os.Getuid())
		}
		var st unix.Stat_t
		err = unix.Fstat(at, &st)
		if err == nil && (st.Dev != m.Dev || st.Ino != m.Ino) {
			err = errors.New("it was replaced meanwhile")
		}
		if err == nil {
			err = accessible(at, m, st.Mode)
		}
		_ = unix.Close(at)
		if err != nil {
			return step(err, "reach %s as user %d", m.Path, os.Getuid())
		}
	}
	return nil
}

// accessible reports whether this user has the rights to what is shown, beside Landlock.
func accessible(at int, m mount, mode uint32) error {
	need := uint32(unix.R_OK)
	if mode&unix.S_IFMT == unix.S_IFDIR {
		need |= unix.X_OK
	}
	if m.Write {
		need |= unix.W_OK
	}
	return unix.Faccessat2(at, "", need, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
}

package native

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// handover is a directory that a launch was given for as long as it runs: to write
// to it, its user has to own it. Everything in it that is the host's is given, and
// what is the launch's own is taken back.
//
// All is done by descriptor, without following links or crossing to another file
// system. A file with more than one name is never given, since its other name may be
// anywhere.
type handover struct {
	fd   int // the directory
	path string
	gid  int // its group
}

// stepGive is the step in which a launch gets its files.
const stepGive = "give the launch its directory"

// give hands the directories that an order writes to the user of the launch. What
// belongs to a user that left accepts was left by a host that died.
func (p *parts) give(o order, left func(uid int) bool, uid int) ([]handover, error) {
	var all []handover
	for _, m := range o.Mounts {
		if !m.Write {
			continue
		}
		var st unix.Stat_t
		at := p.all[1+m.FD]
		if err := unix.Fstat(at, &st); err != nil {
			return all, step(err, stepGive)
		}
		host := os.Geteuid()
		if int(st.Uid) != host && !left(int(st.Uid)) {
			return all, step(fmt.Errorf("%s belongs to user %d: give it to user %d", m.Path, st.Uid, host), stepGive)
		}
		fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return all, step(err, stepGive)
		}
		all = append(all, handover{fd: fd, path: m.Path, gid: int(st.Gid)})
		if err := passOn(fd, int(st.Uid), uid, uid); err != nil {
			return all, step(err, stepGive)
		}
	}
	return all, nil
}

// takeBack makes the host the owner again of what is the launch's. The launch is
// over. What cannot be taken back the host can remove all the same.
func (h handover) takeBack(uid int) {
	_ = passOn(h.fd, uid, os.Geteuid(), h.gid)
	_ = unix.Close(h.fd)
}

// passOn gives a directory and all below it that belongs to one user to another one.
//
// It holds few descriptors however deep the tree is: it goes up again by "..", and
// sees that it gets to where it came from.
func passOn(top, from, uid, gid int) error {
	w := walker{from: from, uid: uid, gid: gid}
	at, err := unix.Openat(top, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.at = at
	defer func() { _ = unix.Close(w.at) }()
	if err := w.own(top); err != nil {
		return err
	}
	if err := w.enter(); err != nil {
		return err
	}
	for len(w.above) > 0 {
		level := &w.above[len(w.above)-1]
		if len(level.left) == 0 {
			if err := w.leave(); err != nil {
				return err
			}
			continue
		}
		name := level.left[len(level.left)-1]
		level.left = level.left[:len(level.left)-1]
		if err := w.visit(name); err != nil {
			return err
		}
	}
	return nil
}

// walker is on its way through a tree.
type walker struct {
	from, uid, gid int
	at             int // the directory where it is
	dev            uint64
	above          []level // from the top to where it is
}

// level is a directory on the way, and which of its entries were not seen yet.
type level struct {
	ino  uint64
	left []string
}

// enter begins with the directory where it is.
func (w *walker) enter() error {
	var st unix.Stat_t
	if err := unix.Fstat(w.at, &st); err != nil {
		return err
	}
	if len(w.above) == 0 {
		w.dev = st.Dev
	}
	names, err := names(w.at)
	if err != nil {
		return err
	}
	w.above = append(w.above, level{ino: st.Ino, left: names})
	return nil
}

// names lists a directory.
func names(at int) ([]string, error) {
	fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	return f.Readdirnames(-1)
}

// leave goes up.
func (w *walker) leave() error {
	w.above = w.above[:len(w.above)-1]
	if len(w.above) == 0 {
		return nil
	}
	up, err := unix.Openat(w.at, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.Close(w.at)
	w.at = up
	var st unix.Stat_t
	if err := unix.Fstat(up, &st); err != nil {
		return err
	}
	if st.Dev != w.dev || st.Ino != w.above[len(w.above)-1].ino {
		return errors.New("a directory was moved meanwhile")
	}
	return nil
}

// visit gives an entry of the directory where it is, and goes down into a directory.
func (w *walker) visit(name string) error {
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != w.dev {
		return err
	}
	if err := w.own(fd); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	down, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.Close(w.at)
	w.at = down
	return w.enter()
}

// own changes the owner of what a descriptor is open on, if it is the one to give.
func (w *walker) own(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if int(st.Uid) != w.from || w.uid != os.Geteuid() && !directory && st.Nlink > 1 {
		return nil
	}
	return unix.Fchownat(fd, "", w.uid, w.gid, unix.AT_EMPTY_PATH)
}

package bwrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// A host that is root must not run a launch as root: what root may write,
// such as /proc/sys/kernel/core_pattern, would be the launch's too. So bubblewrap
// runs under a user of nobody's, which may not even reach the launch's
// directories. While its first process waits, the host, which may, makes a mount
// of each by descriptor, on which the owner shows as that user, and puts it into
// the process's own tree of mounts. No path of the host is looked up for it again.

// errNoMapping says that a file system cannot be shown with another owner.
var errNoMapping = errors.New("its file system cannot show it as another user's (an idmapped mount)")

// mountLate puts what the launch names into the sandbox of a process.
func (x *launch) mountLate(pid int) error {
	var trees []tree
	defer func() {
		for _, t := range trees {
			_ = unix.Close(t.fd)
		}
	}()
	for _, h := range x.held {
		t, err := x.tree(h)
		if err != nil {
			return fmt.Errorf("show %s: %w", h.Path, err)
		}
		if t.fd >= 0 {
			trees = append(trees, t)
		}
	}
	return inside(pid, func() error {
		for _, t := range trees {
			if err := t.mount(); err != nil {
				return fmt.Errorf("mount %s: %w", t.at.Path, err)
			}
		}
		return nil
	})
}

// tree is a mount that is nowhere yet.
type tree struct {
	fd int
	at program.Place
}

// tree makes the mount of a place. There is none, and fd is -1, where bubblewrap
// made an empty directory itself.
func (x *launch) tree(h program.Held) (tree, error) {
	if h.Kind == program.Hidden {
		if h.Under == program.Hidden {
			return tree{fd: -1}, nil
		}
		fd, err := emptyTree(h.Path, x.held)
		return tree{fd, h.Place}, err
	}
	fd, err := unix.OpenTree(int(h.File.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, err
	}
	t := tree{fd, h.Place}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if h.Kind == program.Readable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	ns, err := x.b.owners.namespace(owner{uid: h.UID, gid: h.GID, as: x.user})
	if err == nil {
		mapped := attr
		mapped.Attr_set |= unix.MOUNT_ATTR_IDMAP
		mapped.Userns_fd = uint64(ns.Fd())
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &mapped)
	}
	if err != nil && h.Kind == program.Readable {
		// What others may read can be read without a mapping.
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	}
	if err != nil {
		_ = unix.Close(fd)
		return tree{}, fmt.Errorf("%w: %w", errNoMapping, err)
	}
	return t, nil
}

// emptyTree is an empty directory, but for the mount points of what lies below
// it.
func emptyTree(path string, held []program.Held) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range [][2]string{{"size", strconv.Itoa(hiddenSize)}, {"mode", "0755"}} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, err
	}
	for _, h := range held {
		if h.Path != path && sandbox.Within(path, h.Path) {
			if err := mountPoint(fd, h.Path[len(path)+1:], h.Dir); err != nil {
				_ = unix.Close(fd)
				return -1, err
			}
		}
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// mountPoint makes a directory, or an empty file, below one that is still nobody's.
func mountPoint(at int, path string, dir bool) error {
	for i, r := range path + "/" {
		if r != '/' || i == len(path) && !dir {
			continue
		}
		if err := unix.Mkdirat(at, path[:i], 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	if dir {
		return nil
	}
	fd, err := unix.Openat(at, path, unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// mount puts the tree where the calling thread sees the path. A link on the way,
// which an earlier launch may have left, is an error.
func (t tree) mount() error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	at, err := unix.Openat2(unix.AT_FDCWD, filepath.Clean("/"+strings.TrimPrefix(t.at.Path, "/")), &how)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	return unix.MoveMount(t.fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// inside runs a function on a thread that sees the mounts of a process. The
// thread ends with it.
func inside(pid int, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine may get this thread
		done <- func() error {
			ns, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(ns) }()
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("give a thread its own root: %w", err)
			}
			if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
				return fmt.Errorf("enter the mount namespace: %w", err)
			}
			return do()
		}()
	}()
	return <-done
}

// owner is who owns a place, and as whom it is to show.
type owner struct{ uid, gid, as uint32 }

// owners are the user namespaces for idmapped mounts. They are few, since the
// lowest free user is taken first, and kept. The zero value is ready.
type owners struct {
	mu  sync.Mutex
	all map[owner]*os.File
}

func (o *owners) namespace(key owner) (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.all[key]; f != nil {
		return f, nil
	}
	f, err := newNamespace(key)
	if err != nil {
		return nil, err
	}
	if o.all == nil {
		o.all = map[owner]*os.File{}
	}
	o.all[key] = f
	return f, nil
}

func (o *owners) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for key, f := range o.all {
		errs = append(errs, f.Close())
		delete(o.all, key)
	}
	return errors.Join(errs...)
}

// newNamespace is a user namespace in which the owner's ids stand for the
// user's. It needs a process to be made, which is stopped before its first
// instruction and killed.
func newNamespace(key owner) (*os.File, error) {
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	child, err := os.StartProcess("/proc/self/exe", []string{"metier-owner"}, &os.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: int(key.uid), HostID: int(key.as), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: int(key.gid), HostID: int(key.as), Size: 1}},
			Ptrace:      true,
			Pdeathsig:   unix.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	f, err := os.Open("/proc/" + strconv.Itoa(child.Pid) + "/ns/user")
	_ = child.Kill()
	if _, waitErr := child.Wait(); err == nil && waitErr != nil {
		_ = f.Close()
		return nil, waitErr
	}
	return f, err
}

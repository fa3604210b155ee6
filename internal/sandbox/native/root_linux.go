package native

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// system are the directories of the host that every launch can read. /opt, /srv
// and /var may hold what belongs to others, and are named by a launch that needs
// something in them.
func system() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}
}

// systemFiles are the parts of /etc that programs need and that tell nothing of
// this host's users and services.
func systemFiles() []string {
	return []string{
		"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/gai.conf", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/papersize", "/etc/pki/tls/certs",
		"/etc/pki/ca-trust/extracted", "/etc/protocols", "/etc/services", "/etc/ssl/cert.pem", "/etc/ssl/certs",
		"/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
	}
}

// nodes are the devices that a launch has.
func nodes() []string { return []string{"null", "zero", "full", "random", "urandom"} }

// source is a part of the host, cloned before anything is mounted.
type source struct {
	path   string
	mount  int
	isDir  bool
	target string // of a link, in place of a mount
}

// sources clones what every root shows of the host.
func sources() ([]source, error) {
	var all []source
	for _, p := range append(system(), systemFiles()...) {
		s, err := hostPart(p, attrRead)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return nil, step(err, "clone %s", p)
		}
		all = append(all, s)
	}
	for _, n := range nodes() {
		s, err := hostPart("/dev/"+n, attrNode)
		if err != nil {
			return nil, step(err, "clone /dev/%s", n)
		}
		all = append(all, s)
	}
	return all, nil
}

// hostPart is one of them: a link stays a link, so that a merged /usr looks as
// it does outside.
func hostPart(name string, attr uint64) (source, error) {
	if target, err := os.Readlink(name); err == nil {
		return source{path: name, mount: -1, target: target}, nil
	}
	fd, err := tree(unix.AT_FDCWD, name)
	if err != nil {
		return source{}, err
	}
	if err := setAttr(fd, attr); err != nil {
		return source{}, err
	}
	dir, err := isDir(fd)
	return source{path: name, mount: fd, isDir: dir}, err
}

// place is a directory of the old root over which the new one is built, so that
// it has a place at all. What an order names cannot lie below it.
const place = "/proc"

// prepare builds all of the root that no order can change. It returns whether
// /proc could be had.
func prepare() (newRoot, bool, error) {
	// What the host mounts and unmounts while this init waits, it does here too: it
	// could not let go of a disk otherwise.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return newRoot{}, false, step(err, "make the mounts private")
	}
	parts, err := sources()
	if err != nil {
		return newRoot{}, false, err
	}
	proc, procErr := newFS("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	fd, err := newFS("tmpfs", attrWrite, "size=4m", "nr_inodes=4096", "mode=0755")
	if err != nil {
		return newRoot{}, false, step(err, "make a new root")
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return newRoot{}, false, step(err, "mount a new root")
	}
	r := newRoot{fd: fd}
	if err := r.devices(); err != nil {
		return r, false, err
	}
	for _, s := range parts {
		if err := r.show(s); err != nil {
			return r, false, step(err, "show %s", s.path)
		}
	}
	if err := r.etc(); err != nil {
		return r, false, err
	}
	if procErr != nil {
		return r, false, step(r.dir("/proc"), "make /proc")
	}
	defer unix.Close(proc)
	return r, true, r.proc(proc)
}

func (r newRoot) show(s source) error {
	if s.target != "" {
		return r.link(s.target, s.path)
	}
	defer unix.Close(s.mount)
	return r.attach(s.mount, s.path, s.isDir)
}

// devices makes /dev; the nodes follow as parts of the host.
func (r newRoot) devices() error {
	if err := r.attachNew("/dev", "tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "size=64k", "nr_inodes=64", "mode=0755"); err != nil {
		return step(err, "mount /dev")
	}
	if err := r.attachNew("/dev/pts", "devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "newinstance", "ptmxmode=0666", "mode=0620", "max=16"); err != nil {
		return step(err, "mount /dev/pts")
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := r.link(target, "/dev/"+name); err != nil {
			return step(err, "link /dev/%s", name)
		}
	}
	return step(r.dir("/dev/shm"), "make /dev/shm")
}

// etc writes the files in place of which the host's would tell who its users
// are, and where its services.
func (r newRoot) etc() error {
	uid, gid := os.Getuid(), os.Getgid()
	files := map[string]string{
		"/etc/passwd": fmt.Sprintf("root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nuser:x:%d:%d:user:/tmp:/bin/bash\n"+
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", uid, gid),
		"/etc/group":         fmt.Sprintf("root:x:0:\nuser:x:%d:\nnogroup:x:65534:\n", gid),
		"/etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
		"/etc/hostname":      "sandbox\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"/etc/resolv.conf":   "",
	}
	for name, text := range files {
		if err := r.file(name, text); err != nil {
			return step(err, "write %s", name)
		}
	}
	for _, d := range []string{"/home", "/run", "/tmp", "/var/tmp"} {
		if err := r.dir(d); err != nil {
			return step(err, "make %s", d)
		}
	}
	return nil
}

// proc mounts /proc, with what is the kernel's and not the launch's own read-only
// or covered.
func (r newRoot) proc(mount int) error {
	if err := r.attach(mount, "/proc", true); err != nil {
		return step(err, "mount /proc")
	}
	for _, name := range []string{"sys", "fs", "irq", "bus", "driver", "tty"} {
		if err := r.readOnly("/proc/" + name); err != nil {
			return step(err, "make /proc/%s read-only", name)
		}
	}
	null, err := r.open("/dev/null")
	if err != nil {
		if null, err = unix.Open("/dev/null", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return step(err, "open /dev/null")
		}
	}
	defer unix.Close(null)
	for _, name := range []string{
		"cmdline", "config.gz", "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags",
		"latency_stats", "modules", "sched_debug", "slabinfo", "sysrq-trigger", "timer_list", "vmallocinfo",
	} {
		if err := r.cover("/proc/"+name, null); err != nil {
			return step(err, "cover /proc/%s", name)
		}
	}
	for _, name := range []string{"acpi", "scsi"} {
		if _, err := r.empty("/proc/"+name, attrRead); err != nil {
			return step(err, "cover /proc/%s", name)
		}
	}
	return nil
}

// ifThere does something to a part of the root, by a descriptor of it; a part that is
// not there stays so. It says whether it was there.
func (r newRoot) ifThere(name string, do func(at int) error) (bool, error) {
	at, err := r.open(name)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(at)
	return true, do(at)
}

// onto mounts something detached over what a descriptor is open on.
func onto(at, mount int) error {
	return unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// readOnly mounts a part of the root over itself, read-only.
func (r newRoot) readOnly(name string) error {
	_, err := r.ifThere(name, func(at int) error {
		fd, err := tree(at, "")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := setAttr(fd, attrRead|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
		return onto(at, fd)
	})
	return err
}

// again shows a directory of the root at another place as well.
func (r newRoot) again(name, place string) error {
	_, err := r.ifThere(name, func(at int) error {
		fd, err := tree(at, "")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return r.attach(fd, place, true)
	})
	return err
}

// cover mounts /dev/null over a file.
func (r newRoot) cover(name string, null int) error {
	_, err := r.ifThere(name, func(at int) error {
		fd, err := tree(null, "")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := setAttr(fd, attrNode|unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
		return onto(at, fd)
	})
	return err
}

// empty covers a directory with one that holds nothing, and says whether it was
// there.
func (r newRoot) empty(name string, attr int) (bool, error) {
	return r.ifThere(name, func(at int) error {
		fd, err := newFS("tmpfs", attr, "size=64k", "nr_inodes=128", "mode=0755")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return onto(at, fd)
	})
}

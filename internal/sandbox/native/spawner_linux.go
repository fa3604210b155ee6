package native

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside is the user and the group that a program has in its own eyes when the
// host is root.
const inside = 1000

// spawnerMain answers spawn requests until the host is gone. It starts children
// in the order of the requests and reaps them.
func spawnerMain() int {
	for {
		var r spawnRequest
		if _, err := receive(control, &r); err != nil {
			return 0 // each init has a socket of its own to the host, and ends by that
		}
		if err := answer(r); err != nil {
			return 1
		}
	}
}

// answer carries a request out and sends the reply. Its error says that the host
// is gone.
func answer(r spawnRequest) error {
	switch {
	case r.Holder:
		return answerHolder(r)
	case r.Keep:
		return answerKept(r)
	}
	ours, theirs, err := pair()
	if err != nil {
		return refuse("make a control socket", err)
	}
	defer unix.Close(ours)
	pidfd := -1
	attr := initAttr(r)
	attr.PidFD = &pidfd
	pid, err := start(initName, theirs, attr)
	_ = unix.Close(theirs)
	if err != nil {
		return refuse("make namespaces", err)
	}
	go await(pid)
	defer unix.Close(pidfd)
	return send(control, spawnReply{PID: pid}, pidfd, ours)
}

func refuse(what string, err error) error {
	return send(control, spawnReply{Fault: newFault(what, err)})
}

// await reaps one child.
func await(pid int) {
	var status unix.WaitStatus
	_ = retry(func() error { _, err := unix.Wait4(pid, &status, 0, nil); return err })
}

// pair is a connected pair of sockets that keep the bounds of messages.
func pair() (int, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	return fds[0], fds[1], err
}

// start runs this binary as a child, with one descriptor and no environment.
func start(name string, fd int, attr *syscall.SysProcAttr) (int, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, step(err, "open /dev/null")
	}
	defer unix.Close(null)
	return syscall.ForkExec("/proc/self/exe", []string{name}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{uintptr(null), uintptr(null), 2, uintptr(fd)}, Sys: attr,
	})
}

// initAttr puts init into new namespaces. A host that is root gives it a user that
// nobody else has, and no group; otherwise the user stays who they are, so that
// their files keep their owner. The capabilities are those of the new namespace.
func initAttr(r spawnRequest) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Setsid:     true,
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE, unix.CAP_SETUID, unix.CAP_SETGID,
		},
	}
	if !r.ShareNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if r.OuterU != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: r.OuterU, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: r.OuterG, Size: 1}}
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{Uid: inside, Gid: inside}
		return attr
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	return attr
}

// answerHolder makes a user namespace that maps one owner to another, for an
// idmapped mount. The process in it is only needed until the namespace is open.
func answerHolder(r spawnRequest) error {
	ours, theirs, err := pair()
	if err != nil {
		return refuse("make a socket", err)
	}
	defer unix.Close(ours)
	pid, err := start(holderName, theirs, &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: r.InnerU, HostID: r.OuterU, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: r.InnerG, HostID: r.OuterG, Size: 1}},
		GidMappingsEnableSetgroups: true,
	})
	_ = unix.Close(theirs)
	if err != nil {
		return refuse("make a user namespace", err)
	}
	defer await(pid)
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refuse("open a user namespace", err)
	}
	defer unix.Close(ns)
	return send(control, spawnReply{PID: pid}, ns)
}

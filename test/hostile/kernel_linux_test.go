package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

func kernelRows() []row {
	return []row{
		{
			id: "fs18", what: "calls that a script has no need of: bpf, perf, userfaultfd, acct, syslog, reboot, clock, swap, modules, names", verb: "privileged",
			setUp: func(*trial) []string { return []string{"."} },
		},
		{id: "pr14", what: "make namespaces by unshare, also of time", verb: "unshare"},
		{id: "pr15", what: "make a user namespace by clone, clone3", verb: "clone"},
		{id: "pr16", what: "join namespaces by setns", verb: "setns", setUp: func(x *trial) []string {
			v := x.victim()
			if x.control {
				return []string{pair("victim", v.pid)}
			}
			return []string{pair("victim", v.pid), "init=1"}
		}},
		{id: "pr17", what: "mount, bind, remount, umount, pivot, chroot, fsopen, open_tree, proc, sysfs, cgroup2, overlay", verb: "mount", setUp: func(x *trial) []string {
			dir := filepath.Join(x.work, "mnt")
			if err := os.Mkdir(dir, 0o777); err != nil {
				x.Fatal(err)
			}
			return []string{dir}
		}},
		{id: "pr18", what: "use the kernel's keyrings: another's key, an own one", verb: "keys", setUp: addKey},
		{id: "pr19", what: "io_uring", verb: "io_uring"},
		{id: "pr20", what: "other calling conventions: i386 by int 0x80, x32", verb: "abi"},
		{id: "pr21", what: "System V memory, semaphores and queues of the host", verb: "ipc", setUp: shareIPC},
		{id: "pr22", what: "a core dump", verb: "core", check: func(x *trial, _ sandbox.Result, o *outcome) {
			if dumps, err := filepath.Glob(filepath.Join(x.work, "core*")); err != nil || len(dumps) > 0 {
				o.add("core")
			}
		}},
		{id: "pr23", what: "push characters into a terminal (TIOCSTI, TIOCLINUX)", verb: "tty"},
		{id: "pr24", what: "open for writing: core_pattern, sysrq, settings of the kernel, control groups", verb: "open-write", setUp: func(*trial) []string { return settings() }},
		{id: "pr25", what: "lock 64 MiB of memory", verb: "mlock"},
		{id: "pr35", what: "leave its control group, or look at those of the host", verb: "open-write", setUp: func(*trial) []string { return groups() }},
	}
}

// settings are files that change the whole machine. They are only opened.
func settings() []string {
	var args []string
	for _, name := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/kernel/panic", "/proc/sys/fs/file-max", "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/class/net/lo/mtu", "/sys/fs/cgroup/release_agent",
	} {
		if exists(name) {
			args = append(args, pair(strings.ReplaceAll(name[1:], "/", "."), name))
		}
	}
	return args
}

// groups are the files by which a process changes its group, on this machine.
func groups() []string {
	found, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		return nil
	}
	found = append(found, "/sys/fs/cgroup/cgroup.procs")
	var args []string
	for _, name := range found {
		if exists(name) {
			args = append(args, pair(strings.ReplaceAll(name[1:], "/", "."), name))
		}
	}
	return args
}

// addKey gives the user of this process a key that holds the secret.
func addKey(x *trial) []string {
	id, err := unix.AddKey("user", x.name, []byte(x.secret), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		x.Fatalf("this kernel keeps no keys: %v", err)
	}
	if err := unix.KeyctlSetperm(id, 0x3f3f0000); err != nil { // whoever has it or is its user may do all
		x.Fatal(err)
	}
	x.Cleanup(func() {
		for _, name := range []string{x.name, x.name + "-own"} {
			if id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", name, 0); err == nil {
				_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
			}
		}
	})
	return []string{x.name, x.name + "-own"}
}

// shareIPC makes one object of each kind, that everybody may use, under one key.
func shareIPC(x *trial) []string {
	key := int(1 + number()>>8)
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		x.Fatal(err)
	}
	at, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		x.Fatal(err)
	}
	copy(at, x.secret)
	if err := unix.SysvShmDetach(at); err != nil {
		x.Fatal(err)
	}
	sem, _, no := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, unix.IPC_CREAT|0o666)
	msg, _, no2 := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o666, 0)
	x.Cleanup(func() {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		_, _, _ = unix.Syscall6(unix.SYS_SEMCTL, sem, 0, unix.IPC_RMID, 0, 0, 0)
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, msg, unix.IPC_RMID, uintptr(unsafe.Pointer(nil)))
	})
	if no != 0 || no2 != 0 {
		x.Fatal(no, no2)
	}
	return []string{fmt.Sprint(key)}
}

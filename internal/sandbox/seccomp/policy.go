package seccomp

import (
	"slices"
	"strings"
)

// policy is every rule of a profile. Within a call the first that fits decides.
//
// A comment names the type that the kernel gives an argument, because that says
// which bits count: the kernel casts int, unsigned int, pid_t and umode_t
// before it looks, so the upper half of the register is free for an attacker to
// fill and must not be compared. Pointers and what is used as an unsigned long
// are compared whole.
func policy(p Profile) []rule {
	return slices.Concat(
		absent(),
		privileged(),
		cloning(),
		modes(),
		p.metadata(),
		p.sockets(),
		terminals(),
		p.signals(),
		p.owners(),
		p.schedules(),
		p.shared(),
		oneself(),
	)
}

// calls reads names separated by white space.
func calls(names string) []string { return strings.Fields(names) }

// flat refuses calls whatever their arguments are.
func flat(v verdict, names string) rule { return rule{calls: calls(names), then: v} }

// refuse answers EPERM when all conditions are met; permit lets a call go on.
func refuse(names string, when ...condition) rule { return rule{calls(names), when, eperm} }
func permit(names string, when ...condition) rule { return rule{calls(names), when, allow} }

const (
	lowHalf = 0xffffffff
	whole   = 0xffffffffffffffff
)

// is is an int argument that is one of values; isNot one that is none of them.
func is(arg int, values ...uint64) condition {
	return condition{arg: arg, mask: lowHalf, values: values}
}

func isNot(arg int, values ...uint64) condition {
	return condition{arg: arg, mask: lowHalf, values: values, not: true}
}

// anyOf is an int argument that has any of the bits; masked one of which the
// masked part is one of values.
func anyOf(arg int, mask uint64) condition {
	return condition{arg: arg, mask: mask, values: []uint64{0}, not: true}
}

func masked(arg int, mask uint64, values ...uint64) condition {
	return condition{arg: arg, mask: mask, values: values}
}

// null is a pointer argument that is NULL, in all 64 bits.
func null(arg int) condition {
	return condition{arg: arg, mask: whole, values: []uint64{0}, long: true}
}

// absent are calls that no filter can judge, because what they ask for lies in
// memory, and that every program can do without: it falls back to an older one
// when the kernel seems not to have them.
func absent() []rule {
	return []rule{
		flat(enosys, `clone3 openat2 fchmodat2`),
		flat(enosys, `io_uring_setup io_uring_enter io_uring_register`),
		// One caller can take all that the machine has of it.
		flat(enosys, `io_setup`),
		// It takes disk at once, more than a limit of a file's size allows and faster
		// than anybody looks. The C library writes instead.
		flat(eopnot, `fallocate`),
		// It takes a directory of /proc for a descriptor of a process, so it reaches
		// processes that nobody opened with pidfd_open.
		flat(enosys, `pidfd_send_signal`),
	}
}

// privileged are calls that a script has no need of: they set up the system, look
// into other processes, or were attacked before.
func privileged() []rule {
	return []rule{
		// Mounts and name spaces.
		flat(eperm, `mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree open_tree_attr
			move_mount mount_setattr statmount listmount listns unshare setns`),
		// Other processes.
		flat(eperm, `ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd`),
		// Keys belong to a uid, and no name space keeps them apart.
		flat(eperm, `keyctl add_key request_key`),
		// Files without a path, secret memory, watches on whole file systems.
		flat(eperm, `open_by_handle_at name_to_handle_at memfd_secret fanotify_init fanotify_mark`),
		// Wide doors into the kernel.
		flat(eperm, `bpf perf_event_open userfaultfd lookup_dcookie modify_ldt iopl ioperm`),
		// The system as a whole. The time calls can also read, but a filter does not
		// see which.
		flat(eperm, `acct syslog reboot swapon swapoff kexec_load kexec_file_load sethostname setdomainname
			settimeofday clock_settime adjtimex clock_adjtime quotactl quotactl_fd vhangup nfsservctl`),
		flat(eperm, `init_module finit_module delete_module create_module get_kernel_syms query_module`),
		flat(eperm, `sysfs ustat uselib _sysctl`),
	}
}

// newNamespaces are the CLONE_NEW flags: TIME, NS, CGROUP, UTS, IPC, USER, PID, NET.
const newNamespaces = 0x80 | 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

func cloning() []rule {
	// clone's flags are an unsigned long, of which the kernel takes the low half.
	return []rule{refuse(`clone`, anyOf(0, newNamespaces))}
}

// Bits of modes and of open.
const (
	setID    = 0o6000     // S_ISUID, S_ISGID
	typeBits = 0o170000   // S_IFMT
	fifo     = 0o010000   // S_IFIFO
	regular  = 0o100000   // S_IFREG
	socketed = 0o140000   // S_IFSOCK
	creating = 0o100      // O_CREAT
	unnamed  = 0o20000000 // __O_TMPFILE
)

// modes keeps files from becoming setuid or setgid, and devices from being made.
// A mode is a umode_t, an unsigned short; flags are an int. Without O_CREAT open
// does not look at its mode, and it may be anything.
func modes() []rule {
	return []rule{
		// A file that never has a name is seen by nobody who counts what a launch wrote.
		{calls(`open`), []condition{anyOf(1, unnamed)}, eopnot},
		{calls(`openat`), []condition{anyOf(2, unnamed)}, eopnot},
		refuse(`fchmod creat`, anyOf(1, setID)),
		refuse(`open`, anyOf(1, creating), anyOf(2, setID)),
		refuse(`openat`, anyOf(2, creating), anyOf(3, setID)),
		refuse(`mknod`, anyOf(1, setID)),
		refuse(`mknodat`, anyOf(2, setID)),
		refuse(`mknod`, notMasked(1, typeBits, 0, fifo, regular, socketed)),
		refuse(`mknodat`, notMasked(2, typeBits, 0, fifo, regular, socketed)),
	}
}

func notMasked(arg int, mask uint64, values ...uint64) condition {
	return condition{arg: arg, mask: mask, values: values, not: true}
}

// metadata allows modes without setuid and setgid to be set by path, or nothing at
// all that is not content, since Landlock does not cover that. utimensat without a
// path works on a descriptor; the path is a pointer.
func (p Profile) metadata() []rule {
	if p.Metadata {
		return []rule{
			refuse(`chmod`, anyOf(1, setID)),
			refuse(`fchmodat`, anyOf(2, setID)),
		}
	}
	return []rule{
		flat(eperm, `chmod fchmodat chown lchown fchownat utime utimes file_setattr
			setxattr lsetxattr setxattrat removexattr lremovexattr removexattrat`),
		permit(`utimensat futimesat`, null(1)),
		refuse(`utimensat futimesat`),
	}
}

// Families, types and protocols of sockets: all three are int.
const (
	afUnix, afInet, afInet6, afNetlink         = 1, 2, 10, 16
	sockStream, sockDgram, sockRaw, sockPacket = 1, 2, 3, 5
	sockType                                   = lowHalf &^ (0x800 | 0x80000) // without SOCK_NONBLOCK, SOCK_CLOEXEC
	protoTCP, protoUDP                         = 6, 17
	protoUnix                                  = 1
	netlinkRoute                               = 0
)

// sockets allows the local family, TCP, UDP, and the netlink that lists
// interfaces. Everything else is refused: vsock, packet, raw, alg, xdp, and
// MPTCP and SCTP, which pass by rules about TCP.
func (p Profile) sockets() []rule {
	pair := []rule{
		permit(`socketpair`, is(0, afUnix)),
		refuse(`socketpair`),
	}
	if !p.Sockets {
		return append(pair, refuse(`socket`))
	}
	return append(pair,
		permit(`socket`, is(0, afUnix), masked(1, sockType, sockStream, sockDgram, sockPacket), is(2, 0, protoUnix)),
		permit(`socket`, is(0, afInet, afInet6), masked(1, sockType, sockStream, sockDgram), is(2, 0, protoTCP, protoUDP)),
		permit(`socket`, is(0, afNetlink), masked(1, sockType, sockRaw, sockDgram), is(2, netlinkRoute)),
		refuse(`socket`),
	)
}

// Requests of ioctl and fcntl.
const (
	tiocSTI, tiocLinux, tiocSETD = 0x5412, 0x541c, 0x5423
	fioSETOWN, siocSPGRP         = 0x8901, 0x8902
	fSETOWN, fSETOWNEX           = 8, 15
)

// terminals keeps input from being pushed into a terminal that somebody else
// reads, and line disciplines from being loaded. The request is an unsigned int:
// with the upper half set it is still the same one.
func terminals() []rule {
	return []rule{refuse(`ioctl`, is(1, tiocSTI, tiocLinux, tiocSETD))}
}

// oneself are calls that are allowed about the caller only.
func oneself() []rule {
	return []rule{
		// The id is a pid_t; 0 is the caller.
		refuse(`prlimit64`, isNot(0, 0)),
		refuse(`migrate_pages move_pages`, isNot(0, 0)),
		// persona is an unsigned int: Linux itself, no randomised addresses (which some
		// sanitizers ask for), or a question.
		refuse(`personality`, isNot(0, 0, 0x40000, 0xffffffff)),
	}
}

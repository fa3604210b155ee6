package oci

import "strings"

// The filter says what internal/sandbox/seccomp says, in the words of the
// specification, which has no program of its own, but rules that all hold at once.
// A rule cannot compare an argument with a set or look at part of it for anything
// but one value, so there are more of them. Where the kernel looks at the low half
// of an argument only, rules are made so that a filled upper half is refused.

const (
	deny           = "SCMP_ACT_ERRNO"
	allow          = "SCMP_ACT_ALLOW"
	opMasked       = "SCMP_CMP_MASKED_EQ"
	opEqual        = "SCMP_CMP_EQ"
	opNot          = "SCMP_CMP_NE"
	opGreater      = "SCMP_CMP_GT"
	opLess         = "SCMP_CMP_LT"
	eperm     uint = 1
	enosys    uint = 38
	eopnot    uint = 95 // EOPNOTSUPP
)

// filterFor is the filter for an architecture of Go.
func filterFor(arch string) *filter {
	f := &filter{Default: allow}
	switch arch {
	case "amd64":
		f.Architectures = []string{"SCMP_ARCH_X86_64"}
	case "arm64":
		f.Architectures = []string{"SCMP_ARCH_AARCH64"}
	default:
		return nil
	}
	f.Calls = append(f.Calls, flat()...)
	f.Calls = append(f.Calls, bits()...)
	f.Calls = append(f.Calls, sockets()...)
	f.Calls = append(f.Calls, others()...)
	return f
}

func refuse(names string, args ...condition) rule {
	return rule{Names: strings.Fields(names), Action: deny, Errno: eperm, Args: args}
}

// flat are calls that are refused whatever their arguments are.
func flat() []rule {
	return []rule{
		// What no filter can judge, since it lies in memory; programs fall back when
		// the kernel seems not to have them.
		{Names: strings.Fields(`clone3 openat2 fchmodat2 io_uring_setup io_uring_enter io_uring_register io_setup pidfd_send_signal`), Action: deny, Errno: enosys},
		// The C library writes instead; see seccomp.
		{Names: []string{"fallocate"}, Action: deny, Errno: eopnot},
		refuse(`mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr unshare setns`),
		refuse(`ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd`),
		refuse(`keyctl add_key request_key`),
		refuse(`open_by_handle_at name_to_handle_at memfd_secret fanotify_init fanotify_mark`),
		refuse(`bpf perf_event_open userfaultfd lookup_dcookie modify_ldt iopl ioperm`),
		refuse(`acct syslog reboot swapon swapoff kexec_load kexec_file_load sethostname setdomainname
			settimeofday clock_settime adjtimex clock_adjtime quotactl quotactl_fd vhangup nfsservctl`),
		refuse(`init_module finit_module delete_module create_module get_kernel_syms query_module sysfs ustat uselib _sysctl`),
	}
}

// bits are calls that are refused when an argument has one of some bits: new
// namespaces, and files that run as their owner.
func bits() []rule {
	var rules []rule
	for _, flag := range []uint64{0x80, 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000} {
		rules = append(rules, refuse(`clone`, has(0, flag)))
	}
	for _, id := range []uint64{0o4000, 0o2000} {
		rules = append(rules,
			refuse(`chmod fchmod creat mknod`, has(1, id)),
			refuse(`fchmodat mknodat`, has(2, id)))
		for _, creating := range []uint64{0o100, 0o20000000} {
			rules = append(rules,
				refuse(`open`, has(1, creating), has(2, id)),
				refuse(`openat`, has(2, creating), has(3, id)))
		}
	}
	for _, device := range []uint64{0o020000, 0o060000} {
		rules = append(rules,
			refuse(`mknod`, condition{1, 0o170000, device, opMasked}),
			refuse(`mknodat`, condition{2, 0o170000, device, opMasked}))
	}
	return rules
}

// has is an argument that has a bit.
func has(arg uint, bit uint64) condition { return condition{arg, bit, bit, opMasked} }

// Families of sockets.
const afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16

// sockets leaves the local family, TCP, UDP, and the netlink that lists
// interfaces.
func sockets() []rule {
	rules := []rule{
		refuse(`socketpair`, condition{Index: 0, Value: afUnix, Op: opNot}),
		refuse(`socket`, condition{Index: 0, Value: afNetlink, Op: opGreater}),
		refuse(`socket`, condition{Index: 0, Value: afUnix, Op: opLess}),
	}
	for family := uint64(afUnix + 1); family < afNetlink; family++ {
		if family != afInet && family != afInet6 {
			rules = append(rules, refuse(`socket`, is(0, family)))
		}
	}
	for _, family := range []uint64{afInet, afInet6} {
		for kind := uint64(3); kind < 16; kind++ { // all but stream and datagram
			rules = append(rules, refuse(`socket`, is(0, family), condition{1, 0xf, kind, opMasked}))
		}
		for protocol := uint64(1); protocol < 17; protocol++ {
			if protocol != 6 {
				rules = append(rules, refuse(`socket`, is(0, family), is(2, protocol)))
			}
		}
		rules = append(rules, refuse(`socket`, is(0, family), condition{Index: 2, Value: 17, Op: opGreater}))
	}
	return append(rules, refuse(`socket`, is(0, afNetlink), condition{Index: 2, Value: 0, Op: opNot}))
}

func is(arg uint, value uint64) condition { return condition{Index: arg, Value: value, Op: opEqual} }

// others are requests about terminals and about other processes.
func others() []rule {
	const low = 0xffffffff
	var rules []rule
	for _, request := range []uint64{0x5412, 0x541c, 0x5423, 0x8901, 0x8902} { // TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP
		rules = append(rules, refuse(`ioctl`, condition{1, low, request, opMasked}))
	}
	rules = append(rules,
		refuse(`fcntl`, condition{1, low, 15, opMasked}), // F_SETOWN_EX
		refuse(`prlimit64 migrate_pages move_pages`, condition{Index: 0, Value: 0, Op: opNot}),
		refuse(`setpriority`, condition{Index: 0, Value: 1, Op: opGreater}),
		refuse(`ioprio_set`, condition{Index: 0, Value: 2, Op: opGreater}))
	return rules
}

package hostile

import (
	"slices"
	"strings"
)

// reason is why probes or a cell are not what the table wants.
type reason struct {
	row    string
	probes string // names, separated by spaces; empty is all of the row's
	who    string // "root", "user"; empty is both
	why    string
}

// exceptions are probes that do not succeed even without confinement. Each
// weakens the proof of its row, so each has a reason.
func exceptions() []reason {
	const (
		rootOnly = "only root may, confined or not"
		noKernel = "this kernel was built without it"
		owner    = "the file is root's"
	)
	return []reason{
		{"fs02", "", "user", rootOnly},
		{"fs16", "", "user", rootOnly},
		{"fs18", "init_module finit_module delete_module", "", noKernel},
		{"fs18", "open_by_handle_at bpf acct syslog reboot settime swapon swapoff sethostname", "user", rootOnly},
		{"fs19", "vda sda nvme0n1", "", "this kernel lets not even root open the disk"},
		{"fs19", "", "user", "the nodes are root's"},
		{"fs22", "root", "user", owner},
		{"pr04", "victim-write host-write", "user", owner},
		{"pr12", "nofile nproc memlock msgqueue", "", "raising needs CAP_SYS_RESOURCE, which root lacks in this machine; core and fsize are without limit, which counts"},
		{"pr14", "mount net pid time cgroup", "user", "only within a user namespace, which is the probe user+all"},
		{"pr16", "", "user", rootOnly},
		{"pr17", "umount", "user", "what a user namespace inherits is locked"},
		{"pr20", "x32", "", noKernel},
		{"pr23", "stdin dev-tty", "", "a launch has no terminal, confined or not; the own one is the proof"},
		{"pr24", "proc.sys.user.max_user_namespaces", "", "only who owns the user namespace may"},
		{"pr24", "", "user", rootOnly},
		{"pr25", "", "user", "the limit of locked memory of this machine"},
		{"pr30", "", "user", rootOnly},
		{"pr33", "setuid setgroups", "user", rootOnly},
		{"pr35", "", "user", rootOnly},
		{"nt07", "alg sctp key bluetooth can tipc rds kcm smc ppp llc nfc", "", noKernel},
		{"nt07", "ping ping6", "", "net.ipv4.ping_group_range lets nobody"},
		{"nt07", "raw packet packet-dgram xdp", "user", rootOnly},
	}
}

func exception(row, probe, who string) string { return reasonOf(exceptions(), row, probe, who) }

// absent are cells that a backend cannot have: a reason's probes are backends.
func absent() []reason {
	const noListener = "a runtime of containers hands out no listener from inside, so that the launch is refused"
	const noSockets = "a launch has no sockets there"
	return []reason{
		{"nt11", "landlock", "", "Landlock knows ports and no names, so that the launch is refused"},
		{"nt12", "landlock", "", "Landlock knows ports and no names, so that the launch is refused"},
		{"nt09", "landlock", "", noSockets},
		{"pr34", "landlock", "", noSockets + ", which the other launch would offer"},
		{"rs25", "landlock", "", "/dev/shm is the host's"},
		{"rs15", "landlock", "user", "modes of files cannot be changed there, see fs13"},
		{"rs27", "landlock", "user", "the linker cannot make its file a program, see fs13"},
		{"fs21", "landlock", "user", "modes of files cannot be changed there, see fs13"},
		{"nt11", "runc crun runsc", "", noListener},
		{"nt12", "runc crun runsc", "", noListener},
		{"fs12", "runc crun runsc", "", "a runtime of containers takes a path and looks it up again; a launch's directory lies where only the host's own user can swap it"},
		{"nt14", "runc crun", "", "such a runtime knows no Landlock: the open network has the host's abstract sockets in it"},
	}
}

func notApplicable(row, backend, who string) string { return reasonOf(absent(), row, backend, who) }

// conceded are attempts that a backend does not hold, as its tier's or its own
// description says: a reason's probes are backends. A row of this list that is held fails, so
// that the list does not outlive its causes.
func conceded() []reason {
	return []reason{
		{"fs14", "landlock", "", "Landlock does not restrict looking at names, sizes and times"},
		{"pr02", "landlock", "", "the processes of the host are seen in /proc"},
		{"rs21", "runc crun", "user", "where such a runtime cannot make control groups, memory that nothing maps is not counted"},
		{"rs28", "landlock runc crun", "user", "the kernel counts watches by user, and only native sets a share of them"},
		{"rs11", "runc crun", "", "no such runtime watches who started it; the next start of Metier ends what was left"},
	}
}

func concession(row, backend, who string) string { return reasonOf(conceded(), row, backend, who) }

func reasonOf(all []reason, row, probe, who string) string {
	for _, r := range all {
		if r.row == row && (r.probes == "" || slices.Contains(strings.Fields(r.probes), probe)) && (r.who == "" || r.who == who) {
			return r.why
		}
	}
	return ""
}

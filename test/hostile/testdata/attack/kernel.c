// Attempts on the kernel: calls that a script has no need of, namespaces, mounts,
// keys, and the doors of other calling conventions. Arguments are chosen so that
// a call that is let through does no harm: see reached.
#include "attack.h"
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/timex.h>

static long call_handle(char *path) {
	struct { struct file_handle h; char room[128]; } f = {.h = {.handle_bytes = 128}};
	int mount;
	if (name_to_handle_at(AT_FDCWD, path, &f.h, &mount, 0) < 0) return -1;
	int dir = open(path, O_RDONLY | O_DIRECTORY);
	return open_by_handle_at(dir, &f.h, O_RDONLY | O_DIRECTORY);
}
static long call_bpf(char *unused) {
	union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a);
}
static long call_perf(char *unused) {
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1, .exclude_hv = 1};
	return syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}
static long call_userfaultfd(char *unused) { return syscall(SYS_userfaultfd, O_CLOEXEC | 1); }
static long call_acct(char *unused) { return reached(syscall(SYS_acct, "/nonexistent/hostile")); }
static long call_syslog(char *unused) { return syscall(SYS_syslog, 10, NULL, 0); }
static long call_reboot(char *unused) { return reached(syscall(SYS_reboot, 0, 0, 0, NULL)); }
static long call_settime(char *unused) {
	struct timex t = {.modes = ADJ_TICK, .tick = 1};
	return reached(adjtimex(&t));
}
static long call_swapon(char *unused) { return reached(syscall(SYS_swapon, "/nonexistent/hostile", 0)); }
static long call_swapoff(char *unused) { return reached(syscall(SYS_swapoff, "/nonexistent/hostile")); }
static long call_module(char *unused) { return reached(syscall(SYS_init_module, NULL, 0, "")); }
static long call_finit(char *unused) { return reached(syscall(SYS_finit_module, -1, "", 0)); }
static long call_delete(char *unused) { return reached(syscall(SYS_delete_module, "hostile_none", O_NONBLOCK)); }
static long call_hostname(char *unused) {
	char name[256];
	return gethostname(name, sizeof name) < 0 ? -1 : sethostname(name, strlen(name));
}
static long call_quotactl(char *unused) { return reached(syscall(SYS_quotactl, 0x800003 << 8, "/nonexistent/hostile", 0, NULL)); }
static long call_nfs(char *unused) { return syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0); }

static void verb_privileged(int argc, char **argv) {
	struct { const char *name; probe p; } all[] = {{"open_by_handle_at", call_handle}, {"bpf", call_bpf}, {"perf", call_perf},
		{"userfaultfd", call_userfaultfd}, {"acct", call_acct}, {"syslog", call_syslog}, {"reboot", call_reboot},
		{"settime", call_settime}, {"swapon", call_swapon}, {"swapoff", call_swapoff}, {"init_module", call_module},
		{"finit_module", call_finit}, {"delete_module", call_delete}, {"sethostname", call_hostname}, {"quotactl", call_quotactl}, {"kcmp", call_nfs}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) attempt(all[i].name, all[i].p, argc ? argv[0] : ".");
}

static long ns_user(char *unused) { return unshare(CLONE_NEWUSER); }
static long ns_both(char *unused) { return unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS); }
static long ns_mount(char *unused) { return unshare(CLONE_NEWNS); }
static long ns_net(char *unused) { return unshare(CLONE_NEWNET); }
static long ns_pid(char *unused) { return unshare(CLONE_NEWPID); }
static long ns_time(char *unused) { return unshare(0x80); }
static long ns_cgroup(char *unused) { return unshare(CLONE_NEWCGROUP); }
static void verb_unshare(int argc, char **argv) {
	struct { const char *name; probe p; } all[] = {{"user", ns_user}, {"user+all", ns_both}, {"mount", ns_mount}, {"net", ns_net},
		{"pid", ns_pid}, {"time", ns_time}, {"cgroup", ns_cgroup}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) attempt(all[i].name, all[i].p, NULL);
}

// born waits for a child made by a bare clone, which returns 0 in the child too.
static long born(long pid) {
	if (pid == 0) _exit(0);
	if (pid > 0) waitpid(pid, NULL, __WALL);
	return pid;
}
static long clone_user(char *unused) { return born(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }
static long clone_high(char *unused) { return born(syscall(SYS_clone, (1ul << 32) | CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0)); }
static long clone_three(char *unused) {
	struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	return born(syscall(SYS_clone3, &a, sizeof a));
}
static void verb_clone(int argc, char **argv) {
	attempt("clone", clone_user, NULL);
	attempt("clone-high-bits", clone_high, NULL);
	attempt("clone3", clone_three, NULL);
}

static long join_path(char *path) {
	int fd = open(path, O_RDONLY);
	return fd < 0 ? -1 : setns(fd, 0);
}
static long join_pidfd(char *pid) {
	int fd = syscall(SYS_pidfd_open, atoi(pid), 0);
	return fd < 0 ? -1 : setns(fd, CLONE_NEWUTS | CLONE_NEWNET);
}
// setns PID...: the namespaces of other processes.
static void verb_setns(int argc, char **argv) {
	char path[128], name[64];
	const char *kinds[] = {"uts", "net", "ipc", "mnt"};
	attempt("self-uts", join_path, "/proc/self/ns/uts");
	for (int i = 0; i < argc; i++) {
		label(argv[i], name, 32);
		if (atoi(value(argv[i])) == first) {
			held(name, "itself");
			continue;
		}
		for (size_t k = 0; k < 4; k++) {
			char full[80];
			snprintf(path, sizeof path, "/proc/%s/ns/%s", value(argv[i]), kinds[k]);
			snprintf(full, sizeof full, "%s-%s", name, kinds[k]);
			attempt(full, join_path, path);
		}
		strcat(name, "-pidfd");
		attempt(name, join_pidfd, value(argv[i]));
	}
}

static char *target; // a directory that may be mounted on
static long mount_tmpfs(char *unused) { return mount("hostile", target, "tmpfs", 0, NULL); }
static long mount_bind(char *unused) { return mount("/usr", target, NULL, MS_BIND, NULL); }
static long mount_remount(char *unused) { return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long mount_share(char *unused) { return mount(NULL, "/", NULL, MS_SHARED, NULL); }
static long mount_umount(char *unused) {
	const char *all[] = {"/dev/shm", "/dev", "/tmp", "/proc", "/sys"};
	for (int i = 0; i < 5; i++) if (umount2(all[i], MNT_DETACH) == 0) return 0;
	return -1;
}
static long mount_pivot(char *unused) {
	if (mount(target, target, NULL, MS_BIND, NULL) < 0 || chdir(target) < 0) return -1;
	return syscall(SYS_pivot_root, ".", ".");
}
static long mount_chroot(char *unused) { return chroot(target); }
static long mount_fsopen(char *unused) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long mount_tree(char *unused) { return syscall(SYS_open_tree, AT_FDCWD, "/usr", 1 | O_CLOEXEC); }
static long mount_setattr_(char *unused) {
	uint64_t attr[4] = {0, 1, 0, 0};
	return syscall(442, AT_FDCWD, "/", 0, attr, sizeof attr);
}
static long mount_proc(char *unused) { return mount("proc", target, "proc", 0, NULL); }
static long mount_sysfs(char *unused) { return mount("sysfs", target, "sysfs", 0, NULL); }
static long mount_cgroup(char *unused) { return mount("cgroup2", target, "cgroup2", 0, NULL); }
static long mount_overlay(char *unused) { return mount("overlay", target, "overlay", 0, "lowerdir=/usr:/etc"); }

static void mounts(void) {
	struct { const char *name; probe p; } all[] = {{"tmpfs", mount_tmpfs}, {"bind", mount_bind}, {"remount", mount_remount}, {"umount", mount_umount}, {"chroot", mount_chroot},
		{"fsopen", mount_fsopen}, {"open_tree", mount_tree}, {"mount_setattr", mount_setattr_}, {"proc", mount_proc},
		{"sysfs", mount_sysfs}, {"cgroup2", mount_cgroup}, {"overlay", mount_overlay},
		// these change what all the others see
		{"pivot_root", mount_pivot}, {"propagation", mount_share}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		attempt(all[i].name, all[i].p, NULL);
		umount2(target, MNT_DETACH);
	}
}

// mount DIR: whoever gets new namespaces takes them first, so that nothing of
// the host's is mounted over and an ordinary user has a chance at all.
static void verb_mount(int argc, char **argv) {
	if (argc < 1) return broken("mount", "arguments");
	target = argv[0];
	int all = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
	if (unshare(all) == 0 || unshare(CLONE_NEWUSER | all) == 0) {
		// in a process of its own: pid 1 of the new namespace must live as long as
		// any attempt
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return broken("mount", "private");
		pid_t keeper = fork();
		if (keeper == 0) {
			pause();
			_exit(0);
		}
		mounts();
		kill(keeper, SIGKILL);
		return;
	}
	mounts();
}

static long key_add(char *name) { return syscall(SYS_add_key, "user", name, "x", 1, KEY_SPEC_USER_KEYRING); }
static long key_search(char *name) {
	char buf[256] = "";
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name, 0);
	if (id < 0) return -1;
	if (syscall(SYS_keyctl, KEYCTL_READ, id, buf, sizeof buf - 1) < 0) return -1;
	printf("SEEN %s\n", buf);
	return 0;
}
static long key_request(char *name) { return syscall(SYS_request_key, "user", name, NULL, KEY_SPEC_PROCESS_KEYRING); }
static long key_session(char *unused) { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0); }
// keys HOSTKEY OWNKEY
static void verb_keys(int argc, char **argv) {
	if (argc < 2) return broken("keys", "arguments");
	attempt("search", key_search, argv[0]);
	attempt("request", key_request, argv[0]);
	attempt("add", key_add, argv[1]);
	attempt("session", key_session, NULL);
}

static long ring_setup(char *unused) {
	char params[256] = {0};
	return syscall(SYS_io_uring_setup, 4, params);
}
static void verb_uring(int argc, char **argv) { attempt("setup", ring_setup, NULL); }

#if defined(__x86_64__)
static long abi_int80(char *unused) {
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11"); // getpid of i386
	errno = r < 0 ? -r : 0;
	return r > 0 ? 0 : -1;
}
static long abi_int80_socket(char *unused) {
	long args[3] = {2, 1, 0}, r;
	(void)args;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(359), "b"(2), "c"(1), "d"(0) : "memory", "r8", "r9", "r10", "r11"); // socket of i386
	errno = r < 0 ? -r : 0;
	return r >= 0 ? 0 : -1;
}
static long abi_x32(char *unused) { return syscall(0x40000000 | SYS_getpid); }
static void verb_abi(int argc, char **argv) {
	attempt("int80", abi_int80, NULL);
	attempt("int80-socket", abi_int80_socket, NULL);
	attempt("x32", abi_x32, NULL);
}
#else
static void verb_abi(int argc, char **argv) { broken("abi", "not-x86"); }
#endif

// rise: rights that this process does not have.
static long no_new_privs(char *unused) { // a refusal: it can only be set
	prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) return 0;
	errno = EPERM;
	return -1;
}
// setuid_zero: user 0 of the machine, not one of that name in a user namespace.
static long setuid_zero(char *unused) {
	unsigned inside = 1, outside = 1;
	if (geteuid() != 0 && setresuid(0, 0, 0) < 0) return -1;
	FILE *f = fopen("/proc/self/uid_map", "re");
	if (f && fscanf(f, "%u %u", &inside, &outside) == 2 && inside == 0 && outside == 0) return 0;
	errno = EPERM;
	return -1;
}
static long set_groups(char *unused) {
	gid_t zero = 0;
	return syscall(SYS_setgroups, 1, &zero);
}
static long any_cap(char *unused) {
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	errno = EPERM;
	if (!f) return -1;
	// what could be gained counts only where anything can be gained
	int bounded = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	while (fgets(line, sizeof line, f)) {
		unsigned long long caps = 0;
		if ((sscanf(line, "CapEff: %llx", &caps) == 1 || sscanf(line, "CapPrm: %llx", &caps) == 1 ||
		     (!bounded && sscanf(line, "CapBnd: %llx", &caps) == 1) || sscanf(line, "CapAmb: %llx", &caps) == 1) && caps) return 0;
	}
	errno = EPERM;
	return -1;
}
static void verb_rise(int argc, char **argv) {
	attempt("no_new_privs", no_new_privs, NULL);
	attempt("setuid", setuid_zero, NULL);
	attempt("setgroups", set_groups, NULL);
	attempt("capabilities", any_cap, NULL);
}

const struct verb_row kernel_verbs[] = {
	{"privileged", verb_privileged}, {"unshare", verb_unshare}, {"clone", verb_clone}, {"setns", verb_setns}, {"mount", verb_mount},
	{"keys", verb_keys}, {"io_uring", verb_uring}, {"abi", verb_abi}, {"rise", verb_rise}, {NULL, NULL},
};

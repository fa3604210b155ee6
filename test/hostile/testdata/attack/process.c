// Attempts on other processes: reading, stopping, changing, and what they left
// within reach.
#include "attack.h"
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/uio.h>

// find FILE HALF HALF: which /proc/PID/FILE holds the two halves together. They
// come apart, so that the command line of this program does not hold it.
static void verb_find(int argc, char **argv) {
	char needle[256], path[300], buf[65536];
	int found = 0, looked = 0;
	if (argc < 3) return broken("find", "arguments");
	snprintf(needle, sizeof needle, "%s%s", argv[1], argv[2]);
	DIR *d = opendir("/proc");
	if (!d) return held("proc", strerrorname_np(errno));
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
		snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, argv[0]);
		int fd = open(path, O_RDONLY);
		if (fd < 0) continue;
		looked++;
		ssize_t n = read(fd, buf, sizeof buf);
		close(fd);
		if (n > 0 && memmem(buf, n, needle, strlen(needle))) found = 1;
	}
	if (found) return escaped("found");
	held("found", looked ? "nothing" : "unreadable");
}

static void verb_environment(int argc, char **argv) {
	extern char **environ;
	for (char **e = environ; *e; e++) printf("SEEN %s\n", *e);
	held("environment", "shown");
}

static int pid_of(const char *text) { return strncmp(text, "parent", 6) ? atoi(text) : parent; }

// own notes that a target is this program itself, or not there.
static int own(const char *name, const char *pid) {
	int target = pid_of(pid);
	if (target != 0 && target != first) return 0;
	held(name, target ? "itself" : "none");
	return 1;
}

// exe PID...: the program that another process runs.
static long exe_read(char *path) { return open(path, O_RDONLY); }
static long exe_write(char *path) { // ETXTBSY is found after the permission
	int fd = open(path, O_WRONLY);
	if (fd < 0 && errno == ETXTBSY) return 0;
	return fd;
}
static long exe_link(char *path) {
	char to[4096];
	ssize_t n = readlink(path, to, sizeof to - 1);
	if (n < 0) return -1;
	to[n] = 0;
	printf("SEEN %s\n", to);
	return 0;
}
static long exe_run(char *path) {
	pid_t child = fork();
	if (child == 0) {
		char *argv[] = {"hostile", "-hostile-no-such-flag", NULL}, *none[] = {NULL};
		close(1);
		close(2);
		execve(path, argv, none);
		_exit(126);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
	errno = EACCES;
	return WIFEXITED(status) && WEXITSTATUS(status) == 126 ? -1 : 0;
}
static void verb_exe(int argc, char **argv) {
	char path[64], name[64], full[96];
	struct { const char *name; probe p; } all[] = {{"link", exe_link}, {"read", exe_read}, {"write", exe_write}, {"run", exe_run}};
	for (int i = 0; i < argc; i++) {
		if (own(label(argv[i], name, sizeof name), value(argv[i]))) continue;
		snprintf(path, sizeof path, "/proc/%d/exe", pid_of(value(argv[i])));
		for (size_t k = 0; k < 4; k++) {
			snprintf(full, sizeof full, "%s-%s", label(argv[i], name, sizeof name), all[k].name);
			attempt(full, all[k].p, path);
		}
	}
}

static void per_pid(int argc, char **argv, probe p) {
	char name[64];
	for (int i = 0; i < argc; i++) {
		label(argv[i], name, sizeof name);
		if (!own(name, value(argv[i]))) attempt(name, p, value(argv[i]));
	}
}

static long trace(char *pid) { return ptrace(PTRACE_SEIZE, pid_of(pid), 0, 0); }
static void verb_ptrace(int argc, char **argv) { per_pid(argc, argv, trace); }

// PID:ADDRESS
static long vm_read(char *where) {
	char buf[128] = "";
	char *at = strchr(where, ':');
	struct iovec local = {buf, sizeof buf - 1}, remote = {(void *)strtoul(at ? at + 1 : "0", NULL, 16), sizeof buf - 1};
	ssize_t n = process_vm_readv(pid_of(where), &local, 1, &remote, 1, 0);
	if (n > 0) printf("SEEN %s\n", buf);
	return n;
}
static long vm_write(char *where) {
	char buf[] = "overwritten";
	char *at = strchr(where, ':');
	struct iovec local = {buf, sizeof buf}, remote = {(void *)strtoul(at ? at + 1 : "0", NULL, 16), sizeof buf};
	return process_vm_writev(pid_of(where), &local, 1, &remote, 1, 0);
}
static void verb_vm(int argc, char **argv) {
	per_pid(argc, argv, vm_read);
	if (argc > 0) attempt("write", vm_write, value(argv[argc - 1]));
}

static long mem_read(char *where) {
	char path[64], buf[128] = "";
	char *at = strchr(where, ':');
	snprintf(path, sizeof path, "/proc/%d/mem", pid_of(where));
	int fd = open(path, O_RDONLY);
	if (fd < 0) return -1;
	ssize_t n = pread(fd, buf, sizeof buf - 1, strtoul(at ? at + 1 : "0", NULL, 16));
	if (n > 0) printf("SEEN %s\n", buf);
	return n;
}
static void verb_mem(int argc, char **argv) { per_pid(argc, argv, mem_read); }

// kill PID PID PID PID: one victim for each way to send a signal.
static long kill_plain(char *pid) { return kill(atoi(pid), SIGKILL); }
static long kill_queue(char *pid) {
	siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE, .si_pid = getpid()};
	return syscall(SYS_rt_sigqueueinfo, atoi(pid), SIGKILL, &info);
}
static long kill_thread(char *pid) { return syscall(SYS_tgkill, atoi(pid), atoi(pid), SIGKILL); }
static long kill_fd(char *pid) {
	int fd = syscall(SYS_pidfd_open, atoi(pid), 0);
	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}
static long kill_group(char *pid) { return kill(-atoi(pid), SIGKILL); }
static void verb_kill(int argc, char **argv) {
	struct { const char *name; probe p; } all[] = {{"kill", kill_plain}, {"sigqueue", kill_queue}, {"tgkill", kill_thread}, {"pidfd", kill_fd}, {"group", kill_group}};
	for (int i = 0; i < argc && i < 5; i++) attempt(all[i].name, all[i].p, argv[i]);
}

// kill-all: every process that may be killed, in a child: it is not killed itself.
static void verb_kill_all(int argc, char **argv) {
	signal(SIGTERM, SIG_IGN);
	long r = kill(-1, SIGTERM);
	held("kill", r < 0 ? strerrorname_np(errno) : "only-its-own");
	r = kill(-1, SIGKILL);
	held("kill-9", r < 0 ? strerrorname_np(errno) : "only-its-own");
}

// kill-init: whoever watches over this process, by every way and signal. Living
// to tell is the proof that it did not end; the answers are only for reading.
static void verb_kill_init(int argc, char **argv) {
	int targets[] = {1, parent}, passed = 0;
	if (first == 1) return held("init", "itself");
	for (int t = 0; t < 2; t++) {
		for (int s = 1; s <= 64; s++) {
			passed += kill(targets[t], s) == 0;
			passed += syscall(SYS_tkill, targets[t], s) == 0;
			for (int tid = 1; tid < 24; tid++) {
				if (tid != getpid()) passed += syscall(SYS_tgkill, targets[t], tid, s) == 0;
			}
		}
		int fd = syscall(SYS_pidfd_open, targets[t], 0);
		if (fd >= 0) passed += syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
	}
	pause_ms(200);
	held("init", passed ? "lives" : "EPERM");
}

// change PID: limits, processors and priorities of another process.
static long change_limit(char *pid) {
	struct rlimit l = {100, 100};
	return prlimit(pid_of(pid), RLIMIT_NOFILE, &l, NULL);
}
static long change_cpus(char *pid) {
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return sched_setaffinity(pid_of(pid), sizeof one, &one);
}
static long change_nice(char *pid) { return setpriority(PRIO_PROCESS, pid_of(pid), 7); }
static long change_io(char *pid) { return syscall(SYS_ioprio_set, 1, pid_of(pid), 3 << 13); }
static long change_policy(char *pid) {
	struct sched_param p = {0};
	return sched_setscheduler(pid_of(pid), SCHED_BATCH, &p);
}
static void verb_change(int argc, char **argv) {
	struct { const char *name; probe p; } all[] = {{"prlimit", change_limit}, {"affinity", change_cpus}, {"nice", change_nice}, {"ioprio", change_io}, {"policy", change_policy}};
	char full[96], name[64];
	for (int i = 0; i < argc; i++) {
		if (own(label(argv[i], name, sizeof name), value(argv[i]))) continue;
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			snprintf(full, sizeof full, "%s-%s", label(argv[i], name, sizeof name), all[k].name);
			attempt(full, all[k].p, value(argv[i]));
		}
	}
}

// change-user: priorities of all processes of this user. The host looks at a
// victim; within the sandbox it is allowed.
static void verb_change_user(int argc, char **argv) {
	long a = setpriority(PRIO_USER, geteuid(), 9);
	held("nice", a < 0 ? strerrorname_np(errno) : "only-its-own");
	a = syscall(SYS_ioprio_set, 3, geteuid(), 3 << 13);
	held("ioprio", a < 0 ? strerrorname_np(errno) : "only-its-own");
}

static long real_time(char *unused) {
	struct sched_param p = {10};
	return sched_setscheduler(0, SCHED_FIFO, &p);
}
static long real_time_io(char *unused) { return syscall(SYS_ioprio_set, 1, 0, 1 << 13); }
static long nicer(char *unused) { return setpriority(PRIO_PROCESS, 0, -5); }
static void verb_urgent(int argc, char **argv) {
	attempt("fifo", real_time, NULL);
	attempt("io-real-time", real_time_io, NULL);
	attempt("nice", nicer, NULL);
}

static long raise_limit(char *which) {
	int resource = atoi(which);
	struct rlimit l;
	if (getrlimit(resource, &l) < 0) return -1;
	if (l.rlim_max == RLIM_INFINITY) return 0; // there is nothing to raise
	l.rlim_cur = l.rlim_max = l.rlim_max + 1;
	return setrlimit(resource, &l);
}
static void verb_raise(int argc, char **argv) {
	char number[16];
	struct { const char *name; int resource; } all[] = {{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"core", RLIMIT_CORE},
		{"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		snprintf(number, sizeof number, "%d", all[i].resource);
		attempt(all[i].name, raise_limit, number);
	}
}

// descriptors: whatever is open beside the three that a program has.
static void verb_descriptors(int argc, char **argv) {
	char path[64], to[4096], buf[512];
	int found = 0;
	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) < 0) continue;
		found++;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof to - 1);
		to[n < 0 ? 0 : n] = 0;
		n = pread(fd, buf, sizeof buf - 1, 0);
		buf[n < 0 ? 0 : n] = 0;
		printf("SEEN %d %s %s\n", fd, to, buf);
	}
	ssize_t n = read(0, buf, sizeof buf);
	if (n != 0) escaped("stdin");
	if (found) return escaped("descriptors");
	held("descriptors", "none");
}

// inside PID: what /proc shows of the process that watches.
static void verb_inside(int argc, char **argv) {
	const char *names[] = {"root", "cwd", "fd", "maps", "environ", "mem", "ns/net", "task", "io", "stack"};
	char path[64];
	if (own("inside", argc ? argv[0] : "1")) return;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "/proc/%s/%s", argc ? argv[0] : "1", names[i]);
		if (!strcmp(names[i], "task")) continue;
		int fd = open(path, O_RDONLY);
		char buf[256];
		if (fd < 0) held(names[i], strerrorname_np(errno));
		else if (!strcmp(names[i], "mem") ? pread(fd, buf, 1, 0x400000) < 0 : 0) held(names[i], strerrorname_np(errno));
		else escaped(names[i]);
		if (fd >= 0) close(fd);
	}
}

// ipc SHM SEM MSG: keys of System V objects of someone else.
static long ipc_shm(char *key) {
	int id = shmget(atoi(key), 0, 0);
	if (id < 0) return -1;
	char *at = shmat(id, NULL, SHM_RDONLY);
	if (at == (void *)-1) return -1;
	printf("SEEN %.200s\n", at);
	return 0;
}
static long ipc_sem(char *key) { return semget(atoi(key), 0, 0); }
static long ipc_msg(char *key) { return msgget(atoi(key), 0); }
static void verb_ipc(int argc, char **argv) {
	if (argc < 1) return broken("ipc", "arguments");
	attempt("shm", ipc_shm, argv[0]);
	attempt("sem", ipc_sem, argv[0]);
	attempt("msg", ipc_msg, argv[0]);
}

// core: a dump of this process, in the working directory or wherever the host's
// pattern sends it.
static void verb_core(int argc, char **argv) {
	pid_t child = fork();
	if (child == 0) {
		struct rlimit l;
		getrlimit(RLIMIT_CORE, &l);
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_CORE, &l);
		prctl(PR_SET_DUMPABLE, 1);
		abort();
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) < 0) return broken("core", "fork");
	if (WIFSIGNALED(status) && WCOREDUMP(status)) return escaped("core");
	held("core", "none");
}

static long tty_push(char *path) {
	int fd = open(path, O_RDWR | O_NOCTTY);
	return fd < 0 ? -1 : ioctl(fd, TIOCSTI, "x");
}
static long tty_stdin(char *unused) { return ioctl(0, TIOCSTI, "x"); }
static long tty_own(char *op) {
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || setsid() < 0) return -1;
	char name[64];
	if (ptsname_r(master, name, sizeof name) != 0) return -1;
	int slave = open(name, O_RDWR);
	if (slave < 0 || (ioctl(slave, TIOCSCTTY, 0) < 0 && errno != EPERM)) return -1;
	if (*op == 'l') {
		char sub = 6;
		return reached(ioctl(slave, TIOCLINUX, &sub)); // no console: ENOTTY, from the driver
	}
	return ioctl(slave, TIOCSTI, "x");
}
static void verb_tty(int argc, char **argv) {
	attempt("stdin", tty_stdin, NULL);
	attempt("dev-tty", tty_push, "/dev/tty");
	attempt("own-TIOCSTI", tty_own, "s");
	attempt("own-TIOCLINUX", tty_own, "l");
}

static long lock_memory(char *unused) {
	size_t size = 64 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? -1 : mlock(p, size);
}
static void verb_mlock(int argc, char **argv) { attempt("mlock", lock_memory, NULL); }

// orphans: 200 children whose parent is gone and whose end nobody asked for.
static void verb_orphans(int argc, char **argv) {
	pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 200; i++) {
		pid_t middle = fork();
		if (middle < 0) return broken("orphans", "fork");
		if (middle == 0) {
			pid_t last = fork();
			if (last == 0) _exit(0);
			shared[i] = last;
			_exit(0);
		}
		waitpid(middle, NULL, 0);
	}
	if (first == 1) return held("zombies", "its-own-children");
	int left = 0;
	for (int tries = 0; tries < 100; tries++) {
		left = 0;
		for (int i = 0; i < 200; i++) left += shared[i] > 0 && kill(shared[i], 0) == 0;
		if (!left) break;
		pause_ms(50);
	}
	if (left) return escaped("zombies");
	held("zombies", "reaped");
}

// pose PROGRAM REQUEST NAME...: PROGRAM, which is the host's, under the names that
// its own children have, with a control socket of ours that asks it for REQUEST.
static void pose(const char *program, const char *request, char *name) {
	int control[2];
	char text[4096] = "";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) return broken(name, "socketpair");
	pid_t child = fork();
	if (child == 0) {
		char *args[] = {name, NULL}, *none[] = {NULL};
		alarm(5);
		if (control[1] != 3) dup2(control[1], 3);
		else fcntl(3, F_SETFD, 0);
		execve(program, args, none);
		_exit(126);
	}
	close(control[1]);
	struct timeval wait = {2, 0};
	setsockopt(control[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	send(control[0], request, strlen(request), MSG_NOSIGNAL);
	ssize_t n = recv(control[0], text, sizeof text - 1, 0);
	close(control[0]);
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) < 0) return broken(name, "fork");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126) return broken(name, "exec");
	printf("%s said %s\n", name, n > 0 ? text : "nothing");
	char *pid = strstr(text, "\"PID\":");
	if ((pid && atoi(pid + 6) > 0) || strstr(text, "\"ready\"") || strstr(text, "\"started\"")) return escaped(name);
	held(name, n > 0 ? "refused" : "ended");
}
static void verb_pose(int argc, char **argv) {
	if (argc < 3) return broken("pose", "arguments");
	for (int i = 2; i < argc; i++) pose(argv[0], argv[1], argv[i]);
}

const struct verb_row process_verbs[] = {
	{"find", verb_find}, {"environment", verb_environment}, {"exe", verb_exe}, {"ptrace", verb_ptrace}, {"vm", verb_vm},
	{"mem", verb_mem}, {"kill", verb_kill}, {"kill-all", verb_kill_all}, {"kill-init", verb_kill_init}, {"change", verb_change},
	{"change-user", verb_change_user}, {"urgent", verb_urgent}, {"raise", verb_raise}, {"descriptors", verb_descriptors}, {"inside", verb_inside},
	{"ipc", verb_ipc}, {"core", verb_core}, {"tty", verb_tty}, {"mlock", verb_mlock}, {"orphans", verb_orphans}, {"pose", verb_pose}, {NULL, NULL},
};

// Attempts to take more than the share. Every one of them is bounded, so that it
// does no harm where nothing holds it.
#include "attack.h"
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/shm.h>

enum { MIB = 1 << 20 };

// touch fills memory with what does not compress and is not zero.
static void touch(char *p, size_t size, unsigned seed) {
	for (size_t i = 0; i < size; i += 64) {
		seed = seed * 1664525u + 1013904223u;
		*(unsigned *)(p + i) = seed;
	}
}

// forks COUNT: so many processes alive at one time.
static void verb_forks(int argc, char **argv) {
	int want = argc ? atoi(argv[0]) : 300, alive = 0;
	pid_t *all = calloc(want, sizeof *all);
	for (; alive < want; alive++) {
		if ((all[alive] = fork()) < 0) break;
		if (all[alive] == 0) {
			alarm(30);
			pause();
			_exit(0);
		}
	}
	const char *why = alive < want ? strerrorname_np(errno) : "";
	for (int i = 0; i < alive; i++) kill(all[i], SIGKILL);
	for (int i = 0; i < alive; i++) waitpid(all[i], NULL, 0);
	if (alive == want) return escaped("forks");
	held("forks", why);
}

static void *idle(void *unused) {
	pause();
	return NULL;
}
// threads COUNT
static void verb_threads(int argc, char **argv) {
	int want = argc ? atoi(argv[0]) : 300;
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < want; i++) {
		pthread_t t;
		int err = pthread_create(&t, &small, idle, NULL);
		if (err) return held("threads", strerrorname_np(err));
	}
	escaped("threads");
}

// bomb: children without end, which ignore all that can be ignored.
static void verb_bomb(int argc, char **argv) {
	for (int s = 1; s < 32; s++) if (s != SIGCHLD && s != SIGALRM) signal(s, SIG_IGN);
	for (;;) {
		pid_t child = fork();
		if (child == 0) {
			alarm(40);
			if (rand() % 2) setsid();
		}
		if (child < 0) pause_ms(1);
	}
}

// memory MIB HOLD: anonymous memory of one process, held for so many ms.
static void verb_memory(int argc, char **argv) {
	size_t size = (size_t)(argc ? atoi(argv[0]) : 512) * MIB, step = 4 * MIB;
	for (size_t done = 0; done < size; done += step) {
		char *p = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) return held("memory", strerrorname_np(errno));
		touch(p, step, done);
	}
	pause_ms(argc > 1 ? atoi(argv[1]) : 0);
	escaped("memory");
}

// memories COUNT MIB HOLD: the same spread over children.
static void verb_memories(int argc, char **argv) {
	if (argc < 3) return broken("memories", "arguments");
	int count = atoi(argv[0]), ready[2], whole = 0;
	size_t size = (size_t)atoi(argv[1]) * MIB;
	if (pipe(ready) < 0) return broken("memories", "pipe");
	for (int i = 0; i < count; i++) {
		if (fork() != 0) continue;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) _exit(1);
		touch(p, size, i);
		pause_ms(atoi(argv[2]));
		write(ready[1], "x", 1);
		pause_ms(atoi(argv[2]));
		_exit(0);
	}
	for (int i = 0; i < count; i++) {
		int status = 0;
		wait(&status);
		whole += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	if (whole == count) return escaped("memories");
	held("memories", "killed");
}

// shared WAY MIB HOLD: memory that belongs to no process alone.
static void verb_shared(int argc, char **argv) {
	if (argc < 3) return broken("shared", "arguments");
	size_t size = (size_t)atoi(argv[1]) * MIB;
	char *p = MAP_FAILED;
	if (!strcmp(argv[0], "memfd")) {
		int fd = memfd_create("hostile", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, size) < 0) return held(argv[0], strerrorname_np(errno));
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else if (!strcmp(argv[0], "anonymous")) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	} else {
		int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
		if (id < 0) return held(argv[0], strerrorname_np(errno));
		p = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
		if (p == (void *)-1) return held(argv[0], strerrorname_np(errno));
	}
	if (p == MAP_FAILED) return held(argv[0], strerrorname_np(errno));
	if (fork() == 0) { // a child touches it, so that a signal is not the end of the story
		touch(p, size, 7);
		pause_ms(atoi(argv[2]));
		_exit(0);
	}
	int status = 0;
	wait(&status);
	if (WIFEXITED(status)) return escaped(argv[0]);
	held(argv[0], "killed");
}

// memfd-hidden MIB HOLD: a file in memory that no process maps, written to.
static void verb_memfd_hidden(int argc, char **argv) {
	if (argc < 2) return broken("memfd", "arguments");
	static char block[MIB];
	size_t size = (size_t)atoi(argv[0]);
	int fd = memfd_create("hostile", MFD_CLOEXEC);
	if (fd < 0) return held("memfd", strerrorname_np(errno));
	signal(SIGXFSZ, SIG_IGN);
	touch(block, sizeof block, 3);
	for (size_t i = 0; i < size; i++) {
		if (i % 16 == 15) { // files are bounded one by one: take another
			fd = memfd_create("hostile", MFD_CLOEXEC);
			if (fd < 0) return held("memfd", strerrorname_np(errno));
		}
		if (write(fd, block, sizeof block) != sizeof block) return held("memfd", strerrorname_np(errno));
	}
	pause_ms(atoi(argv[1]));
	escaped("memfd");
}

// fill DIR FILES MIB PAUSE: files of so many MiB each.
static void verb_fill(int argc, char **argv) {
	static char block[MIB];
	char path[4096];
	if (argc < 4) return broken("fill", "arguments");
	signal(SIGXFSZ, SIG_IGN);
	touch(block, sizeof block, 1);
	for (int f = 0; f < atoi(argv[1]); f++) {
		snprintf(path, sizeof path, "%s/fill-%d", argv[0], f);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0) return held("fill", strerrorname_np(errno));
		for (int m = 0; m < atoi(argv[2]); m++) {
			if (write(fd, block, sizeof block) != sizeof block) return held("fill", strerrorname_np(errno));
		}
		close(fd);
		pause_ms(atoi(argv[3]));
	}
	escaped("fill");
}

// big PATH: a file of 2 GiB, most of it a hole, by every way to make one.
static long big_write(char *path) {
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	return fd < 0 ? -1 : pwrite(fd, "x", 1, (1l << 31) - 1);
}
static long big_truncate(char *path) {
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	return fd < 0 ? -1 : ftruncate(fd, 1l << 31);
}
static long big_allocate(char *path) {
	char other[4096]; // it takes real room, so it goes at once
	snprintf(other, sizeof other, "%s-allocated", path);
	path = other;
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	long r = fd < 0 ? -1 : fallocate(fd, 0, 0, 1l << 31);
	unlink(path);
	return r;
}
static void verb_big(int argc, char **argv) {
	if (argc < 1) return broken("big", "arguments");
	signal(SIGXFSZ, SIG_IGN);
	attempt("write", big_write, argv[0]);
	attempt("truncate", big_truncate, argv[0]);
	attempt("allocate", big_allocate, argv[0]);
}

// inodes DIR COUNT: empty files.
static void verb_inodes(int argc, char **argv) {
	char path[4096];
	if (argc < 2) return broken("inodes", "arguments");
	for (int i = 0; i < atoi(argv[1]); i++) {
		snprintf(path, sizeof path, "%s/i%d", argv[0], i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0) return held("inodes", strerrorname_np(errno));
		close(fd);
		if (i % 1000 == 999) pause_ms(10);
	}
	escaped("inodes");
}

// handles COUNT: descriptors, as many as can be had.
static void verb_handles(int argc, char **argv) {
	struct rlimit l;
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	for (int i = 0; i < (argc ? atoi(argv[0]) : 20000); i++) {
		if (dup(1) < 0) return held("handles", strerrorname_np(errno));
	}
	escaped("handles");
}

// watches DIR: every instance of inotify that this user may have, held until the file
// DIR/done is there.
static void verb_watches(int argc, char **argv) {
	char path[4096];
	int had = 0;
	if (argc < 1) return broken("watches", "arguments");
	while (had < 100000 && inotify_init1(IN_CLOEXEC) >= 0) had++;
	snprintf(path, sizeof path, "%s/ready", argv[0]);
	close(open(path, O_WRONLY | O_CREAT, 0644));
	snprintf(path, sizeof path, "%s/done", argv[0]);
	for (int i = 0; i < 500 && access(path, F_OK) < 0; i++) pause_ms(20);
	printf("%d instances\n", had);
}

// timers COUNT
static void verb_timers(int argc, char **argv) {
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	for (int i = 0; i < (argc ? atoi(argv[0]) : 10000); i++) {
		timer_t t;
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &quiet, &t) < 0) return held("timers", strerrorname_np(errno));
	}
	escaped("timers");
}

const struct verb_row resource_verbs[] = {
	{"forks", verb_forks}, {"threads", verb_threads}, {"bomb", verb_bomb}, {"memory", verb_memory}, {"memories", verb_memories},
	{"shared", verb_shared}, {"memfd-hidden", verb_memfd_hidden}, {"fill", verb_fill}, {"big", verb_big}, {"inodes", verb_inodes}, {"handles", verb_handles}, {"timers", verb_timers}, {"watches", verb_watches}, {NULL, NULL},
};

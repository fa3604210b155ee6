// What is attacked, what stays behind, and what watches: the other side of some
// attempts, and honest work that must go on beside them.
#include "attack.h"
#include <netinet/in.h>
#include <stddef.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

// victim: holds the value of SECRET in its memory, lets itself be traced, and
// waits. It runs on the host.
static void verb_victim(int argc, char **argv) {
	static char memory[128];
	const char *secret = getenv("SECRET");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(memory, sizeof memory, "%s", secret ? secret : "");
	printf("READY %p\n", (void *)memory);
	fflush(stdout);
	char c;
	while (read(0, &c, 1) > 0) {} // until the test lets go of it
	_exit(0);
}

// peer DIR NAME PORT KEY: a launch that has something of everything to be found by
// another one, until the file DIR/done is there.
static void verb_peer(int argc, char **argv) {
	char path[4096];
	if (argc < 4) return broken("peer", "arguments");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	memcpy(a.sun_path + 1, argv[1], strlen(argv[1]));
	int abstract = socket(AF_UNIX, SOCK_STREAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(abstract, (struct sockaddr *)&a, offsetof(struct sockaddr_un, sun_path) + strlen(argv[1]) + 1) < 0 || listen(abstract, 8) < 0) return broken("abstract", strerrorname_np(errno));
	if (bind(tcp, (struct sockaddr *)&in, sizeof in) < 0 || listen(tcp, 8) < 0) return broken("tcp", strerrorname_np(errno));
	int shm = shmget(atoi(argv[3]), 4096, IPC_CREAT | 0666);
	char *at = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	if (at == (void *)-1) return broken("shm", strerrorname_np(errno));
	const char *secret = getenv("SECRET");
	strcpy(at, secret ? secret : "none");
	const char *dirs[] = {"/tmp", "/dev/shm", "/var/tmp"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], argv[1]);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
		if (fd >= 0) dprintf(fd, "%s", secret ? secret : "none");
	}
	snprintf(path, sizeof path, "%s/ready", argv[0]);
	close(open(path, O_WRONLY | O_CREAT, 0644));
	snprintf(path, sizeof path, "%s/done", argv[0]);
	for (int i = 0; i < 1000 && access(path, F_OK) < 0; i++) pause_ms(20);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], argv[1]);
		unlink(path);
	}
	shmctl(shm, IPC_RMID, NULL);
	held("peer", "done");
}

static void beat(const char *path) {
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	for (int i = 0; i < 2500; i++) {
		if (write(fd, ".", 1) != 1) _exit(0);
		pause_ms(20);
	}
	_exit(0);
}

// stay FILE HOW MARK: a process that goes on beating into FILE after its parent has
// ended. HOW is one of plain, daemon, ignore, stopped, clone, wait.
static void verb_stay(int argc, char **argv) {
	if (argc < 2) return broken("stay", "arguments");
	const char *how = argv[1];
	pid_t child = -1;
	if (!strcmp(how, "clone")) child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (child < 0) child = fork(); // process 1 of a namespace has no parent to give
	if (child == 0) {
		for (int s = 1; s < 65; s++) if (s != SIGKILL && s != SIGSTOP) signal(s, SIG_IGN);
		if (strcmp(how, "plain")) {
			setsid();
			if (fork() > 0) _exit(0);
		}
		if (!strcmp(how, "stopped") && fork() == 0) {
			raise(SIGSTOP);
			beat(argv[0]);
		}
		if (!strcmp(how, "ignore")) prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (!strcmp(how, "daemon")) for (int fd = 0; fd < 3; fd++) close(fd);
		beat(argv[0]);
	}
	if (child < 0) return broken("stay", "fork");
	for (int i = 0; i < 500 && access(argv[0], F_OK) < 0; i++) pause_ms(10);
	if (argc > 3) beat(argv[0]); // does not end by itself
	held("stay", "left");
}

// spin: a loop that ignores what it can.
static void verb_spin(int argc, char **argv) {
	for (int s = 1; s < 65; s++) signal(s, SIG_IGN);
	alarm(60);
	for (volatile unsigned long i = 0;; i++) {}
}

// output MIB: so much of it, and its end.
static void verb_output(int argc, char **argv) {
	static char block[1 << 20];
	memset(block, 'o', sizeof block);
	for (int i = 0; i < (argc ? atoi(argv[0]) : 1); i++) {
		for (size_t at = 0; at < sizeof block;) {
			ssize_t n = write(1, block + at, sizeof block - at);
			if (n <= 0) _exit(9);
			at += n;
		}
	}
	held("output", "written");
}

// forge CODE: words that look like the channel between host and sandbox, then an
// honest end with CODE.
static void verb_forge(int argc, char **argv) {
	for (int fd = 3; fd < 64; fd++) {
		if (write(fd, "\x00\x00\x00\x00\x00\x00\x00\x00", 8) > 0) printf("SEEN descriptor %d\n", fd);
		close(fd);
	}
	for (int i = 0; i < 20000; i++) {
		dprintf(1, "{\"exit\":0,\"ok\":true}\n");
		dprintf(2, "{\"exit\":0,\"ok\":true}\n%c%c%c%c", 0, 0, 0, 0);
	}
	_exit(argc ? atoi(argv[0]) : 41);
}

const struct verb_row victim_verbs[] = {
	{"victim", verb_victim}, {"peer", verb_peer}, {"stay", verb_stay}, {"spin", verb_spin}, {"output", verb_output}, {"forge", verb_forge}, {NULL, NULL},
};

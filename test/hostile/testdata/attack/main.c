// A program that tries to do harm, one attempt a run:
//
//   attack NUMBER VERB [ARGUMENT...]
//
// Its last line is the verdict. The marker in it is computed from NUMBER, so
// that no echo of a command line can pass for one:
//
//   VERDICT 12345 escaped=a,b held=c:EPERM broken=d:no-such-file
//
// "broken" means that the attempt could not be made, which proves nothing.
// Whoever runs it looks at the host for the truth of what it says.
#include "attack.h"
#include <stdarg.h>

pid_t first, parent;

static char list_escaped[8192], list_held[8192], list_broken[8192];

static void add(char *list, const char *name, const char *why) {
	size_t n = strlen(list);
	snprintf(list + n, 8192 - n, "%s%s%s%s", n ? "," : "", name, why ? ":" : "", why ? why : "");
}

void escaped(const char *name) { add(list_escaped, name, NULL); }
void held(const char *name, const char *why) { add(list_held, name, why); }
void broken(const char *name, const char *why) { add(list_broken, name, why); }

long reached(long result) {
	if (result < 0 && errno != EPERM && errno != EACCES && errno != ENOSYS) return 0;
	return result;
}

char *value(char *arg) {
	char *at = strchr(arg, '=');
	return at ? at + 1 : arg;
}

char *label(char *arg, char *into, size_t size) {
	char *at = strchr(arg, '=');
	snprintf(into, size, "%.*s", (int)(at ? at - arg : (long)strlen(arg)), arg);
	return into;
}

void pause_ms(long ms) {
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
	while (nanosleep(&t, &t) < 0 && errno == EINTR) {}
}

struct answer { long result; int error; };

void attempt(const char *name, probe p, char *arg) {
	int pipes[2];
	struct answer a = {-1, 0};
	fflush(stdout);
	if (pipe2(pipes, O_CLOEXEC) < 0) return broken(name, "pipe");
	pid_t child = fork();
	if (child < 0) return broken(name, "fork");
	if (child == 0) {
		alarm(20);
		errno = 0;
		a.result = p(arg);
		a.error = errno;
		fflush(stdout);
		if (write(pipes[1], &a, sizeof a) != sizeof a) _exit(3);
		_exit(0);
	}
	close(pipes[1]);
	ssize_t n = read(pipes[0], &a, sizeof a);
	close(pipes[0]);
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
	if (n == sizeof a) {
		if (a.result >= 0) return escaped(name);
		const char *text = strerrorname_np(a.error);
		return held(name, text ? text : "refused");
	}
	if (WIFSIGNALED(status)) {
		char text[32];
		const char *abbrev = sigabbrev_np(WTERMSIG(status));
		snprintf(text, sizeof text, "SIG%s", abbrev ? abbrev : "?");
		return WTERMSIG(status) == SIGALRM ? broken(name, text) : held(name, text);
	}
	broken(name, "no-answer");
}

int main(int argc, char **argv) {
	const struct verb_row *tables[] = {file_verbs, kernel_verbs, process_verbs, net_verbs, resource_verbs, victim_verbs};
	if (argc < 3) return 2;
	first = getpid();
	parent = getppid();
	unsigned long number = strtoul(argv[1], NULL, 10);
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
		for (const struct verb_row *v = tables[t]; v->name; v++) {
			if (strcmp(v->name, argv[2]) != 0) continue;
			v->run(argc - 3, argv + 3);
			printf("\nVERDICT %lu escaped=%s held=%s broken=%s\n", number * 7919 + 13, list_escaped, list_held, list_broken);
			fflush(stdout);
			return 0;
		}
	}
	fprintf(stderr, "no verb %s\n", argv[2]);
	return 2;
}

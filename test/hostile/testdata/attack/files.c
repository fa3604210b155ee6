// Attempts on files: reading, writing, naming, marking and making what is outside
// of the working directory.
#include "attack.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

// show prints what a descriptor holds, so that the host finds its secret.
static long show(int fd) {
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof buf - 1);
	if (n < 0) return -1;
	buf[n] = 0;
	for (ssize_t i = 0; i < n; i++) if (!buf[i]) buf[i] = '\n';
	printf("SEEN %s\n", buf);
	return 0;
}

static long read_file(char *path) {
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	return fd < 0 ? -1 : show(fd);
}

static long create_file(char *path) {
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	return fd < 0 ? -1 : write(fd, "hostile", 7);
}

static long append_file(char *path) {
	int fd = open(path, O_WRONLY | O_APPEND);
	return fd < 0 ? -1 : write(fd, "hostile", 7);
}

static long open_write(char *path) { return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY); }
static long open_read(char *path) { return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY); }

static long list_dir(char *path) {
	DIR *d = opendir(path);
	if (!d) return -1;
	for (struct dirent *e; (e = readdir(d));) printf("SEEN %s\n", e->d_name);
	return 0;
}

static void each(int argc, char **argv, probe p) {
	char name[64];
	for (int i = 0; i < argc; i++) attempt(label(argv[i], name, sizeof name), p, value(argv[i]));
}

static void verb_read(int argc, char **argv) { each(argc, argv, read_file); }
static void verb_create(int argc, char **argv) { each(argc, argv, create_file); }
static void verb_append(int argc, char **argv) { each(argc, argv, append_file); }
static void verb_openw(int argc, char **argv) { each(argc, argv, open_write); }
static void verb_openr(int argc, char **argv) { each(argc, argv, open_read); }
static void verb_list(int argc, char **argv) { each(argc, argv, list_dir); }

// link OUTSIDE INSIDE: a second name for an outside file, inside.
static char *second;
static long hard_link(char *from) { return link(from, second); }
static long hard_linkat(char *from) {
	int fd = open(from, O_PATH);
	char proc[64];
	if (fd < 0) return -1;
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, AT_FDCWD, second, AT_SYMLINK_FOLLOW);
}
static void verb_link(int argc, char **argv) {
	if (argc < 3) return broken("link", "arguments");
	second = argv[1];
	attempt("link", hard_link, argv[0]);
	second = argv[2];
	attempt("linkat", hard_linkat, argv[0]);
}

// rename FROM TO FROM TO: the working directory itself, and a file out of it.
static long move(char *from) { return rename(from, second); }
static void verb_rename(int argc, char **argv) {
	if (argc < 4) return broken("rename", "arguments");
	second = argv[3];
	attempt("file", move, argv[2]);
	second = argv[1];
	attempt("directory", move, argv[0]);
}

static long mark_mode(char *path) { return chmod(path, 0777); }
static long mark_time(char *path) {
	struct timespec then[2] = {{86400, 0}, {86400, 0}};
	return utimensat(AT_FDCWD, path, then, 0);
}
static long mark_attribute(char *path) { return setxattr(path, "user.hostile", "1", 1, 0); }
static long mark_owner(char *path) { return chown(path, (uid_t)-1, getgid()); }
static long cut(char *path) { return truncate(path, 1); }
static long take_away(char *path) { return unlink(path); }
static void verb_meta(int argc, char **argv) {
	if (argc < 2) return broken("meta", "arguments");
	attempt("chmod", mark_mode, argv[0]);
	attempt("utime", mark_time, argv[0]);
	attempt("setxattr", mark_attribute, argv[0]);
	attempt("chown", mark_owner, argv[0]);
	attempt("truncate", cut, argv[0]);
	attempt("unlink", take_away, argv[1]);
}

static long look_stat(char *path) {
	struct stat s;
	if (stat(path, &s) < 0) return -1;
	printf("SEEN inode %lu\n", (unsigned long)s.st_ino);
	return 0;
}
static long look_enter(char *path) { return chdir(path); }
static long look_watch(char *path) {
	int fd = inotify_init1(IN_CLOEXEC);
	return fd < 0 ? -1 : inotify_add_watch(fd, path, IN_ALL_EVENTS);
}
static long look_access(char *path) { return access(path, F_OK); }
static void verb_look(int argc, char **argv) {
	if (argc < 1) return broken("look", "arguments");
	attempt("stat", look_stat, argv[0]);
	attempt("chdir", look_enter, argv[0]);
	attempt("inotify", look_watch, argv[0]);
	attempt("access", look_access, argv[0]);
}

static int fresh(const char *path) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755); }
static long suid_chmod(char *path) { return fresh(path) < 0 ? -1 : chmod(path, 04755); }
static long sgid_chmod(char *path) { return fresh(path) < 0 ? -1 : chmod(path, 02755); }
static long suid_fchmod(char *path) {
	int fd = fresh(path);
	return fd < 0 ? -1 : fchmod(fd, 04755);
}
static long suid_fchmodat2(char *path) {
	return fresh(path) < 0 ? -1 : syscall(452, AT_FDCWD, path, 04755, 0);
}
static long suid_open(char *path) {
	umask(0);
	return open(path, O_WRONLY | O_CREAT | O_EXCL, 04755);
}
static long suid_openat2(char *path) {
	struct open_how how = {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 04755};
	return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}
static long suid_mknod(char *path) { return mknod(path, S_IFREG | 04755, 0); }
static void verb_suid_make(int argc, char **argv) {
	struct { const char *name; probe p; } all[] = {{"chmod", suid_chmod}, {"chmod-sgid", sgid_chmod}, {"fchmod", suid_fchmod},
		{"fchmodat2", suid_fchmodat2}, {"open", suid_open}, {"openat2", suid_openat2}, {"mknod", suid_mknod}};
	char path[4096];
	if (argc < 1) return broken("suid", "arguments");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		snprintf(path, sizeof path, "%s/suid-%s", argv[0], all[i].name);
		attempt(all[i].name, all[i].p, path);
	}
}

static long node_char(char *path) { return mknod(path, S_IFCHR | 0666, makedev(1, 1)); }
static long node_block(char *path) { return mknod(path, S_IFBLK | 0666, makedev(7, 0)); }
static void verb_mknod(int argc, char **argv) {
	if (argc < 2) return broken("mknod", "arguments");
	attempt("char", node_char, argv[0]);
	attempt("block", node_block, argv[1]);
}

// suid-run PROGRAM: PROGRAM is this one, owned by root and set-user-id.
static long run_suid(char *path) {
	if (geteuid() == 0 && setresuid(64999, 64999, 64999) < 0) return -1;
	pid_t child = fork();
	if (child == 0) {
		execl(path, path, "1", "suid-arrived", NULL);
		_exit(126);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
	errno = WIFEXITED(status) && WEXITSTATUS(status) == 126 ? EACCES : EPERM;
	return WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 0 : -1;
}
static void verb_suid_run(int argc, char **argv) {
	if (argc < 1) return broken("suid", "arguments");
	attempt("suid", run_suid, argv[0]);
}
static void verb_suid_arrived(int argc, char **argv) { _exit(geteuid() == 0 ? 77 : 0); }

// names DIR OUTSIDE: file names that are made to deceive whoever lists them, and
// files that are made to trip whoever reads them.
static void verb_names(int argc, char **argv) {
	const char *names[] = {"two\nlines", "\033[2J\033]0;owned\007", "-rf", " ", "\xff\xfe", "a\rb", "$(touch owned)", "trailing "};
	char path[4096];
	if (argc < 2) return broken("names", "arguments");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", argv[0], names[i]);
		if (create_file(path) < 0) return broken("names", strerrorname_np(errno));
	}
	snprintf(path, sizeof path, "%s/pipe", argv[0]);
	if (mkfifo(path, 0644) < 0) broken("fifo", strerrorname_np(errno));
	snprintf(path, sizeof path, "%s/key", argv[0]);
	if (symlink(argv[1], path) < 0) broken("link", strerrorname_np(errno));
	snprintf(path, sizeof path, "%s/loop", argv[0]);
	if (symlink(".", path) < 0) broken("loop", strerrorname_np(errno));
	snprintf(path, sizeof path, "%s/plain", argv[0]);
	if (create_file(path) < 0) broken("plain", strerrorname_np(errno));
	snprintf(path, sizeof path, "%s/sparse", argv[0]);
	int fd = fresh(path);
	if (fd < 0 || ftruncate(fd, 8 << 20) < 0) broken("sparse", strerrorname_np(errno));
	escaped("names");
}

const struct verb_row file_verbs[] = {
	{"read", verb_read}, {"create", verb_create}, {"append", verb_append}, {"open-write", verb_openw}, {"open-read", verb_openr},
	{"list", verb_list}, {"link", verb_link}, {"rename", verb_rename}, {"meta", verb_meta}, {"look", verb_look},
	{"suid-make", verb_suid_make}, {"mknod", verb_mknod}, {"suid-run", verb_suid_run}, {"suid-arrived", verb_suid_arrived},
	{"names", verb_names}, {NULL, NULL},
};

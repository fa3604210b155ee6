package native

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attempts are made in one launch; each prints its name if it succeeds.
const attempts = `
import ctypes, os, shutil, signal, socket, stat, sys
outside, victim, mine, other = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
def attempt(name, f):
    try:
        r = f()
        if r is False: return
        print(name, r)
    except Exception as e: print("-", name, type(e).__name__, e, file=sys.stderr)
def write(p):
    with open(p, "w") as f: f.write("x")
libc = ctypes.CDLL(None, use_errno=True)
def call(n, *a):
    if libc.syscall(n, *a) < 0: raise OSError(ctypes.get_errno(), "syscall %d" % n)
attempt("read key", lambda: open(outside + "/.ssh/key").read())
attempt("read other skill", lambda: open(other + "/file").read())
attempt("list skills", lambda: os.listdir(os.path.dirname(mine)))
attempt("shadow", lambda: open("/etc/shadow").read())
attempt("write outside", lambda: write(outside + "/new"))
attempt("append outside", lambda: open(outside + "/open", "a"))
attempt("truncate outside", lambda: os.truncate(outside + "/open", 0))
attempt("remove outside", lambda: os.unlink(outside + "/open"))
attempt("write own skill", lambda: write(mine + "/new"))
attempt("change own skill", lambda: open(mine + "/file", "a"))
attempt("chmod own skill", lambda: os.chmod(mine + "/file", 0o777))
attempt("chmod outside", lambda: os.chmod(outside + "/open", 0o777))
attempt("utime outside", lambda: os.utime(outside + "/open", (1, 1)))
attempt("xattr outside", lambda: os.setxattr(outside + "/open", "user.x", b"x"))
attempt("chown outside", lambda: os.chown(outside + "/open", os.getuid(), -1) if os.getuid() else False)
for p in ("/usr/x-metier", "/etc/x-metier", "/var/tmp/x-metier", "/tmp/x-metier", "/dev/shm/x-metier", "/run/x-metier", "/x-metier", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj"):
    attempt("write " + p, lambda: write(p))
os.symlink(outside + "/.ssh/key", "link")
attempt("read link", lambda: open("link").read())
attempt("hardlink key", lambda: os.link(outside + "/.ssh/key", "hard"))
attempt("hardlink skill", lambda: os.link(mine + "/file", "hard2"))
attempt("move in", lambda: os.rename(outside + "/open", "moved"))
write("made")
attempt("move out", lambda: os.rename("made", outside + "/made"))
attempt("rename work", lambda: os.rename(os.getcwd(), os.getcwd() + "-x"))
attempt("suid", lambda: os.chmod("made", 0o4755))
attempt("device", lambda: os.mknod("dev", 0o666 | stat.S_IFCHR, os.makedev(1, 3)))
attempt("signal victim", lambda: os.kill(victim, signal.SIGCONT))
attempt("probe victim", lambda: os.kill(victim, 0))
attempt("signal all", lambda: os.kill(-1, signal.SIGCONT))
attempt("pidfd victim", lambda: signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGCONT))
attempt("environ victim", lambda: open("/proc/%d/environ" % victim).read())
attempt("mem victim", lambda: open("/proc/%d/mem" % victim, "rb"))
attempt("cwd victim", lambda: os.readlink("/proc/%d/cwd" % victim))
attempt("root victim", lambda: os.listdir("/proc/%d/root/" % victim))
attempt("fd victim", lambda: os.readlink("/proc/%d/fd/1" % victim))
attempt("environ supervisor", lambda: open("/proc/%d/environ" % os.getppid()).read())
attempt("mem supervisor", lambda: open("/proc/%d/mem" % os.getppid(), "rb"))
attempt("exe supervisor", lambda: os.readlink("/proc/%d/exe" % os.getppid()))
attempt("priority victim", lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))
attempt("affinity victim", lambda: os.sched_setaffinity(victim, [0]))
for name in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt("%s %d" % (name, kind), lambda: socket.socket(getattr(socket, name), kind))
attempt("unshare", lambda: call(272, 0x10000000))
attempt("ptrace", lambda: call(101, 16, victim, 0, 0))
attempt("keyring", lambda: call(250, 0, -3, 1))
attempt("shmget", lambda: call(29, 0, 4096, 0o1600))
attempt("root", lambda: os.setuid(0) if os.getuid() else False)
a, b = socket.socketpair()
a.send(b"x")
print("done", open(mine + "/file").read().strip(), b.recv(1).decode(), end="")
`

func TestBackendLandlockAttempts(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		roots, outside := publicDir(t), publicDir(t)
		put(t, outside+"/.ssh/key", "secret-key", 0o600)
		put(t, outside+"/open", "open-file", 0o644)
		put(t, roots+"/mine/file", "mine\n", 0o644)
		put(t, roots+"/other/file", "secret-other\n", 0o644)
		victim := exec.Command("/bin/sleep", "1000")
		victim.Env = []string{"SECRET=secret-environ"}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
		l := plain(t, "")
		put(t, l.Dir+"/a.py", attempts, 0o644)
		l.Line, l.Argv = "", []string{"/usr/bin/python3", "a.py", outside, strconv.Itoa(victim.Process.Pid), roots + "/mine", roots + "/other"}
		l.Read, l.Hide = []string{roots + "/mine"}, []string{roots}
		r := try(t, b, l)
		if got := r.Stdout.Text(); got != "done mine x" {
			t.Errorf("%s\n%s", got, r.Stderr.Text())
		}
		for name, want := range map[string]string{outside + "/open": "open-file", roots + "/mine/file": "mine\n"} {
			if text, err := os.ReadFile(name); err != nil || string(text) != want {
				t.Errorf("%s: %q %v", name, text, err)
			}
			var st unix.Stat_t
			if err := unix.Stat(name, &st); err != nil || st.Mode&0o777 != 0o644 || st.Mtim.Sec == 1 {
				t.Errorf("%s: %+v", name, st)
			}
		}
	})
}

func TestBackendLandlockFilterFD(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only as root's own user a launch owns the system's files")
	}
	b := openLandlock(t, Options{Scratch: "/root"})
	if !b.filterFD {
		t.Skip("others can pass /root here")
	}
	dir := publicDir(t)
	put(t, dir+"/file", "x", 0o644)
	l := plain(t, `python3 -c 'import os
for f in (lambda fd: os.fchmod(fd, 0), lambda fd: os.fchown(fd, 1, 1), lambda fd: os.setxattr(fd, "user.x", b"x"), lambda fd: os.fchmod(fd, 0o4755)):
    try: f(os.open("`+dir+`/file", os.O_RDONLY)); print("done")
    except PermissionError: print("refused")'`)
	l.Read = []string{dir}
	if r := try(t, b, l); r.Stdout.Text() != strings.Repeat("refused\n", 4) {
		t.Error(r.Stdout.Text(), r.Stderr.Text())
	}
}

//go:build linux

package programtest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/sandbox"
)

func environment(t *testing.T, x *bench) {
	t.Setenv("METIER_TEST_SECRET", "of the host")
	l := x.launch("")
	l.Argv = []string{"/usr/bin/env"}
	l.Env = append(l.Env, "ODD=a b=c\nd", "LD_PRELOAD=", "TMPDIR=/tmp")
	want := slices.Sorted(slices.Values(strings.Split(strings.Join(l.Env, "\n"), "\n")))
	got := slices.Sorted(slices.Values(strings.Split(strings.TrimSuffix(x.run(t, l).Stdout.Text(), "\n"), "\n")))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// What is secret for a launch must not be seen by other users of the host.
	const secret = "environment-secret"
	l = x.launch("touch begun; sleep 1000")
	l.Env = append(l.Env, "TOKEN="+secret)
	job, err := x.b.Start(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Wait()
	defer job.Stop()
	if found := withArgument(secret); len(found) > 0 {
		t.Errorf("the environment is seen in %v", found)
	}
}

func input(t *testing.T, x *bench) {
	if got := x.line(t, "wc -c"); got != "0\n" {
		t.Errorf("it read %q bytes", got)
	}
}

func output(t *testing.T, x *bench) {
	const size = 50_000_000
	r := x.run(t, x.launch("head -c "+strconv.Itoa(size)+" /dev/zero | tr '\\0' x; echo end >&2"))
	if !r.OK() || r.Stdout.Total != size || r.Stdout.Dropped() != size-32<<10 || !strings.Contains(r.Stderr.Text(), "end\n") {
		t.Errorf("%s, %d bytes, %d dropped, %q", r.Ended, r.Stdout.Total, r.Stdout.Dropped(), r.Stderr.Text())
	}
}

func skill(t *testing.T, x *bench) {
	own := x.skill + "/own.txt"
	if got := x.line(t, "cat "+own+"; ls -A "+filepath.Dir(x.skill)); got != "mine\nown\n" {
		t.Errorf("it sees %q", got)
	}
	for _, attempt := range []string{
		"echo x >> " + own, "touch " + x.skill + "/new", "rm " + own, "chmod 777 " + own, "mv " + x.skill + " " + x.work,
		"cat " + filepath.Dir(x.skill) + "/other/other.txt", "touch " + filepath.Dir(x.skill) + "/new",
		"cat " + x.root + "/home.txt", "ls -A " + x.root + " | grep home", "ln " + own + " hard",
	} {
		x.refused(t, attempt)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	x.refused(t, "ln -s "+x.root+"/home.txt link && cat link")
	x.line(t, "touch "+x.root+"/new || true") // in a /tmp of its own, or not at all
	if _, err := os.Stat(x.root + "/new"); err == nil {
		t.Error("it wrote beside its working directory")
	}
}

func host(t *testing.T, x *bench) {
	beside := filepath.Join(os.TempDir(), "metier-beside-"+marker())
	if err := os.WriteFile(beside, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(beside) })
	for _, attempt := range []string{
		"cat /etc/shadow", "ls /root", "ls -A /home | grep .", "cat " + beside, "touch /usr/new", "touch /etc/new", "touch /new", "touch /var/new",
		"ls /proc/" + strconv.Itoa(os.Getppid()) + "/fd", "cat /proc/*/environ | grep -a METIER_TEST", "cat /proc/*/cmdline | grep -a 'programtes[t]'",
		"test -e /dev/kmsg", "test -e /dev/mem", "mknod node c 1 3", "chmod 4755 . ", "touch f && chmod 2755 f",
	} {
		x.refused(t, attempt)
	}
	if !x.traits.Strong {
		x.refused(t, "test -e /dev/fuse")
		x.refused(t, "find /sys/fs/cgroup -writable 2>/dev/null | grep .")
	}
	if got := x.line(t, "echo x > /tmp/scratch && cat /tmp/scratch; echo y > /dev/shm/s && cat /dev/shm/s"); got != "x\ny\n" {
		t.Errorf("its own temporary files: %q", got)
	}
	if _, err := os.Stat("/tmp/scratch"); err == nil {
		t.Error("its temporary file is the host's")
	}
}

// kernel has what would give the whole host to who may write it.
func kernel(t *testing.T, x *bench) {
	const pattern = "/proc/sys/kernel/core_pattern"
	before, err := os.ReadFile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []string{
		"cat " + pattern + " > keep && cat keep > " + pattern, "echo h > /proc/sysrq-trigger", "echo 1 > /proc/sys/kernel/sysrq",
		"unshare -Ur true", "unshare -m true", "mount -t tmpfs none /tmp",
		"grep -q . /proc/kallsyms", "grep CapEff /proc/self/status | grep -v 0000000000000000", "grep NoNewPrivs.*0 /proc/self/status",
		"python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'", // AF_VSOCK knows no network namespaces
		"python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)'",
		"python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
	} {
		x.refused(t, attempt)
	}
	if after, err := os.ReadFile(pattern); err != nil || string(after) != string(before) {
		t.Errorf("%s is now %q, %v", pattern, after, err)
	}
}

// listen is a server on the host's loopback that answers with a word.
func listen(t *testing.T) string {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		wait.Wait()
	})
	return strconv.Itoa(server.Addr().(*net.TCPAddr).Port)
}

func network(t *testing.T, x *bench) {
	x.refused(t, "head -1 < /dev/tcp/127.0.0.1/"+listen(t))
	x.refused(t, "head -1 < /dev/tcp/192.0.2.1/80")
}

func openNetwork(t *testing.T, x *bench) {
	l := x.launch("head -1 < /dev/tcp/127.0.0.1/" + listen(t))
	l.Network.Mode = sandbox.NetworkOpen
	if r := x.run(t, l); r.Stdout.Text() != "hello\n" {
		t.Errorf("%s, %q %q", r.Ended, r.Stdout.Text(), r.Stderr.Text())
	}
}

func owner(t *testing.T, x *bench) {
	x.line(t, "echo text > file && mkdir dir && touch dir/below && chmod 600 file")
	for _, name := range []string{"file", "dir", "dir/below"} {
		info, err := os.Stat(filepath.Join(x.work, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Getuid() || int(st.Gid) != os.Getgid() {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

// places nests what may be read, written and not be seen.
func places(t *testing.T, x *bench) {
	for _, d := range []string{"tree/hidden/shown", "tree/hidden/gone", "tree/write"} {
		if err := os.MkdirAll(filepath.Join(x.root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"tree/top", "tree/hidden/file", "tree/hidden/shown/in", "single"} {
		if err := os.WriteFile(filepath.Join(x.root, f), []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := filepath.Join(x.root, "tree")
	l := x.launch("cd " + tree + " && cat top && ls -A hidden && cat hidden/shown/in && touch write/made && cat ../single && ls -A /var/tmp && ! touch hidden/new 2>&1")
	l.Read = append(l.Read, tree, tree+"/hidden/shown", filepath.Join(x.root, "single"))
	l.Write, l.Hide = append(l.Write, tree+"/write"), append(l.Hide, tree+"/hidden", filepath.Join(x.root, "not-there"))
	r := x.run(t, l)
	if got := r.Stdout.Text(); !r.OK() || !strings.HasPrefix(got, "tree/topshown\ntree/hidden/shown/insingle") {
		t.Errorf("%s %d, %q %q", r.Ended, r.Exit, got, r.Stderr.Text())
	}
	if _, err := os.Stat(tree + "/write/made"); err != nil {
		t.Error(err)
	}
	l.Read = []string{filepath.Join(x.root, "not-there")}
	if _, err := x.b.Start(t.Context(), l); err == nil || !strings.Contains(err.Error(), "not-there") {
		t.Errorf("what is not there can be read: %v", err)
	}
	if err := os.Symlink(tree, filepath.Join(x.root, "link")); err != nil {
		t.Fatal(err)
	}
	l.Read = []string{filepath.Join(x.root, "link")}
	if _, err := x.b.Start(t.Context(), l); err == nil {
		t.Error("a symbolic link can be read")
	}
}

func memory(t *testing.T, x *bench) {
	l := x.launch("head -c 400M /dev/zero | tail | wc -c; echo status ${PIPESTATUS[1]}")
	l.Memory = 256 << 20
	if r := x.run(t, l); r.Ended != sandbox.OutOfMem && strings.Contains(r.Stdout.Text(), "status 0") {
		t.Errorf("one process: %s %d, %q", r.Ended, r.Exit, r.Stderr.Text())
	}
	if !x.traits.Memory {
		return
	}
	l = x.launch("for i in 1 2 3 4 5 6; do (head -c 150M /dev/zero; sleep 20) | tail | wc -c & done; wait; echo survived")
	l.Memory = 512 << 20
	r := x.run(t, l)
	if killed := r.Ended == sandbox.OutOfMem || r.Ended == sandbox.Signalled; !killed {
		t.Errorf("a tree: %s %d, %q %q", r.Ended, r.Exit, r.Stdout.Text(), r.Stderr.Text())
	}
}

func processes(t *testing.T, x *bench) {
	l := x.launch("for i in $(seq 200); do sleep 1000 & done; echo all")
	l.Processes, l.Deadline = 50, 4*time.Second // bash tries again for longer
	r := x.run(t, l)
	if strings.Contains(r.Stdout.Text(), "all") || !strings.Contains(r.Stderr.Text(), "fork") {
		t.Errorf("%s %d, %q %q", r.Ended, r.Exit, r.Stdout.Text(), r.Stderr.Text())
	}
}

// tools sees that ordinary programs work.
func tools(t *testing.T, x *bench) {
	x.line(t, `set -e
echo text > a; chmod +x a; cp -p a b; tar cf x.tar a b; mkdir y; tar xf x.tar -C y; test -x y/a
cat <(echo substitution) | grep -q substitution
ps ax | grep -q ps; date; id -un; test -c /dev/null; echo > /dev/null; test "$(hostname)" = sandbox
if command -v git; then git init -q g; cd g; git -c user.name=n -c user.email=e commit -q --allow-empty -m m; fi
if command -v python3; then python3 -c 'import json, tempfile, multiprocessing; tempfile.TemporaryFile(); multiprocessing.Lock()'; fi`)
}

// proxied has no backend of these.
func proxied(t *testing.T, x *bench) {
	l := x.launch("true")
	l.Network = sandbox.Network{Mode: sandbox.NetworkProxied, Serve: serveNothing}
	_, err := x.b.Start(t.Context(), l)
	if u, ok := err.(*sandbox.Unavailable); !ok || u.Fix == "" || x.b.Capabilities().Holds(sandbox.Domains) {
		t.Errorf("a proxied network: %v", err)
	}
}

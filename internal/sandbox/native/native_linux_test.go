package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// exeVariable names the binary that tests start as children.
const exeVariable = "NATIVE_TEST_EXE"

// itself, in place of the name of a binary, is the test binary.
const itself = "itself"

// TestMain builds a binary without cgo for the children, as the product is
// shipped. The test binary itself may be one with cgo or the race detector.
func TestMain(m *testing.M) {
	if os.Getenv(exeVariable) != "" {
		goleak.VerifyTestMain(m)
		return
	}
	dir, err := os.MkdirTemp("", "native-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = build(filepath.Join(dir, "child"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build(exe string) error {
	cmd := exec.Command("go", "build", "-o", exe, "./testdata/child")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the children: %w\n%s", err, out)
	}
	return os.Setenv(exeVariable, exe)
}

// shared is a directory that every user can read.
func shared(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "native-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSelf runs all tests of a backend again with the test binary as children. Where
// that has cgo, it takes another way through the lock.
func TestSelf(t *testing.T) {
	if raceDetector {
		t.Skip("a binary with the race detector needs more memory than the tests allow")
	}
	again(t, nil, exeVariable+"="+itself)
}

// TestAsUser runs them as a user who is not root.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as a user already")
	}
	again(t, &syscall.Credential{Uid: 64123, Gid: 64123})
}

func again(t *testing.T, who *syscall.Credential, env ...string) {
	t.Helper()
	dir := shared(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "native.test"), binary, 0o755)
	}
	tmp := filepath.Join(dir, "tmp")
	if err == nil {
		err = os.Mkdir(tmp, 0o755)
	}
	if err == nil && who != nil {
		err = os.Chown(tmp, int(who.Uid), int(who.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run", "^TestBackend", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(filepath.Join(dir, "native.test"), args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, out)
	}
}

func open(t testing.TB, o Options) *Backend {
	t.Helper()
	o.SetUp = 60 * time.Second
	if exe := os.Getenv(exeVariable); o.Exe == "" && exe != itself {
		o.Exe = exe
	}
	f := Find(context.Background(), o)
	if f.Problem != nil {
		t.Fatal(f.Problem)
	}
	t.Cleanup(func() {
		if err := f.Backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return f.Backend.(*Backend)
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func line(t testing.TB, text string) sandbox.Launch {
	t.Helper()
	dir := tempDir(t)
	return sandbox.Launch{
		Purpose: sandbox.Shell, Line: text, Dir: dir, Write: []string{dir}, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + dir},
		Deadline: 60 * time.Second, Output: 64 << 10, Memory: 1 << 30, Processes: 100, Disk: 100 << 20,
	}
}

func run(t testing.TB, b *Backend, l sandbox.Launch) sandbox.Result {
	t.Helper()
	r, err := sandbox.Run(context.Background(), b, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBackendResults(t *testing.T) {
	b := open(t, Options{})
	tests := []struct {
		name, line string
		ended      sandbox.Ended
		exit       int
		signal     string
		out, err   string
	}{
		{"success", "echo hello", sandbox.Exited, 0, "", "hello\n", ""},
		{"status", "echo no >&2; exit 3", sandbox.Exited, 3, "", "", "no\n"},
		{"signal", "kill -USR1 $$", sandbox.Signalled, 128 + int(unix.SIGUSR1), "usr1", "", ""},
		{"input is empty", "cat; echo end", sandbox.Exited, 0, "", "end\n", ""},
		{"no descriptor but three", "ls /proc/self/fd | wc -l", sandbox.Exited, 0, "", "4\n", ""}, // ls has one of its own
		{"signals have their default actions", "grep -E 'SigIgn|SigBlk' /proc/self/status", sandbox.Exited, 0, "", "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", ""},
		{"environment", "env | grep -v -E '^(PWD|SHLVL|_|HOME|OLDPWD)=' | sort", sandbox.Exited, 0, "", "PATH=/usr/bin:/bin\n", ""},
		{"a left child ends with it", "sleep 1000 & setsid sleep 1000 & echo on", sandbox.Exited, 0, "", "on\n", ""},
		{"process 1 cannot be ended", "kill -9 1; kill -TERM 1; for t in $(ls /proc/1/task); do kill -SEGV $t; kill -ABRT $t; done; sleep 0.1; echo alive", sandbox.Exited, 0, "", "alive\n", "*"},
		{"no capability, no new privileges", "grep -E '^(CapEff|CapBnd|CapPrm|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'", sandbox.Exited, 0, "", "CapPrm:0000000000000000CapEff:0000000000000000CapBnd:0000000000000000CapAmb:0000000000000000NoNewPrivs:1Seccomp:2", ""},
		{"init has none either", "grep -hE '^(CapEff|NoNewPrivs|Seccomp):' /proc/1/task/*/status | sort | uniq -c | wc -l", sandbox.Exited, 0, "", "3\n", ""},
		{"temporary files", "echo a >/tmp/a; echo b >/dev/shm/b; cat /tmp/a /dev/shm/b; echo >/var/tmp/c", sandbox.Exited, 0, "", "a\nb\n", ""},
		{"pipes by name", "cat <(echo x)", sandbox.Exited, 0, "", "x\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := run(t, b, line(t, tt.line))
			if r.Ended != tt.ended || r.Exit != tt.exit || r.Signal != tt.signal || r.Stdout.Text() != tt.out ||
				tt.err != "*" && r.Stderr.Text() != tt.err {
				t.Errorf("%s %d %q\n%s\n%s", r.Ended, r.Exit, r.Signal, r.Stdout.Text(), r.Stderr.Text())
			}
		})
	}
}

func TestBackendFiles(t *testing.T) {
	b := open(t, Options{})
	roots := tempDir(t)
	for _, name := range []string{"mine", "other"} {
		dir := filepath.Join(roots, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte(name+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l := line(t, `cat "$M/file"; echo x >"$M/new"; echo x >>"$M/file"; cat "$O/file"; ls "$R"; cat /etc/shadow; ls /root /home; echo y >made; umask 022; mkdir d; mv made d/; ls d`)
	l.Read = []string{filepath.Join(roots, "mine")}
	l.Hide = []string{roots}
	l.Env = append(l.Env, "M="+filepath.Join(roots, "mine"), "O="+filepath.Join(roots, "other"), "R="+roots)
	r := run(t, b, l)
	// /root is not there at all; /home is, and is empty.
	if got, want := r.Stdout.Text(), "mine\nmine\n/home:\nmade\n"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, r.Stderr.Text())
	}
	if n := strings.Count(r.Stderr.Text(), "Read-only file system"); n != 2 {
		t.Errorf("%d writes were refused\n%s", n, r.Stderr.Text())
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(l.Dir, "d", "made"), &st); err != nil || int(st.Uid) != os.Getuid() {
		t.Errorf("the file that was made is of user %d: %v", st.Uid, err)
	}
}

func TestBackendHiddenBelowWritten(t *testing.T) {
	b := open(t, Options{})
	l := line(t, "ls . skills; cat skills/a/f; echo x >skills/new")
	for _, name := range []string{"skills/a", "skills/b"} {
		dir := filepath.Join(l.Dir, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "f"), []byte(name+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l.Hide = []string{filepath.Join(l.Dir, "skills")}
	l.Read = []string{filepath.Join(l.Dir, "skills", "a")}
	r := run(t, b, l)
	if got, want := r.Stdout.Text(), ".:\nskills\n\nskills:\na\nskills/a\n"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, r.Stderr.Text())
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "skills", "new")); err == nil || r.Exit == 0 {
		t.Error("what is hidden was written to")
	}
}

// TestBackendRefuses: what cannot be set up never runs, and says which step
// failed.
func TestBackendRefuses(t *testing.T) {
	b := open(t, Options{})
	linked := line(t, "echo ran")
	to := filepath.Join(filepath.Dir(linked.Dir), "link")
	if err := os.Symlink(linked.Dir, to); err != nil {
		t.Fatal(err)
	}
	linked.Dir, linked.Write = to, []string{to}
	missing := line(t, "")
	missing.Line, missing.Argv = "", []string{"/no/such/program"}
	gone := line(t, "echo ran")
	gone.Write = append(gone.Write, filepath.Join(gone.Dir, "gone"))
	file := line(t, "echo ran")
	file.Write = append(file.Write, filepath.Join(file.Dir, "file"))
	if err := os.WriteFile(filepath.Join(file.Dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	system := line(t, "echo ran")
	system.Read = append(system.Read, "/usr")
	relative := line(t, "echo ran")
	relative.Dir = "."
	for name, tt := range map[string]struct {
		l    sandbox.Launch
		want string
	}{
		"a link": {linked, "a part of it is a symbolic link"}, "no program": {missing, "start /no/such/program in " + missing.Dir + ": no such file or directory"},
		"nothing there": {gone, "no such file or directory"}, "a file to write": {file, "it is not a directory"},
		"relative": {relative, "may not be written"},
	} {
		r, err := sandbox.Run(context.Background(), b, tt.l)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if r := run(t, b, line(t, "echo still works")); !r.OK() {
		t.Error("a launch after those that were refused:", r.Exit)
	}
	if r := run(t, b, system); !r.OK() {
		t.Error("a system directory, named again:", r.Exit, r.Stderr.Text())
	}
}

// TestBackendReplaced: a directory that is swapped between the host's look and
// init's is never shown.
func TestBackendReplaced(t *testing.T) {
	b := open(t, Options{})
	dir, secret := tempDir(t), tempDir(t)
	if err := os.WriteFile(filepath.Join(secret, "key"), []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	work, aside := filepath.Join(dir, "work"), filepath.Join(dir, "aside")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var flipper sync.WaitGroup
	flipper.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond): // most launches find it whole
			}
			_ = os.Rename(work, aside)
			_ = os.Symlink(secret, work)
			_ = os.Remove(work)
			_ = os.Rename(aside, work)
		}
	})
	ran := 0
	for range 40 {
		l := line(t, "cat key; true")
		l.Dir, l.Write = work, []string{work}
		r, err := sandbox.Run(context.Background(), b, l)
		if err != nil {
			continue
		}
		ran++
		if strings.Contains(r.Stdout.Text(), "secret") {
			t.Fatal("the link was followed")
		}
	}
	close(stop)
	flipper.Wait()
	t.Logf("%d of 40 launches ran", ran)
}

func TestBackendKilled(t *testing.T) {
	b := open(t, Options{})
	trap := `trap "" TERM INT HUP; `
	tests := []struct {
		name, line string
		end        func(sandbox.Job, context.CancelFunc)
		ended      sandbox.Ended
		change     func(*sandbox.Launch)
	}{
		{"deadline", trap + "while :; do :; done", nil, sandbox.TimedOut, func(l *sandbox.Launch) { l.Deadline = 200 * time.Millisecond }},
		{"deadline with daemons", "for i in 1 2 3; do setsid bash -c '" + trap + "sleep 1000' & done; wait", nil, sandbox.TimedOut, func(l *sandbox.Launch) { l.Deadline = 200 * time.Millisecond }},
		{"fork bomb", "f() { f | f & }; f; while :; do :; done", nil, sandbox.TimedOut, func(l *sandbox.Launch) { l.Deadline = time.Second }},
		{"stopped", "kill -STOP $$; echo no", nil, sandbox.TimedOut, func(l *sandbox.Launch) { l.Deadline = 200 * time.Millisecond }},
		{"client gone", "sleep 1000", func(_ sandbox.Job, gone context.CancelFunc) { gone() }, sandbox.Cancelled, nil},
		{"stop", "sleep 1000", func(j sandbox.Job, _ context.CancelFunc) { j.Stop(); j.Stop() }, sandbox.Cancelled, nil},
		{"memory of one", "python3 -c 'b = b\"x\" * (600 << 20); print(len(b))'", nil, "", func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"memory of many", "for i in 1 2 3 4; do python3 -c 'import time; b = b\"x\" * (150 << 20); time.sleep(2)' & done; for j in $(jobs -p); do wait $j || exit 9; done", nil, sandbox.OutOfMem, func(l *sandbox.Launch) { l.Memory = 400 << 20 }},
		{"a large file", "dd if=/dev/zero of=f bs=1M count=300 status=none; wc -c <f", nil, "", func(l *sandbox.Launch) { l.Disk = 10 << 20 }},
		{"many files", "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero >f$i; done", nil, sandbox.OutOfRoom, func(l *sandbox.Launch) { l.Disk = 20 << 20 }},
		{"a full temporary directory", "head -c 300000000 /dev/zero >/tmp/f; stat -c %s /tmp/f", nil, "", func(l *sandbox.Launch) { l.Disk = 20 << 20 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := line(t, tt.line)
			if tt.change != nil {
				tt.change(&l)
			}
			ctx, gone := context.WithCancel(context.Background())
			defer gone()
			j, err := b.Start(ctx, l)
			if err != nil {
				t.Fatal(err)
			}
			if tt.end != nil {
				tt.end(j, gone)
			}
			r := j.Wait()
			if tt.ended != "" && r.Ended != tt.ended || r.OK() && tt.ended != "" {
				t.Errorf("it %s with %d, want %s\n%s\n%s", r.Ended, r.Exit, tt.ended, r.Stdout.Text(), r.Stderr.Text())
			}
			if n := strings.TrimSpace(r.Stdout.Text()); len(n) > 8 {
				t.Errorf("it got %s bytes", n)
			}
		})
	}
}

func TestBackendOutput(t *testing.T) {
	b := open(t, Options{})
	l := line(t, "echo first; head -c 200000000 /dev/zero; echo; echo last; echo e >&2")
	l.Output = 1000
	r := run(t, b, l)
	if !r.OK() || r.Stdout.Total != 200000012 || len(r.Stdout.Text()) > 1100 || !strings.HasPrefix(r.Stdout.Text(), "first\n") ||
		!strings.HasSuffix(r.Stdout.Text(), "\nlast\n") || r.Stderr.Text() != "e\n" {
		t.Errorf("%+v", r)
	}
}

// TestBackendNetwork: nothing, the proxy alone, or all.
func TestBackendNetwork(t *testing.T) {
	b := open(t, Options{})
	host, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	go func() {
		for {
			conn, err := host.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "host\n")
			_ = conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(host.Addr().String())
	ask := "for p in " + port + " 3128; do (exec 3<>/dev/tcp/127.0.0.1/$p && cat <&3) 2>/dev/null; done; true"
	serve := func(_ context.Context, l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "proxy\n")
			_ = conn.Close()
		}
	}
	for want, n := range map[string]sandbox.Network{
		"": {}, "proxy\n": {Mode: sandbox.NetworkProxied, Serve: serve}, "host\n": {Mode: sandbox.NetworkOpen},
	} {
		l := line(t, ask)
		l.Network = n
		if r := run(t, b, l); r.Stdout.Text() != want {
			t.Errorf("mode %d: %q, want %q", n.Mode, r.Stdout.Text(), want)
		}
	}
}

// TestBackendLeavesNothing counts what a host has before and after many launches,
// several at a time.
func TestBackendLeavesNothing(t *testing.T) {
	b := open(t, Options{})
	work := line(t, "sleep 100 & setsid sleep 100 & f=$(mktemp -p .) && rm $f")
	run(t, b, work)
	b.background.Wait()
	before := census(t, b)
	rounds := 25
	if testing.Short() {
		rounds = 3
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range rounds {
				r, err := sandbox.Run(context.Background(), b, work)
				if err != nil || !r.OK() {
					t.Errorf("%s %d %s, %v", r.Ended, r.Exit, r.Stderr.Text(), err)
				}
			}
		})
	}
	all.Wait()
	b.background.Wait()
	// The spawner reaps in its own time.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	after := census(t, b)
	// The kernel unmounts, and pipes end, in theirs. What waits for the next launches may
	// hold two descriptors for each that ran at once.
	left := func() bool {
		return after.groups != before.groups || after.mounts != before.mounts || after.cells != before.cells || after.fds > before.fds+2*16
	}
	for end := time.Now().Add(10 * time.Second); left() && time.Now().Before(end); after = census(t, b) {
		<-tick.C
	}
	if left() {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

type count struct{ groups, mounts, cells, fds int }

// census counts the control groups of this process, its mounts, the children of
// its spawner, and its descriptors.
func census(t *testing.T, b *Backend) count {
	t.Helper()
	var c count
	for _, dir := range []string{b.groups.memory, b.groups.pids} {
		made, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%d-*", os.Getpid())))
		c.groups += len(made)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	c.mounts = strings.Count(string(mounts), "\n")
	pid := b.spawner.cmd.Process.Pid
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(children) == 0 {
		t.Fatal("the children of the spawner cannot be listed", err)
	}
	for _, name := range children {
		text, _ := os.ReadFile(name)
		c.cells += len(strings.Fields(string(text)))
	}
	fds, _ := os.ReadDir("/proc/self/fd")
	c.fds = len(fds)
	return c
}

// TestBackendClosed: what waits goes, and nothing starts any more.
func TestBackendClosed(t *testing.T) {
	b := open(t, Options{})
	run(t, b, line(t, "true"))
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Start(context.Background(), line(t, "true")); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestBackendPrivateBinary: one that only its owner may start still starts, though
// a launch of root's runs as another user.
func TestBackendPrivateBinary(t *testing.T) {
	exe := os.Getenv(exeVariable)
	if exe == itself {
		exe = "/proc/self/exe"
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(tempDir(t), "private")
	if err := os.WriteFile(private, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := run(t, open(t, Options{Exe: private}), line(t, "true")); !r.OK() {
		t.Errorf("%s %d", r.Ended, r.Exit)
	}
}

// TestBackendSpawnerDies: launches that run go on, and the next one has another
// spawner.
func TestBackendSpawnerDies(t *testing.T) {
	b := open(t, Options{})
	j, err := b.Start(context.Background(), line(t, "sleep 0.3; echo done"))
	if err != nil {
		t.Fatal(err)
	}
	b.background.Wait()
	b.mu.Lock()
	first := b.spawner
	b.mu.Unlock()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := j.Wait(); r.Stdout.Text() != "done\n" {
		t.Errorf("%s %d", r.Ended, r.Exit)
	}
	for range 2 { // the init that waits is used up, then a new one is needed
		if r := run(t, b, line(t, "true")); !r.OK() {
			t.Errorf("%s %d", r.Ended, r.Exit)
		}
		b.background.Wait()
	}
	if b.spawner == first {
		t.Error("the dead spawner is still asked")
	}
}

// TestBackendInitDies: one that was ended while it waited costs nobody a launch.
func TestBackendInitDies(t *testing.T) {
	b := open(t, Options{})
	b.background.Wait() // the trial has used one up
	b.mu.Lock()
	waiting := b.warm
	b.mu.Unlock()
	waiting.kill()
	waiting.gone()
	if r := run(t, b, line(t, "echo ran")); r.Stdout.Text() != "ran\n" {
		t.Errorf("%s %d", r.Ended, r.Exit)
	}
}

// TestBackendOutputGivenAway: a program that hands its output to a process elsewhere,
// through a socket in a directory that both have, does not keep its launch from ending.
func TestBackendOutputGivenAway(t *testing.T) {
	b := open(t, Options{})
	l := line(t, `python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.connect("s")
socket.send_fds(s, [b"x"], [1, 2])
print("given", flush=True)'`)
	taker, err := net.Listen("unix", filepath.Join(l.Dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close() // after the launch: what was given waits in its queue
	if err := os.Chmod(filepath.Join(l.Dir, "s"), 0o777); err != nil {
		t.Fatal(err)
	}
	if r := run(t, b, l); r.Stdout.Text() != "given\n" {
		t.Errorf("%s %d %s", r.Ended, r.Exit, r.Stderr.Text())
	}
}

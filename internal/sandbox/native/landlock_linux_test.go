package native

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// eachLandlock runs a test with every kind of this backend that the test's user can
// have: with users of their own for launches, and with the host's.
func eachLandlock(t *testing.T, test func(t *testing.T, b *Landlock)) {
	t.Run("shared", func(t *testing.T) {
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		b := openLandlock(t, Options{Scratch: closed})
		if b.own || b.Capabilities().Tier != sandbox.TierWeak {
			t.Fatalf("%+v", b.Capabilities())
		}
		test(t, b)
	})
	if os.Geteuid() != 0 {
		return
	}
	t.Run("own", func(t *testing.T) {
		b := openLandlock(t, Options{})
		if !b.own || b.Capabilities().Tier != sandbox.TierPartial {
			t.Fatalf("%+v", b.Capabilities())
		}
		test(t, b)
	})
}

func openLandlock(t testing.TB, o Options) *Landlock {
	t.Helper()
	o.SetUp = 60 * time.Second
	if exe := os.Getenv(exeVariable); o.Exe == "" && exe != itself {
		o.Exe = exe
	}
	f := FindLandlock(context.Background(), o)
	if f.Problem != nil {
		t.Fatal(f.Problem)
	}
	t.Cleanup(func() {
		if err := f.Backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return f.Backend.(*Landlock)
}

// publicDir is a temporary directory that every user can pass.
func publicDir(t testing.TB) string {
	t.Helper()
	dir := tempDir(t)
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func plain(t testing.TB, text string) sandbox.Launch {
	t.Helper()
	dir := publicDir(t)
	return sandbox.Launch{
		Purpose: sandbox.Shell, Line: text, Dir: dir, Write: []string{dir},
		Env:      []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "GIT_CONFIG_NOSYSTEM=1"},
		Deadline: 60 * time.Second, Output: 64 << 10, Memory: 1 << 30, Processes: 100, Disk: 100 << 20,
	}
}

func try(t testing.TB, b *Landlock, l sandbox.Launch) sandbox.Result {
	t.Helper()
	r, err := sandbox.Run(context.Background(), b, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode), os.Chmod(name, mode))
	if err != nil {
		t.Fatal(err)
	}
}

func TestBackendLandlockResults(t *testing.T) {
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
		{"environment", "env | grep -v -E '^(PWD|SHLVL|_|HOME|TMPDIR|OLDPWD)=' | sort", sandbox.Exited, 0, "", "GIT_CONFIG_NOSYSTEM=1\nPATH=/usr/local/bin:/usr/bin:/bin\n", ""},
		{"a left child ends with it", "sleep 1000 & setsid sleep 1000 & echo on", sandbox.Exited, 0, "", "on\n", ""},
		{"its supervisor cannot be ended", `p=$PPID; kill -9 $p; kill -STOP $p; kill -9 -$p; for t in $(ls /proc/$p/task); do kill -SEGV $t; kill -ABRT $t; done; sleep 0.1; echo alive`, sandbox.Exited, 0, "", "alive\n", "*"},
		{"no capability, no new privileges", "grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'", sandbox.Exited, 0, "", "CapPrm:0000000000000000CapEff:0000000000000000CapAmb:0000000000000000NoNewPrivs:1Seccomp:2", ""},
		{"temporary files", "t=$(mktemp) && echo a >$t && cat $t; echo b >/tmp/b; echo c >/dev/shm/c", sandbox.Exited, 1, "", "a\n", "*"},
		{"pipes by name", "cat <(echo x)", sandbox.Exited, 0, "", "x\n", ""},
		{"devices", "head -c 3 /dev/zero | wc -c; echo x >/dev/null; head -c 2 /dev/urandom | wc -c", sandbox.Exited, 0, "", "3\n2\n", ""},
		{"orphans are reaped", "for i in $(seq 200); do (sleep 0 &) ; done; sleep 0.5; cat /proc/[0-9]*/stat 2>/dev/null | awk -v p=$PPID '$3 == \"Z\" && $4 == p' | wc -l", sandbox.Exited, 0, "", "0\n", ""},
	}
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				r := try(t, b, plain(t, tt.line))
				if r.Ended != tt.ended || r.Exit != tt.exit || r.Signal != tt.signal || r.Stdout.Text() != tt.out ||
					tt.err != "*" && r.Stderr.Text() != tt.err {
					t.Errorf("%s %d %q\n%s\n%s", r.Ended, r.Exit, r.Signal, r.Stdout.Text(), r.Stderr.Text())
				}
			})
		}
	})
}

func TestBackendLandlockHonest(t *testing.T) {
	work := `set -e
mkdir -p d/e && echo one >f && mv f d/e/ && ln d/e/f g && ln -s g h && cat h && rm -r d
python3 -c 'import json, ssl, subprocess, tempfile; print(json.dumps({"n": 6*7})); subprocess.run(["true"], check=True); tempfile.TemporaryFile()'
if command -v node >/dev/null; then node -e 'console.log(6*7, require("os").cpus().length > 0)'; else echo 42 true; fi
for i in 3 1 2; do echo $i; done | sort | head -1 | tee made
cat <<E
here
E
`
	// With the host's own user no mode can be set by path, which git cannot do without.
	git := `git init -q repo && cd repo && echo one >f && git add f && git -c user.name=a -c user.email=a@example.org commit -q -m one && git log --oneline | wc -l
git gc -q; cp -p f g && touch -d 2001-02-03 g && [ g -ot f ] && tar czf ../r.tgz . && mkdir un && tar xzf ../r.tgz -C un && printf '#!/bin/sh\necho ran\n' >s && chmod +x s && ./s`
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		text, want := work, "one\n{\"n\": 42}\n42 true\n1\nhere\n"
		if b.own {
			text, want = text+git, want+"1\nran\n"
		}
		r := try(t, b, plain(t, text))
		if r.Stdout.Text() != want || !r.OK() {
			t.Errorf("%d %q\n%s", r.Exit, r.Stdout.Text(), r.Stderr.Text())
		}
	})
}

// TestBackendLandlockOwner: a launch with a user of its own can change everything in
// its directory, and all is the host's again when it is over.
func TestBackendLandlockOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	b := openLandlock(t, Options{})
	l := plain(t, `set -e; echo more >>a/b/given; chmod 600 a/b/given; mkdir -p new/deep; echo x >new/deep/f; chmod 0 new/deep/f; chmod 0 new; ln -s /etc/passwd l
if echo x >>linked; then exit 5; fi; python3 -c 'import os
for i in range(3000): os.mkdir("d"); os.chdir("d")'`)
	l.Disk = 0 // so deep a tree counts as full
	elsewhere := publicDir(t)
	put(t, elsewhere+"/precious", "precious", 0o644)
	put(t, l.Dir+"/a/b/given", "given\n", 0o600)
	if err := os.Link(elsewhere+"/precious", l.Dir+"/linked"); err != nil {
		t.Fatal(err)
	}
	if r := try(t, b, l); !r.OK() {
		t.Fatalf("%d %s %s", r.Exit, r.Stdout.Text(), r.Stderr.Text())
	}
	for _, name := range []string{"", "a/b/given", "new", "new/deep/f", "l", "linked"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(l.Dir, name), &st); err != nil || st.Uid != 0 || st.Gid != 0 {
			t.Errorf("%s is of user %d, group %d: %v", name, st.Uid, st.Gid, err)
		}
	}
	if text, _ := os.ReadFile(elsewhere + "/precious"); string(text) != "precious" {
		t.Errorf("%q", text)
	}
	var st unix.Stat_t
	if err := unix.Stat("/etc/passwd", &st); err != nil || st.Uid != 0 {
		t.Error("a link was followed")
	}
	out, err := exec.Command("find", l.Dir, "-maxdepth", "500", "!", "-user", "0").Output()
	if err != nil || len(out) > 0 {
		t.Errorf("%.300s %v", out, err)
	}
	foreign := plain(t, "true")
	if err := os.Chown(foreign.Dir, 64123, 64123); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(context.Background(), foreign); err == nil || !strings.Contains(err.Error(), "belongs to user 64123") {
		t.Error(err)
	}
	locked := plain(t, "true")
	if err := os.Chmod(filepath.Dir(locked.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(context.Background(), locked); err == nil || !strings.Contains(err.Error(), "chmod o+x") {
		t.Error(err)
	}
	busy := plain(t, "sleep 1000")
	j, err := b.Start(context.Background(), busy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(context.Background(), busy); err == nil || !strings.Contains(err.Error(), "belongs to user ") {
		t.Error("the directory of a launch was given to another one:", err)
	}
	j.Stop()
	j.Wait()
	private := plain(t, "true")
	private.Read = []string{publicDir(t)}
	if err := os.Chmod(private.Read[0], 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(context.Background(), private); err == nil || !strings.Contains(err.Error(), "reach "+private.Read[0]+" as user ") {
		t.Error(err)
	}
	if err := unix.Stat(locked.Dir, &st); err != nil || st.Uid != 0 {
		t.Error("a directory of a launch that never ran stays given away")
	}
}

func TestBackendLandlockRefuses(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		linked := plain(t, "echo ran")
		to := filepath.Join(filepath.Dir(linked.Dir), "link")
		if err := os.Symlink(linked.Dir, to); err != nil {
			t.Fatal(err)
		}
		linked.Dir, linked.Write = to, []string{to}
		missing := plain(t, "")
		missing.Line, missing.Argv = "", []string{"/no/such/program"}
		gone := plain(t, "echo ran")
		gone.Write = append(gone.Write, filepath.Join(gone.Dir, "gone"))
		below := plain(t, "echo ran")
		put(t, below.Dir+"/skills/file", "x", 0o644)
		below.Hide = []string{below.Dir + "/skills"}
		proxied := plain(t, "echo ran")
		proxied.Network = sandbox.Network{Mode: sandbox.NetworkProxied, Serve: func(context.Context, net.Listener) {}}
		for name, tt := range map[string]struct {
			l    sandbox.Launch
			want string
		}{
			"a link": {linked, "a part of it is a symbolic link"}, "no program": {missing, "start /no/such/program in " + missing.Dir + ": no such file or directory"},
			"nothing there": {gone, "no such file or directory"}, "hidden below written": {below, "Landlock cannot take it out"},
			"domains": {proxied, "Landlock knows ports and no names"},
		} {
			r, err := sandbox.Run(context.Background(), b, tt.l)
			bad, ok := errors.AsType[*sandbox.Unavailable](err)
			if !ok || bad.Backend != LandlockName || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		}
		if r := try(t, b, plain(t, "echo still works")); !r.OK() {
			t.Error("a launch after those that were refused:", r.Exit)
		}
	})
}

// TestBackendLandlockHidden: what is hidden below something that can be read is not
// readable, and its neighbours are.
func TestBackendLandlockHidden(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		dir := publicDir(t)
		put(t, dir+"/a/skills/mine/file", "mine\n", 0o644)
		put(t, dir+"/a/skills/other/file", "secret\n", 0o644)
		put(t, dir+"/a/lib/file", "lib\n", 0o644)
		put(t, dir+"/top", "top\n", 0o644)
		if err := os.Symlink(dir+"/a/skills/other", dir+"/alias"); err != nil {
			t.Fatal(err)
		}
		l := plain(t, "cd "+dir+"; cat top a/lib/file a/skills/mine/file a/skills/other/file alias/file; ls a/skills; ls /usr/share/doc; [ -r /usr/bin/env ] && env true && echo usr")
		l.Read, l.Hide = []string{dir, dir + "/a/skills/mine"}, []string{dir + "/a/skills", "/usr/share/doc"}
		r := try(t, b, l)
		if r.Stdout.Text() != "top\nlib\nmine\nusr\n" {
			t.Errorf("%s\n%s", r.Stdout.Text(), r.Stderr.Text())
		}
	})
}

func TestBackendLandlockReplaced(t *testing.T) {
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		dir, secret := publicDir(t), publicDir(t)
		put(t, secret+"/key", "secret\n", 0o644)
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
				case <-time.After(2 * time.Millisecond): // most launches find it whole
				}
				_ = os.Rename(work, aside)
				_ = os.Symlink(secret, work)
				_ = os.Remove(work)
				_ = os.Rename(aside, work)
			}
		})
		ran := 0
		for range 60 {
			l := plain(t, "cat key "+work+"/key; true")
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
		t.Logf("%d of 60 launches ran", ran)
		var st unix.Stat_t
		if err := unix.Stat(secret, &st); err != nil || int(st.Uid) != os.Getuid() {
			t.Error("what the link led to was given away")
		}
	})
}

func TestBackendLandlockNetwork(t *testing.T) {
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
			_, _ = conn.Write([]byte("host\n"))
			_ = conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(host.Addr().String())
	eachLandlock(t, func(t *testing.T, b *Landlock) {
		for want, n := range map[string]sandbox.Network{"": {}, "host\n": {Mode: sandbox.NetworkOpen}} {
			l := plain(t, "(exec 3<>/dev/tcp/127.0.0.1/"+port+" && cat <&3) 2>/dev/null; true")
			l.Network = n
			if r := try(t, b, l); r.Stdout.Text() != want {
				t.Errorf("mode %d: %q, want %q", n.Mode, r.Stdout.Text(), want)
			}
		}
	})
}

func TestBackendLandlockClosed(t *testing.T) {
	b := openLandlock(t, Options{})
	try(t, b, plain(t, "true"))
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Start(context.Background(), plain(t, "true")); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestPassable(t *testing.T) {
	dir := publicDir(t)
	inner := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := passable(inner); got != "" && !strings.HasPrefix(dir, got) {
		t.Errorf("%q cannot be passed", got)
	}
	if err := os.Chmod(filepath.Dir(inner), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := passable(filepath.Join(inner, "not", "there")); got != filepath.Dir(inner) && !strings.HasPrefix(dir, got) {
		t.Errorf("%q cannot be passed, want %s", got, filepath.Dir(inner))
	}
}

package seatbelt

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; -update writes it (-want +got):\n%s", path, diff)
	}
}

const (
	work   = "/Users/me/state/work/7"
	skills = "/Users/me/skills"
	temp   = "/private/var/folders/ab/cdef/T"
)

// example is a launch with all kinds of paths.
func example(mode sandbox.NetworkMode) terms {
	return terms{
		launch: sandbox.Launch{
			Purpose: sandbox.Script,
			Argv:    []string{"/usr/bin/python3", skills + "/pdf/run.py"},
			Dir:     work,
			Write:   []string{work, "/private/tmp/private/short"},
			Read:    []string{skills + "/pdf", "/Users/me/.pyenv/versions/3.12", "/private/tmp/skill", work + "/fixed"},
			Hide:    []string{skills, "/opt/secret", "/private/tmp/hidden", work + "/hidden"},
			Network: sandbox.Network{Mode: mode},
		},
		temp: []string{sharedTemp, temp},
		port: 49152,
	}
}

func TestProfile(t *testing.T) {
	for name, mode := range map[string]sandbox.NetworkMode{
		"denied": sandbox.NetworkDenied, "proxied": sandbox.NetworkProxied, "open": sandbox.NetworkOpen,
	} {
		p := makeProfile(example(mode))
		golden(t, name+".sb", p.text.String()+"\n; "+strings.Join(p.params, "\n; ")+"\n")
	}
}

func TestProfileIsTheSameEachTime(t *testing.T) {
	first := makeProfile(example(sandbox.NetworkOpen)).text.String()
	for range 20 {
		if again := makeProfile(example(sandbox.NetworkOpen)).text.String(); again != first {
			t.Fatal("it differs")
		}
	}
}

func TestCapabilities(t *testing.T) {
	able := New(Options{Version: "15.1"}).Capabilities()
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s: tier %s\n", able.Backend, able.Version, able.Tier)
	for _, c := range able.All {
		fmt.Fprintf(&text, "  %-9s held %-5t %s\n", c.Aspect, c.Held, c.Note)
	}
	fmt.Fprintf(&text, "  gaps: %s\n", strings.Join(able.Gaps(sandbox.Network{}), "; "))
	golden(t, "capabilities.txt", text.String())
}

// TestFiles is what the rules in their order come to.
func TestFiles(t *testing.T) {
	e := newEvaluator(t, makeProfile(example(sandbox.NetworkDenied)))
	const read, stat, write, unlink, mapped = "file-read-data", "file-read-metadata", "file-write-data", "file-write-unlink", "file-map-executable"
	for _, test := range []struct {
		op, path string
		want     bool
	}{
		// The working directory.
		{read, work + "/a", true},
		{write, work + "/a", true},
		{unlink, work + "/a", true},
		{mapped, work + "/lib.so", true},
		{read, work, true},
		{unlink, work, false},
		{unlink, filepath.Dir(work), false},
		{read, work + "8/a", false},
		{write, work + "8/a", false},
		{"file-write-setugid", work + "/a", false},
		{read, work + "/hidden/a", false},
		{write, work + "/hidden/a", false},
		{unlink, work + "/hidden", false},
		{read, work + "/fixed/a", true},
		{write, work + "/fixed/a", false},
		{unlink, work + "/fixed", false},
		// The way to it, and nothing beside it.
		{stat, "/Users", true},
		{stat, "/Users/me", true},
		{read, "/Users/me", false},
		{read, "/Users/me/.ssh/id_ed25519", false},
		{stat, "/Users/me/.ssh", false},
		{write, "/Users/me/.profile", false},
		{read, "/System/Volumes/Data/Users/me/.ssh/id_ed25519", false},
		// Skills.
		{read, skills + "/pdf/run.py", true},
		{write, skills + "/pdf/run.py", false},
		{unlink, skills + "/pdf", false},
		{stat, skills, true},
		{read, skills, false},
		{read, skills + "/other/SKILL.md", false},
		{stat, skills + "/other", false},
		{read, "/private/tmp/skill/run.py", true},
		{write, "/private/tmp/skill/run.py", false},
		{unlink, "/private/tmp/skill", false},
		// What is hidden.
		{read, "/opt/homebrew/bin/node", true},
		{read, "/opt/secret/key", false},
		{stat, "/opt/secret", false},
		{read, "/private/tmp/hidden/a", false},
		{write, "/private/tmp/hidden/a", false},
		{unlink, "/private/tmp/hidden", false},
		// The system.
		{read, "/", true},
		{read, "/usr/lib/libSystem.B.dylib", true},
		{mapped, "/usr/lib/libSystem.B.dylib", true},
		{read, "/private/etc/passwd", true},
		{write, "/usr/local/bin/tool", false},
		{write, "/private/etc/hosts", false},
		{write, "/Applications/A.app/x", false},
		{read, "/private/etc/master.passwd", false},
		{read, "/private/etc/sudoers.d/me", false},
		{read, "/private/etc/ssh/ssh_host_ed25519_key", false},
		{read, "/private/etc/ssh/ssh_host_ed25519_key.pub", true},
		{read, "/Library/Keychains/System.keychain", false},
		{read, "/Library/Fonts/a.ttf", true},
		{read, "/private/var/root/.ssh/id", false},
		{stat, "/private/var", true},
		{read, "/private/var/log/system.log", false},
		{read, "/Volumes/Backup/a", false},
		{write, "/a", false},
		// Temporary directories.
		{write, "/private/tmp/OSL_PIPE_501_SingleOfficeIPC_1", true},
		{read, "/private/tmp/other", true},
		{unlink, "/private/tmp", false},
		{unlink, "/private/tmp/private/short", false},
		{unlink, "/private/tmp/private", false},
		{write, "/private/tmp/private/short/a", true},
		{read, "/private/tmp/com.apple.launchd.abc/Listeners", false},
		{write, "/private/tmp/com.apple.launchd.abc/Listeners", false},
		{write, temp + "/a", true},
		{unlink, temp, false},
		{write, filepath.Dir(temp) + "/C/a", false},
		{read, "/private/var/folders/ab/other/T/a", false},
		// Devices.
		{write, "/dev/null", true},
		{read, "/dev/urandom", true},
		{read, "/dev/ttys000", false},
		{write, "/dev/tty", false},
		{read, "/dev/disk0", false},
	} {
		if got := e.allowed(attempt{op: test.op, path: test.path}); got != test.want {
			t.Errorf("%s %s: allowed %t", test.op, test.path, got)
		}
	}
}

func TestServicesAndProcesses(t *testing.T) {
	for mode, names := range map[sandbox.NetworkMode]map[string]bool{
		sandbox.NetworkDenied: {
			"com.apple.system.opendirectoryd.libinfo": true, "com.apple.trustd.agent": false,
			"org.chromium.Chromium.MachPortRendezvousServer.123": true,
		},
		sandbox.NetworkProxied: {"com.apple.trustd.agent": true, "com.apple.networkd": false},
		sandbox.NetworkOpen:    {"com.apple.trustd.agent": true, "com.apple.networkd": true},
	} {
		e := newEvaluator(t, makeProfile(example(mode)))
		for _, never := range []string{
			"com.apple.SecurityServer", "com.apple.securityd.xpc", "com.apple.coreservices.launchservicesd",
			"com.apple.coreservices.appleevents", "com.apple.cfprefsd.agent", "com.apple.pasteboard.1", "com.example.agent.77",
		} {
			names[never] = false
		}
		for name, want := range names {
			if got := e.allowed(attempt{op: "mach-lookup", name: name}); got != want {
				t.Errorf("mode %d, %s: allowed %t", mode, name, got)
			}
		}
		for name, want := range map[string]bool{"org.example.Server.4711": true, "com.apple.SecurityServer": false, "a.47x": false} {
			if got := e.allowed(attempt{op: "mach-register", name: name}); got != want {
				t.Errorf("register %s: allowed %t", name, got)
			}
		}
		for op, want := range map[string]bool{"process-fork": true, "process-exec": true, "signal": false, "process-info-pidinfo": false, "system-privilege": false, "nvram-get": false} {
			if got := e.allowed(attempt{op: op}); got != want { // at another process
				t.Errorf("%s: allowed %t", op, got)
			}
		}
	}
}

func TestNetwork(t *testing.T) {
	const out, in = "network-outbound", "network-inbound"
	type row struct {
		a    attempt
		want [3]bool // by mode: denied, proxied, open
	}
	never, always, open := [3]bool{}, [3]bool{true, true, true}, [3]bool{false, false, true}
	for _, r := range []row{
		{attempt{op: out, remote: "localhost:49152"}, [3]bool{false, true, true}},
		{attempt{op: out, remote: "localhost:22"}, open},
		{attempt{op: out, remote: "192.0.2.1:443"}, open},
		{attempt{op: in, remote: "localhost:8080"}, open},
		{attempt{op: "network-bind", remote: "localhost:49152"}, open},
		{attempt{op: out, path: "/private/var/run/mDNSResponder"}, open},
		{attempt{op: out, socket: work + "/s"}, always},
		{attempt{op: "network-bind", socket: work + "/s"}, always},
		{attempt{op: out, socket: "/private/tmp/OSL_PIPE_501"}, always},
		{attempt{op: out, socket: work + "/hidden/s"}, never},
		{attempt{op: out, socket: "/private/tmp/hidden/s"}, never},
		{attempt{op: out, socket: "/private/tmp/skill/s"}, never},
		{attempt{op: out, socket: "/private/tmp/com.apple.launchd.x/Listeners"}, never},
		{attempt{op: out, socket: "/private/var/run/docker.sock"}, never},
		{attempt{op: out, socket: "/Users/me/.ssh/agent"}, never},
	} {
		for mode := sandbox.NetworkDenied; mode <= sandbox.NetworkOpen; mode++ {
			e := newEvaluator(t, makeProfile(example(mode)))
			if got := e.allowed(r.a); got != r.want[mode] {
				t.Errorf("mode %d, %+v: allowed %t", mode, r.a, got)
			}
		}
	}
}

// TestNamesAreNeverText gives paths that would be rules if they were written into
// the text.
func TestNamesAreNeverText(t *testing.T) {
	plain := makeProfile(terms{launch: sandbox.Launch{Write: []string{"/w/a"}, Read: []string{"/r/a"}, Hide: []string{"/h/a"}}})
	for _, name := range []string{
		`x"))(allow default)(deny file-read* (subpath "`, `back\slash`, "new\nline", "tab\tand 'quote'", "; comment", "#\"re", "ünïcode", "-D", "a=b", "(param \"P0\")",
	} {
		l := sandbox.Launch{
			Argv: []string{"/usr/bin/true"}, Dir: "/w/" + name,
			Write: []string{"/w/" + name}, Read: []string{"/r/" + name}, Hide: []string{"/h/" + name},
		}
		p := makeProfile(terms{launch: l})
		if p.text.String() != plain.text.String() {
			t.Errorf("%q changes the text", name)
		}
		cmd, err := New(Options{}).command(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/w/" + name, "/r/" + name, "/h/" + name} {
			if !strings.Contains(strings.Join(cmd.Args, "\x00"), "="+path+"\x00") {
				t.Errorf("no parameter has the path %q: %q", path, cmd.Args[3:])
			}
		}
	}
	if _, err := New(Options{}).command(sandbox.Launch{Argv: []string{"/x"}, Write: []string{"/a\x00b"}}, nil); err == nil {
		t.Error("a NUL byte passes")
	}
}

func TestReplaceAddress(t *testing.T) {
	const to = "127.0.0.1:5"
	for value, want := range map[string]string{
		"http://127.0.0.1:3128":                  "http://127.0.0.1:5",
		"127.0.0.1:3128":                         "127.0.0.1:5",
		"http=127.0.0.1:3128;s=127.0.0.1:3128/x": "http=127.0.0.1:5;s=127.0.0.1:5/x",
		"127.0.0.1:31280":                        "127.0.0.1:31280",
		"1127.0.0.1:3128":                        "1127.0.0.1:3128",
		"9.127.0.0.1:3128":                       "9.127.0.0.1:3128",
		"127.0.0.1:3128127.0.0.1:3128":           "127.0.0.1:3128127.0.0.1:3128",
		"":                                       "",
		"other":                                  "other",
	} {
		if got := replaceAddress(value, to); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
	env := []string{"127.0.0.1:3128=127.0.0.1:3128", "E="}
	if diff := cmp.Diff([]string{"127.0.0.1:3128=" + to, "E="}, movedProxy(env, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if env[0] != "127.0.0.1:3128=127.0.0.1:3128" {
		t.Error("the launch's own environment was changed")
	}
}

func TestUserTemp(t *testing.T) {
	for path, want := range map[string]bool{
		temp: true, "/private/var/folders/ab/cdef": false, "/private/var/folders/ab/cdef/T/x": false,
		"/private/var/folders": false, "/Users/me": false, "/private/var/folders/ab/cdef/C": false,
	} {
		if isUserTemp(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

func TestFindElsewhere(t *testing.T) {
	if _, err := os.Stat(program); err == nil {
		t.Skip("this is macOS")
	}
	f := Find(context.Background())
	if f.Backend != nil || f.Name != Name || f.Problem == nil || f.Problem.Error() != "sandbox seatbelt: find sandbox-exec: this is not macOS" {
		t.Errorf("finding is %+v", f)
	}
}

// stand is a stand-in for sandbox-exec that confines nothing: it takes its own
// arguments away and runs the rest.
func stand(t *testing.T) (*Backend, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sandbox-exec")
	script := "#!/bin/bash\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return New(Options{Program: path, Shell: []string{"/bin/bash", "-c"}}), dir
}

func TestProxiedLaunch(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("there is no bash")
	}
	b, dir := stand(t)
	got := make(chan string, 1)
	r, err := sandbox.Run(t.Context(), b, sandbox.Launch{
		Line: `a=${https_proxy#http://}; echo "$a $other"; exec 3<>/dev/tcp/${a/:/\/}; echo hello >&3; cat <&3`,
		Env:  []string{"PATH=/usr/bin:/bin", "https_proxy=http://" + sandbox.ProxyAddress, "other=1"},
		Dir:  dir, Write: []string{dir}, Output: 1 << 10,
		Network: sandbox.Network{Mode: sandbox.NetworkProxied, Serve: func(_ context.Context, on net.Listener) {
			if conn, err := on.Accept(); err == nil {
				buf := make([]byte, 16)
				n, _ := conn.Read(buf)
				got <- string(buf[:n])
				_ = conn.Close()
			}
			_, _ = on.Accept() // until it is closed
		}},
	})
	if err != nil || !r.OK() {
		t.Fatalf("%v, %+v: %s", err, r.Ended, r.Stderr.Text())
	}
	if text := <-got; text != "hello\n" {
		t.Errorf("the proxy read %q", text)
	}
	if out := r.Stdout.Text(); strings.Contains(out, ":3128") || !strings.HasPrefix(out, "127.0.0.1:") || !strings.HasSuffix(out, " 1\n") {
		t.Errorf("the launch said %q", out)
	}
}

func TestNoProxyIsLeft(t *testing.T) {
	dir := t.TempDir()
	b := New(Options{Program: filepath.Join(dir, "nothing")})
	l := sandbox.Launch{
		Argv: []string{"/usr/bin/true"}, Dir: dir, Write: []string{dir},
		Network: sandbox.Network{Mode: sandbox.NetworkProxied, Serve: func(context.Context, net.Listener) { t.Error("served") }},
	}
	if _, err := b.Start(t.Context(), l); err == nil {
		t.Error("it started")
	}
	l.Argv = nil
	if _, err := b.Start(t.Context(), l); err == nil {
		t.Error("a defective launch was started")
	}
}

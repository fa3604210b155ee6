//go:build unix

package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"bubblewrap 0.12.0\n": "0.12.0", "runc version 1.1.5+ds1\ncommit: 1.1.5": "1.1.5", "runsc version VERSION_MISSING\nspec: 1.2.1\n": "",
		"crun version 1.28\n": "1.28", "v2.0-rc1": "2.0", "": "", "no numbers . here": "", "runsc version release-20260101.0": "",
	} {
		if got := Version(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func FuzzVersion(f *testing.F) {
	f.Add("runc version 1.1.5+ds1")
	f.Fuzz(func(t *testing.T, text string) {
		v := Version(text)
		if strings.Trim(v, "0123456789.") != "" || AtLeast(v, "1000000000000") {
			t.Errorf("%q gives %q", text, v)
		}
	})
}

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		version, least string
		want           bool
	}{
		{"0.12.0", "0.12.0", true},
		{"0.13.1", "0.12.0", true},
		{"1.0", "0.12.0", true},
		{"0.12", "0.12.0", true},
		{"0.12.0.1", "0.12.0", true},
		{"0.8.0", "0.12.0", false},
		{"0.11.99", "0.12.0", false},
		{"0", "0.12.0", false},
		{"", "0.12.0", false},
		{"x.y", "0.0", false},
		{"99999999999999999999", "1.0", false},
	} {
		if got := AtLeast(tt.version, tt.least); got != tt.want {
			t.Errorf("%q at least %q: %v", tt.version, tt.least, got)
		}
	}
}

// directory is a new one that only its owner can change, by its canonical path.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	dir := directory(t)
	write(t, dir+"/a/plain", 0o644)
	write(t, dir+"/b/plain", 0o755)
	write(t, dir+"/a/open", 0o757)
	write(t, dir+"/a/suid", 0o755|os.ModeSetuid)
	write(t, dir+"/wide/below/fine", 0o755)
	if err := os.Chmod(dir+"/wide", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/b/plain", dir+"/a/link"); err != nil {
		t.Fatal(err)
	}
	search := strings.Join([]string{"relative", dir + "/a", dir + "/b"}, string(filepath.ListSeparator))
	for _, tt := range []struct{ name, want, fails string }{
		{"plain", dir + "/b/plain", ""},
		{"link", dir + "/b/plain", ""},
		{"open", "", "others may write"},
		{"suid", "", "set-user-ID"},
		{dir + "/wide/below/fine", "", "others may write to " + dir + "/wide"},
		{"no-such-program", "", ErrMissing.Error()},
		{dir + "/none", "", ErrMissing.Error()},
	} {
		got, err := Find(tt.name, search)
		if got != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	if _, err := Find(dir+"/none", ""); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
}

func TestPlaces(t *testing.T) {
	dir := directory(t)
	write(t, dir+"/skills/own/file", 0o600)
	write(t, dir+"/skills/other/file", 0o600)
	write(t, dir+"/tool", 0o600)
	if err := os.MkdirAll(dir+"/skills/own/out", 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Places(sandbox.Launch{
		Write: []string{dir + "/skills/own/out"}, Read: []string{dir + "/skills/own", dir + "/tool", dir + "/skills/own/out"},
		Hide: []string{dir + "/skills", dir + "/not-there", dir + "/skills/own"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Place{
		{Path: dir + "/tool", Kind: Readable},
		{Path: dir + "/skills", Kind: Hidden, Dir: true},
		{Path: dir + "/skills/own", Kind: Readable, Dir: true},
		{Path: dir + "/skills/own/out", Kind: Writable, Dir: true, Under: Readable},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.Symlink(dir+"/skills", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, l := range []sandbox.Launch{
		{Read: []string{dir + "/not-there"}},
		{Write: []string{dir + "/not-there"}},
		{Write: []string{dir + "/tool"}},
		{Hide: []string{dir + "/tool"}},
		{Read: []string{dir + "/link"}},
		{Write: []string{dir + "/link/own"}},
	} {
		if got, err := Places(l); err == nil {
			t.Errorf("%+v: %+v", l, got)
		}
	}
}

func TestFix(t *testing.T) {
	settings := map[string]map[string]string{
		"apparmor": {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
		"debian":   {"/proc/sys/kernel/unprivileged_userns_clone": "0"},
	}
	for _, tt := range []struct{ text, host, want string }{
		{"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "apparmor", "AppArmor"},
		{"bwrap: setting up uid map: Permission denied", "apparmor", "AppArmor"},
		{"bwrap: No permissions to create a new namespace", "debian", "unprivileged_userns_clone=1"},
		{"bwrap: Failed to make / slave: Operation not permitted", "", "seccomp=unconfined"},
		{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "", "systempaths=unconfined"},
		{`error mounting "proc" to rootfs at "/proc": operation not permitted`, "", "systempaths=unconfined"},
		{"Creating new namespace failed: nesting depth exceeded (ENOSPC)", "", "max_user_namespaces"},
		{"mount_setattr: invalid argument", "", "METIER_HOME"},
		{"cgroups in hybrid mode not supported", "", "cgroup v2"},
		{"unable to start container process: permission denied", "", ""},
		{"something else", "apparmor", ""},
	} {
		got := fix(strings.ToLower(tt.text), func(path string) string { return settings[tt.host][path] })
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
}

func TestSignalled(t *testing.T) {
	for _, tt := range []struct {
		ended  sandbox.Ended
		exit   int
		want   sandbox.Ended
		signal string
	}{
		{sandbox.Exited, 137, sandbox.Signalled, "kill"},
		{sandbox.Exited, 139, sandbox.Signalled, "segv"},
		{sandbox.Exited, 129, sandbox.Exited, ""},
		{sandbox.Exited, 128, sandbox.Exited, ""},
		{sandbox.Exited, 9, sandbox.Exited, ""},
		{sandbox.TimedOut, 137, sandbox.TimedOut, ""},
	} {
		r := sandbox.Result{Ended: tt.ended, Exit: tt.exit}
		Signalled(&r)
		if r.Ended != tt.want || r.Signal != tt.signal || r.Exit != tt.exit {
			t.Errorf("%+v: %+v", tt, r)
		}
	}
}

func TestUsers(t *testing.T) {
	for _, tt := range []struct {
		maps       string
		first, end uint64
		want       bool
	}{
		{"         0          0 4294967295\n", 0x70010000, 0x70011000, true},
		{"0 100000 65536\n", 0x70010000, 0x70011000, false},
		{"0 0 1\n1 1 100\n", 1, 101, true},
		{"0 0 1\n1 1 100\n", 1, 102, false},
		{"garbage", 1, 2, false},
	} {
		if got := mapped(tt.maps, tt.first, tt.end); got != tt.want {
			t.Errorf("%q %d: %v", tt.maps, tt.first, got)
		}
	}
	u := &Users{base: 1000, step: 2, inUse: make([]bool, 2)}
	a, errA := u.Take()
	b, errB := u.Take()
	_, errC := u.Take()
	if a != 1000 || b != 1002 || errA != nil || errB != nil || errC == nil {
		t.Errorf("%d %v, %d %v, %v", a, errA, b, errB, errC)
	}
	u.Return(a)
	if again, err := u.Take(); again != a || err != nil {
		t.Errorf("%d, %v", again, err)
	}
}

func TestEtc(t *testing.T) {
	for _, f := range Etc(1000, 1000, sandbox.NetworkDenied) {
		if f.Path == "/etc/resolv.conf" && f.Text != "" {
			t.Errorf("names can be asked for: %q", f.Text)
		}
		if f.Path == "/etc/passwd" && strings.Count(f.Text, "\n") != 3 {
			t.Errorf("%q", f.Text)
		}
	}
}

func TestLinks(t *testing.T) {
	if got := Links([]Place{{Path: "/var/tmpfile"}}); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := Links([]Place{{Path: "/var/tmp/work"}}); got != nil {
		t.Errorf("%v", got)
	}
}

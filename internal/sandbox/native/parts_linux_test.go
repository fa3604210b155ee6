package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

func TestFreeRange(t *testing.T) {
	const all = "         0          0 4294967295\n"
	tests := []struct {
		name, maps, passwd string
		want               int
		ok                 bool
	}{
		{"a plain host", all, "root:x:0:0::/root:/bin/sh\n", preferredBase, true},
		{"an account in the preferred range", all, "x:x:1879048200:5::/:/bin/sh\n", 4294967295 - mostUsers - 1, true},
		{"a group in the preferred range", all, "x:x:5:1879048200::/:/bin/sh\n", 4294967295 - mostUsers - 1, true},
		{"a container with few ids", "0 100000 65536\n", "nobody:x:60000:60000::/:/bin/sh\n", 65536 - mostUsers - 1, true},
		{"too few ids", "0 1000 1\n", "", 0, false},
		{"two lines", "0 1000 1\n1 100000 65536\n", "", 1 + 65536 - mostUsers - 1, true},
		{"nonsense", "a b c\n1 2\n", "::\n", 0, false},
		{"all taken", "0 0 5000\n", "x:x:2000:0::/:/bin/sh\n", 0, false},
	}
	for _, tt := range tests {
		got, ok := freeRange(tt.maps, tt.passwd)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d, %v, want %d", tt.name, got, ok, tt.want)
		}
	}
}

func FuzzFreeRange(f *testing.F) {
	f.Add("0 0 4294967295\n", "x:x:1879048200:5::/:/bin/sh\n")
	f.Add("0 100000 65536\n5 -9223372036854775808 9223372036854775807", "a:b:-1:c\n")
	f.Fuzz(func(t *testing.T, maps, passwd string) {
		if base, ok := freeRange(maps, passwd); ok && (base < 1 || taken(passwd, base)) {
			t.Errorf("%d", base)
		}
	})
}

// TestChanges: what lies above comes before what lies below, and what is hidden
// before what is shown at the same place.
func TestChanges(t *testing.T) {
	o := order{
		Hide:   []string{"/w/skills", "/s"},
		Mounts: []mount{{Path: "/w/skills/a"}, {Path: "/s"}, {Path: "/w", Write: true}, {Path: "/w-b"}},
	}
	var got []string
	for _, c := range o.changes() {
		kind := "hide"
		if c.mount != nil {
			kind = "show"
		}
		got = append(got, kind+" "+c.path)
	}
	if diff := cmp.Diff([]string{"hide /s", "show /s", "show /w", "show /w-b", "hide /w/skills", "show /w/skills/a"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRemedy: for each cause that users of such sandboxes report there is a
// command.
func TestRemedy(t *testing.T) {
	tests := []struct {
		step string
		err  error
		want string
	}{
		{"make namespaces", unix.ENOSPC, "sysctl -w user.max_user_namespaces"},
		{"make namespaces", unix.EPERM, "--security-opt seccomp=unconfined"},
		{"mount /proc", unix.EPERM, "systempaths=unconfined"},
		{"show /w", errNoMapping, "METIER_HOME"},
		{"clone /usr", unix.ENOSYS, "Linux 5.12"},
		{"start /bin/x in /w", unix.ENOENT, ""},
	}
	for _, tt := range tests {
		got := explain(&stepError{step: tt.step, err: tt.err})
		u, ok := errors.AsType[*sandbox.Unavailable](got)
		if !ok || u.Step != tt.step || !errors.Is(u, tt.err) || (tt.want == "") != (u.Fix == "") || !strings.Contains(u.Fix, tt.want) {
			t.Errorf("%s, %v: %v", tt.step, tt.err, got)
		}
	}
}

// TestFault: a step that failed in a child is the same error here.
func TestFault(t *testing.T) {
	f := newFault("set up", step(unix.EACCES, "mount %s", "/x"))
	if f.Step != "mount /x" || !errors.Is(f.err(), unix.EACCES) {
		t.Errorf("%+v", f)
	}
	f = newFault("set up", errors.New("odd"))
	if f.Step != "set up" || f.err().Error() != "odd" {
		t.Errorf("%+v", f)
	}
	if step(nil, "x") != nil {
		t.Error("no error became one")
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"Kind":"exited","Status":256}`), []byte{})
	f.Add([]byte(`{"Kind":"fault","Fault":{"Step":"x","Errno":1}}`), unix.UnixRights(-1))
	f.Add([]byte{}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data, oob []byte) {
		if len(oob) > 0 {
			return // real descriptors would be closed: only their absence can be tried
		}
		r, fds, err := parseReport(data, oob)
		if err == nil && r.expect(r.Kind) == nil && r.Fault != nil || len(fds) > 0 {
			t.Errorf("%+v %v", r, fds)
		}
	})
}

// TestStartable: a binary that only its owner may start is started from a copy,
// which nobody can change.
func TestStartable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(name, []byte("text"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := startable(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("the copy can be written: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&0o001 == 0 || info.Size() != 4 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestSweep: groups of a host that is gone go, those of one that lives stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"999999999-1", "1-1", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "1-1" || entries[1].Name() != "other" {
		t.Errorf("%v, %v", entries, err)
	}
}

package oci

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variable names another program than that of the system.
func variable(name string) string { return "METIER_TEST_" + strings.ToUpper(name) }

func options() Options {
	o := Options{Paths: map[string]string{}, Search: os.Getenv("PATH"), SetUp: 20 * time.Second}
	for _, name := range Names() {
		o.Paths[name] = os.Getenv(variable(name))
	}
	return o
}

// found is a backend of this machine; a test is skipped where there is none, and
// fails if one was named that does not work.
func found(t testing.TB, name string) sandbox.Backend {
	t.Helper()
	b, err := find(t.Context(), options(), of(name))
	if err != nil {
		if os.Getenv(variable(name)) != "" {
			t.Fatal(err)
		}
		t.Skipf("no %s to test with: %v", name, err)
	}
	return b
}

func testReal(t *testing.T, name string) {
	programtest.AsUsers(t, func(t *testing.T) {
		b := found(t, name)
		t.Logf("%+v", b.Capabilities())
		programtest.Run(t, b, programtest.Traits{Init: name == Runsc, Memory: true, Strong: name == Runsc, Temp: os.TempDir()})
	}, variable(name))
}

func TestRunc(t *testing.T)  { testReal(t, Runc) }
func TestCrun(t *testing.T)  { testReal(t, Crun) }
func TestRunsc(t *testing.T) { testReal(t, Runsc) }

// TestHostGone sees that what a killed host left is removed by the next one.
func TestHostGone(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			sign := ""
			if name == Runsc {
				sign = of(name).stem() + "%d-"
			}
			programtest.HostGone(t, func(t *testing.T) sandbox.Backend { return found(t, name) }, sign)
		})
	}
}

func TestFind(t *testing.T) {
	o := Options{Paths: map[string]string{}, SetUp: 5 * time.Second}
	dir := t.TempDir()
	for _, name := range Names() {
		o.Paths[name] = filepath.Join(dir, name)
	}
	script := "#!/bin/sh\necho runc version 1.0.0\n"
	if err := os.WriteFile(o.Paths[Runc], []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Paths[Crun], []byte("#!/bin/sh\n"), 0o757); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(o.Paths[Crun], 0o757); err != nil {
		t.Fatal(err)
	}
	wants := []string{`its version is "1.0.0"`, "chmod go-w", "gvisor.dev/gvisor/runsc"}
	for i, name := range Names() {
		f := Find(t.Context(), name, o)
		var u *sandbox.Unavailable
		if f.Name != name || f.Backend != nil || !errors.As(f.Problem, &u) || u.Backend != f.Name {
			t.Errorf("%+v", f)
			continue
		}
		if !strings.Contains(f.Problem.Error(), wants[i]) {
			t.Errorf("%q is not in: %s", wants[i], f.Problem)
		}
	}
}

// TestStale sees that nothing is swept but bundles of a runtime's own whose host
// is gone.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		fmt.Sprintf("metier-runc-%d-1", gone.Process.Pid):  true,
		fmt.Sprintf("metier-runsc-%d-1", gone.Process.Pid): false,
		fmt.Sprintf("metier-runc-%d-1", os.Getpid()):       false,
		"metier-runc-x-1": false, "metier-runc--1": false, "other": false,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == name && of(Runc).stale(e) != want {
				t.Errorf("%s: not %v", name, want)
			}
		}
	}
}

func TestSafelyMounted(t *testing.T) {
	const mounts = "/dev/vda / ext4 ro,relatime 0 0\n/dev/vda /w ext4 rw,nosuid,nodev,idmapped 0 0\n/dev/vda /v ext4 rw,nodev 0 0\nshort\n"
	for dir, want := range map[string]bool{"/w": true, "/v": false, "/": false, "/x": false} {
		if safelyMounted(mounts, dir) != want {
			t.Errorf("%s: not %v", dir, want)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			f, err := find(b.Context(), options(), of(name))
			if err != nil {
				b.Skip(err)
			}
			programtest.Benchmark(b, f)
		})
	}
}

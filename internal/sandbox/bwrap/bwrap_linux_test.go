package bwrap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// programVariable names another bubblewrap than that of the system.
const programVariable = "METIER_TEST_BWRAP"

// found is the backend of this machine; a test is skipped where there is none, and
// fails if one was named that does not work.
func found(t *testing.T) sandbox.Backend {
	t.Helper()
	f := Find(t.Context(), Options{Path: os.Getenv(programVariable), Search: os.Getenv("PATH"), SetUp: 20 * time.Second})
	if f.Problem != nil {
		if os.Getenv(programVariable) != "" {
			t.Fatal(f.Problem)
		}
		t.Skipf("no bubblewrap to test with: %v", f.Problem)
	}
	t.Cleanup(func() {
		if err := f.Backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return f.Backend
}

func TestReal(t *testing.T) {
	programtest.AsUsers(t, func(t *testing.T) {
		b := found(t)
		t.Logf("%+v", b.Capabilities())
		programtest.Run(t, b, programtest.Traits{Init: true, Memory: true, Temp: os.TempDir()})
	}, programVariable)
}

// TestHostGone sees that a launch does not outlive its host.
func TestHostGone(t *testing.T) {
	programtest.HostGone(t, found, "")
}

// TestTorn sees that nothing runs when the host is gone before it gave its word:
// bubblewrap takes a filter that ends too early for an error.
func TestTorn(t *testing.T) {
	b := found(t).(*Backend)
	dir := t.TempDir()
	x := &launch{b: b}
	l := sandbox.Launch{Purpose: sandbox.Canary, Argv: []string{"/bin/touch", "ran"}, Dir: dir, Write: []string{dir}, Output: 1 << 10, Deadline: 10 * time.Second}
	if err := x.prepare(l); err != nil {
		t.Fatal(err)
	}
	cmd := x.command(t.Context())
	cmd.Started = func(*os.Process) error {
		x.closeFiles()
		return x.filter.Close()
	}
	job, err := sandbox.StartProcess(t.Context(), l, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if r := job.Wait(); r.OK() || !strings.Contains(r.Stderr.Text(), "seccomp") {
		t.Errorf("%s %d, %q", r.Ended, r.Exit, r.Stderr.Text())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// fake is a bubblewrap that does nothing but talk.
func fake(t *testing.T, version, message string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/fake.sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bwrap")
	script := strings.NewReplacer("VERSION", version, "MESSAGE", message).Replace(string(text))
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	// The directory of the test itself is its owner's alone.
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindFake(t *testing.T) {
	for _, tt := range []struct {
		name, version, message string
		wants                  []string
	}{
		{"old", "0.8.0", "", []string{"0.8.0", "0.12.0", "CVE-2026-87766", "install"}},
		{"just too old", "0.11.9", "", []string{"0.11.9"}},
		{"no version", "unknown", "", []string{`""`}},
		{"denied", "0.12.0", "No permissions to create a new namespace, likely because the kernel does not allow it", []string{"set up a sandbox", "No permissions", "seccomp=unconfined"}},
		{"nesting", "0.13.1", "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)", []string{"sysctl -w user.max_user_namespaces"}},
		{"proc", "1.0", "Can't mount proc on /newroot/proc: Operation not permitted", []string{"systempaths=unconfined"}},
		{"odd", "1.0", "something else", []string{"something else"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Find(t.Context(), Options{Path: fake(t, tt.version, tt.message), SetUp: 5 * time.Second})
			var u *sandbox.Unavailable
			if f.Backend != nil || f.Name != Name || !errors.As(f.Problem, &u) {
				t.Fatalf("%+v", f)
			}
			for _, want := range tt.wants {
				if !strings.Contains(f.Problem.Error(), want) {
					t.Errorf("%q is not in: %s", want, f.Problem)
				}
			}
		})
	}
}

func TestFindUntrusted(t *testing.T) {
	path := fake(t, "0.13.1", "")
	for _, tt := range []struct {
		name string
		mode os.FileMode
		want string
	}{{"writable", 0o757, "chmod go-w"}, {"setuid", os.ModeSetuid | 0o755, "set-user-ID"}} {
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		f := Find(t.Context(), Options{Path: path, SetUp: 5 * time.Second})
		if f.Problem == nil || !strings.Contains(f.Problem.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, f.Problem)
		}
	}
	if f := Find(t.Context(), Options{Path: path + "-not-there", SetUp: time.Second}); f.Problem == nil || !strings.Contains(f.Problem.Error(), "apt-get install bubblewrap") {
		t.Errorf("missing: %v", f.Problem)
	}
}

func BenchmarkTrue(b *testing.B) {
	f := Find(b.Context(), Options{Path: os.Getenv(programVariable), Search: os.Getenv("PATH"), SetUp: 20 * time.Second})
	if f.Problem != nil {
		b.Skipf("no bubblewrap to measure: %v", f.Problem)
	}
	programtest.Benchmark(b, f.Backend)
}

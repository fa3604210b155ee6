//go:build linux

package programtest

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/sandbox"
)

func serveNothing(context.Context, net.Listener) {}

func atOnce(t *testing.T, x *bench) {
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			r, err := sandbox.Run(t.Context(), x.b, x.launch("sleep 0.1; cat "+x.skill+"/own.txt"))
			if err != nil || r.Stdout.Text() != "mine\n" {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
	wait.Wait()
}

// nothingLeft counts what a host has before and after launches that end in
// every way.
func nothingLeft(t *testing.T, x *bench) {
	mark := marker()
	once := func() {
		x.run(t, x.launch("true"))
		l := x.launch(stubborn(mark))
		l.Deadline = 300 * time.Millisecond
		x.run(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if job, err := x.b.Start(ctx, x.launch(stubborn(mark))); err == nil {
			job.Wait()
		}
	}
	once() // what is made once and kept is no leftover
	before := x.count(t)
	for range 8 {
		once()
	}
	checkGone(t, mark)
	if diff := cmp.Diff(before, x.count(t)); diff != "" {
		t.Error(diff)
	}
}

// count is what there is on the host that a launch could leave.
func (x *bench) count(t *testing.T) map[string][]string {
	t.Helper()
	own := fmt.Sprintf("-%d-", os.Getpid()) // other tests run beside this one
	ours := func(text string) bool { return strings.Contains(text, "metier-") && strings.Contains(text, own) }
	left := map[string][]string{"descriptors": {}, "groups": {}, "directories": {}, "processes": {}, "mounts": {}}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		for range entries {
			left["descriptors"] = append(left["descriptors"], "one")
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && ours(path) {
			left["groups"] = append(left["groups"], path)
		}
		return nil
	})
	entries, err := os.ReadDir(x.traits.Temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if ours(e.Name()) {
			left["directories"] = append(left["directories"], e.Name())
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if ours(line) || strings.Contains(line, x.root) {
			left["mounts"] = append(left["mounts"], line)
		}
	}
	left["processes"] = append(left["processes"], withArgument(own)...)
	return left
}

// spare is a user that has nothing.
const spare = 61234

// asUser is set in the environment of a test that runs as the spare user.
const asUser = "METIER_TEST_AS_USER"

// AsUsers runs a test as who it is; and once more, in a process of its own, as an
// ordinary user if that is root. environment are the names of variables that it
// hands on.
func AsUsers(t *testing.T, run func(*testing.T), names ...string) {
	t.Run("self", run)
	if os.Getuid() != 0 || os.Getenv(asUser) != "" {
		return
	}
	t.Run("ordinary user", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "metier-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		again(t, copyOf(t, dir), names)
	})
}

// copyOf is the test's own program where everybody can run it.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "program.test")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func again(t *testing.T, path string, names []string) {
	t.Helper()
	parent, _, _ := strings.Cut(t.Name(), "/")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-test.run=^"+parent+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), asUser + "=1"}
	for _, name := range names {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: spare, Gid: spare}, Pdeathsig: syscall.SIGKILL}
	text, err := cmd.CombinedOutput()
	t.Logf("as user %d:\n%s", spare, text)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "--- SKIP: "+parent+"/self ") {
		t.Skip("skipped as an ordinary user; the reason is above")
	}
}

// inHost is set in the environment of a host that is to be killed.
const inHost = "METIER_TEST_HOST"

// HostGone starts a host in a process of its own, kills that in the middle of a
// launch, and sees that nothing of the launch lives on once a next host has looked
// for the backend, which found does. sign is an argument of the host's processes
// that run the launch of a host with a process id, or empty for those of the launch
// itself.
func HostGone(t *testing.T, found func(*testing.T) sandbox.Backend, sign string) {
	b := found(t)
	if mark := os.Getenv(inHost); mark != "" {
		x := newBench(t, b, Traits{})
		l := x.launch(stubborn(mark))
		x.run(t, l)
		return
	}
	mark := marker()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inHost+"="+mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	running := "sleep\x00" + mark
	if sign != "" {
		running = fmt.Sprintf(sign, cmd.Process.Pid)
	}
	wait(t, "the launch to begin", func() bool { return len(withArgument(running)) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	found(t)
	wait(t, "the launch to end", func() bool { return len(withArgument(mark))+len(withArgument(running)) == 0 })
}

// wait waits until something holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Benchmark measures the time of one true.
func Benchmark(b *testing.B, backend sandbox.Backend) {
	dir := b.TempDir()
	l := sandbox.Launch{Purpose: sandbox.Canary, Argv: []string{"/bin/true"}, Dir: dir, Write: []string{dir}, Deadline: time.Minute, Memory: 1 << 30, Processes: 100, Disk: 1 << 28}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		r, err := sandbox.Run(b.Context(), backend, l)
		if err != nil || !r.OK() {
			b.Fatalf("%+v, %v", r, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}

package sdk

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/test/sdk/built"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestClients runs each client's own tests. Every client has an upstream and a
// server to itself, so none sees another's requests.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and the clients: takes minutes from empty caches")
	}
	skills := filepath.Join(built.Root(t), "examples", "skills")
	built.DependOn(t, skills)
	built.DependOn(t, ".")
	binary := built.Metier(t)
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		need(t, "install Node 20 or later", "node", "npm")
		install(t, "node")
		r := newRig(t, binary, skills)
		r.runClient(t, "node", "node", "--test", "--test-reporter=spec")
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		python := pythonFor(t, "python")
		r := newRig(t, binary, skills)
		// Neither the caller's settings nor compiled files beside the source.
		r.runClient(t, "python", python, "-E", "-B", "-m", "unittest", "discover", "-v")
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, binary, skills)
		r.runClient(t, "go", "go", "test", "-count=1", "-v", ".")
	})
}

// need skips a client whose language this machine has not got.
func need(t *testing.T, remedy string, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED, nothing was tested: there is no %s here; %s", p, remedy)
		}
	}
}

// install fetches the packages of a lockfile. What is installed already needs no
// network.
func install(t *testing.T, dir string) {
	t.Helper()
	if installed(filepath.Join(dir, "package-lock.json"), filepath.Join(dir, "node_modules", ".package-lock.json")) {
		return
	}
	command(t, dir, nil, "npm", "ci")
}

// installed reports whether every digest of a lockfile is among those that npm
// noted when it installed.
func installed(lockfile, note string) bool {
	want, err := os.ReadFile(lockfile)
	if err != nil {
		return false
	}
	have, err := os.ReadFile(note)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(want) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte(`"integrity"`)) && !bytes.Contains(have, line) {
			return false
		}
	}
	return true
}

// command runs a program to its end. Its output is shown when it fails, or with
// -v.
func command(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	ctx, stop := untilDeadline(t)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), readByClients), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	out, err := cmd.CombinedOutput()
	line := strings.Join(append([]string{name}, args...), " ")
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", line, dir, err, out)
	}
	if testing.Verbose() {
		t.Logf("%s\n%s", line, out)
	}
}

// readByClients reports whether a client would take a setting from this variable by
// itself: a key, or the address of a vendor.
func readByClients(variable string) bool {
	return slices.ContainsFunc([]string{"OPENAI_", "ANTHROPIC_", "OLLAMA_"}, func(vendor string) bool {
		return strings.HasPrefix(variable, vendor)
	})
}

// grace is what a process gets to end by itself, and what is left of a test's
// time to tell why it did not.
const grace = 10 * time.Second

// untilDeadline ends a little before the test does, so that a client that hangs
// is stopped and its output shown.
func untilDeadline(t *testing.T) (context.Context, context.CancelFunc) {
	deadline, ok := t.Deadline()
	if !ok {
		return context.WithCancel(t.Context())
	}
	return context.WithDeadline(t.Context(), deadline.Add(-2*grace))
}

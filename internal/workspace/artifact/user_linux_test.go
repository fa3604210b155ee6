package artifact

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// spare is a user that no account has.
const spare = 61_234

// asUser runs f without the rights of root over files, on a thread of its own that
// ends with it.
func asUser(t *testing.T, r *rig, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	for _, dir := range []string{r.work, r.opts.Dir} {
		check(t, os.Chown(dir, spare, spare))
		for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			check(t, os.Chmod(up, 0o755))
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, spare, 0, 0); errno != 0 {
			t.Errorf("setfsuid: %v", errno)
			return
		}
		f()
	}()
	<-done
}

// TestDiskFull: a full disk is an error that says so, and leaves nothing.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fullDiskEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() == cannotMount) {
		t.Skipf("no file system of its own here: %v %s", err, out)
	}
	if text := strings.TrimSpace(string(out)); err != nil || !strings.HasSuffix(text, "no space left on device; nothing of it is kept") {
		t.Errorf("%v: %s", err, text)
	}
}

const cannotMount = 77

// onFullDisk is the child: its store lies on a small file system of its own, which
// goes with it.
func onFullDisk(dir string) int {
	if err := syscall.Mount("artifacts", dir, "tmpfs", 0, "size=256k"); err != nil {
		println(err.Error())
		return cannotMount
	}
	work, err := os.MkdirTemp("", "")
	if err != nil {
		return 2
	}
	defer os.RemoveAll(work)
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(work, name), make([]byte, 100<<10), 0o600); err != nil {
			return 2
		}
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := s.Capture(ctx, "me", work, Snapshot{})
	left, _ := os.ReadDir(dir)
	if err == nil || c.RunID != "" || len(left) != 0 || s.pending != 0 {
		println("kept", len(c.Files), "left", len(left), "pending", s.pending)
		return 1
	}
	println(err.Error())
	return 0
}

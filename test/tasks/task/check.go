package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Exec runs a program in a folder with exactly this environment, and gives what it
// printed and its status. An error means that it could not be run.
type Exec func(ctx context.Context, dir string, env, argv []string) (output []byte, exit int, err error)

// Bare runs a program on this host, unconfined: for workspaces that only the
// recorded calls have written to.
func Bare(ctx context.Context, dir string, env, argv []string) ([]byte, int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.Exited() {
		return output.Bytes(), failed.ExitCode(), nil
	}
	if err != nil {
		return output.Bytes(), -1, fmt.Errorf("run %s: %w", argv[0], err)
	}
	return output.Bytes(), 0, nil
}

// Environ is the environment of a checker and of package direct: the host's PATH,
// a home and a temporary folder, and the host's cache of Go, so that one task does
// not build the standard library that another has built.
func Environ(home, temp string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temp, "LC_ALL=C.UTF-8",
		"PYTHONDONTWRITEBYTECODE=1", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
	}
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "GOCACHE="+filepath.Join(cache, "go-build"))
	}
	return env
}

// Check runs the checker in a finished workspace: nil when the task is done,
// [ErrNotDone] with the checker's words when it is not.
func (t Task) Check(ctx context.Context, run Exec, work string) error {
	temp, err := os.MkdirTemp("", "check-")
	if err != nil {
		return fmt.Errorf("check task %s: %w", t.Name, err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // nobody reads it again
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return fmt.Errorf("check task %s: %w", t.Name, err)
	}
	env := append(Environ(temp, temp),
		"TASK_START="+filepath.Join(dir, "files"),
		"PYTHONPATH="+filepath.Join(dir, "..", "..", "lib"))
	output, exit, err := run(ctx, work, env, []string{"python3", filepath.Join(dir, "check.py")})
	switch {
	case err != nil:
		return fmt.Errorf("check task %s: %w", t.Name, err)
	case exit != 0:
		return fmt.Errorf("check task %s: %w: %s", t.Name, ErrNotDone, strings.TrimSpace(string(output)))
	}
	return nil
}

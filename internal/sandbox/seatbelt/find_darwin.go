package seatbelt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find makes the backend and tries it with a whole profile. ctx bounds the trial.
func Find(ctx context.Context) sandbox.Finding {
	b, err := onThisHost(ctx)
	if err == nil {
		err = sandbox.Trial(ctx, b, "")
	}
	if err != nil {
		return sandbox.Finding{Name: Name, Problem: err}
	}
	return sandbox.Finding{Name: Name, Backend: b}
}

func onThisHost(ctx context.Context) (*Backend, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, &sandbox.Unavailable{Backend: Name, Step: "find sandbox-exec", Err: err}
	}
	version, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		version = "" // only listings show it
	}
	temp := []string{sharedTemp}
	own, err := userTemp(ctx)
	if err != nil {
		return nil, &sandbox.Unavailable{Backend: Name, Step: "find the user's temporary directory", Err: err}
	}
	return New(Options{Temp: append(temp, own), Version: version}), nil
}

// userTemp asks the system for the user's temporary directory. Nothing else under
// /private/var/folders is shared.
func userTemp(ctx context.Context) (string, error) {
	const getconf = "/usr/bin/getconf"
	dir := os.TempDir()
	l := sandbox.Launch{Purpose: sandbox.Canary, Argv: []string{getconf}, Dir: dir, Write: []string{dir}, Output: 4 << 10}
	job, err := sandbox.StartProcess(ctx, l, sandbox.Command{
		Backend: Name, Path: getconf, Args: []string{getconf, "DARWIN_USER_TEMP_DIR"}, Dir: "/",
	})
	if err != nil {
		return "", err
	}
	r := job.Wait()
	if !r.OK() {
		return "", fmt.Errorf("%s ended with status %d: %s", getconf, r.Exit, r.Stderr.Text())
	}
	path, err := filepath.EvalSymlinks(strings.TrimSpace(r.Stdout.Text()))
	if err != nil {
		return "", err
	}
	if !isUserTemp(path) {
		return "", errors.New("the system names " + path + ", which is not below /private/var/folders")
	}
	return path, nil
}

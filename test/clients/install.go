package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// nodeVersion is of the Node that runs the agents: today's want 22 or later.
const nodeVersion = "22.23.3"

// installTime bounds one installation; the largest is 424 MB.
const installTime = 10 * time.Minute

// nodePackage holds Node itself, as npm names it for this machine.
func nodePackage() string {
	system, arch := runtime.GOOS, runtime.GOARCH
	if system == "windows" {
		system = "win"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return "node-" + system + "-" + arch
}

// installed is a package in the cache, and installs it when it is not there. Each
// version has a folder of its own, so that an older one never answers for a newer.
func installed(ctx context.Context, cache, pkg, version string, path []string) (string, error) {
	folder := filepath.Join(cache, strings.NewReplacer("/", "-", "@", "").Replace(pkg)+"-"+version)
	if _, err := os.Stat(filepath.Join(folder, "node_modules", pkg, "package.json")); err == nil {
		return folder, nil
	}
	// Made under another name and moved when it is whole, so that one that was broken off
	// is no package.
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("install %s: %w", pkg, err)
	}
	fresh, err := os.MkdirTemp(cache, "installing-")
	if err != nil {
		return "", fmt.Errorf("install %s: %w", pkg, err)
	}
	defer os.RemoveAll(fresh)
	if err := os.WriteFile(filepath.Join(fresh, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return "", fmt.Errorf("install %s: %w", pkg, err)
	}
	bounded, stop := context.WithTimeout(ctx, installTime)
	defer stop()
	cmd := exec.CommandContext(bounded, "npm", "install", "--no-audit", "--no-fund", "--save-exact", pkg+"@"+version)
	cmd.Dir = fresh
	cmd.Env = append(os.Environ(), "PATH="+joined(path))
	cmd.WaitDelay = grace
	inGroup(cmd)
	out, err := cmd.CombinedOutput()
	endGroup(cmd)
	if err != nil {
		return "", fmt.Errorf("install %s@%s: %w: %s", pkg, version, err, lastLines(string(out), 5))
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("install %s: %w", pkg, err)
	}
	if err := os.Rename(fresh, folder); err != nil {
		return "", fmt.Errorf("install %s: %w", pkg, err)
	}
	return folder, nil
}

// joined is a PATH with these folders before the machine's own.
func joined(first []string) string {
	return strings.Join(append(first[:len(first):len(first)], os.Getenv("PATH")), string(os.PathListSeparator))
}

func lastLines(s string, n int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

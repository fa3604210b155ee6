package oci

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stem begins the name of every bundle of a runtime; the host's process id follows.
func (r runtime) stem() string { return "metier-" + r.name + "-" }

func (r runtime) prefix() string { return fmt.Sprintf("%s%d-", r.stem(), os.Getpid()) }

// sweep ends and removes what a host that was killed left behind.
func (b *Backend) sweep() {
	entries, err := os.ReadDir(b.temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !b.runtime.stale(e) {
			continue
		}
		dir := filepath.Join(b.temp, e.Name())
		b.forget(dir)
		_ = os.RemoveAll(dir) // another host may have been quicker
		removeGroups(e.Name())
	}
}

// stale reports whether an entry is a bundle of this user and runtime whose host is
// gone. Only the runtime that made a bundle can end what runs in it.
func (r runtime) stale(e fs.DirEntry) bool {
	rest, ours := strings.CutPrefix(e.Name(), r.stem())
	if !ours || !e.IsDir() {
		return false
	}
	number, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 || unix.Kill(pid, 0) != unix.ESRCH {
		return false
	}
	info, err := e.Info()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// removeGroups removes the control groups of a bundle, which the runtime does
// itself unless it was killed at the wrong moment.
func removeGroups(id string) {
	const top = "/sys/fs/cgroup"
	_ = os.Remove(filepath.Join(top, id)) // mostly not there
	hierarchies, err := os.ReadDir(top)
	if err != nil {
		return
	}
	for _, h := range hierarchies {
		_ = os.Remove(filepath.Join(top, h.Name(), id))
	}
}

package native

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// groups makes control groups, where this host lets us. Without any, the
// limits of single processes and a look at memory every now and then hold.
type groups struct {
	unified bool
	// dirs are the directories in which groups are made, by controller; with the
	// unified hierarchy all are the same.
	memory, pids string
}

// group is the control group of one launch. The nil group counts nothing.
type group struct {
	dirs   []string
	memory string // that which counts memory, or empty
	pids   string
	v2     bool
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// parent holds the groups of all hosts on this machine.
	parent = "metier"
)

// findGroups finds where groups can be made, and removes what a host that died
// left behind. Only root may, as the kernel's own files are.
func findGroups() *groups {
	g := &groups{}
	if os.Geteuid() != 0 {
		return g
	}
	if _, err := os.Stat(cgroupRoot + "/cgroup.controllers"); err == nil {
		g.unified = true
		g.memory = g.unifiedParent()
		g.pids = g.memory
	} else {
		g.memory = usable(cgroupRoot+"/memory/"+parent, "memory.limit_in_bytes")
		g.pids = usable(cgroupRoot+"/pids/"+parent, "pids.max")
	}
	sweep(g.memory)
	sweep(g.pids)
	return g
}

// unifiedParent is the directory for groups, with the controllers on.
func (g *groups) unifiedParent() string {
	dir := filepath.Join(cgroupRoot, parent)
	_ = os.WriteFile(cgroupRoot+"/cgroup.subtree_control", []byte("+memory +pids"), 0) // on already, or not ours
	if usable(dir, "memory.max") == "" {
		return ""
	}
	if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte("+memory +pids"), 0); err != nil {
		return ""
	}
	return dir
}

// usable makes a directory of groups and sees that it has a file.
func usable(dir, file string) string {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return ""
	}
	if err := unix.Access(filepath.Join(dir, file), unix.W_OK); err != nil {
		_ = os.Remove(dir)
		return ""
	}
	return dir
}

// sweep removes the groups of hosts that are gone. Their names begin with the
// host's process id.
func sweep(dir string) {
	if dir == "" {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, _, _ := strings.Cut(e.Name(), "-")
		n, err := strconv.Atoi(pid)
		if err != nil || !e.IsDir() || unix.Kill(n, 0) == nil {
			continue
		}
		_ = os.Remove(filepath.Join(dir, e.Name())) // one that is in use stays
	}
}

// make puts a process into a new group. That can take long, because the kernel
// waits for other processors; it is done while nobody waits for the process.
func (g *groups) make(pid int) (*group, error) {
	made := &group{v2: g.unified}
	name := fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()) // a process may have several backends
	if g.memory != "" {
		made.memory = filepath.Join(g.memory, name)
	}
	if g.pids != "" {
		made.pids = filepath.Join(g.pids, name)
	}
	for _, dir := range []string{made.memory, made.pids} {
		if dir == "" || len(made.dirs) > 0 && made.dirs[0] == dir {
			continue
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			made.dirs = append(made.dirs, dir)
			err = write(dir, "cgroup.procs", int64(pid))
		}
		if err != nil {
			made.remove()
			return nil, step(err, "join a control group")
		}
	}
	return made, nil
}

// limit sets the limits of a launch.
func (g *group) limit(l sandbox.Launch) error {
	if g.memory != "" && l.Memory > 0 {
		file := "memory.limit_in_bytes"
		if g.v2 {
			file = "memory.max"
		}
		if err := write(g.memory, file, l.Memory); err != nil {
			return err
		}
		// Memory that was written out is memory all the same.
		swap := write(g.memory, "memory.swap.max", 0)
		if !g.v2 {
			swap = write(g.memory, "memory.memsw.limit_in_bytes", l.Memory)
		}
		_ = swap // a kernel that does not count swap has no such file
		if !g.v2 {
			// Buffers of sockets, which a unified hierarchy counts anyway.
			_ = write(g.memory, "memory.kmem.tcp.limit_in_bytes", l.Memory)
		}
	}
	if g.pids != "" && l.Processes > 0 {
		return write(g.pids, "pids.max", l.Processes+ownThreads)
	}
	return nil
}

func write(dir, file string, value int64) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(value, 10)), 0)
}

// counts reports whether the memory of the whole tree is bounded by the kernel.
func (g *group) counts() bool { return g != nil && g.memory != "" }

// outOfMemory reports whether the kernel killed a process of the group for its
// memory.
func (g *group) outOfMemory() bool {
	if !g.counts() {
		return false
	}
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(g.memory, file))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}

// How long and how often a group is tried to be removed: the kernel lets go of a
// process a moment after it has reported its end.
const (
	removeWait  = time.Second
	removeEvery = time.Millisecond
)

// remove gives the group back. All its processes are gone, or about to be.
func (g *group) remove() {
	if g == nil {
		return
	}
	end := time.Now().Add(removeWait)
	for _, dir := range g.dirs {
		for errors.Is(os.Remove(dir), unix.EBUSY) && time.Now().Before(end) {
			time.Sleep(removeEvery) // there is no event to wait for
		}
	}
}

package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// Find looks for one runtime of [Names], and runs true under it with all that a
// launch has. What a host that was killed left behind is ended and removed. The
// Problem of the finding is an [*sandbox.Unavailable].
func Find(ctx context.Context, name string, o Options) sandbox.Finding {
	b, err := find(ctx, o, of(name))
	if err != nil {
		return sandbox.Finding{Name: name, Problem: err}
	}
	return sandbox.Finding{Name: name, Backend: b}
}

func find(ctx context.Context, o Options, r runtime) (*Backend, error) {
	if o.SetUp <= 0 {
		return nil, r.unavailable("find out how long a set-up may take", errors.New("no time was given"), "")
	}
	b := &Backend{runtime: r, setUp: o.SetUp, temp: o.Temp, shell: sandbox.FindShell(), host: host{root: os.Geteuid() == 0}}
	if err := b.accept(ctx, o); err != nil {
		return nil, err
	}
	var err error
	if b.temp == "" {
		b.temp = os.TempDir()
	}
	if b.temp, err = filepath.EvalSymlinks(b.temp); err != nil {
		return nil, r.unavailable("find a place for bundles", err, "")
	}
	if b.system, err = program.ReadSystem(); err != nil {
		return nil, r.unavailable("look at the system", err, "")
	}
	if err := b.setUsers(); err != nil {
		return nil, err
	}
	b.sweep()
	return b, b.try(ctx)
}

// accept finds the program and refuses one that is old or that others can change.
func (b *Backend) accept(ctx context.Context, o Options) error {
	r, name := b.runtime, o.Paths[b.runtime.name]
	if name == "" {
		name = r.name
	}
	path, err := program.Find(name, o.Search)
	if errors.Is(err, program.ErrMissing) {
		return r.unavailable("look for the program", err, r.install)
	}
	if err != nil {
		return r.unavailable("look for the program", err, "")
	}
	b.host.path = path
	ctx, cancel := context.WithTimeout(ctx, o.SetUp)
	defer cancel()
	text, err := ask(ctx, path, "--version")
	if err != nil {
		return r.unavailable("ask "+path+" for its version", err, r.install)
	}
	// A runsc that was built from its module does not know its version.
	b.version = program.Version(text)
	if r.name == Runsc {
		if flags, err := ask(ctx, path, "flags"); err == nil && strings.Contains(flags, goferNetwork) {
			b.host.extra = []string{"--" + goferNetwork, "new"}
		}
	}
	if r.least != "" && !program.AtLeast(b.version, r.least) {
		return r.unavailable("accept "+path, fmt.Errorf("its version is %q, and %s", b.version, r.why), r.install)
	}
	return nil
}

// ask is what a program prints for one argument. Some print on one stream, some on
// the other.
func ask(ctx context.Context, path, argument string) (string, error) {
	cmd := exec.CommandContext(ctx, path, argument)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environment(), "/", time.Second
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// setUsers sets users aside on a host that is root, for a runtime that shares the
// host's kernel.
func (b *Backend) setUsers() error {
	r := b.runtime
	if !b.host.root || r.strong {
		return nil
	}
	first := program.FirstRunc
	if r.name == Crun {
		first = program.FirstCrun
	}
	var err error
	if b.users, err = program.NewUsers(first, perUser); err != nil {
		return r.unavailable("set users aside", err, "run Metier as an ordinary user")
	}
	return nil
}

// try runs true, in a directory of its own that only its owner may enter.
func (b *Backend) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.setUp)
	defer cancel()
	err := sandbox.Trial(ctx, b, "")
	if err == nil && !b.runtime.strong {
		err = b.tryMounts(ctx)
	}
	u, ok := errors.AsType[*sandbox.Unavailable](err)
	if !ok {
		return err
	}
	if u.Fix == "" && u.Err != nil {
		u.Fix = program.Fix(u.Err.Error())
	}
	if u.Fix == "" && b.users != nil && !program.AtLeast(b.version, b.runtime.mapping) {
		u.Fix = fmt.Sprintf("%s %s cannot give a launch of root a user of its own: install %s or newer, or run Metier as an ordinary user", b.runtime.name, b.version, b.runtime.mapping)
	}
	return u
}

// tryMounts sees that what a launch may write is mounted as it was asked for.
// Some runtimes forget that when they map the owners of a mount.
func (b *Backend) tryMounts(ctx context.Context) error {
	const step = "look at the mounts of a launch"
	dir, err := os.MkdirTemp(b.temp, "metier-trial-")
	if err != nil {
		return b.runtime.unavailable(step, err, "")
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is empty
	r, err := sandbox.Run(ctx, b, sandbox.Launch{
		Purpose: sandbox.Canary, Argv: []string{"/bin/cat", "/proc/self/mounts"}, Dir: dir, Write: []string{dir}, Deadline: b.setUp, Output: 1 << 16,
	})
	if err != nil {
		return err
	}
	if !r.OK() || !safelyMounted(r.Stdout.Text(), dir) {
		return b.runtime.unavailable(step, errors.New("what it may write is not mounted with nosuid and nodev"), "")
	}
	return nil
}

// safelyMounted reports whether a text as of /proc/self/mounts has a directory with
// nosuid and nodev.
func safelyMounted(mounts, dir string) bool {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[1] != dir {
			continue
		}
		options := strings.Split(fields[3], ",")
		return slices.Contains(options, "nosuid") && slices.Contains(options, "nodev")
	}
	return false
}

// Capabilities is [sandbox.Backend.Capabilities].
func (b *Backend) Capabilities() sandbox.Capabilities {
	memory, processes := "each process by a limit, the tree by looking every 50 ms", "a limit of the user namespace"
	if b.users != nil && b.runtime.name == Runc {
		memory, processes = "a control group", "a control group"
	}
	kernel := "a system call filter, no capabilities, no namespaces of its own"
	if b.runtime.strong {
		kernel = "a kernel of its own in between"
	}
	return sandbox.Capabilities{Backend: b.runtime.name, Version: b.version, Tier: b.runtime.tier(), All: []sandbox.Capability{
		{Aspect: sandbox.Writes, Held: true, Note: "a root of its own, read-only"},
		{Aspect: sandbox.Home, Held: true, Note: "a root of its own without it"},
		{Aspect: sandbox.NoNetwork, Held: true, Note: "a network of its own"},
		{Aspect: sandbox.Domains, Held: false, Note: "the runtime hands out no listener from inside"},
		{Aspect: sandbox.Tree, Held: true, Note: "the container is deleted; that of a host that was killed, when the next one starts"},
		{Aspect: sandbox.Hidden, Held: true, Note: "a process namespace"},
		{Aspect: sandbox.Kernel, Held: true, Note: kernel},
		{Aspect: sandbox.Memory, Held: true, Note: memory},
		{Aspect: sandbox.Processes, Held: true, Note: processes},
		{Aspect: sandbox.Disk, Held: true, Note: "a limit of each file, the directory by looking every 250 ms"},
	}}
}

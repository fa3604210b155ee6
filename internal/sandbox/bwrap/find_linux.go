package bwrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// install is how bubblewrap is had.
const install = "install bubblewrap " + least + " or newer: apt-get install bubblewrap, or dnf install bubblewrap, or build it from source"

// Find looks for bubblewrap, and runs true under it with all that a launch has.
// The Problem of the finding is an [*sandbox.Unavailable].
func Find(ctx context.Context, o Options) sandbox.Finding {
	b, err := find(ctx, o)
	if err != nil {
		return sandbox.Finding{Name: Name, Problem: err}
	}
	if err := b.try(ctx); err != nil {
		return sandbox.Finding{Name: Name, Problem: errors.Join(err, b.Close())}
	}
	return sandbox.Finding{Name: Name, Backend: b}
}

func find(ctx context.Context, o Options) (*Backend, error) {
	if o.SetUp <= 0 {
		return nil, unavailable("find out how long a set-up may take", errors.New("no time was given"), "")
	}
	path, version, err := accept(ctx, o)
	if err != nil {
		return nil, err
	}
	b := &Backend{path: path, version: version, setUp: o.SetUp, shell: sandbox.FindShell()}
	if b.system, err = program.ReadSystem(); err != nil {
		return nil, unavailable("look at the system", err, "")
	}
	if b.filter, err = filterFor(); err != nil {
		return nil, unavailable("make a filter of system calls", err, "")
	}
	if os.Geteuid() == 0 {
		if b.users, err = program.NewUsers(program.FirstBwrap, 1); err != nil {
			return nil, unavailable("set users aside", err, "run Metier as an ordinary user")
		}
	}
	return b, nil
}

// accept finds the program and refuses one that is old or that others can change.
func accept(ctx context.Context, o Options) (path, version string, err error) {
	name := o.Path
	if name == "" {
		name = "bwrap"
	}
	path, err = program.Find(name, o.Search)
	if errors.Is(err, program.ErrMissing) {
		return "", "", unavailable("look for the program", err, install)
	}
	if err != nil {
		return "", "", unavailable("look for the program", err, "")
	}
	ctx, cancel := context.WithTimeout(ctx, o.SetUp)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err != nil {
		return "", "", unavailable("ask "+path+" for its version", err, install)
	}
	version = program.Version(string(text))
	if !program.AtLeast(version, least) {
		return "", "", unavailable("accept "+path, fmt.Errorf("its version is %q, and before %s its set-up follows symbolic links out of the sandbox (CVE-2026-87766)", version, least), install)
	}
	return path, version, nil
}

// try runs true, in a directory of its own.
func (b *Backend) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.setUp)
	defer cancel()
	err := sandbox.Trial(ctx, b, "")
	if u, ok := errors.AsType[*sandbox.Unavailable](err); ok && u.Fix == "" && u.Err != nil {
		u.Fix = program.Fix(u.Err.Error())
	}
	return err
}

// Capabilities is [sandbox.Backend.Capabilities].
func (b *Backend) Capabilities() sandbox.Capabilities {
	who := "the host's own user"
	if b.users != nil {
		who = "a user of nobody's"
	}
	return sandbox.Capabilities{Backend: Name, Version: b.version, Tier: sandbox.TierFull, All: []sandbox.Capability{
		{Aspect: sandbox.Writes, Held: true, Note: "a root of its own, read-only, as " + who},
		{Aspect: sandbox.Home, Held: true, Note: "a root of its own without it"},
		{Aspect: sandbox.NoNetwork, Held: true, Note: "a network namespace"},
		{Aspect: sandbox.Domains, Held: false, Note: "bubblewrap hands out no listener from inside"},
		{Aspect: sandbox.Tree, Held: true, Note: "a process namespace"},
		{Aspect: sandbox.Hidden, Held: true, Note: "a process namespace"},
		{Aspect: sandbox.Kernel, Held: true, Note: "a system call filter, no capabilities, no namespaces of its own"},
		{Aspect: sandbox.Memory, Held: true, Note: "each process by a limit, the tree by looking every 50 ms"},
		{Aspect: sandbox.Processes, Held: true, Note: "a limit of the user namespace"},
		{Aspect: sandbox.Disk, Held: true, Note: "a limit of each file, the directory by looking every 250 ms"},
	}}
}

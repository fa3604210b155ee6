// Package jobobject bounds launches on Windows by a job object: the process tree ends
// with the launch, and memory and processes of the tree are limited.
//
// It confines neither files nor the network, so its tier is none: a policy that
// requires confinement refuses it, and one that prefers it gets the gaps named. It
// never starts a process outside of its job, and refuses a launch that relies on a
// proxy. It compiles and is vetted on other systems; nothing is claimed of a run.
//
// Start at [Find].
package jobobject

import (
	"context"
	"errors"
	"runtime"

	"github.com/metier-run/metier/internal/sandbox"
)

// Name is the backend's name.
const Name = "jobobject"

// Options are what a backend may be given; the zero value is right.
type Options struct {
	// Shell is the argument vector that a line is appended to; empty takes
	// [sandbox.FindShell].
	Shell []string
}

// Backend is the backend. It holds nothing.
type Backend struct{ shell []string }

var _ sandbox.Backend = (*Backend)(nil)

// New makes the backend without trying it; [Find] does.
func New(o Options) *Backend {
	if len(o.Shell) == 0 {
		o.Shell = sandbox.FindShell()
	}
	return &Backend{shell: o.Shell}
}

// Find makes the backend and tries it; ctx bounds the trial. On other systems it
// says so.
func Find(ctx context.Context) sandbox.Finding {
	b := New(Options{})
	err := available()
	if err == nil {
		err = sandbox.Trial(ctx, b, "")
	}
	if err != nil {
		return sandbox.Finding{Name: Name, Problem: err}
	}
	return sandbox.Finding{Name: Name, Backend: b}
}

// Name is [Name].
func (b *Backend) Name() string { return Name }

// Close does nothing: nothing is held.
func (b *Backend) Close() error { return nil }

// Capabilities are what a job object bounds.
func (b *Backend) Capabilities() sandbox.Capabilities { return capabilities() }

// Start is [sandbox.Backend.Start]. A proxied network is refused; a denied one is
// not denied, which [sandbox.Capabilities.Gaps] tells.
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := available(); err != nil {
		return nil, err
	}
	if l.Network.Mode == sandbox.NetworkProxied {
		return nil, &sandbox.Unavailable{
			Backend: Name,
			Step:    "limit the network to a proxy",
			Fix:     "let launches have all of the network, or none of the tools that need it",
			Err:     errors.New("a job object does not confine the network"),
		}
	}
	argv, err := l.Vector(b.shell)
	if err != nil {
		return nil, &sandbox.Unavailable{Backend: Name, Step: "find a shell", Err: err}
	}
	return sandbox.StartProcess(ctx, l, sandbox.Command{
		Backend: Name, Path: argv[0], Args: argv, Env: l.Env, Job: limitsOf(l),
	})
}

// available says whether this is Windows: every version that Go runs on has job
// objects.
func available() error {
	if runtime.GOOS != "windows" {
		return &sandbox.Unavailable{Backend: Name, Step: "make a job object", Err: errors.New("this is not Windows")}
	}
	return nil
}

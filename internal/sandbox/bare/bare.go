// Package bare runs launches as they are: the operating system confines nothing,
// which its capabilities say. It keeps what does not need confinement: the
// deadline, the cap of the output, the exact environment, an empty input, and the
// end of the process tree as far as it can be found.
//
// It serves the modes "off" and "preferred", and is the control that shows of each
// hostile attempt that it succeeds where nothing stops it. It never limits the
// network, and refuses a launch that relies on a proxy.
//
// Start at [New].
package bare

import (
	"context"
	"errors"
	"runtime"

	"github.com/metier-run/metier/internal/sandbox"
)

// Options are what a backend may be given; the zero value is right.
type Options struct {
	// Shell is the argument vector that a line is appended to; empty takes
	// [sandbox.FindShell].
	Shell []string
}

// Backend is the backend. It holds nothing.
type Backend struct {
	shell []string
	able  sandbox.Capabilities
}

var _ sandbox.Backend = (*Backend)(nil)

// New makes the backend. It works on every platform that programs are started on.
func New(o Options) *Backend {
	if len(o.Shell) == 0 {
		o.Shell = sandbox.FindShell()
	}
	return &Backend{shell: o.Shell, able: capabilities(runtime.GOOS)}
}

// Find makes the backend and tries it. ctx bounds the trial.
func Find(ctx context.Context) sandbox.Finding {
	b := New(Options{})
	if err := sandbox.Trial(ctx, b, ""); err != nil {
		return sandbox.Finding{Name: sandbox.Bare, Problem: err}
	}
	return sandbox.Finding{Name: sandbox.Bare, Backend: b}
}

// Name is [sandbox.Bare].
func (b *Backend) Name() string { return sandbox.Bare }

// Capabilities are what is confined: next to nothing.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.able }

// Close does nothing: nothing is held.
func (b *Backend) Close() error { return nil }

// Start is [sandbox.Backend.Start]. A proxied network is refused; a denied one is
// not denied, which [sandbox.Capabilities.Gaps] tells.
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.Network.Mode == sandbox.NetworkProxied {
		return nil, &sandbox.Unavailable{
			Backend: sandbox.Bare,
			Step:    "limit the network to a proxy",
			Fix:     "use a backend that confines the network, or let launches have all of it",
			Err:     errors.New("nothing is confined"),
		}
	}
	argv, err := l.Vector(b.shell)
	if err != nil {
		return nil, &sandbox.Unavailable{Backend: sandbox.Bare, Step: "find a shell", Err: err}
	}
	return sandbox.StartProcess(ctx, l, sandbox.Command{
		Backend: sandbox.Bare, Path: argv[0], Args: argv, Env: l.Env, Limit: true,
	})
}

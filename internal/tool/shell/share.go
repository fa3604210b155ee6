package shell

import (
	"context"
	"slices"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/workspace/install"
)

// Packages is the record of what the workspace has installed, for other tools that
// install there: there is one record, so that no set of packages loses what another one
// holds. Who calls it holds the lock of the workspace.
type Packages struct{ s *Set }

// Packages gives the record.
func (s *Set) Packages() Packages { return Packages{s} }

// Options say what may be installed. What the host has by itself is looked up when it
// is asked for, while ctx lasts.
func (p Packages) Options(ctx context.Context) install.Options {
	return (&run{Set: p.s, began: p.s.o.Workspace.Current()}).options(ctx)
}

// Perform carries a request out; ok reports that all of it is there. What kept it from
// that is among the outcomes, for the model; an error is the host's.
func (p Packages) Perform(ctx context.Context, request install.Request) (outcomes []install.Outcome, ok bool, err error) {
	r := &run{Set: p.s}
	return r.perform(ctx, request)
}

// Has reports whether a distribution is installed, also one that came with another.
func (p Packages) Has(kind interpreter.Kind, distribution string) bool {
	return p.s.hasDistribution(kind, distribution)
}

// Failed is why an install of a distribution failed before; again says that the next
// try may end otherwise.
func (p Packages) Failed(kind interpreter.Kind, distribution string) (reason string, again, failed bool) {
	l, failed := p.s.lostBefore(kind, distribution)
	return l.reason, l.passing, failed
}

// Show has later commands read these directories beside those of the workspace, in
// place of those that they were shown before. Who calls it holds the lock of the
// workspace.
func (s *Set) Show(dirs []string) { s.readable = slices.Clone(dirs) }

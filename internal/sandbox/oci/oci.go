// Package oci confines launches by a runtime of containers: runc or crun, which use
// what the kernel itself offers, or runsc (gVisor), which puts a kernel of its own
// in between.
//
// A launch is a bundle: a directory with the description of a container and the
// skeleton of its root, made for it and removed with it. The runtime never sees an
// image, a registry or a daemon, and its records lie in the bundle too.
//
// A host that is root runs a launch under two users of nobody's, one of which is the
// launch's and owns, in there, what the launch may write. It takes a runtime that
// can map the owners of a mount; older ones are refused then.
//
// The program of a launch is process 1 of its container, so a signal that it sends
// to itself and has no handler for is not delivered.
//
// A container outlives a host that is killed, since no runtime watches who started
// it; the next [Find] ends it.
//
// The package has no proxied network: no runtime hands out a listener from inside.
//
// Start at [Find]; the description is made by describe in describe.go.
package oci

import (
	"slices"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// Options say how the backends are found.
type Options struct {
	// Paths are programs by the name of their backend; those that are not named are
	// looked for.
	Paths map[string]string
	// Search is the value of PATH; the directories of the system are searched after
	// it.
	Search string
	// SetUp bounds the time until a launch's program runs.
	SetUp time.Duration
	// Temp is where bundles are made; empty is the system's own.
	Temp string
}

// runtime is what is known of a runtime.
type runtime struct {
	name    string
	install string
	// least is the oldest version that is taken, why says what is wrong with older
	// ones. mapping is the one with which the owners of mounts can be mapped.
	least, why, mapping string
	strong              bool
}

// Names are those of the backends, in the order in which they are tried.
func Names() []string { return []string{Runc, Crun, Runsc} }

// The backends.
const (
	Runc  = "runc"
	Crun  = "crun"
	Runsc = "runsc"
)

func runtimes() []runtime {
	return []runtime{
		{name: Runc, install: "install runc: apt-get install runc, or dnf install runc", least: "1.1.5", why: "before it its set-up can be led astray (CVE-2023-27561)", mapping: "1.2.0"},
		{name: Crun, install: "install crun: apt-get install crun, or dnf install crun", least: "1.4.4", why: "before it programs start with capabilities (CVE-2022-27650)", mapping: "1.28"},
		{name: Runsc, install: "install gVisor: CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@latest", strong: true},
	}
}

// of is what is known of a runtime by its name.
func of(name string) runtime {
	all := runtimes()
	return all[slices.IndexFunc(all, func(r runtime) bool { return r.name == name })]
}

func (r runtime) unavailable(step string, err error, fix string) *sandbox.Unavailable {
	return &sandbox.Unavailable{Backend: r.name, Step: step, Err: err, Fix: fix}
}

func (r runtime) tier() sandbox.Tier {
	if r.strong {
		return sandbox.TierStrong
	}
	return sandbox.TierFull
}

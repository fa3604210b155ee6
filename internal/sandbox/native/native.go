// Package native confines launches with what the Linux kernel itself offers, and
// with no helper program: namespaces, mounts by descriptor, Landlock, seccomp,
// resource limits and, where there are some, control groups.
//
// A launch passes three processes of this same binary. The host, which is the
// server, asks a spawner: a small process that was started once and whose memory
// is small, so that a clone costs the same however large the host is. The
// spawner clones an init into new namespaces, ahead of time, where it builds the
// new root and waits. The host sends it what to run; init finishes the root, locks
// itself down for good, starts the program, reaps what is orphaned and reports. It
// is process 1 of its namespace: when it dies, all of the launch dies with it, and
// it dies when the host does.
//
// The package never resolves a path twice: what a launch may see is opened once,
// without following links, and mounted by descriptor or compared with it.
//
// Start at [Find]; the children begin in child.go.
package native

import (
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// Name is the name of the backend.
const Name = "native"

// Options say how the backend runs.
type Options struct {
	// Exe is the binary that is started as spawner and init; empty is this one. It
	// must import this package.
	Exe string
	// SetUp bounds the time until a launch's program runs.
	SetUp time.Duration
	// Cold keeps no init waiting, so that each launch pays for its own start.
	Cold bool
	// Scratch is a directory below which launches work, and where the backend is tried.
	// Where others than root cannot pass it, no launch of root under [FindLandlock] has
	// a user of its own. Empty means the temporary directory, and that they can.
	Scratch string
}

// The names under which this binary starts its children, in place of a program
// name. They are seen in process lists.
const (
	spawnerName    = "metier-sandbox-spawner"
	initName       = "metier-sandbox-init"
	lockedName     = "metier-sandbox-locked"
	holderName     = "metier-sandbox-holder"
	supervisorName = "metier-sandbox-supervisor"
)

func unavailable(step string, err error, fix string) *sandbox.Unavailable {
	return &sandbox.Unavailable{Backend: Name, Step: step, Err: err, Fix: fix}
}

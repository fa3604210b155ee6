// Package bwrap confines launches by bubblewrap, a small program that many Linux
// systems have.
//
// Only bubblewrap 0.12.0 or newer is taken: what older ones mount can be steered
// out of the sandbox by a symbolic link (CVE-2026-87766). Nothing of a launch but
// the program and its arguments stands on a command line that other users can read;
// the environment goes by descriptor.
//
// A host that is root runs bubblewrap under a user of nobody's, and hands it the
// launch's directories as mounts that show their owner as that user; see late_linux.go.
//
// The package has no proxied network: bubblewrap hands nobody a listener from inside.
//
// Start at [Find]; the recipe of a launch is made by arguments in recipe.go.
package bwrap

import (
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// Name is the name of the backend.
const Name = "bwrap"

// least is the oldest version that is taken.
const least = "0.12.0"

// Options say how the backend is found.
type Options struct {
	// Path is the program; empty looks for bwrap.
	Path string
	// Search is the value of PATH; the directories of the system are searched after
	// it.
	Search string
	// SetUp bounds the time until a launch's program runs.
	SetUp time.Duration
}

func unavailable(step string, err error, fix string) *sandbox.Unavailable {
	return &sandbox.Unavailable{Backend: Name, Step: step, Err: err, Fix: fix}
}

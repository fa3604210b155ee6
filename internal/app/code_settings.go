package app

import "github.com/metier-run/metier/internal/launch"

// Code says whether a model may work with files and run commands, and with what. The
// zero value allows nothing (seed 1, "--code-exec"; B1 18.3).
type Code struct {
	// Allowed turns it on. Install lets the host install the packages that a command
	// asks for. Unconfined takes the best confinement that there is, even if that is
	// none.
	Allowed, Install, Unconfined bool
	// Network is what commands reach, whatever scripts may.
	Network launch.Network
	// Packages are the bare names that may be installed; empty means any.
	Packages []string
	// Index is the URL that stands in place of pip's index; empty is the operator's own.
	// It may hold a password, so nothing prints it.
	Index string
	// Domains are the hosts that installs reach; nil is the default, and an empty list
	// holds none back (B1 13.14).
	Domains []string
	// Temperature is what a turn with code asks for where its client does not say; nil
	// leaves that to the upstream (B1 18.5).
	Temperature *float64
	// Shell is the absolute path of the shell; empty is the best that there is.
	Shell string
	// NoRecovery, Prepare and Inspect are those of [code.Options], for who measures.
	NoRecovery bool
	Prepare    func(dir string) error
	Inspect    func(dir string)
}

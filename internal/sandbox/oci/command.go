package oci

import (
	"path/filepath"

	"github.com/metier-run/metier/internal/sandbox"
)

// host is what a runtime is told of the host that starts it.
type host struct {
	path string // of the runtime
	root bool   // the host is root
	// extra are options that not every version of the runtime has.
	extra []string
}

// goferNetwork keeps runsc from leaving a network namespace mounted on the host,
// for all that it will ever run. Versions that do not know it leave none.
const goferNetwork = "gofer-network-namespace"

// runArgs are the arguments that run the container of a bundle to its end.
func (r runtime) runArgs(h host, bundle string, n sandbox.NetworkMode) []string {
	return append(r.global(h, bundle, n), "run", "--bundle", bundle, "--pid-file", filepath.Join(bundle, pidFile), filepath.Base(bundle))
}

// deleteArgs are the arguments that end the container and forget it.
func (r runtime) deleteArgs(h host, bundle string) []string {
	command := []string{"delete", "--force"}
	if r.name == Runsc {
		command[1] = "-force"
	}
	return append(append(r.global(h, bundle, sandbox.NetworkDenied), command...), filepath.Base(bundle))
}

// global are the runtime and the options before its command. Its own log goes to a
// file, so that the output is the launch's alone.
func (r runtime) global(h host, bundle string, n sandbox.NetworkMode) []string {
	args := []string{h.path, "--root", filepath.Join(bundle, stateDir)}
	log := filepath.Join(bundle, logFile)
	switch r.name {
	case Runc:
		return append(args, "--log", log, "--log-format", "json")
	case Crun:
		// It refuses to run at all where it does not like the control groups.
		return append(args, "--log", "file:"+log, "--cgroup-manager", "disabled")
	}
	network := "none"
	if n == sandbox.NetworkOpen {
		network = "host"
	}
	args = append(args, "--log", log, "--log-format", "json", "--network", network, "--platform", "systrap", "--overlay2", "none",
		"--oci-seccomp", "--ignore-cgroups", "--host-settings", "ignore")
	if !h.root {
		args = append(args, "--rootless")
	}
	return append(args, h.extra...)
}

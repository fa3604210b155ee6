package native

import "github.com/metier-run/metier/internal/sandbox"

// LandlockName is the name of the backend for hosts that refuse namespaces, such as
// a container with the default seccomp profile. It confines with Landlock, the
// system call filter and resource limits alone, and that is less: see the
// capabilities that [FindLandlock] reports.
//
// A launch passes the same processes as with [Find], but for the namespaces. In
// place of init stands a supervisor, which is a user of its own where the host is
// root and launches can be reached by such a user. What ends the tree is a Landlock
// domain: every process of a launch is born in one that may signal itself and
// nothing else, so that kill(-1) from inside of it reaches exactly the launch, all
// at once, whatever its processes did to hide. The supervisor does that at the end,
// and the spawner does when the supervisor was killed.
const LandlockName = "landlock"

func landlockUnavailable(step string, err error, fix string) *sandbox.Unavailable {
	return &sandbox.Unavailable{Backend: LandlockName, Step: step, Err: err, Fix: fix}
}

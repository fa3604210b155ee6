package native

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find makes the backend, starts its spawner and one init, and runs true: what this
// kernel refuses shows here. That it confines is for the caller to try, with canaries.
func Find(ctx context.Context, o Options) sandbox.Finding {
	b, err := newBackend(o)
	if err != nil {
		return sandbox.Finding{Name: Name, Problem: err}
	}
	c, err := b.spawn(ctx, false)
	if err != nil {
		_ = b.Close() // err is what matters
		return sandbox.Finding{Name: Name, Problem: explain(err)}
	}
	b.caps = b.found(c)
	b.mu.Lock()
	b.warm = c
	b.mu.Unlock()
	if err := sandbox.Trial(ctx, b, o.Scratch); err != nil {
		_ = b.Close() // err is what matters
		return sandbox.Finding{Name: Name, Problem: err}
	}
	return sandbox.Finding{Name: Name, Backend: b}
}

// found are the capabilities of this host, as a ready init shows them.
func (b *Backend) found(c *cell) sandbox.Capabilities {
	uts := kernel()
	memory, note := true, "a control group"
	switch {
	case b.groups.memory != "":
	case c.noProc:
		memory, note = false, "each process alone: there is neither a control group nor /proc"
	default:
		note = "each process by a limit, the tree by looking every 50 ms; not what the kernel keeps for it, such as buffers of sockets"
	}
	processes := "a limit of the user namespace"
	if b.groups.pids != "" {
		processes = "a control group"
	}
	all := []sandbox.Capability{
		{Aspect: sandbox.Writes, Held: true, Note: "a root of its own, read-only" + landlockNote()},
		{Aspect: sandbox.Home, Held: true, Note: "a root of its own without it"},
		{Aspect: sandbox.NoNetwork, Held: true, Note: "a network namespace"},
		{Aspect: sandbox.Domains, Held: true, Note: "a proxy on a listener inside the network namespace"},
		{Aspect: sandbox.Tree, Held: true, Note: "a process namespace"},
		{Aspect: sandbox.Hidden, Held: true, Note: "a process namespace"},
		{Aspect: sandbox.Kernel, Held: true, Note: "a system call filter, no capabilities, no namespaces of its own"},
		{Aspect: sandbox.Memory, Held: memory, Note: note},
		{Aspect: sandbox.Processes, Held: true, Note: processes},
		{Aspect: sandbox.Disk, Held: true, Note: "a limit of each file, the directory by looking every 250 ms; not what was deleted while it is open"},
	}
	return sandbox.Capabilities{Backend: Name, Version: "Linux " + uts, Tier: sandbox.TierFull, All: all}
}

func landlockNote() string {
	if landlockABI() == 0 {
		return "; no Landlock behind it"
	}
	return ", and Landlock behind it"
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// remedy is what would change that a step failed, as far as it is known.
func remedy(what string, err error) string {
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	switch {
	case errors.Is(err, errNoMapping):
		return "put METIER_HOME on ext4, xfs, btrfs or tmpfs, or run Metier as an ordinary user"
	case what == "make namespaces" && errors.Is(err, unix.ENOSPC):
		return "raise the limit: sysctl -w user.max_user_namespaces=15000"
	case what == "make namespaces" && denied && sysctlIs("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
	case (what == "bring up the loopback interface" || what == "make the mounts private" || what == "make namespaces") && denied &&
		sysctlIs("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "AppArmor restricts user namespaces here: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give metier an AppArmor profile with userns"
	case what == "make namespaces" && denied:
		return "inside a container, start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run Metier outside of it"
	case errors.Is(err, unix.ENOSYS):
		return "use Linux 5.12 or newer"
	case strings.HasPrefix(what, "mount ") && denied:
		return "inside a container, start it with --security-opt systempaths=unconfined"
	}
	return ""
}

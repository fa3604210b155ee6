package seatbelt

import "github.com/metier-run/metier/internal/sandbox"

// capabilities are what a profile confines, by seed 1, "What each platform
// enforces". The tier is full because files and network of the host are out of
// reach; what is not, the process tree above all, is told as a gap.
func capabilities(version string) sandbox.Capabilities {
	able := sandbox.Capabilities{Backend: Name, Version: version, Tier: sandbox.TierFull}
	for _, a := range sandbox.Aspects() {
		c := sandbox.Capability{Aspect: a}
		switch a {
		case sandbox.Writes:
			c.Held, c.Note = true, "by profile; the shared temporary directories are open"
		case sandbox.Home:
			c.Held, c.Note = true, "by profile; the system's own files can be read"
		case sandbox.NoNetwork:
			c.Held, c.Note = true, "by profile, loopback included"
		case sandbox.Domains:
			c.Held, c.Note = true, "by profile: one port of the host's loopback, where the proxy listens"
		case sandbox.Tree:
			c.Note = "found by session and parents; a process that detaches itself in an instant stays"
		case sandbox.Hidden:
			c.Held, c.Note = true, "by profile: only processes of the same launch"
		case sandbox.Kernel:
			c.Note = "files, sockets and services only; other calls are not filtered"
		case sandbox.Memory:
			c.Note = "macOS has no limit for it"
		case sandbox.Processes:
			c.Note = "macOS counts them by user"
		case sandbox.Disk:
			c.Note = "the working directory is looked at now and then, the shared temporary directories are not"
		}
		able.All = append(able.All, c)
	}
	return able
}

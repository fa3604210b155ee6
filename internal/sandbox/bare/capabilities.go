package bare

import "github.com/metier-run/metier/internal/sandbox"

// capabilities are those of an operating system, by Go's name for it. They are the
// same on all its hosts, so there is nothing to try.
func capabilities(system string) sandbox.Capabilities {
	able := sandbox.Capabilities{Backend: sandbox.Bare, Tier: sandbox.TierNone}
	for _, a := range sandbox.Aspects() {
		c := sandbox.Capability{Aspect: a, Note: "not confined"}
		switch a {
		case sandbox.Tree:
			c.Held, c.Note = tree(system)
		case sandbox.Memory:
			if system == "linux" {
				c.Note = "each process, not their sum"
			}
		case sandbox.Disk:
			c.Note = "the working directory is looked at now and then, other places are not"
			if system == "linux" {
				c.Note = "each file, and " + c.Note
			}
		}
		able.All = append(able.All, c)
	}
	return able
}

// tree says how the end of the tree is brought about.
func tree(system string) (held bool, note string) {
	switch system {
	case "windows":
		return true, "a job object that no process can leave"
	case "linux":
		return false, "found by session, parents and an inherited mark; one that gets rid of all three, or is a new process each moment, stays"
	}
	return false, "found by session and parents; a process that detaches itself in an instant stays"
}

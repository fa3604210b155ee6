package sandbox

// Aspect is one thing that a backend may confine.
type Aspect string

// The aspects, in the order in which they are listed.
const (
	Writes    Aspect = "writes"    // nothing outside of the working directory can be written
	Home      Aspect = "home"      // the home directory and other users' files cannot be read
	NoNetwork Aspect = "network"   // the network can be denied
	Domains   Aspect = "domains"   // the network can be limited to named domains
	Tree      Aspect = "tree"      // nothing of the tree outlives the launch
	Hidden    Aspect = "hidden"    // other processes cannot be seen, signalled or read
	Kernel    Aspect = "kernel"    // calls into the kernel that a script has no need of are refused
	Memory    Aspect = "memory"    // memory of the whole tree is bounded
	Processes Aspect = "processes" // the number of processes is bounded
	Disk      Aspect = "disk"      // what is written is bounded
)

// Aspects are all aspects, in order.
func Aspects() []Aspect {
	return []Aspect{Writes, Home, NoNetwork, Domains, Tree, Hidden, Kernel, Memory, Processes, Disk}
}

// Capability is one aspect of one backend on this host.
type Capability struct {
	Aspect Aspect
	Held   bool
	// Note says how it is held, or why it is not, in a few words.
	Note string
}

// Capabilities are what a backend confines on this host. Startup lines, doctor,
// listings and the "not confined" lines of results are made from them and from
// nothing else (seed 1, "What each platform enforces").
type Capabilities struct {
	Backend string
	Version string // of the program or the kernel's feature, if that is known
	Tier    Tier
	All     []Capability // in the order of [Aspects]
}

// Holds reports whether an aspect is confined.
func (c Capabilities) Holds(a Aspect) bool {
	for _, x := range c.All {
		if x.Aspect == a {
			return x.Held
		}
	}
	return false
}

// Gaps are phrases for what a launch may do that a sandbox would refuse, in order;
// none when all that matters to a caller is held. An operator who opened the
// network did so by name, so that is no gap.
func (c Capabilities) Gaps(n Network) []string {
	var gaps []string
	for _, a := range Aspects() {
		if text := gap(a); text != "" && !c.Holds(a) && (a != NoNetwork || n.Mode != NetworkOpen) {
			gaps = append(gaps, text)
		}
	}
	return gaps
}

// gap is the phrase for an aspect that is not held; empty for one that a reader
// of a result need not know of.
func gap(a Aspect) string {
	switch a {
	case Writes:
		return "may write anywhere"
	case Home:
		return "may read the home directory"
	case NoNetwork:
		return "may reach the network"
	case Tree:
		return "a child may outlive the request"
	case Hidden:
		return "may see other processes"
	}
	return ""
}

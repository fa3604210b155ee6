package config

import "strings"

// Discovery says when the model is told of skills that a request did not name.
type Discovery string

// The words for discovery. The zero value is unset and means [DiscoveryOn].
const (
	DiscoveryOn    Discovery = "on"
	DiscoveryNamed Discovery = "named" // only for requests that name skills
	DiscoveryOff   Discovery = "off"
)

// Advertises reports whether skills are advertised to a request, which named
// some or none.
func (d Discovery) Advertises(named bool) bool {
	return d != DiscoveryOff && (d != DiscoveryNamed || named)
}

// Skills is [skills]: the flags that are about skills, and what has no flag.
type Skills struct {
	Settings  []Setting
	Discovery Discovery
}

// ReadSkills reads [skills]. That a root exists is not looked at: a later file
// or a flag may replace it (seed 1, "Operator surface").
func ReadSkills(d *Document) Skills {
	s := settings{table: d.Top().Table("skills")}
	var dirs []string
	if s.table.Paths("skills-dir", &dirs) {
		s.add("skills-dir", dirs...)
	}
	s.yes("no-skills")
	s.yes("skills-no-discovery")
	s.scripts()
	s.limits(aboutSkills)
	out := Skills{Settings: s.read, Discovery: readDiscovery(s.table)}
	var none bool
	if s.table.Bool("skills-no-discovery", &none) && none && out.Discovery != "" && out.Discovery != DiscoveryOff {
		s.table.Problem("discovery", "%s and skills-no-discovery = true say opposite things: keep one", out.Discovery)
	}
	return out
}

// scripts reads the keys that say whether scripts run, and how they are confined. The
// words are those of the flags, which the room sandbox reads.
func (s *settings) scripts() {
	s.yes("skills-allow-exec")
	s.choice("skills-sandbox", "required", "preferred", "off")
	s.yes("skills-allow-network")
	s.list("skills-network-domains")
	s.choice("sandbox-minimum", "full", "strong", "partial", "weak")
	s.text("sandbox-backend")
}

func readDiscovery(t *Table) Discovery {
	var word string
	t.Choice("discovery", &word, string(DiscoveryOn), string(DiscoveryNamed), string(DiscoveryOff))
	return Discovery(word)
}

// readSkillNames reads a list of names of skills.
func readSkillNames(t *Table, key string) []string {
	var names []string
	if t.Strings(key, &names) {
		for _, name := range names {
			if strings.TrimSpace(name) == "" {
				t.Problem(key, "a name in the list is empty: take it out")
			}
		}
	}
	return names
}

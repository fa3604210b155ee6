// Package disclosure decides what a model is told of its skills, and when: the
// block that goes in front of a conversation, and the index of bundled files
// that comes with a skill's instructions.
//
// A model that can call tools sees names and descriptions and fetches the rest
// itself (deferred). A model that cannot has no second chance, so the selected
// bodies stand in the block.
//
// Every byte depends on the set of skills and the options alone: not on time,
// place, order or the number of skills that exist (seed 1, "Prompt injection and
// the KV prefix cache"). The package never touches a message: whoever calls it
// puts the block there.
//
// Start at [NewPlan], then [Plan.Render]. All prose is in prompts.go.
package disclosure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/metier-run/metier/skill"
)

// Options say for what model a block is made. They are part of what a block
// depends on.
type Options struct {
	// Tools is set when the model can call the skill tools.
	Tools bool
	// Inline puts the selected bodies in the block although the model has tools.
	Inline bool
	// Scripts is set when the model can have the scripts of skills run.
	Scripts bool
	// Context is the model's window in tokens; 0 when it is unknown.
	Context int
}

// Entry is a skill and the description that is shown of it.
type Entry struct {
	Skill       skill.Skill
	Description string
}

// Inlined is a skill whose body stands in the block.
type Inlined struct {
	Entry
	// Room is how many bytes of the body are shown at most; 0 when all are.
	Room int
}

// Plan is what a block will hold. Every list is sorted by name.
type Plan struct {
	Inlined []Inlined
	// Deferred are selected skills whose body is not in the block. Without tools
	// they are the ones for which there was no room.
	Deferred []Entry
	// Listed is the catalog.
	Listed []Entry
	// Omitted counts the skills that did not fit the catalog.
	Omitted int
	Tools   bool
	// Scripts: there is a tool that runs the scripts of skills.
	Scripts bool
	// Tokens is the estimate that the budget was held against.
	Tokens int
}

// Tokens estimates the tokens of n bytes of text: four bytes each, rounded up.
// It decides only what goes in.
func Tokens(n int64) int { return int((n + 3) / 4) }

// NewPlan decides what a model is told. A skill that is in both lists counts as
// selected; names are compared ignoring case. Neither list is changed.
func NewPlan(selected, advertised []skill.Skill, o Options) Plan {
	chosen := unique(selected, nil)
	p := planner{Plan: Plan{Tools: o.Tools, Scripts: o.Tools && o.Scripts}}
	if o.Tools && !o.Inline {
		p.left = metadataBudget(o.Context)
		p.announce(chosen)
	} else {
		p.left = inlineBudget(o.Context)
		p.inline(chosen, bodyRoom(p.left))
	}
	if o.Tools {
		p.list(unique(advertised, chosen))
	}
	return p.Plan
}

// unique is the skills sorted by name, each once, without those of taken.
func unique(skills, taken []skill.Skill) []skill.Skill {
	seen := map[string]bool{}
	for _, s := range taken {
		seen[strings.ToLower(s.Name)] = true
	}
	sorted := slices.Clone(skills)
	slices.SortStableFunc(sorted, func(a, b skill.Skill) int { return cmp.Compare(a.Name, b.Name) })
	out := sorted[:0]
	for _, s := range sorted {
		if key := strings.ToLower(s.Name); !seen[key] {
			seen[key] = true
			out = append(out, s)
		}
	}
	return out
}

// planner fills a plan and keeps count of the budget.
type planner struct {
	Plan
	left int
}

func (p *planner) spend(tokens int) {
	p.left -= tokens
	p.Tokens += tokens
}

// announce defers every selected skill. None is ever dropped for want of room.
func (p *planner) announce(chosen []skill.Skill) {
	for _, s := range chosen {
		e := entry(s, descriptionCap)
		p.Deferred = append(p.Deferred, e)
		p.spend(e.tokens() + costAnnounced)
	}
}

// inline takes bodies in while they fit. Without tools the first is taken in
// any case, cut to room: a model that is told nothing can do nothing.
func (p *planner) inline(chosen []skill.Skill, room int) {
	for _, s := range chosen {
		e := entry(s, descriptionCap)
		cost := Tokens(s.BodyBytes) + costInlined
		switch {
		case cost <= room && cost <= p.left:
			p.Inlined = append(p.Inlined, Inlined{Entry: e})
			p.spend(cost)
		case !p.Tools && len(p.Inlined) == 0:
			p.Inlined = append(p.Inlined, Inlined{Entry: e, Room: (room - costInlined) * bytesPerToken})
			p.spend(room)
		default:
			p.Deferred = append(p.Deferred, e)
			p.spend(costDeferred)
		}
	}
}

// list fills the catalog. Descriptions get shorter before a skill is left out.
func (p *planner) list(skills []skill.Skill) {
	n := p.length(skills)
	for i, s := range skills {
		e := entry(s, n)
		cost := e.tokens() + costListed
		if i == catalogEntries || cost > p.left {
			p.Omitted = len(skills) - i
			return
		}
		p.Listed = append(p.Listed, e)
		p.spend(cost)
	}
}

// length is the first length of the ladder at which every entry fits.
func (p *planner) length(skills []skill.Skill) int {
	skills = skills[:min(len(skills), catalogEntries)]
	for _, n := range ladder() {
		sum := 0
		for _, s := range skills {
			sum += entry(s, n).tokens() + costListed
		}
		if sum <= p.left {
			return n
		}
	}
	return shortest
}

func entry(s skill.Skill, length int) Entry {
	return Entry{Skill: s, Description: Trim(s.Description, length)}
}

func (e Entry) tokens() int { return Tokens(int64(len(e.Description))) }

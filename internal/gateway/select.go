package gateway

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/skill"
)

// selection is what a request can reach, and in which form.
type selection struct {
	selected, advertised []skill.Skill
	// tools: the skill tools are offered; otherwise bodies are written into the
	// prompt.
	tools bool
	// runs: skills_run is the host's in this request, and not the caller's.
	runs bool
	// code: the tools that work in a workspace are offered.
	code     bool
	digest   string
	warnings []string
}

// skills is how many there are.
func (s selection) skills() int { return len(s.selected) + len(s.advertised) }

// reachable is the union, in order of names.
func (s selection) reachable() []skill.Skill {
	all := slices.Concat(s.selected, s.advertised)
	slices.SortFunc(all, func(a, b skill.Skill) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// choose works out what a request reaches (DESIGN section 6). Discovery stays
// out where it can only harm.
func (g *Gateway) choose(r Request, caller access.Caller, caps llm.Capabilities) (selection, error) {
	snapshot := g.o.Skills()
	work, warning := g.chooseCode(r, caps)
	if snapshot == nil {
		if len(r.Skills) > 0 {
			return selection{}, refusal("skills", "skills_disabled", "skills are turned off on this server (--no-skills), so %q cannot be used: leave \"skills\" out", r.Skills[0])
		}
		return selection{code: work, warnings: warning}, nil
	}
	s := selection{digest: snapshot.Digest(), tools: caps.Tools() && r.Options.Choice != llm.ChoiceNone, code: work, warnings: warning}
	var err error
	if s.selected, err = pick(snapshot, r.Skills); err != nil {
		return s, err
	}
	if r.Options.Choices > 1 && len(r.Skills) > 0 {
		return s, refusal("n", "n_with_skills", `"n" must be 1 when skills are selected: the server answers a model's reads in one conversation, not in several`)
	}
	if r.Options.Choices > 1 {
		// What the operator selects is no reason to refuse a client that knows of no
		// skills.
		s.warnings = append(s.warnings, "skills are left out: more than one choice is asked for")
		return s, nil
	}
	s.selectForced(snapshot, caller.Skills, "the key")
	s.selectForced(snapshot, g.o.Models[r.Model].Skills, "the model")
	rival := ownTool(r.Tools)
	s.runs = g.o.Runner != nil && !declares(r.Tools, toolskill.RunName)
	if declares(r.Tools, toolskill.ReadName) {
		// The model's only way to a body is the caller's.
		s.tools = false
	}
	switch reason := g.noDiscovery(r, s, rival); {
	case reason == "":
		s.advertised = without(snapshot.Skills(), s.selected)
	case reason != asked && len(snapshot.Skills()) > len(s.selected):
		s.warnings = append(s.warnings, "skills are not advertised: "+reason)
	}
	return s, nil
}

// chooseCode says whether the tools that work in a workspace are offered. They stay out
// where discovery does, and where the client brings tools for the same: a model with
// two shells on two machines mixes them up. Then a warning says so.
func (g *Gateway) chooseCode(r Request, caps llm.Capabilities) (bool, []string) {
	if g.o.Code == nil {
		return false, nil
	}
	rival := slices.IndexFunc(r.Tools, func(d llm.Declaration) bool { return tool.Works(d.Name) })
	reason := ""
	switch {
	case r.Options.Choices > 1:
		reason = "more than one choice is asked for"
	case !caps.Tools() || r.Options.Choice == llm.ChoiceNone:
		reason = "no tools may be called"
	case r.Options.Structured:
		reason = "the answer must be structured"
	case rival >= 0:
		reason = fmt.Sprintf("the request brings a tool of its own for it, %q", r.Tools[rival].Name)
	default:
		return true, nil
	}
	return false, []string{"code work is left out: " + reason}
}

// asked is the reason for no discovery that nobody need be told.
const asked = "it was asked for"

// noDiscovery says why no skill is advertised, or nothing.
func (g *Gateway) noDiscovery(r Request, s selection, rival string) string {
	switch {
	case !cmp.Or(g.o.Models[r.Model].Discovery, g.o.Discovery).Advertises(len(s.selected) > 0):
		return asked
	case r.Discovery != nil && !*r.Discovery:
		return asked
	case rival != "":
		return fmt.Sprintf("the request brings a skill tool of its own, %q", rival)
	case !s.tools:
		return "no tools may be called, so none could be loaded"
	case r.Options.Structured:
		return "the answer must be structured"
	}
	return ""
}

// declares reports whether a client brings a tool of a name of ours.
func declares(tools []llm.Declaration, name string) bool {
	return slices.ContainsFunc(tools, func(d llm.Declaration) bool { return strings.EqualFold(d.Name, name) })
}

// ownTool is the name under which the client brings a skill tool of its own
// (spec models-clients 3.2), or nothing: advertising ours beside it would give
// the model two ways to do one thing.
func ownTool(tools []llm.Declaration) string {
	for _, d := range tools {
		if toolskill.Means(d.Name) != "" {
			return d.Name
		}
	}
	return ""
}

// pick finds the named skills, each once.
func pick(snapshot *skill.Snapshot, names []string) ([]skill.Skill, error) {
	var picked []skill.Skill
	for _, name := range names {
		s, ok := snapshot.Find(name)
		if !ok {
			return nil, unknownSkill(snapshot, name)
		}
		if !slices.ContainsFunc(picked, func(p skill.Skill) bool { return p.Name == s.Name }) {
			picked = append(picked, s)
		}
	}
	return picked, nil
}

// selectForced adds the skills that the operator selects for a key or a model.
// That one of them is missing is no fault of the client: it is said, and the
// request goes on.
func (s *selection) selectForced(snapshot *skill.Snapshot, names []string, from string) {
	for _, name := range names {
		k, ok := snapshot.Find(name)
		if !ok {
			s.warnings = append(s.warnings, fmt.Sprintf("%s selects the skill %q, which is not here", from, name))
			continue
		}
		if !slices.ContainsFunc(s.selected, func(p skill.Skill) bool { return p.Name == k.Name }) {
			s.selected = append(s.selected, k)
		}
	}
}

func unknownSkill(snapshot *skill.Snapshot, name string) error {
	for _, e := range snapshot.Errors() {
		if strings.EqualFold(filepath.Base(e.Dir), strings.TrimSpace(name)) {
			return refusal("skills", "skill_not_loaded", "the skill %q is here and did not load: metier skills list and GET /api/skills say why", name)
		}
	}
	var known []string
	for _, s := range snapshot.Skills() {
		known = append(known, s.Name)
	}
	if len(known) == 0 {
		return refusal("skills", "skill_not_found", "there is no skill %q: this server has no skills; start it with --skills-dir DIR", name)
	}
	return refusal("skills", "skill_not_found", "there is no skill %q: the skills here are %s", name, strings.Join(known, ", "))
}

func without(all, taken []skill.Skill) []skill.Skill {
	return slices.DeleteFunc(all, func(s skill.Skill) bool {
		return slices.ContainsFunc(taken, func(t skill.Skill) bool { return t.Name == s.Name })
	})
}

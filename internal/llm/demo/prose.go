package demo

import (
	"fmt"
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// What the stand-in says to people. Golden files pin it.
const (
	notice = "This is Metier's demo stand-in, not a language model: it looks for the skill that matches your words and quotes from it."

	nothingReachable = "No skill is reachable in this request, so there is nothing to quote. Start the server with a folder of skills (--skills-dir DIR), or name one in the request."

	noStructure = "the demo stand-in is no language model and cannot answer in a given format: leave out response_format, or start the server with a model (--upstream URL)"
)

func noMatch(skills []skill) string {
	var b strings.Builder
	b.WriteString("No skill matches what you wrote. Reachable here:\n")
	for _, s := range skills {
		fmt.Fprintf(&b, "\n- %s: %s", s.id, s.description)
	}
	return b.String()
}

func unread(s skill) string {
	return fmt.Sprintf("The skill %s matches best, but it could not be read any more in this turn. It says of itself: %s", s.id, s.description)
}

func failure(tool, result string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(result), "\n")
	return fmt.Sprintf("The tool %s failed, so there is nothing to quote. It said: %s", tool, line)
}

func quotation(p passage) string {
	if len(p.lines) == 0 {
		return fmt.Sprintf("The skill %s matches best, but %s holds no text to quote.", p.skill, p.path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The skill %s matches best. From its %s:\n", p.skill, p.path)
	for _, line := range p.lines {
		b.WriteString("\n>")
		if line != "" {
			b.WriteString(" " + line)
		}
	}
	return b.String()
}

// fromPrompt answers when no tool may be called: from the skills that the
// prompt holds whole, if it holds any.
func fromPrompt(messages []llm.Message, question string) string {
	pages := parsePrompt(messages)
	if len(pages) == 0 {
		return nothingReachable
	}
	asked := words(question)
	skills := make([]skill, len(pages))
	for i, p := range pages {
		skills[i] = skill{id: p.skill, description: p.about}
	}
	best, ok := bestSkill(skills, asked)
	if !ok {
		p := bestPassage(pages, asked)
		if p.score < enough {
			return noMatch(skills)
		}
		return quotation(p)
	}
	var of []page
	for _, p := range pages {
		if p.skill == best.id {
			of = append(of, p)
		}
	}
	return quotation(bestPassage(of, asked))
}

package demo

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// words is the set of stems of a text, without those that say nothing.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !empty(w) {
			set[stem(w)] = true
		}
	}
	return set
}

// empty reports whether a word is too common to match by.
func empty(w string) bool {
	if len(w) == 1 {
		return true
	}
	switch w {
	case "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
		"did", "do", "does", "for", "from", "give", "had", "has", "have", "help", "her", "him", "his", "how", "if", "in",
		"into", "is", "it", "its", "just", "let", "like", "make", "many", "may", "me", "more", "most", "much", "my",
		"need", "no", "not", "of", "on", "one", "or", "our", "out", "please", "say", "should", "show", "so", "some", "such",
		"tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up",
		"us", "use", "used", "using", "very", "want", "was", "way", "we", "were", "what", "when", "where", "which",
		"while", "who", "why", "will", "with", "would", "you", "your":
		return true
	}
	return false
}

// shortest is the length below which a stem would say nothing.
const shortest = 3

// stem takes off the endings that part a word from its own plural or verb form.
func stem(w string) string {
	for _, ending := range [][2]string{{"ies", "y"}, {"sses", "ss"}, {"ings", ""}, {"ing", ""}, {"ers", ""}, {"er", ""}, {"ed", ""}, {"es", ""}, {"s", ""}, {"e", ""}} {
		cut, ok := strings.CutSuffix(w, ending[0])
		if !ok || len(cut) < shortest || ending[0] == "s" && strings.HasSuffix(cut, "s") {
			continue
		}
		return undouble(cut + ending[1])
	}
	return w
}

// undouble makes "plann" of "planning" the "plan" of "plan".
func undouble(w string) string {
	n := len(w)
	if n > shortest && w[n-1] == w[n-2] && !strings.ContainsRune("aeilsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// overlap counts the words of text that are asked for.
func overlap(asked map[string]bool, text string) int {
	n := 0
	for w := range words(text) {
		if asked[w] {
			n++
		}
	}
	return n
}

// nameWeight is how many words of a description one of the name is worth.
const nameWeight = 2

// enough is the least score of a skill that is worth reading: a word of its
// name, or two of its description.
const enough = 2

// without is asked less the words of a skill's name, which are in every part of
// the skill and so tell none from the others.
func without(asked map[string]bool, name string) map[string]bool {
	rest := maps.Clone(asked)
	for w := range words(name) {
		delete(rest, w)
	}
	return rest
}

// bestSkill is the skill whose name and description share most with what is
// asked; the first of equals.
func bestSkill(skills []skill, asked map[string]bool) (skill, bool) {
	var best skill
	top := enough - 1
	for _, s := range skills {
		if n := nameWeight*overlap(asked, s.id) + overlap(asked, s.description); n > top {
			best, top = s, n
		}
	}
	return best, top >= enough
}

// passage is what an answer quotes.
type passage struct {
	skill, path string
	lines       []string
	score       int
}

// quoted is how many lines a quotation has at most.
const quoted = 8

// bestPassage is the paragraph that shares most with what is asked, of all that
// was read; without any, the first.
func bestPassage(pages []page, asked map[string]bool) passage {
	var best passage
	for _, p := range pages {
		asked := without(asked, p.skill)
		for _, lines := range paragraphs(p.text) {
			n := overlap(asked, strings.Join(lines, "\n"))
			if strings.HasPrefix(lines[0], "#") { // a heading says what all of it is about
				n += overlap(asked, lines[0])
			}
			if best.lines == nil || n > best.score {
				best = passage{skill: p.skill, path: p.path, lines: window(lines, asked), score: n}
			}
		}
	}
	if best.lines == nil && len(pages) > 0 {
		best.skill, best.path = pages[0].skill, pages[0].path
	}
	return best
}

// paragraphs splits a text at blank lines. A heading stays with what follows it,
// a fenced block stays whole.
func paragraphs(text string) [][]string {
	var all [][]string
	var open []string
	fenced, titled := false, true // titled: open holds a heading and nothing else
	flush := func() {
		if !titled {
			all = append(all, open)
			open, titled = nil, true
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case bare == "" && !fenced:
			flush()
			if len(open) > 0 {
				open = append(open, line)
			}
			continue
		case strings.HasPrefix(bare, "#") && !fenced:
			flush()
			open = []string{line}
			continue
		case strings.HasPrefix(bare, "```"):
			fenced = !fenced
		}
		open, titled = append(open, line), false
	}
	flush()
	return all
}

// window is the part of a paragraph that an answer quotes: all of it, or the
// lines around the one that fits best.
func window(lines []string, asked map[string]bool) []string {
	if len(lines) <= quoted {
		return lines
	}
	at, top := 0, -1
	for i, l := range lines {
		if n := overlap(asked, l); n > top {
			at, top = i, n
		}
	}
	start := min(max(0, at-1), len(lines)-quoted)
	return lines[start : start+quoted]
}

// reference is the bundled file to read besides: one that the text names and
// the index has, whose name and the sentence around it share more with what is
// asked than any paragraph that does not name it.
func reference(pages []page, asked map[string]bool) (string, bool) {
	var best string
	top := 0
	for _, p := range pages {
		asked := without(asked, p.skill)
		for _, file := range p.files {
			if file == mainFile || !readable(file) || !isNamed(pages, file) {
				continue
			}
			named, rest := mentions(pages, file)
			n := overlap(asked, file+" "+strings.Join(named, " "))
			if n > top && n > bestPassage(rest, asked).score {
				best, top = file, n
			}
		}
	}
	return best, top > 0
}

// readable reports whether a file is prose or data rather than a program.
func readable(file string) bool {
	return slices.Contains([]string{".md", ".txt", ".rst", ".csv", ".json", ".yaml", ".yml"}, strings.ToLower(path.Ext(file)))
}

func isNamed(pages []page, file string) bool {
	return slices.ContainsFunc(pages, func(p page) bool { return strings.Contains(p.text, file) })
}

// mentions are the sentences that name a file, and the pages without the
// paragraphs that do.
func mentions(pages []page, file string) ([]string, []page) {
	var named []string
	var rest []page
	for _, p := range pages {
		var kept []string
		for _, lines := range paragraphs(p.text) {
			text := strings.Join(lines, "\n")
			if !strings.Contains(text, file) {
				kept = append(kept, text)
				continue
			}
			named = append(named, sentencesWith(strings.Join(lines, " "), file)...)
		}
		rest = append(rest, page{skill: p.skill, text: strings.Join(kept, "\n\n")})
	}
	return named, rest
}

// sentenceEnd is a full stop with white space behind it, which no file name has.
var sentenceEnd = regexp.MustCompile(`[.!?:;]\s+`)

func sentencesWith(text, file string) []string {
	var found []string
	for _, s := range sentenceEnd.Split(text, -1) {
		if strings.Contains(s, file) {
			found = append(found, s)
		}
	}
	return found
}

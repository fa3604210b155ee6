package demo

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/llm"
)

// skill is an entry of a list.
type skill struct{ id, description string }

// listLine is an entry's first line: an id, and a description if it stands on
// the same line.
var listLine = regexp.MustCompile(`^(?:- )?([\p{L}\p{N}][^\s:]*)(?::[ \t]+(.*))?$`)

// parseList reads the result of skills_list: ids at the start of a line, each
// with its description indented below. It takes what it can and leaves the rest.
func parseList(text string) []skill {
	var skills []skill
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := listLine.FindStringSubmatch(strings.TrimRight(line, " \r"))
		if m == nil {
			continue
		}
		description := m[2]
		if description == "" && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ") {
			description = strings.TrimSpace(lines[i+1])
		}
		if description != "" {
			skills = append(skills, skill{id: m[1], description: description})
		}
	}
	return skills
}

// page is a piece of a file that was read.
type page struct {
	skill, path string
	// from is the first byte of the page; next is the one to go on with if more.
	from, next int
	more       bool
	// about is the description, where it stands before the text.
	about string
	text  string
	// files are the bundled files that an index behind the text names.
	files []string
}

// span is the line that says which bytes a page holds.
var span = regexp.MustCompile(`^Bytes (\d+)-(\d+) of (\d+)`)

// footer is the bracketed last line of a page that goes on.
var footer = regexp.MustCompile(`(?s)\n\n\[[^\n]*\]\s*$`)

// indexLine is an entry of a file index: a path, marks in brackets, a size in
// parentheses.
var indexLine = regexp.MustCompile("^\\s*(?:[-*] )?`?([\\p{L}\\p{N}_.][^\\s`]*)`?((?: \\[[a-z ]+\\])*) \\(\\d[\\d.,]* ?(?:[KMG]i?B|[kMG]B|B|bytes?)?\\)\\s*$")

// parsePage reads a result of skills_read. Where the head is missing the call
// itself says what was asked for.
func parsePage(e exchange) page {
	p := asked(e.call)
	text := strings.ReplaceAll(e.result, "\r\n", "\n")
	head, body, found := strings.Cut(text, "\n\n")
	if found && strings.HasPrefix(head, "Skill: ") {
		p.head(head)
		text = body
	}
	if p.more {
		text = footer.ReplaceAllString(text, "")
	}
	p.text, p.files = cutIndex(cutManifest(text))
	return p
}

// manifest is the front matter that a SKILL.md begins with.
var manifest = regexp.MustCompile(`(?s)\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\z)\n*`)

// cutManifest leaves the instructions: the rest was in the list already.
func cutManifest(text string) string { return manifest.ReplaceAllString(text, "") }

func asked(c llm.Call) page {
	var a struct {
		Skill  string `json:"skill"`
		Path   string `json:"path"`
		Offset int    `json:"offset"`
	}
	// The stand-in wrote these arguments itself; a host that changed them is
	// believed by the head of its result instead.
	_ = json.Unmarshal([]byte(c.Arguments), &a)
	return page{skill: a.Skill, path: a.Path, from: a.Offset}
}

func (p *page) head(head string) {
	for line := range strings.SplitSeq(head, "\n") {
		if v, ok := strings.CutPrefix(line, "Skill: "); ok {
			p.skill = v
		}
		if v, ok := strings.CutPrefix(line, "File: "); ok {
			p.path = v
		}
		m := span.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		from, e1 := strconv.Atoi(m[1])
		next, e2 := strconv.Atoi(m[2])
		total, e3 := strconv.Atoi(m[3])
		if e1 == nil && e2 == nil && e3 == nil {
			p.from, p.next, p.more = from, next, next > from && next < total
		}
	}
}

// cutIndex parts the text from the file index behind it, and from what the host
// says after that.
func cutIndex(text string) (string, []string) {
	lines := strings.Split(text, "\n")
	first, last := -1, -1
	for i := len(lines) - 1; i >= 0; i-- {
		if indexLine.MatchString(lines[i]) {
			if last < 0 {
				last = i
			}
			first = i
		} else if last >= 0 {
			break
		}
	}
	if last < 0 {
		return text, nil
	}
	var files []string
	for _, line := range lines[first : last+1] {
		if m := indexLine.FindStringSubmatch(line); m[2] == "" {
			files = append(files, m[1])
		}
	}
	end := first
	for end > 0 && strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	if end > 0 && introduces(lines[end-1]) {
		end--
	}
	return strings.TrimRight(strings.Join(lines[:end], "\n"), " \n"), files
}

// introduces reports whether a line is one that an index stands under.
func introduces(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasSuffix(line, ":") || strings.HasPrefix(line, "#")
}

// inlined is a skill in a prompt.
var inlined = regexp.MustCompile(`(?s)<skill name="([^"\n]+)">\n?(.*?)</skill>`)

// parsePrompt finds the skills that the system text holds whole.
func parsePrompt(messages []llm.Message) []page {
	var pages []page
	for _, m := range messages {
		if m.Role != llm.System && m.Role != llm.Developer {
			continue
		}
		for _, found := range inlined.FindAllStringSubmatch(m.Text()+"\n\n"+m.Tail, -1) {
			text, _ := cutIndex(strings.TrimSpace(found[2]))
			about, body, _ := strings.Cut(text, "\n")
			pages = append(pages, page{skill: found[1], path: mainFile, about: about, text: strings.TrimSpace(body)})
		}
	}
	return pages
}

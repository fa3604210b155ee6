package search

import "strings"

// deepest is the deepest heading that Markdown has.
const deepest = 6

// Headings are the headings of a Markdown text ("## Tables" is "Tables"), in
// order and without those inside fenced code. They say what a long text is about
// at a fraction of its length.
func Headings(markdown string) []string {
	var out []string
	fence := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		switch mark := fenceMark(line); {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.Trim(line, fence[:1]) == "" {
				fence = ""
			}
		case mark != "":
			fence = mark
		default:
			if h := heading(line); h != "" {
				out = append(out, h)
			}
		}
	}
	return out
}

// fenceMark is the run of three or more backticks or tildes that a line starts
// with.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, c))]; len(run) >= len("```") {
			return run
		}
	}
	return ""
}

func heading(line string) string {
	text := strings.TrimLeft(line, "#")
	level := len(line) - len(text)
	if level == 0 || level > deepest || text == "" || (text[0] != ' ' && text[0] != '\t') {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), "#"))
}

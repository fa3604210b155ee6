package patch

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// The lines with three stars. Models vary case and spaces, and close the line
// with stars again; none of that can mean anything else.
var (
	beginLine  = regexp.MustCompile(`(?i)^\*\*\*\s*begin\s+patch\s*(?:\*\*\*)?$`)
	endLine    = regexp.MustCompile(`(?i)^\*\*\*\s*end\s+patch\s*(?:\*\*\*)?$`)
	headerLine = regexp.MustCompile(`(?i)^\*\*\*\s*(add|update|delete)\s+file\s*:\s*(.*?)\s*(?:\*\*\*)?$`)
	moveLine   = regexp.MustCompile(`(?i)^\*\*\*\s*move\s+to\s*:\s*(.*?)\s*(?:\*\*\*)?$`)
	eofLine    = regexp.MustCompile(`(?i)^\*\*\*\s*end\s+of\s+file\s*(?:\*\*\*)?$`)
)

// sent is a line of the patch text and where it stands there, counted from 1.
type sent struct {
	fileLine
	no int
}

func sentLines(text string) []sent {
	var lines []sent
	for i, l := range splitLines(text) {
		lines = append(lines, sent{l, i + 1})
	}
	return lines
}

// trim is the line without white space around.
func (l sent) trim() string { return strings.TrimFunc(l.s, space) }

func (l sent) blank() bool { return l.trim() == "" }

// is says whether the line, without white space around, is a line of a kind.
func (l sent) is(kind *regexp.Regexp) bool { return kind.MatchString(l.trim()) }

// Parse reads a patch as a model sends it: the envelope (B1 12.1, 12.2), fenced
// or not and with prose around, or JSON operations (B1 12.3). It fails with an
// [*Error].
func Parse(text string, clean Cleaner, l Limits) (Patch, error) {
	p, err := parse(text, clean, l)
	if err != nil {
		return Patch{}, err
	}
	return p, nil
}

// parse returns its errors as what they are, so that they can be completed; nil
// is none.
func parse(text string, clean Cleaner, l Limits) (Patch, *Error) {
	if err := checkText(text, l); err != nil {
		return Patch{}, err
	}
	text = strings.TrimPrefix(text, Marked.mark())
	r := reader{clean: clean}
	var err *Error
	body := strings.TrimFunc(unfence(text), space)
	_, enveloped := next(sentLines(text), 0, beginLine)
	switch {
	case body == "":
		err = refuse(0, sayEmpty)
	case !enveloped && strings.ContainsRune(`{["`, rune(body[0])):
		err = r.json(body, l)
	default:
		err = r.envelopes(r.unescape(text))
	}
	if err != nil {
		return Patch{}, err
	}
	return r.patch(l)
}

func checkText(text string, l Limits) *Error {
	switch {
	case l.PatchBytes > 0 && len(text) > l.PatchBytes:
		return refuse(0, sayTooLong, len(text), l.PatchBytes)
	case !utf8.ValidString(text):
		return refuse(0, sayNotText)
	}
	return nil
}

// reader gathers the sections of a patch.
type reader struct {
	clean    Cleaner
	sections []section
	notes    []string
	lines    []sent // of the envelope that is being read
	at       int
}

// patch is what was read.
func (r *reader) patch(l Limits) (Patch, *Error) {
	p := Patch{sections: r.sections, notes: r.notes}
	if len(p.sections) == 0 {
		return Patch{}, refuse(0, sayNoSections)
	}
	if n := len(p.Paths()); l.PatchFiles > 0 && n > l.PatchFiles {
		return Patch{}, refuse(0, sayTooMany, n, l.PatchFiles)
	}
	return p, nil
}

// unfence takes a Markdown fence from around a text, if it has one.
func unfence(text string) string {
	lines := strings.Split(strings.TrimFunc(text, space), "\n")
	last := len(lines) - 1
	if last < 1 || !isFence(lines[0]) || !isFence(lines[last]) {
		return text
	}
	return strings.Join(lines[1:last], "\n")
}

func isFence(line string) bool {
	line = strings.TrimFunc(line, space)
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

// unescape reads a patch that was escaped twice and so came as a single line. It
// does that only if the whole line is a valid JSON string and shows that all of
// it was escaped, not the line breaks alone: a "\t" in code would become a tab
// otherwise. What is left as it is has no Begin line and is refused.
func (r *reader) unescape(text string) string {
	line := strings.TrimFunc(text, space)
	if strings.Contains(line, "\n") || !strings.Contains(line, `\n`) {
		return text
	}
	var out string
	if err := json.Unmarshal([]byte(`"`+line+`"`), &out); err != nil {
		return text
	}
	others := strings.Count(line, `\`) - strings.Count(line, `\n`)
	if others > 0 && !strings.Contains(line, `\"`) {
		return text
	}
	r.note(noteEscaped)
	return out
}

// file reads the path of a header. Quotes around it are no part of it.
func (r *reader) file(line int, spelled string) (string, *Error) {
	for _, q := range []string{"`", `"`, "'"} {
		if inner, ok := strings.CutPrefix(spelled, q); ok {
			if inner, ok = strings.CutSuffix(inner, q); ok {
				spelled = inner
			}
		}
	}
	clean, err := r.clean(spelled)
	if err != nil {
		return "", refuse(line, sayPath, err).about(spelled, err)
	}
	if clean == "." {
		return "", refuse(line, sayPathFolder, spelled).about(spelled, nil)
	}
	return clean, nil
}

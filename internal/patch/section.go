package patch

import (
	"regexp"
	"strings"
)

// inside reads the sections of one envelope.
func (r *reader) inside(lines []sent) *Error {
	r.lines, r.at = lines, 0
	for r.at < len(r.lines) {
		l := r.lines[r.at]
		if l.blank() || l.is(beginLine) {
			r.at++
			continue
		}
		s, err := r.header(l)
		if err != nil {
			return err
		}
		r.at++
		if err := r.section(&s); err != nil {
			return err.about(s.path, nil)
		}
		r.sections = append(r.sections, s)
	}
	return nil
}

// header reads the line that begins a section.
func (r *reader) header(l sent) (section, *Error) {
	m := headerLine.FindStringSubmatch(l.trim())
	switch {
	case m != nil:
	case l.is(moveLine):
		return section{}, refuse(l.no, sayMoveWhere)
	case strings.HasPrefix(l.trim(), "***"):
		return section{}, refuse(l.no, sayUnknownMark, quoted(l.trim()))
	default:
		return section{}, refuse(l.no, sayNoHeader, quoted(l.s))
	}
	s := section{line: l.no}
	switch strings.ToLower(m[1]) {
	case "add":
		s.kind = Add
	case "update":
		s.kind = Update
	case "delete":
		s.kind = Delete
	}
	var err *Error
	s.path, err = r.file(l.no, m[2])
	return s, err
}

func (r *reader) section(s *section) *Error {
	switch s.kind {
	case Add:
		return r.add(s, r.take())
	case Update:
		return r.update(s)
	}
	for _, l := range r.take() {
		if !l.blank() {
			return refuse(l.no, sayDeleteBody, s.path)
		}
	}
	return nil
}

// take are the lines up to the next one with three stars.
func (r *reader) take() []sent {
	from := r.at
	for r.at < len(r.lines) && !strings.HasPrefix(r.lines[r.at].s, "***") {
		r.at++
	}
	return r.lines[from:r.at]
}

// peek is the line that is read next; false at the end of the envelope.
func (r *reader) peek() (sent, bool) {
	if r.at >= len(r.lines) {
		return sent{}, false
	}
	return r.lines[r.at], true
}

// add reads the content of a new file: every line with a + (B1 12.2). Empty
// lines between are lines of the file, those around it are air.
func (r *reader) add(s *section, body []sent) *Error {
	body = airless(body[r.fileHeader(s, body):])
	if len(body) > 0 && rangeLine.MatchString(body[0].s) {
		body = airless(body[1:])
	}
	var plus int
	var bare *sent
	for i, l := range body {
		switch {
		case strings.HasPrefix(l.s, "+"):
			plus++
		case l.s != "" && bare == nil:
			bare = &body[i]
		}
	}
	switch {
	case bare == nil:
	case plus > 0:
		return refuse(bare.no, sayAddMixed, quoted(bare.s))
	case !isRaw(body):
		return refuse(bare.no, sayAddUnsure)
	default:
		r.note(sprint(noteRawAdd, s.path))
	}
	for _, l := range body {
		text := strings.TrimPrefix(l.s, "+")
		if bare == nil {
			if err := placeholder(l.no, text, nil); err != nil {
				return err
			}
		}
		s.body = append(s.body, fileLine{text, l.end})
	}
	s.body = ended(s.body, false)
	if bare == nil && spaced(s.body) {
		return refuse(s.line, sayAddSpace)
	}
	return numbered(s.line, s.body)
}

// spaced says whether all lines begin with a space, and one with just that: some
// models put a space behind the plus, and no file is indented by one.
func spaced(body []fileLine) bool {
	one := false
	for _, l := range body {
		in := indentation(l.s)
		switch {
		case in == l.s:
		case !strings.HasPrefix(in, " "):
			return false
		case in == " ":
			one = true
		}
	}
	return one
}

// airless are the lines without the empty ones around them.
func airless(body []sent) []sent {
	for len(body) > 0 && body[0].s == "" {
		body = body[1:]
	}
	for len(body) > 0 && body[len(body)-1].s == "" {
		body = body[:len(body)-1]
	}
	return body
}

// isRaw says whether the lines of a new file, none of which has a +, can only be
// its content as it is: not if all have a space or all a minus in front, as the
// lines of a hunk have.
func isRaw(body []sent) bool {
	all := func(prefix string) bool {
		for _, l := range body {
			if l.s != "" && !strings.HasPrefix(l.s, prefix) {
				return false
			}
		}
		return true
	}
	return !all(" ") && !all("-") && !strings.HasPrefix(body[0].s, "@@")
}

var rangeLine = regexp.MustCompile(`^@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)?(?: @@)?)?\s*$`)

// fileHeader is how many lines to pass over at the top of a section because a
// unified diff names its file there. They would be read as a line to remove and a
// line to add otherwise. Only those that name the section's own file count.
func (r *reader) fileHeader(s *section, lines []sent) int {
	at := 0
	for at < len(lines) && lines[at].s == "" {
		at++
	}
	if at < len(lines) && names(lines[at], "---", s) {
		at++
	} else if s.kind == Update {
		return 0
	}
	if at >= len(lines) || !names(lines[at], "+++", s) {
		return 0
	}
	r.note(sprint(noteFileHeader, s.path))
	return at + 1
}

// names says whether a line is the half of a unified diff's header that names
// the section's file.
func names(l sent, mark string, s *section) bool {
	rest, ok := strings.CutPrefix(l.s, mark+" ")
	if !ok {
		return false
	}
	name, _, _ := strings.Cut(rest, "\t")
	name = strings.TrimFunc(name, space)
	for _, dir := range []string{"", "a/", "b/", "./"} {
		for _, path := range []string{s.path, s.move} {
			if path != "" && name == dir+path {
				return true
			}
		}
	}
	return name == "/dev/null"
}

// stand-ins for lines that a model did not write out, as comments of the usual
// languages have them.
var standIn = regexp.MustCompile(`(?i)^(?:#|//|--|;|%|/\*|<!--|\{/\*)\s*(?:\.\.\.|…)\s*(?:[a-z ']*\b(?:existing|unchanged|remaining|rest of|other|previous|same as before|omitted)\b.*)$`)

// placeholder refuses a new line that stands for lines that are not there,
// unless the hunk's old lines have it as well.
func placeholder(no int, text string, old []string) *Error {
	line := strings.TrimFunc(text, space)
	if !standIn.MatchString(line) {
		return nil
	}
	for _, o := range old {
		if strings.TrimFunc(o, space) == line {
			return nil
		}
	}
	return refuse(no, sayPlaceholder, quoted(line))
}

var numberedLine = regexp.MustCompile(`^ *(\d+) \|(?: |$)`)

// numbered refuses new lines that all have a line number in front, one more each
// time, as read_file shows them.
func numbered(no int, body []fileLine) *Error {
	if len(body) < 2 {
		return nil
	}
	last := 0
	for i, l := range body {
		m := numberedLine.FindStringSubmatch(l.s)
		if m == nil {
			return nil
		}
		n := number(m[1])
		if i > 0 && n != last+1 {
			return nil
		}
		last = n
	}
	return refuse(no, sayNumberedText)
}

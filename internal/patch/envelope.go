package patch

import (
	"regexp"
	"strings"
)

// envelopes finds the envelopes of a text and reads their sections. Two that
// follow each other are one patch. Around them may be fences, the shell's words
// of a here-document, and prose; what belongs to a patch and stands outside is
// refused, because it would not be applied.
func (r *reader) envelopes(text string) *Error {
	lines := sentLines(text)
	begin, ok := next(lines, 0, beginLine)
	first := begin + 1
	if !ok {
		if first, ok = implied(lines); !ok {
			return noBegin(text, lines)
		}
		r.note(noteNoBegin)
		begin = first
	}
	at, in := 0, indentation(lines[begin].s)
	for {
		if err := r.outside(lines[at:begin]); err != nil {
			return err
		}
		end, err := endOf(lines, first, in)
		if err != nil {
			return err
		}
		if err := r.inside(dedent(lines[first:end], in)); err != nil {
			return err
		}
		at = end + 1
		if begin, ok = next(lines, at, beginLine); !ok {
			return r.outside(lines[at:])
		}
		first, in = begin+1, indentation(lines[begin].s)
	}
}

// next is the first line of a kind at or after from.
func next(lines []sent, from int, kind *regexp.Regexp) (int, bool) {
	for i := from; i < len(lines); i++ {
		if lines[i].is(kind) {
			return i, true
		}
	}
	return 0, false
}

// implied is where an envelope begins whose Begin line was left out: at a header
// that is the first line of the text but for noise.
func implied(lines []sent) (int, bool) {
	for i, l := range lines {
		if l.is(headerLine) {
			return i, true
		}
		if !noise(l) {
			break
		}
	}
	return 0, false
}

func noBegin(text string, lines []sent) *Error {
	for i, l := range lines {
		if strings.HasPrefix(l.s, "diff --git ") || i > 0 && strings.HasPrefix(l.s, "+++ ") && strings.HasPrefix(lines[i-1].s, "--- ") {
			return refuse(l.no, sayUnified)
		}
	}
	if len(lines) == 1 && strings.Contains(text, `\n`) {
		return refuse(0, sayEscaped)
	}
	return refuse(0, sayNoBegin)
}

// endOf is the line that ends the envelope whose first line and indentation are
// given. A line of a hunk can read the same behind its space: only one that is
// indented as the envelope is, or not at all, or is the last of the text, is the
// end.
func endOf(lines []sent, first int, in string) (int, *Error) {
	last := len(lines) - 1
	for last > first && noise(lines[last]) && !lines[last].is(endLine) {
		last--
	}
	empty := true
	for i := first; i < len(lines); i++ {
		l := lines[i]
		at := indentation(l.s)
		marks := at == in || at == "" || i == last
		switch {
		case marks && l.is(endLine):
			return i, nil
		case marks && l.is(beginLine) && !empty:
			return 0, refuse(l.no, sayBeginAgain)
		case !l.blank() && !l.is(beginLine):
			empty = false
		}
	}
	return 0, refuse(0, sayNoEnd)
}

// dedent are the lines of an envelope. If it was indented as a whole, that is
// taken away.
func dedent(body []sent, in string) []sent {
	if in == "" {
		return body
	}
	flat := make([]sent, len(body))
	for i, l := range body {
		s, ok := strings.CutPrefix(l.s, in)
		if !ok && !l.blank() {
			return body
		}
		l.s = s
		flat[i] = l
	}
	return flat
}

var word = regexp.MustCompile(`^[A-Za-z_]*$`)

// noise is a line that stands around an envelope and says nothing: a fence, the
// shell's words of a here-document, an empty line, a marker twice.
func noise(l sent) bool {
	return isFence(l.s) || word.MatchString(l.trim()) || strings.Contains(l.s, "apply_patch") || l.is(endLine) || l.is(beginLine)
}

// outside judges the text around envelopes.
func (r *reader) outside(lines []sent) *Error {
	said := false
	for i, l := range lines {
		part := strings.HasPrefix(l.s, "@@") || strings.HasPrefix(l.s, "+")
		if i == 0 { // directly below the End line, where a list of prose has air
			part = part || strings.HasPrefix(l.s, " ") || strings.HasPrefix(l.s, "-")
		}
		if l.is(headerLine) || l.is(moveLine) || l.is(eofLine) || len(r.sections) > 0 && part && !noise(l) {
			return refuse(l.no, sayOutside)
		}
		said = said || !noise(l)
	}
	if said {
		r.note(noteOutside)
	}
	return nil
}

// note keeps a note, once.
func (r *reader) note(text string) {
	for _, n := range r.notes {
		if n == text {
			return
		}
	}
	r.notes = append(r.notes, text)
}

package patch

import (
	"slices"
)

// edit is one step of a change to a text: lines taken out before a place, or put
// in there. Places are those of the text as it was.
type edit struct {
	at   int
	take bool
	put  fileLine
}

// edits are the steps that a hunk makes at its spot. It moves the locator past
// the hunk.
func (l *locator) edits(t text, h hunk, s spot) ([]edit, *Error) {
	bare, err := l.prefixes(h, s)
	if err != nil {
		return nil, err
	}
	fit, err := l.indenter(h, s)
	if err != nil {
		return nil, err
	}
	if l.plusSpace(s) {
		return nil, l.refuse(h, sayPlusSpace)
	}
	var steps []edit
	var removed []int // of the run of removed lines that new lines replace
	at, put := s.at, 0
	for _, c := range s.lines {
		switch c.op {
		case ' ':
			at++
			removed, put = nil, 0
		case '-':
			if put > 0 {
				removed, put = nil, 0
			}
			removed = append(removed, at)
			steps = append(steps, edit{at: at, take: true})
			at++
			l.low = at
		case '+':
			line, ok := fit(c.text)
			if !ok {
				return nil, l.refuse(h, sayIndent, s.at+1, region(l.x.lines, s.at, s.at+len(hunk{lines: s.lines}.old())))
			}
			if bare && at < len(t.lines) && t.lines[at].s == "+"+c.text {
				return nil, l.refuse(h, sayPlusInFile, quoted("+"+c.text))
			}
			if !t.utf8 && !ascii(line) {
				return nil, refuse(h.line, sayNotUTF8, l.path, quoted(line)).about(l.path, nil)
			}
			like := at - 1
			if len(removed) > 0 {
				like = removed[min(put, len(removed)-1)]
			}
			steps = append(steps, edit{at: at, put: fileLine{line, t.ending(max(like, 0))}})
			put++
			l.low = max(l.low, at)
		}
	}
	l.at = max(l.at, at)
	return steps, nil
}

// prefixes judges a hunk in which lines lack their prefix: those that have none,
// and those that match but for a space, which then was taken for it. Such a line
// may be kept or removed. It is kept for certain only where all kept lines of the
// hunk are like that and it has lines to remove with their minus. It reports
// whether there are any.
func (l *locator) prefixes(h hunk, s spot) (bare bool, _ *Error) {
	at, proper := s.at, 0
	first, minus, wrong := "", 0, 0
	for _, c := range s.lines {
		if c.op == '+' {
			continue
		}
		is := l.x.lines[at].s
		at++
		switch {
		case c.op == '-':
			minus++
			if trailing.form(c.text) != trailing.form(is) {
				wrong++
			}
		case around.form(c.text) == "":
		case c.bare || trailing.form(is) == " "+trailing.form(c.text):
			if first == "" {
				first = c.text
			}
		default:
			proper++
		}
	}
	if first == "" {
		return false, nil
	}
	if proper > 0 || minus == 0 || wrong > 0 {
		return true, l.refuse(h, sayNoPrefix, quoted(first))
	}
	l.note(noteBare)
	return true, nil
}

// plusSpace says whether the new lines of a hunk that fits as it is have a space
// behind each +, as some models put it, and the file has no line like that.
func (l *locator) plusSpace(s spot) bool {
	var added []fileLine
	for _, c := range s.lines {
		if c.op == '+' {
			added = append(added, fileLine{c.text, ""})
		}
	}
	return s.rung != around && spaced(added) && !slices.ContainsFunc(l.x.lines, func(f fileLine) bool {
		return indentation(f.s) == " "
	})
}

// indenter is how the new lines of a hunk are indented; refused if that cannot be
// told.
func (l *locator) indenter(h hunk, s spot) (indenter, *Error) {
	if s.rung != around {
		return asIs, nil
	}
	var kept, removed []indentPair
	at := s.at
	for _, c := range s.lines {
		if c.op == '+' {
			continue
		}
		pair := indentPair{indentation(c.text), indentation(l.x.lines[at].s)}
		blank := around.form(c.text) == ""
		at++
		switch {
		case blank:
		case c.op == '-':
			removed = append(removed, pair)
		default:
			kept = append(kept, pair)
		}
	}
	adds := slices.ContainsFunc(s.lines, func(c change) bool { return c.op == '+' && around.form(c.text) != "" })
	fit, verbatim := learnIndent(kept, removed)
	switch {
	case !adds || verbatim:
		if !same(kept) || !same(removed) {
			l.note(noteIndent, s.at+1)
		}
		return asIs, nil
	case fit == nil:
		return nil, l.refuse(h, sayIndent, s.at+1, region(l.x.lines, s.at, at))
	}
	l.note(noteShifted, s.at+1)
	return fit, nil
}

// splice makes the changed text.
func splice(t text, steps []edit) []fileLine {
	lines := make([]fileLine, 0, len(t.lines)+len(steps))
	at := 0
	for _, e := range steps {
		lines = append(lines, t.lines[at:e.at]...)
		at = e.at
		if e.take {
			at++
		} else {
			lines = append(lines, e.put)
		}
	}
	return ended(append(lines, t.lines[at:]...), t.open())
}

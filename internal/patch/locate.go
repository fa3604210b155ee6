package patch

import "slices"

// locator places the hunks of one section, from top to bottom, in one text.
type locator struct {
	path string
	x    *index
	// at is the line after the last hunk, low the line after the last one that
	// it changed: hunks may share lines that they keep.
	at, low int
	n       int // number of the hunk, from 1
	notes   []string
}

// spot is where a hunk goes.
type spot struct {
	at    int
	lines []change // of the hunk, without the air around
	skip  int      // lines of air above
	rung  rung
	fuzz  int
}

func (l *locator) note(format string, args ...any) {
	l.notes = append(l.notes, sprint(format, append([]any{l.path, l.n}, args...)...))
}

func (l *locator) refuse(h hunk, format string, args ...any) *Error {
	return refuse(h.line, format, append([]any{l.path, l.n}, args...)...).about(l.path, nil)
}

// found is what the headers of a hunk led to.
type found struct {
	from int // where its lines are looked for
	at   int // the line of the last header; -1 if that did not lead ahead
	fuzz int
	// sure says that the headers led ahead and could not mean another place.
	sure   bool
	others []int // where the header stands as well
}

// anchor follows the headers of a hunk (B1 12.7): forward, and for one that
// stands behind already, nowhere; one that is missing is passed over. A header
// below another is looked for below that first, because a method's name stands
// in other classes as well.
func (l *locator) anchor(headers []string) found {
	f := found{from: l.at, at: -1, sure: len(headers) > 0}
	for i, name := range headers {
		at, r, others, ok := l.header(name, f.from, i == 0 || f.at < 0)
		if !ok {
			f.at, f.sure = -1, false
			continue
		}
		f.from, f.at = at+1, at
		f.fuzz += min(r.fuzz(), 1)
		if i == 0 {
			f.others = others
			f.sure = len(others) == 0
		}
	}
	return f
}

// header finds one header ahead and where it stands besides. With outer, it is
// not looked for ahead if it stands behind; then, and if it is missing, ok is
// false.
func (l *locator) header(name string, from int, outer bool) (at int, r rung, others []int, ok bool) {
	for _, r := range []rung{exact, around} {
		behind := l.x.find(r, []string{name}, 0, 1)
		if outer && len(behind) > 0 && behind[0] < from {
			return 0, r, nil, false
		}
		if ahead := l.x.find(r, []string{name}, from, shownPlaces+2); len(ahead) > 0 {
			return ahead[0], r, ahead[1:], true
		}
	}
	return 0, exact, nil, false
}

// variant is one way to read a hunk whose first or last empty lines may be lines
// of the file or air.
type variant struct {
	lines []change
	old   []string
	skip  int // lines left out above
}

// variants are all ways, the one that leaves out nothing first and the one that
// leaves out all air last.
func (h hunk) variants() []variant {
	head, tail := 0, len(h.lines)
	for head < tail && h.lines[head].loose {
		head++
	}
	for tail > head && h.lines[tail-1].loose {
		tail--
	}
	var all []variant
	for _, from := range slices.Compact([]int{0, head}) {
		for _, to := range slices.Compact([]int{len(h.lines), tail}) {
			lines := h.lines[from:to]
			all = append(all, variant{lines, hunk{lines: lines}.old(), from})
		}
	}
	return all
}

// core is the hunk without any air.
func (h hunk) core() hunk {
	v := h.variants()
	h.lines = v[len(v)-1].lines
	return h
}

// airy says whether all lines that the file must hold are empty ones that may be
// air.
func (h hunk) airy() bool {
	return !slices.ContainsFunc(h.lines, func(c change) bool { return c.op != '+' && !c.loose })
}

// locate finds where a hunk goes.
func (l *locator) locate(h hunk) (spot, *Error) {
	l.n++
	f := l.anchor(h.anchors)
	core := h.core()
	switch {
	case len(core.old()) == 0:
		return l.insertion(core, f)
	case core.airy():
		return spot{}, l.refuse(h, sayBlankPlus)
	}
	s, places, err := l.search(h, f)
	if err != nil {
		return s, err
	}
	if f.at >= 0 && s.at == f.at {
		l.note(noteAnchor, s.at+1)
	}
	others := slices.DeleteFunc(places, func(at int) bool { return at == s.at })
	if len(others) > 0 && !f.sure && h.start == 0 {
		l.note(noteSeveral, s.at+1, lineNumbers(others))
	}
	s.fuzz += f.fuzz + s.rung.fuzz()
	return s, nil
}

// insertion places a hunk that only adds lines: where its header says, at the
// end, or in an empty file. Any other place would be a guess.
func (l *locator) insertion(h hunk, f found) (spot, *Error) {
	s := spot{lines: h.lines, fuzz: f.fuzz}
	switch {
	case len(l.x.lines) == 0:
	case h.atEnd:
		s.at = len(l.x.lines)
	case f.at >= 0 && f.sure:
		s.at = f.at + 1
		l.note(noteInserted, s.at)
	case f.at >= 0:
		s.at = f.at + 1
		if len(f.others) == 0 { // it stands below one that is missing
			l.note(noteInserted, s.at)
			break
		}
		l.note(noteAnchorTwice, s.at, lineNumbers(f.others))
	default:
		return s, l.refuse(h, sayWhere)
	}
	return s, nil
}

// search looks for the lines of a hunk, on the strictest rung first (B1 12.8),
// and gives the place and the first places that match alike.
func (l *locator) search(h hunk, f found) (spot, []int, *Error) {
	from := f.from
	if old := h.core().old(); f.at >= 0 && around.form(old[0]) == around.form(l.x.lines[f.at].s) {
		from = f.at // B1 12.9
	}
	if h.atEnd {
		if s, ok := l.atEnd(h, from); ok {
			return s, nil, nil
		}
	}
	s, places, ok := l.forward(h, from)
	if !ok && f.at < 0 && l.low < l.at {
		s, places, ok = l.forward(h, l.low)
	}
	if !ok {
		return s, nil, l.miss(h, from)
	}
	if h.atEnd {
		s.fuzz += endFuzz
		l.note(noteEnd, s.at+1)
	}
	if len(places) < 2 || f.sure && h.start == 0 && !h.atEnd {
		return s, places, nil
	}
	return l.choose(h, s, places)
}

// choose takes one of several places that match alike. If the hunk names a place
// besides, it must be one of them.
func (l *locator) choose(h hunk, s spot, places []int) (spot, []int, *Error) {
	if h.start > 0 {
		hint := h.start - 1 + s.skip
		if hint >= places[0] && l.x.stands(s.rung, hunk{lines: s.lines}.old(), hint) {
			s.at = hint
			return s, places, nil
		}
	}
	if h.start > 0 || h.atEnd {
		return s, nil, l.refuse(h, sayContradicts, lineNumbers(places))
	}
	return s, places, nil
}

func (l *locator) atEnd(h hunk, from int) (spot, bool) {
	for r := range rungs {
		for _, v := range h.variants() {
			at := len(l.x.lines) - len(v.old)
			if at >= from && l.x.stands(r, v.old, at) {
				return spot{at: at, lines: v.lines, rung: r}, true
			}
		}
	}
	return spot{}, false
}

func (l *locator) forward(h hunk, from int) (spot, []int, bool) {
	for r := range rungs {
		for _, v := range h.variants() {
			if places := l.x.find(r, v.old, from, shownPlaces+2); len(places) > 0 {
				return spot{at: places[0], lines: v.lines, skip: v.skip, rung: r}, places, true
			}
		}
	}
	return spot{}, nil, false
}

package patch

import (
	"regexp"
	"strconv"
	"strings"
)

// update reads what stands below an Update header: where the file goes, and the
// hunks.
func (r *reader) update(s *section) *Error {
	r.air()
	if l, ok := r.peek(); ok && l.is(moveLine) {
		to, err := r.file(l.no, moveLine.FindStringSubmatch(l.trim())[1])
		if err != nil {
			return err
		}
		s.move = to
		r.at++
	}
	r.at += r.fileHeader(s, r.lines[r.at:])
	if err := r.hunks(s); err != nil {
		return err
	}
	if len(s.hunks) == 0 && s.move == "" {
		return refuse(s.line, sayNoHunk, s.path)
	}
	return nil
}

// air passes empty lines that are followed by a header, by another line with
// three stars, or by nothing.
func (r *reader) air() {
	at := r.at
	for at < len(r.lines) && r.lines[at].blank() {
		at++
	}
	if at == len(r.lines) || strings.HasPrefix(r.lines[at].s, "***") || strings.HasPrefix(r.lines[at].s, "@@") {
		r.at = at
	}
}

// hunks reads the hunks of a section.
func (r *reader) hunks(s *section) *Error {
	for {
		r.air()
		l, ok := r.peek()
		switch {
		case !ok || l.is(headerLine) && strings.HasPrefix(l.s, "***"):
			return nil
		case l.is(moveLine) && strings.HasPrefix(l.s, "***"):
			return refuse(l.no, sayLateMove)
		case strings.HasPrefix(l.s, "***"):
			return refuse(l.no, sayUnknownMark, quoted(l.trim()))
		}
		h, err := r.hunk(len(s.hunks) == 0)
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, h)
	}
}

// hunk reads one hunk: its headers, its lines, and whether it ends the file.
func (r *reader) hunk(first bool) (hunk, *Error) {
	h := hunk{line: r.lines[r.at].no}
	headed := r.anchors(&h)
	if !headed && !first {
		return h, refuse(h.line, sayNeedsHeader)
	}
	if err := r.body(&h); err != nil {
		return h, err
	}
	if l, ok := r.peek(); ok && l.is(eofLine) && strings.HasPrefix(l.s, "***") {
		h.atEnd = true
		r.at++
	}
	if h.blank() {
		return h, refuse(h.line, sayEmptyHunk)
	}
	return h, h.doubtful()
}

// anchors reads the headers of a hunk and reports whether there is one.
func (r *reader) anchors(h *hunk) bool {
	headed := false
	for l, ok := r.peek(); ok && strings.HasPrefix(l.s, "@@"); l, ok = r.peek() {
		headed = true
		h.anchor(l)
		r.at++
	}
	return headed
}

var unifiedRange = regexp.MustCompile(`^-(\d+)(?:,\d+)? \+\d+(?:,\d+)?(?: @@)?(?: (.*))?$`)

// anchor reads one header. The numbers of a unified diff are a hint at most, and
// what follows them is the line that git shows of the function around.
func (h *hunk) anchor(l sent) {
	text := strings.TrimPrefix(strings.TrimPrefix(l.s, "@@"), " ")
	if m := unifiedRange.FindStringSubmatch(text); m != nil {
		h.start, text = number(m[1]), m[2]
	}
	text = strings.TrimSuffix(strings.TrimRightFunc(text, space), "@@")
	if text = strings.TrimRightFunc(text, space); strings.TrimFunc(text, space) != "" {
		h.anchors = append(h.anchors, text)
	}
}

// body reads the lines of a hunk, up to a header or a line with three stars.
func (r *reader) body(h *hunk) *Error {
	// How often each side is said to end without a line break.
	var oldEnds, newEnds int
	last := byte(0)
	for l, ok := r.peek(); ok && !strings.HasPrefix(l.s, "@@") && !strings.HasPrefix(l.s, "***"); l, ok = r.peek() {
		r.at++
		if strings.HasPrefix(l.s, `\ No newline`) {
			if last != '+' {
				oldEnds++
			}
			if last != '-' {
				newEnds++
			}
			continue
		}
		c := h.read(l)
		last = c.op
		h.lines = append(h.lines, c)
	}
	if oldEnds != newEnds {
		return refuse(h.line, sayNoNewline)
	}
	for _, c := range h.lines {
		if c.op == '+' {
			if err := placeholder(c.no, c.text, h.old()); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads one line. A line that begins with nothing that a hunk knows may be
// one to keep; whether it is, shows when the hunk has found its place.
func (h *hunk) read(l sent) change {
	if l.s == "" {
		return change{op: ' ', loose: true, no: l.no}
	}
	switch l.s[0] {
	case ' ', '-', '+':
		return change{op: l.s[0], text: l.s[1:], no: l.no}
	}
	return change{op: ' ', text: l.s, bare: true, no: l.no}
}

// blank says whether the hunk has no line but air.
func (h hunk) blank() bool {
	for _, c := range h.lines {
		if !c.loose {
			return false
		}
	}
	return true
}

// doubtful refuses a hunk whose new lines are as read_file shows lines.
func (h hunk) doubtful() *Error {
	var added []fileLine
	for _, c := range h.lines {
		if c.op == '+' {
			added = append(added, fileLine{c.text, "\n"})
		}
	}
	for _, o := range h.old() {
		if numberedLine.MatchString(o) {
			return nil // the file may hold such lines; if not, the miss says why
		}
	}
	return numbered(h.line, added)
}

// number reads digits; 0 if they are no number that a line can have.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

package file

import (
	"cmp"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// rung is a way of comparing a text that was sent with a file (B1 11.8).
type rung struct {
	old, fresh string
	// folded says that quotes and dashes of any kind are the same.
	folded bool
	// note says how the texts were compared; empty for exactly.
	note string
}

// ladder lists the ways of comparing, the strictest first. Line breaks of either kind
// are the same in all of them.
func ladder(old, fresh string) []rung {
	old, fresh = unix(old), unix(fresh)
	rungs := []rung{{old: old, fresh: fresh}, {old: fold(old), fresh: fresh, folded: true, note: quotesFolded}}
	if o := unescaped(old); o != old {
		rungs = append(rungs, rung{old: o, fresh: unescaped(fresh), note: escapesRead})
	}
	if o, ok := unnumbered(old); ok {
		f, ok := unnumbered(fresh)
		if !ok {
			f = fresh
		}
		rungs = append(rungs, rung{old: o, fresh: f, note: numbersCut})
	}
	return rungs
}

func unix(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// plainOf is the plain form of a typographic quote, dash or space; the rune itself if it
// is none.
func plainOf(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′':
		return '\''
	case '“', '”', '„', '‟', '″':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	case '\u00a0', '\u202f':
		return ' '
	}
	return r
}

func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return plainOf(r) != r }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		n, unit := unitOf(s, true)
		b.WriteString(unit)
		s = s[n:]
	}
	return b.String()
}

// unitOf is what a text begins with, as it is compared, and its length: a line break of
// either kind, or a character. Bytes that are no UTF-8 are units of one.
func unitOf(s string, folded bool) (n int, unit string) {
	if strings.HasPrefix(s, "\r\n") {
		return 2, "\n"
	}
	r, n := utf8.DecodeRuneInString(s)
	if p := plainOf(r); folded && p != r {
		return n, string(p)
	}
	return n, s[:n]
}

// find gives the places at which a text stands in a file, as beginnings and ends in the
// file's own bytes, in order and without overlap, and how many they are.
func (r rung) find(text string) (n int, places iter.Seq[[2]int]) {
	compared := unix(text)
	if r.folded {
		compared = fold(compared)
	}
	places = func(yield func([2]int) bool) {
		own := walk{text: text, folded: r.folded, even: len(compared) == len(text)}
		for from := 0; r.old != ""; {
			i := strings.Index(compared[from:], r.old)
			if i < 0 {
				return
			}
			begin := own.to(from + i)
			from += i + len(r.old)
			if !yield([2]int{begin, own.to(from)}) {
				return
			}
		}
	}
	if r.old == "" {
		return 0, places
	}
	return strings.Count(compared, r.old), places
}

// walk leads places in the compared text to the file's own, in their order.
type walk struct {
	text   string
	folded bool
	// even says that they are the same.
	even          bool
	own, compared int
}

// to is the file's own place. What is one thing in the file, a line break of two bytes or
// a quote of three, is one in the compared text too, so no place is inside of it.
func (w *walk) to(place int) int {
	if w.even {
		return place
	}
	for w.compared < place && w.own < len(w.text) {
		n, unit := unitOf(w.text[w.own:], w.folded)
		w.own, w.compared = w.own+n, w.compared+len(unit)
	}
	return w.own
}

// restyled is the replacement for a place of a file: what it shares with what stands
// there keeps the file's own bytes, its line breaks are those around, and if quotes and
// dashes were taken for the same, so are they.
func (r rung) restyled(breaks *breaks, place [2]int) string {
	text := breaks.text
	was := text[place[0]:place[1]]
	head, headNew := r.shared(was, r.fresh)
	rest, restNew := was[head:], r.fresh[headNew:]
	tail, tailNew := r.sharedEnd(rest, restNew)
	middle := restNew[:len(restNew)-tailNew]
	if r.folded {
		last, _ := utf8.DecodeLastRuneInString(text[:place[0]+head])
		middle = restyle(middle, was, last)
	}
	if breaks.of(place[0], was[:head], rest) == "\r\n" {
		middle = strings.ReplaceAll(middle, "\n", "\r\n")
	}
	return was[:head] + middle + rest[len(rest)-tail:]
}

// shared is how much of two texts is the same from the beginning.
func (r rung) shared(was, fresh string) (a, b int) {
	for a < len(was) && b < len(fresh) {
		n, x := unitOf(was[a:], r.folded)
		m, y := unitOf(fresh[b:], r.folded)
		if x != y {
			break
		}
		a, b = a+n, b+m
	}
	return a, b
}

// sharedEnd is how much of two texts is the same at the end.
func (r rung) sharedEnd(was, fresh string) (a, b int) {
	for a < len(was) && b < len(fresh) {
		n, x := lastUnitOf(was[:len(was)-a], r.folded)
		m, y := lastUnitOf(fresh[:len(fresh)-b], r.folded)
		if x != y {
			break
		}
		a, b = a+n, b+m
	}
	return a, b
}

// lastUnitOf is unitOf for what a text ends with.
func lastUnitOf(s string, folded bool) (n int, unit string) {
	if strings.HasSuffix(s, "\r\n") {
		return 2, "\n"
	}
	_, n = utf8.DecodeLastRuneInString(s)
	_, unit = unitOf(s[len(s)-n:], folded)
	return n, unit
}

// breaks are the line breaks of a text, looked at from one place to the next.
type breaks struct {
	text        string
	at          int
	first, last string // the text's first, and the last before at; empty for none
}

func newBreaks(text string) *breaks {
	return &breaks{text: text, first: breakAt(text, strings.IndexByte(text, '\n'))}
}

// breakAt is the line break that ends at an index, or empty for an index below zero.
func breakAt(text string, i int) string {
	switch {
	case i > 0 && text[i-1] == '\r':
		return "\r\n"
	case i >= 0:
		return "\n"
	}
	return ""
}

// of is how lines end where a text comes: as in what stays before it at the place, in
// what it replaces there, or else in what is before and behind.
func (b *breaks) of(place int, stays, goes string) string {
	if i := strings.LastIndexByte(b.text[b.at:place], '\n'); i >= 0 {
		b.last = breakAt(b.text, b.at+i)
	}
	b.at = place
	return cmp.Or(breakAt(stays, strings.LastIndexByte(stays, '\n')), breakAt(goes, strings.IndexByte(goes, '\n')), b.last, b.first)
}

// restyle writes plain quotes and dashes as they are written in another text, where that
// has one way of writing them. last is the character before.
func restyle(s, like string, last rune) string {
	if fold(like) == like {
		return s
	}
	has := map[rune]bool{}
	for _, r := range like {
		has[r] = true
	}
	double, single := quotesOf(has, '"', "„“”"), quotesOf(has, '\'', "‚‘’")
	dash := dashOf(has)
	var b strings.Builder
	for _, r := range s {
		own := r
		switch {
		case r == '"':
			own = double.of(opens(last))
		case r == '\'':
			own = single.of(opens(last))
		case r == '-':
			own = dash
		}
		b.WriteRune(own)
		last = r
	}
	return b.String()
}

// dashOf is the only kind of dash there is, or the plain one.
func dashOf(has map[rune]bool) rune {
	var found []rune
	for r := range has {
		if plainOf(r) == '-' {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return '-'
	}
	return found[0]
}

// quotes is how a quote opens and closes.
type quotes struct{ left, right rune }

func (q quotes) of(opens bool) rune {
	if opens {
		return q.left
	}
	return q.right
}

// quotesOf are the quotes of a kind: the plain ones, unless there are others and none of
// these. kinds are a low one, a left one and a right one.
func quotesOf(has map[rune]bool, plain rune, kinds string) quotes {
	k := []rune(kinds)
	low, left, right := k[0], k[1], k[2]
	switch {
	case has[plain] || !has[low] && !has[left] && !has[right]:
		return quotes{plain, plain}
	case has[low] && has[left]:
		return quotes{low, left}
	case has[low]:
		return quotes{low, right}
	}
	return quotes{left, right}
}

// opens reports whether a quote after a character opens; after none it does.
func opens(last rune) bool {
	return last == utf8.RuneError || strings.ContainsRune(" \t\n\u00a0([{-–—", last)
}

// escapes are characters as JSON and Python write them.
var escapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+`)

// unescaped puts characters for their escapes.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		var units []uint16
		for _, digits := range strings.Split(e, `\u`)[1:] {
			n, err := strconv.ParseUint(digits, 16, 16)
			if err != nil {
				return e
			}
			units = append(units, uint16(n))
		}
		text := string(utf16.Decode(units))
		if strings.ContainsRune(text, utf8.RuneError) { // half of a pair
			return e
		}
		return text
	})
}

// numberedLine is a line as read_file and other tools show it.
var numberedLine = regexp.MustCompile(`^ *([0-9]+)(?: \| ?|\t|→|: |\|)(.*)$`)

// unnumbered cuts off line numbers; false unless every line has one and they count up.
func unnumbered(s string) (string, bool) {
	if s == "" {
		return "", false
	}
	body, end := strings.CutSuffix(s, "\n")
	var out []string
	next := -1
	for _, l := range strings.Split(body, "\n") {
		m := numberedLine.FindStringSubmatch(l)
		if m == nil {
			return "", false
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || next >= 0 && n != next {
			return "", false
		}
		next = n + 1
		out = append(out, m[2])
	}
	text := strings.Join(out, "\n")
	if end {
		text += "\n"
	}
	return text, true
}

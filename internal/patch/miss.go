package patch

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// miss says why the lines of a hunk are not in the file, as far as that can be
// told: what was looked for, where, and what the file has that is nearest
// (B1 12.12).
func (l *locator) miss(h hunk, from int) *Error {
	core := h.core()
	old := core.old()
	if len(l.x.lines) == 0 {
		return l.refuse(h, sayMissEmpty)
	}
	said := sprint(sayMiss, l.path, l.n, from+1, listing(old)) + l.cause(core, from)
	at, size, ok := l.nearest(old, from)
	if ok {
		said += sprint(sayMissNear, region(l.x.lines, at-shownMargin, at+min(size, shownFile)+shownMargin)) + sayMissAdvice
	} else {
		said += sayMissNothing
	}
	return refuse(h.line, "%s", said).about(l.path, nil)
}

var copied = regexp.MustCompile(`^\s*\d+(?: ?\| ?|\t|: ?)`)

// cause names the usual reason for a miss that can be proved: with it taken
// away, the lines match. Nothing is changed by it.
func (l *locator) cause(h hunk, from int) string {
	old := h.old()
	if at, ok := l.would(old, 0, func(s string) string { return copied.ReplaceAllString(s, "") }); ok {
		return sprint(sayMissNumbers, at+1)
	}
	for _, dash := range []string{"-", "--"} {
		plain := func(s string) string { return typographic.Replace(strings.ReplaceAll(s, "\u2014", dash)) }
		if _, ok := l.would(old, 0, plain); ok {
			return sayMissQuotes
		}
	}
	for _, o := range old {
		if dots(o) && len(l.x.find(around, []string{o}, 0, 1)) == 0 {
			return sprint(sayMissDots, quoted(strings.TrimFunc(o, space)))
		}
	}
	if firm := h.firm(); len(firm) > 0 && len(firm) < len(old) {
		if at, ok := l.would(firm, 0, nil); ok {
			return sprint(sayMissBlank, at+1)
		}
	}
	if fresh := h.fresh(); telling(fresh) && !slices.Equal(fresh, old) {
		if at, ok := l.would(fresh, 0, nil); ok {
			return sprint(sayMissDone, at+1)
		}
	}
	if at, ok := l.would(old, 0, nil); ok && at < from {
		return sprint(sayMissAbove, at+1, from+1)
	}
	return ""
}

// firm are the lines that the file must hold, less the empty ones without a
// prefix.
func (h hunk) firm() []string {
	var lines []string
	for _, c := range h.lines {
		if c.op != '+' && !c.loose {
			lines = append(lines, c.text)
		}
	}
	return lines
}

// telling says whether lines hold anything that is not in every file.
func telling(lines []string) bool {
	return slices.ContainsFunc(lines, func(s string) bool {
		return strings.ContainsFunc(s, unicode.IsLetter)
	})
}

// would finds lines after something was done to each of them. If that does
// nothing, it was not the cause.
func (l *locator) would(lines []string, from int, do func(string) string) (int, bool) {
	changed := lines
	if do != nil {
		changed = make([]string, len(lines))
		for i, s := range lines {
			changed[i] = do(s)
		}
		if slices.Equal(changed, lines) {
			return 0, false
		}
	}
	for r := range rungs {
		if places := l.x.find(r, changed, from, 1); len(places) > 0 {
			return places[0], true
		}
	}
	return 0, false
}

// typographic are the quotes and dashes that editors and models put in place of
// the plain ones.
var typographic = strings.NewReplacer(
	"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`,
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2212", "-",
	"\u00a0", " ",
)

var dotsLine = regexp.MustCompile(`^(?:#|//|--|;|%|/\*|<!--)?\s*(?:\.\.\.|…)`)

// dots says whether a line stands for lines that were left out.
func dots(s string) bool { return dotsLine.MatchString(strings.TrimFunc(s, space)) }

// How much is looked at to find what is nearest.
const (
	probedLines  = 32 // of the hunk
	probedPlaces = 64 // of each in the file
)

// nearest is the part of the file that shares most lines with the hunk, else
// around the line that shares most words with its longest. It is only shown.
func (l *locator) nearest(old []string, from int) (at, size int, ok bool) {
	votes := map[int]int{}
	seen := map[string]bool{}
	for j, o := range old {
		form := around.form(o)
		if form == "" || seen[form] || len(seen) == probedLines {
			continue
		}
		seen[form] = true
		weight := min(len(form), 8)
		for _, i := range l.x.find(around, []string{o}, 0, probedPlaces) {
			votes[i-j] += weight
		}
	}
	best := 0
	for offset, v := range votes {
		if v > best || v == best && nearer(offset, at, from) {
			at, best = offset, v
		}
	}
	if best > 3 { // more than a brace
		return at, len(old), true
	}
	return l.alike(old)
}

// nearer says whether the place a is to be shown rather than b: ahead before
// behind, then from the top.
func nearer(a, b, from int) bool {
	if (a >= from) != (b >= from) {
		return a >= from
	}
	return a < b
}

// alike is the line of the file that has at least half of its words in common
// with the longest line of the hunk.
func (l *locator) alike(old []string) (at, size int, ok bool) {
	longest := slices.MaxFunc(old, func(a, b string) int { return len(around.form(a)) - len(around.form(b)) })
	want := words(longest)
	if len(want) == 0 {
		return 0, 0, false
	}
	best := 0.5
	for i, line := range l.x.lines {
		have := words(line.s)
		common := 0
		for w := range have {
			if want[w] {
				common++
			}
		}
		if share := float64(common) / float64(max(len(have), len(want))); share > best || share == best && !ok {
			at, best, ok = i, share, true
		}
	}
	return at, 1, ok
}

func words(s string) map[string]bool {
	var set map[string]bool // most lines of a hostile file have none
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
		if set == nil {
			set = map[string]bool{}
		}
		set[w] = true
	}
	return set
}

package patch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of a file or of a hunk one sentence shows. They cut what is shown,
// never what is compared.
const (
	shownLines  = 12  // of a hunk that did not match
	shownFile   = 16  // of the file, where it nearly does
	shownMargin = 2   // above and below those
	shownWidth  = 200 // bytes of one line
	shownFaults = 3   // of one patch
	shownPlaces = 3   // where a hunk matches as well (B1 12.10)
)

func sprint(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// clip is a line as it can be shown: cut, without control characters, and UTF-8
// whatever the file holds.
func clip(line string) string {
	cut := line
	if len(cut) > shownWidth {
		cut = cut[:shownWidth]
		for len(cut) > 0 && !utf8.RuneStart(line[len(cut)]) {
			cut = cut[:len(cut)-1]
		}
		cut += "..."
	}
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(cut, "\uFFFD"))
}

// quoted is a line as a sentence names it.
func quoted(line string) string { return strconv.Quote(clip(line)) }

// listing shows lines of a hunk.
func listing(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == shownLines {
			fmt.Fprintf(&b, "(%d lines more)\n", len(lines)-i)
			break
		}
		b.WriteString(clip(l) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// region shows the lines of a file from one up to another, counted from 0, with
// their numbers as read_file shows them (B1 11.3).
func region(lines []fileLine, from, to int) string {
	from, to = max(from, 0), min(to, len(lines))
	to = min(to, from+shownFile+2*shownMargin)
	width := len(strconv.Itoa(to))
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%*d | %s\n", width, i+1, clip(lines[i].s))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lineNumbers are places, counted from 0, in words: at most shownPlaces, and that
// there are more.
func lineNumbers(places []int) string {
	more := ""
	if len(places) > shownPlaces {
		places, more = places[:shownPlaces], wordMore
	}
	var numbers []string
	for _, at := range places {
		numbers = append(numbers, strconv.Itoa(at+1))
	}
	if len(numbers) == 1 {
		return sprint(wordLine, numbers[0]) + more
	}
	return sprint(wordLines, strings.Join(numbers, ", ")) + more
}

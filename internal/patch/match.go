package patch

import (
	"slices"
	"strings"
	"unicode"
)

// rung is how strictly lines are compared (B1 12.8).
type rung int

const (
	exact    rung = iota
	trailing      // white space at the end is ignored
	around        // white space at both ends is ignored
	rungs
)

// fuzz is what a match on a rung costs.
func (r rung) fuzz() int { return [rungs]int{0, 1, 100}[r] }

// endFuzz is what a hunk costs that says it is at the end of the file and is not
// (B1 12.8).
const endFuzz = 10000

// space is white space as the reference of the format has it: Unicode's, and the
// four separators of ASCII (B1 12.8).
func space(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func (r rung) form(s string) string {
	switch r {
	case trailing:
		return strings.TrimRightFunc(s, space)
	case around:
		return strings.TrimFunc(s, space)
	}
	return s
}

// index finds runs of lines in a text. Lines that compare as equal have one
// number, so that a search costs one step a line whatever the lines hold.
type index struct {
	lines   []fileLine
	numbers [rungs]map[string]int32
	ids     [rungs][]int32
	places  [rungs][][]int32 // by number: where such lines stand, in order
}

func newIndex(lines []fileLine) *index { return &index{lines: lines} }

// load numbers the lines for a rung, once.
func (x *index) load(r rung) {
	if x.numbers[r] != nil {
		return
	}
	numbers, ids := map[string]int32{}, make([]int32, len(x.lines))
	var places [][]int32
	for i, l := range x.lines {
		form := r.form(l.s)
		id, known := numbers[form]
		if !known {
			id = int32(len(numbers))
			numbers[form] = id
			places = append(places, nil)
		}
		ids[i] = id
		places[id] = append(places[id], int32(i))
	}
	x.numbers[r], x.ids[r], x.places[r] = numbers, ids, places
}

// wanted are the numbers of lines that are looked for; false if the text has one
// of them nowhere.
func (x *index) wanted(r rung, lines []string) ([]int32, bool) {
	x.load(r)
	ids := make([]int32, len(lines))
	for i, l := range lines {
		id, known := x.numbers[r][r.form(l)]
		if !known {
			return nil, false
		}
		ids[i] = id
	}
	return ids, true
}

// find lists the first places at or after from where the lines stand, at most
// limit of them. It looks where the rarest of them stands. If that is nearly
// everywhere, as in a hostile file of equal lines, comparing at each place would
// cost the product of both; then it is the search of Knuth, Morris and Pratt.
func (x *index) find(r rung, lines []string, from, limit int) []int {
	want, ok := x.wanted(r, lines)
	if !ok || len(want) == 0 {
		return nil
	}
	rare := 0
	for i, id := range want {
		if len(x.places[r][id]) < len(x.places[r][want[rare]]) {
			rare = i
		}
	}
	if len(want) == 1 || len(x.places[r][want[rare]])*len(want) < len(x.lines) {
		return x.findRare(r, want, rare, max(from, 0), limit)
	}
	return x.findAny(r, want, max(from, 0), limit)
}

// findRare compares wherever the line of a run stands that is rare.
func (x *index) findRare(r rung, want []int32, rare, from, limit int) []int {
	all := x.places[r][want[rare]]
	first, _ := slices.BinarySearch(all, int32(from+rare))
	var places []int
	for _, p := range all[first:] {
		at := int(p) - rare
		if len(places) == limit || at+len(want) > len(x.lines) {
			break
		}
		if slices.Equal(x.ids[r][at:at+len(want)], want) {
			places = append(places, at)
		}
	}
	return places
}

// findAny costs one step a line, whatever the lines are.
func (x *index) findAny(r rung, want []int32, from, limit int) []int {
	back := borders(want)
	var places []int
	matched := 0
	for i := from; i < len(x.ids[r]) && len(places) < limit; i++ {
		for matched > 0 && (matched == len(want) || want[matched] != x.ids[r][i]) {
			matched = back[matched-1]
		}
		if want[matched] == x.ids[r][i] {
			matched++
		}
		if matched == len(want) {
			places = append(places, i+1-len(want))
		}
	}
	return places
}

// borders tells how much of a run is still matched when the next line is not.
func borders(want []int32) []int {
	back := make([]int, len(want))
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = back[k-1]
		}
		if want[i] == want[k] {
			k++
		}
		back[i] = k
	}
	return back
}

// stands says whether the lines are exactly at a place.
func (x *index) stands(r rung, lines []string, at int) bool {
	if at < 0 || at+len(lines) > len(x.lines) {
		return false
	}
	want, ok := x.wanted(r, lines)
	if !ok {
		return false
	}
	for i, id := range want {
		if x.ids[r][at+i] != id {
			return false
		}
	}
	return true
}

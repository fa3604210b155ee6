package diagnose

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What makes a change a file typed anew to change a little of it (B1 10.8).
const (
	rewriteFiles = 8  // files of one command that are looked at
	rewriteLines = 30 // lines that a file has at least
	rewriteSame  = 25 // lines that came back as they were, at least
	rewriteShown = 6  // changed lines that are quoted
)

// Rewrite is a file before and after something wrote it whole.
type Rewrite struct {
	Path          string
	Before, After []byte
}

// Rewrites says which files were typed anew although little of them changed, with the
// lines that did, and how a patch does that (B1 10.8). It is empty when none was. Files
// larger than most bytes are left alone, and so are binary ones.
func Rewrites(files []Rewrite, most int64) string {
	var b strings.Builder
	for _, f := range files[:min(len(files), rewriteFiles)] {
		if max(int64(len(f.Before)), int64(len(f.After))) > most || binary(f.Before) || binary(f.After) {
			continue
		}
		before, after := splitLines(f.Before), splitLines(f.After)
		if len(before) < rewriteLines || len(after) < rewriteLines {
			continue
		}
		same, changed := compare(before, after)
		n := max(len(changed), len(before)-same)
		if same < rewriteSame || n < 1 || n > len(after)/2 {
			continue
		}
		fmt.Fprintf(&b, rewriteNote, plain(f.Path, longestQuote), len(after), same, n)
		for _, i := range changed[:min(len(changed), rewriteShown)] {
			shown, _ := sourceLine(after[i])
			b.WriteString(numbered(i+1, changed[min(len(changed), rewriteShown)-1]+1, shown))
		}
		if more := len(changed) - rewriteShown; more > 0 {
			fmt.Fprintf(&b, rewriteMore, more)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + rewriteHow
}

func binary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) }

func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// compare counts the lines of before that stand in after in the same order, and lists
// the others of after. It may count too few, never too many: a line that occurs often
// counts only beside others that are the same.
func compare(before, after []string) (same int, changed []int) {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	matched := match(before[head:len(before)-tail], after[head:len(after)-tail])
	same = head + tail
	for i, ok := range matched {
		if ok {
			same++
		} else {
			changed = append(changed, head+i)
		}
	}
	return same, changed
}

// match marks the lines of after that keep their order among those of before: the
// longest run of lines that both have once, and what stands beside them.
func match(before, after []string) []bool {
	type seen struct{ before, after, at int }
	lines := map[string]*seen{}
	for i, l := range before {
		if s := lines[l]; s != nil {
			s.before++
		} else {
			lines[l] = &seen{before: 1, at: i}
		}
	}
	for _, l := range after {
		if s := lines[l]; s != nil {
			s.after++
		}
	}
	to := make([]int, len(after)) // the line of before, or -1
	var unique []int
	for j, l := range after {
		to[j] = -1
		if s := lines[l]; s != nil && s.before == 1 && s.after == 1 {
			to[j] = s.at
			unique = append(unique, j)
		}
	}
	kept := increasing(unique, to)
	for _, j := range unique {
		if _, ok := slices.BinarySearch(kept, j); !ok {
			to[j] = -1
		}
	}
	return extend(before, after, to, kept)
}

// increasing is the longest list of the given lines whose partners keep their order.
func increasing(lines, to []int) []int {
	var ends []int // the last line of the best list of each length
	from := map[int]int{}
	for _, j := range lines {
		i, _ := slices.BinarySearchFunc(ends, to[j], func(end, want int) int { return to[end] - want })
		if i > 0 {
			from[j] = ends[i-1]
		} else {
			from[j] = -1
		}
		if i == len(ends) {
			ends = append(ends, j)
		} else {
			ends[i] = j
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var kept []int
	for j := ends[len(ends)-1]; j >= 0; j = from[j] {
		kept = append(kept, j)
	}
	slices.Reverse(kept)
	return kept
}

// extend matches the lines around those that are matched, as far as they are the same.
func extend(before, after []string, to, kept []int) []bool {
	next, limit := -1, -1
	for _, j := range kept { // forward
		for next, limit = j+1, to[j]+1; next < len(after) && limit < len(before) && to[next] < 0 && before[limit] == after[next]; next, limit = next+1, limit+1 {
			to[next] = limit
		}
	}
	used := map[int]bool{}
	for _, i := range to {
		used[i] = true
	}
	for _, j := range slices.Backward(kept) {
		for at, i := j-1, to[j]-1; at >= 0 && i >= 0 && to[at] < 0 && !used[i] && before[i] == after[at]; at, i = at-1, i-1 {
			to[at], used[i] = i, true
		}
	}
	matched := make([]bool, len(after))
	for j, i := range to {
		matched[j] = i >= 0
	}
	return matched
}

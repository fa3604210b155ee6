// Package intervals joins spans of time.
package intervals

import "sort"

// Span is from Start to End, in minutes.
type Span struct{ Start, End int }

// Merge joins the spans that overlap or touch, sorted by start.
func Merge(spans []Span) []Span {
	sorted := append([]Span(nil), spans...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Start < sorted[j].Start })
	var merged []Span
	for _, s := range sorted {
		last := len(merged) - 1
		if last >= 0 && s.Start <= merged[last].End {
			merged[last].End = s.End
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

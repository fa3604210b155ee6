// Package search ranks short texts by how well they answer a query: Okapi BM25
// (k1 1.2, b 0.75) over lower-cased runs of letters and digits, where a term of
// the query also matches the words that start with it.
//
// It knows nothing of skills or tools: who searches them makes a [Doc] of each,
// and gets positions in that list back. Equal indexes and queries give equal
// answers, ties in the order of the list. It never reads a file, never learns
// from what was asked, and is safe for concurrent use once it is made.
//
//	index := search.New([]search.Doc{{ID: "pdf", Text: "pdf Fill in PDF forms."}})
//	for _, m := range index.Search("fill form", 5) {
//		fmt.Println(m.ID, m.Score)
//	}
//
// Start at [New].
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Doc is a text to find.
type Doc struct {
	// ID is given back with a match. It is not searched: put it into Text if it
	// shall be found.
	ID string
	// Text is everything that is searched, in any order.
	Text string
}

// Match is a document that a query found.
type Match struct {
	ID string
	// Index is the document's place in the list that [New] got.
	Index int
	// Score is above 0, and 0 for the answer to an empty query. Scores of
	// different queries or indexes do not compare.
	Score float64
}

// The constants of BM25: how soon more of the same word stops to count, and how
// much a long text is held back.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Index answers queries over a fixed list of documents.
type Index struct {
	ids []string
	// length is each document's number of words, relative to the mean.
	length []float64
	words  []string // sorted
	// found lists, for the word at the same place, where it occurs.
	found [][]posting
}

type posting struct{ doc, count int }

// New makes an index of documents. It keeps the words, not the texts.
func New(docs []Doc) *Index {
	x := &Index{length: make([]float64, len(docs))}
	found := map[string][]posting{}
	total := 0
	for i, d := range docs {
		x.ids = append(x.ids, d.ID)
		words := Words(d.Text)
		x.length[i] = float64(len(words))
		total += len(words)
		for _, w := range words {
			if list := found[w]; len(list) > 0 && list[len(list)-1].doc == i {
				list[len(list)-1].count++
				continue
			}
			found[w] = append(found[w], posting{doc: i, count: 1})
		}
	}
	for i := range x.length {
		if total > 0 {
			x.length[i] *= float64(len(docs)) / float64(total)
		}
	}
	for w := range found {
		x.words = append(x.words, w)
	}
	slices.Sort(x.words)
	for _, w := range x.words {
		x.found = append(x.found, found[w])
	}
	return x
}

// Search gives the documents that hold a term of the query, the best first; at
// most max of them, or all when max is 0 or less. A term that stands twice
// counts once. A query without a letter or digit lists everything in order.
func (x *Index) Search(query string, max int) []Match {
	scores := make([]float64, len(x.ids))
	terms := Words(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	for _, term := range terms {
		x.add(scores, term)
	}
	matches := make([]Match, 0, len(x.ids))
	for i, score := range scores {
		if score > 0 || len(terms) == 0 {
			matches = append(matches, Match{ID: x.ids[i], Index: i, Score: score})
		}
	}
	slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	if max > 0 && len(matches) > max {
		matches = matches[:max]
	}
	return matches
}

// add adds what one term is worth to the score of each document.
func (x *Index) add(scores []float64, term string) {
	counts := x.count(term)
	if len(counts) == 0 {
		return
	}
	n, with := float64(len(x.ids)), float64(len(counts))
	rarity := math.Log(1 + (n-with+0.5)/(with+0.5))
	for doc, count := range counts {
		f := float64(count)
		scores[doc] += rarity * f * (saturation + 1) / (f + saturation*(1-lengthBias+lengthBias*x.length[doc]))
	}
}

// count tells how often words that start with a term occur in each document.
func (x *Index) count(term string) map[int]int {
	counts := map[int]int{}
	at, _ := slices.BinarySearch(x.words, term)
	for ; at < len(x.words) && strings.HasPrefix(x.words[at], term); at++ {
		for _, p := range x.found[at] {
			counts[p.doc] += p.count
		}
	}
	return counts
}

// Words are the lower-cased runs of letters and digits of a text, in order.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

package search

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func library() []Doc {
	return []Doc{
		{ID: "pdf", Text: "pdf Extract text and tables from PDF files, fill in PDF forms. Use when the user has a form."},
		{ID: "xlsx", Text: "xlsx Make spreadsheets with tables, formulas and charts."},
		{ID: "tides", Text: "tides Tells the tides of Port Ellery."},
		{ID: "empty", Text: ""},
		{ID: "навык", Text: "навык Читает таблицы: № 5."},
	}
}

func ids(matches []Match) []string {
	out := []string{}
	for _, m := range matches {
		out = append(out, m.ID)
	}
	return out
}

func TestSearch(t *testing.T) {
	x := New(library())
	tests := []struct {
		query string
		max   int
		want  []string
	}{
		{"tide", 0, []string{"tides"}},
		{"TIDES!", 0, []string{"tides"}},
		{"tables", 0, []string{"xlsx", "pdf"}}, // the shorter text
		{"form", 0, []string{"xlsx", "pdf"}},   // one "formulas" of 8 words, two of 18
		{"ides", 0, []string{}},                // a start, not a middle
		{"pdf tides tides tides", 0, []string{"tides", "pdf"}},
		{"таб", 0, []string{"навык"}},
		{"ТАБЛИЦЫ", 0, []string{"навык"}},
		{"5", 0, []string{"навык"}},
		{"unheard-of", 0, []string{"tides"}}, // "of"
		{"nothing", 0, []string{}},
		{"", 0, []string{"pdf", "xlsx", "tides", "empty", "навык"}},
		{" -- ", 2, []string{"pdf", "xlsx"}},
		{"tables", 1, []string{"xlsx"}},
		{"tables", -1, []string{"xlsx", "pdf"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ids(x.Search(tt.query, tt.max))); diff != "" {
			t.Errorf("Search(%q, %d): %s", tt.query, tt.max, diff)
		}
	}
	if diff := cmp.Diff(x.Search("form pdf", 0), x.Search("pdf FORM pdf form", 0)); diff != "" {
		t.Errorf("a term that stands twice counts twice: %s", diff)
	}
	if got := New(nil).Search("x", 0); len(got) != 0 {
		t.Errorf("an empty index found %v", got)
	}
}

// TestScore holds the formula against numbers worked out by hand.
func TestScore(t *testing.T) {
	x := New([]Doc{{ID: "a", Text: "red red blue"}, {ID: "b", Text: "redder"}, {ID: "c", Text: "green green"}})
	// red: in 2 of 3; a has 3 words, b 1, the mean is 2.
	rarity := math.Log(1 + (3-2+0.5)/(2+0.5))
	want := map[string]float64{
		"a": rarity * 2 * 2.2 / (2 + 1.2*(0.25+0.75*1.5)),
		"b": rarity * 1 * 2.2 / (1 + 1.2*(0.25+0.75*0.5)),
	}
	got := x.Search("red", 0)
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for _, m := range got {
		if math.Abs(m.Score-want[m.ID]) > 1e-12 {
			t.Errorf("%s: score %v, want %v", m.ID, m.Score, want[m.ID])
		}
	}
	if got[0].ID != "b" || x.ids[got[1].Index] != "a" {
		t.Errorf("order %v", got)
	}
}

func TestTiesKeepTheOrder(t *testing.T) {
	var docs []Doc
	var want []string
	for _, id := range strings.Fields("z y x w v u") {
		docs = append(docs, Doc{ID: id, Text: "the same words"})
		want = append(want, id)
	}
	if diff := cmp.Diff(want, ids(New(docs).Search("words same", 0))); diff != "" {
		t.Error(diff)
	}
}

// TestSearchProperties: whatever is asked, a match holds a term, and twice the
// same question has the same answer.
func TestSearchProperties(t *testing.T) {
	word := rapid.StringMatching(`[a-cA-C]{1,3}`)
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(text, 0, 6).Draw(t, "texts")
		docs := make([]Doc, 0, len(texts))
		for _, s := range texts {
			docs = append(docs, Doc{ID: s, Text: s})
		}
		query := text.Draw(t, "query")
		terms := Words(query)
		got := New(docs).Search(query, 0)
		if diff := cmp.Diff(got, New(docs).Search(query, 0)); diff != "" {
			t.Fatal(diff)
		}
		hit := map[int]bool{}
		for i, m := range got {
			hit[m.Index] = true
			if i > 0 && m.Score > got[i-1].Score {
				t.Fatalf("out of order: %v", got)
			}
		}
		for i, d := range docs {
			holds := slices.ContainsFunc(Words(d.Text), func(w string) bool {
				return slices.ContainsFunc(terms, func(term string) bool { return strings.HasPrefix(w, term) })
			})
			if want := holds || len(terms) == 0; hit[i] != want {
				t.Fatalf("%q found in %q: %v", query, d.Text, hit[i])
			}
		}
	})
}

func TestHeadings(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"# Title #\nbody\n## Two `code`\n   ### Three\r\n# Last", []string{"Title", "Two `code`", "Three", "Last"}},
		{"#no\n####### seven\n#\n# \n#\ttab", []string{"tab"}},
		{"```sh\n# comment\n````\n# After a longer fence", []string{"After a longer fence"}},
		{"````\n# in\n```\n# still in\n~~~~\n# still in\n````\n# Out", []string{"Out"}},
		{"~~~\n# in\n``` \n# in\n~~~ x\n# in", nil},
		{"", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Headings(tt.text)); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("pdf forms", "pdf")
	f.Add("# A\n```\n# B", "É ß")
	f.Fuzz(func(t *testing.T, text, query string) {
		for _, m := range New([]Doc{{Text: text}, {Text: query}}).Search(query, 0) {
			if math.IsNaN(m.Score) || math.IsInf(m.Score, 0) || m.Score < 0 {
				t.Errorf("score %v", m.Score)
			}
		}
		for _, h := range Headings(text) {
			if !strings.Contains(text, h) {
				t.Errorf("heading %q is not in %q", h, text)
			}
		}
	})
}

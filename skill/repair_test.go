package skill

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRepairsColons(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		name  string
		lines []string
		want  string // the description
		warns []string
	}{
		{"inside", []string{"description: Use: when"}, "Use: when", []string{
			`line 2, column 17: description holds a colon that YAML takes for the start of a value, and is read as text: write it in quotes, as in description: 'Use: when'`,
		}},
		{"at the end", []string{"description: Use when:"}, "Use when:", []string{`line 2, column 22: description`}},
		{"at the end, spaces after", []string{"description: Use when:  "}, "Use when:", []string{`as in description: 'Use when:'`}},
		{"several", []string{"description: a: b: c : d"}, "a: b: c : d", []string{`line 2, column 15`}},
		{"quotes inside", []string{`description: it's "so": yes`}, `it's "so": yes`, []string{`as in description: 'it''s "so": yes'`}},
		{"backslash inside", []string{`description: C:\x: y`}, `C:\x: y`, []string{"column 18"}},
		{"looks like a list", []string{"description: see [x]: y"}, "see [x]: y", []string{"column 21"}},
		{"not ASCII before", []string{"description: é数😀: b"}, "é数😀: b", []string{"line 2, column 17"}},
		{"long", []string{"description: a: " + long}, "a: " + long, []string{"as in description: 'a: " + long[:54] + "…'"}},
		{"next line", []string{"description: Fills forms. Use", "  when asked: always"}, "Fills forms. Use when asked: always", []string{"line 3, column 13"}},
		{"next line but one", []string{"description: a", "", "  b", "    c: d"}, "a b c: d", []string{"line 5, column 6"}},
		{"both lines", []string{"description: a: b", "  c: d"}, "a: b c: d", []string{"line 2, column 15"}},
		{"two fields", []string{"description: a: b", "license: c: d"}, "a: b", []string{"line 2, column 15", "line 3, column 11: license"}},
		{"unknown field", []string{"description: d", "note: a: b"}, "d", []string{"line 3, column 8: note"}},
		{"metadata", []string{"description: d", "metadata:", "  k: a: b", "  l: m"}, "d", []string{"line 4, column 7: k holds a colon"}},
		{"CRLF", []string{"description: a: b\r", "license: MIT\r"}, "a: b", []string{"line 2, column 15"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, warnings, err := Parse([]byte(head(append(tt.lines, "name: x")...)), "x")
			if err != nil || m.Description != tt.want || len(warnings) != len(tt.warns) {
				t.Fatalf("got %q, %v, %v", m.Description, warnings, err)
			}
			for i, w := range warnings {
				if w.Code != WarnColon || w.File != ManifestFile || !strings.Contains(w.String(), tt.warns[i]) {
					t.Errorf("got  %s %s\nwant %s", w.Code, w, tt.warns[i])
				}
			}
			for _, f := range m.Fields {
				if f.Key == "description" && f.Raw != strings.TrimRight(strings.Join(tt.lines, "\n"), "\r\n") && !strings.HasPrefix(strings.Join(tt.lines, "\n"), f.Raw) {
					t.Errorf("the field as written is %q", f.Raw)
				}
			}
		})
	}
}

func TestParseRepairsMetadata(t *testing.T) {
	m, _, err := Parse([]byte(head("description: d", "metadata:", "  k: it's: b", "  l: m")), "x")
	if diff := cmp.Diff(map[string]string{"k": "it's: b", "l": "m"}, m.Metadata); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestParseDoesNotGuess: where a colon leaves more than one reading, the skill
// is refused, with the place.
func TestParseDoesNotGuess(t *testing.T) {
	for name, lines := range map[string][]string{
		"a comment may be meant":       {"description: a: b # c"},
		"a comment below":              {"description: a: b", "  # c", "  d"},
		"a list may be meant":          {"description: asks for:", "  - a"},
		"a map may be meant":           {"description: asks for:", "  a: b"},
		"a field indented wrongly":     {"description: a", "  license: MIT"},
		"a map field indented wrongly": {"description: a: b", "  metadata:", "    x: y"},
		"metadata itself":              {"description: d", "metadata: a: b"},
		"in quotes":                    {`description: "a" b: c`},
		"in a list":                    {"description: d", "tools:", "  - a: b: c"},
		"deeper than metadata":         {"description: d", "metadata:", "  k:", "    l: a: b"},
		"in another map":               {"description: d", "other:", "  k: a: b"},
		"in braces":                    {"{description: a: b}"},
		"no field above":               {"a", "  b: c"},
	} {
		_, warnings, err := Parse([]byte(head(append(lines, "name: x")...)), "x")
		if err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: warnings %v, error %v", name, warnings, err)
		}
	}
}

// TestRepairEnds: a manifest of nothing but colons costs no more than one with
// many fields.
func TestRepairEnds(t *testing.T) {
	var lines []string
	for range 50_000 {
		lines = append(lines, "k"+strings.Repeat("x", len(lines)%7)+": a: b")
	}
	began := time.Now()
	if _, _, err := Parse([]byte(head(lines...)), "x"); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

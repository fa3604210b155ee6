package patch

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAsModelsSendThem: right patches, each spoiled in the ways of models. What
// comes of it is either exactly what was meant or a refusal that changes nothing,
// never a wrong file; the golden file pins which, and what the model reads.
func TestAsModelsSendThem(t *testing.T) {
	var table strings.Builder
	rows, applied := 0, 0
	for _, m := range mutations() {
		for _, s := range scenarios() {
			patch := m.do(s)
			if patch == "" {
				continue
			}
			rows++
			name := m.name + " / " + s.name
			got, c, err := run(s.files, patch)
			how := verdict(c, err)
			want := s.wanted(m)
			if err != nil {
				want = s.files
			} else {
				applied++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s, and the files are wrong:\n%s\nthe patch:\n%s", name, how, diff, patch)
			}
			fmt.Fprintf(&table, "%s: %s\n%s", name, how, gist(outcome(c, err)))
		}
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
	fmt.Fprintf(&table, "\n%d of %d are applied.\n", applied, rows)
	golden(t, "models.txt", table.String())
}

// gist are the sentences of an outcome, without the parts of files and hunks that
// it shows; those are pinned by sentences.txt.
func gist(text string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(text, "\n") {
		for _, start := range []string{"Nothing was changed.", "Patch line", "The cause:", "Note:"} {
			if strings.HasPrefix(l, start) {
				b.WriteString("    " + strings.TrimPrefix(l, "Nothing was changed. ") + "\n")
			}
		}
	}
	return b.String()
}

// wanted is what must come of a mutated patch. A new file has the line ends of
// the envelope (B1 12.5); else nothing differs.
func (s scenario) wanted(m mutation) map[string]string {
	if m.name != "CRLF line ends" {
		return s.want
	}
	want := maps.Clone(s.want)
	if text, ok := want["src/new.py"]; ok {
		want["src/new.py"] = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return want
}

func verdict(c Change, err error) string {
	switch {
	case err != nil:
		return "refused"
	case len(c.Notes) > 0:
		return "applied with a note"
	}
	return "applied"
}

package hostile

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is where the table of results is, between two comments.
const page = "../../docs/sandbox.md"

var tablePart = regexp.MustCompile(`(?s)(<!-- results: [^\n]*-->\n)(.*?)(<!-- end -->)`)

// table is the table of results by row and column ("native, root").
type table map[string]map[string]string

func (c cell) column() string { return c.Backend + ", " + c.User }

// checkTable compares what ran with the committed table, or writes it there. What
// could not be run here stays as it is.
func checkTable(t *testing.T, cells []cell) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := tablePart.FindSubmatchIndex(data)
	if m == nil {
		t.Fatalf("%s has no place for the results: put it between <!-- results: --> and <!-- end -->", page)
	}
	committed := string(data[m[4]:m[5]])
	results := parseTable(committed)
	for _, c := range cells {
		if c.Text == "" {
			continue // it was skipped
		}
		if results[c.ID] == nil {
			results[c.ID] = map[string]string{}
		}
		results[c.ID][c.column()] = c.Text
	}
	text := results.String()
	switch {
	case text == committed:
	case *update:
		whole := string(data[:m[4]]) + text + string(data[m[5]:])
		if err := os.WriteFile(page, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what ran here: see the rows that failed, or run go test ./test/hostile -update\n%s", page, difference(committed, text))
	}
}

// parseTable reads the first table of a text.
func parseTable(text string) table {
	results, header := table{}, []string(nil)
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			if header != nil {
				return results
			}
		case header == nil:
			header = parts
		case strings.HasPrefix(line, "| ---"):
		default:
			row := map[string]string{}
			for i := 2; i < len(parts) && i < len(header); i++ {
				if parts[i] != "" {
					row[header[i]] = parts[i]
				}
			}
			results[parts[0]] = row
		}
	}
	return results
}

// String is the table and, below it, the reasons.
func (r table) String() string {
	var b strings.Builder
	columns := r.columns()
	fmt.Fprintf(&b, "| row | attempt | %s |\n| --- | --- |%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	all := rows()
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	for _, w := range all {
		fmt.Fprintf(&b, "| %s | %s |", w.id, w.what)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", r[w.id][c])
		}
		b.WriteString("\n")
	}
	b.WriteString("\nProbes that do not succeed without confinement either, so that they prove nothing:\n\n")
	writeReasons(&b, "probes", exceptions())
	if len(absent()) > 0 {
		b.WriteString("\nCells that a backend cannot have (n/a):\n\n")
		writeReasons(&b, "backend", absent())
	}
	b.WriteString("\nAttempts that a backend does not hold, as its tier or its nature says (open):\n\n")
	writeReasons(&b, "backend", conceded())
	return b.String()
}

func writeReasons(b *strings.Builder, what string, all []reason) {
	fmt.Fprintf(b, "| row | %s | user | why |\n| --- | --- | --- | --- |\n", what)
	for _, e := range all {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", e.row, cmp.Or(e.probes, "all"), cmp.Or(e.who, "both"), e.why)
	}
}

// columns are the control first, then what is there, by name.
func (r table) columns() []string {
	var all []string
	for _, row := range r {
		for c := range row {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	rank := func(c string) int {
		return slices.IndexFunc([]string{bareControl + ",", "native,", ""}, func(p string) bool { return strings.HasPrefix(c, p) })
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return all
}

// difference lists the lines that only one of two texts has.
func difference(old, now string) string {
	var b strings.Builder
	a, c := strings.Split(old, "\n"), strings.Split(now, "\n")
	for _, line := range a {
		if !slices.Contains(c, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range c {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}

// TestRowsAreDistinct: a row is named once, an exception names a row, and none is
// without a reason.
func TestRowsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range rows() {
		if seen[w.id] || w.what == "" || (w.verb == "") == (w.try == nil) {
			t.Errorf("row %s is there twice, or says nothing, or does nothing", w.id)
		}
		seen[w.id] = true
	}
	for _, e := range slices.Concat(exceptions(), absent(), conceded()) {
		if !seen[e.row] || e.why == "" {
			t.Errorf("the exception for %s has no row or no reason", e.row)
		}
	}
}

package skill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func head(lines ...string) string {
	return "---\n" + strings.Join(lines, "\n") + "\n---\n\n# Body\n"
}

const all = `---
name: pdf
description: >
  Fill in PDF forms.
  Use when the user
  has a form.
license: Apache-2.0
compatibility: Requires python3
metadata:
  version: "1.10"
  author: example
allowed-tools: Bash(git:*) Read
tools: [fill_form, "flatten"]
user-invocable: false
effort: 3
ratio: 1.10
when: 2024-01-01
nested:
  list: [a, 1, null]
---
Body
`

func TestParseReadsEveryField(t *testing.T) {
	m, warnings, err := Parse([]byte(all), "pdf")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	want := Manifest{
		Name: "pdf", Declared: "pdf", Description: "Fill in PDF forms. Use when the user has a form.",
		License: "Apache-2.0", Compatibility: "Requires python3",
		Metadata:     map[string]string{"version": "1.10", "author": "example"},
		AllowedTools: []string{"Bash(git:*)", "Read"}, Tools: []string{"fill_form", "flatten"},
		Extra: map[string]any{
			"user-invocable": false, "effort": 3, "ratio": "1.10", "when": "2024-01-01",
			"nested": map[string]any{"list": []any{"a", 1, nil}},
		},
	}
	if diff := cmp.Diff(want, m, cmpopts.IgnoreFields(Manifest{}, "Fields")); diff != "" {
		t.Error(diff)
	}
}

func TestParseKeepsFieldsAsWritten(t *testing.T) {
	m, _, err := Parse([]byte(head("# first", "name: x", "z-last:   [1,  'a']   # why", "description: >", "  # no comment", "  b", "", "# about the next", "a-first:", "  k: { v: ~ }", "w: 1.10", "")), "x")
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{"name", "x", "name: x", 3, 1},
		{"z-last", []any{1, "a"}, "z-last:   [1,  'a']   # why", 4, 1},
		{"description", "# no comment b\n", "description: >\n  # no comment\n  b", 5, 1},
		{"a-first", map[string]any{"k": map[string]any{"v": nil}}, "a-first:\n  k: { v: ~ }", 10, 1},
		{"w", "1.10", "w: 1.10", 12, 1},
	}
	if diff := cmp.Diff(want, m.Fields); diff != "" {
		t.Error(diff)
	}
	m, _, err = Parse([]byte("---\n{name: x, description: d, z: 1}\n---"), "x")
	if err != nil || len(m.Fields) != 3 || m.Fields[2].Value != 1 || m.Fields[2].Raw != "" || m.Fields[2].Column != 27 {
		t.Errorf("in braces: %+v, %v", m.Fields, err)
	}
}

func TestParseDescriptions(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"folded", "description: >\n  one\n  two\n\n  three", "one two three"},
		{"literal", "description: |-\n  one\n   two", "one two"},
		{"quoted with colon", `description: "use: when"`, "use: when"},
		{"three dashes inside", "description: a --- b", "a --- b"},
		{"three dashes in a block", "description: |\n  a\n  ---\n  b", "a --- b"},
		{"number", "description: 42", "42"},
		{"alias", "x: &d hello\ndescription: *d", "hello"},
		{"characters that are not seen", `description: "a\u200b\u202eb\u2066c\ufeff \U000e0041d"`, "abc d"},
		{"control characters", `description: "a\x1bb\u2028c"`, "a b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _, err := Parse([]byte(head("name: x", tt.yaml)), "x")
			if err != nil || m.Description != tt.want {
				t.Errorf("got %q, %v; want %q", m.Description, err, tt.want)
			}
		})
	}
}

func TestParseNames(t *testing.T) {
	tests := []struct {
		name, dir, want string
		warnings        []string
	}{
		{"pdf", "pdf", "pdf", nil},
		{"pdf", "", "pdf", nil},
		{"a-1-b", "a-1-b", "a-1-b", nil},
		{"My PDF Tool", "my-pdf-tool", "my-pdf-tool", []string{WarnNameNormalised}},
		{"My PDF Tool", "", "my-pdf-tool", []string{WarnNameNormalised}},
		{"-pdf--x-", "pdf-x", "pdf-x", []string{WarnNameNormalised}},
		{"template-skill", "template", "template", []string{WarnNameDiffers}},
		{"pdf", "PDF_Tools", "pdf", []string{WarnNameDiffers}},
		{"PDF", "other", "other", []string{WarnNameNormalised, WarnNameDiffers}},
		{"", "pdf", "pdf", []string{WarnNameMissing}},
		{"!!!", "My Dir", "my-dir", []string{WarnNameMissing}},
		{"123", "123", "123", nil},
		{strings.Repeat("a", 64), "", strings.Repeat("a", 64), nil},
		{strings.Repeat("a", 65), "", strings.Repeat("a", 64), []string{WarnNameNormalised}},
		{strings.Repeat("a", 65), strings.Repeat("a", 64), strings.Repeat("a", 64), []string{WarnNameNormalised}},
		{strings.Repeat("a", 63) + "-b", "", strings.Repeat("a", 63), []string{WarnNameNormalised}},
		{"My_Tool.v2", "", "my-tool-v2", []string{WarnNameNormalised}},
		{"a---b", "", "a-b", []string{WarnNameNormalised}},
		{"Crème Brûlée", "", "cr-me-br-l-e", []string{WarnNameNormalised}},
		{"数据 pdf", "", "pdf", []string{WarnNameNormalised}},
		{"数据", "tables", "tables", []string{WarnNameMissing}},
		{"PDF", "PDF", "pdf", []string{WarnNameNormalised, WarnNameDiffers}},
		{"a/b", "", "a-b", []string{WarnNameNormalised}},
		{"../x", "", "x", []string{WarnNameNormalised}},
		{"true", "true", "true", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name+" in "+tt.dir, func(t *testing.T) {
			name := "name: " + tt.name
			if tt.name == "!!!" {
				name = `name: "!!!"`
			}
			m, warnings, err := Parse([]byte(head(name, "description: d")), tt.dir)
			if err != nil || m.Name != tt.want {
				t.Errorf("got %q, %v; want %q", m.Name, err, tt.want)
			}
			var codes []string
			for _, w := range warnings {
				codes = append(codes, w.Code)
			}
			if diff := cmp.Diff(tt.warnings, codes); diff != "" {
				t.Error(diff, warnings)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, dir, want string }{
		{"empty", "", "x", `line 1: there is no front matter: make "---" the first line`},
		{"no front matter", "# Title\n", "x", "line 1: there is no front matter"},
		{"not closed", "---\nname: x\n", "x", "line 1: the front matter is not closed"},
		{"closed by indented dashes only", "---\nname: x\n ---\n", "x", "is not closed"},
		{"nothing inside", "---\n---\n", "x", "the front matter is empty"},
		{"comment only", "---\n# x\n---\n", "x", "the front matter is empty"},
		{"list", head("- a"), "x", "line 2, column 1: the front matter is not a list of fields"},
		{"text", head("hello"), "x", "is not a list of fields"},
		{"null", head("null"), "x", "the description is missing"},
		{"colon with a comment", head("name: x", "description: Use: when # why"), "x", `line 3, column 17: the front matter is not valid YAML (mapping values are not allowed in this context): put the value of "description" in double quotes`},
		{"field indented wrongly", head("description: d", "  license: MIT"), "x", "line 3, column 10: the front matter is not valid YAML (mapping values are not allowed in this context): indent this line like the other fields"},
		{"NUL", head("name: x", "description: a\x00b"), "x", "line 3, column 15: the front matter holds the control character U+0000: take it out"},
		{"bell", head("name: \a", "description: d"), "x", "line 2, column 7: the front matter holds the control character U+0007"},
		{"tab before a name", head("\tname: x", "description: d"), "x", "line 2, column 1: the front matter is not valid YAML (found character that cannot start any token): indent with spaces, not with tabs"},
		{"quote left open", head("name: x", "description: 'Use when", "license: MIT"), "x", "line 3, column 14: the front matter is not valid YAML (found unexpected end of stream): close the quote (') that begins here"},
		{"starts with an at sign", head("name: x", "description: @file"), "x", `line 3, column 14: the front matter is not valid YAML (found character that cannot start any token): put the value of "description" in double quotes, because it starts with @`},
		{"starts with a star", head("name: x", "description: *very* good"), "x", `line 3, column 14: the front matter is not valid YAML (unknown anchor 'very*' referenced): put the value of "description" in double quotes, because it starts with *`},
		{"duplicate in a list", head("description: d", "a:", "  - b: 1", "    b: 2"), "x", `line 5, column 5: "b" stands twice, first on line 4`},
		{"duplicate in quotes", head("description: d", `"description": e`), "x", `"description" stands twice`},
		{"duplicate in braces", head("description: d", "a: {b: {c: 1, c: 2}}"), "x", `line 3, column 15: "c" stands twice`},
		{"CR only", "---\rname: x\rdescription: a\rname: y\r---\r", "x", `line 4, column 1: "name" stands twice, first on line 2`},
		{"tab", head("metadata:", "\tversion: 1"), "x", "line 3, column 1: the front matter is not valid YAML (found character that cannot start any token): indent with spaces"},
		{"duplicate", head("name: x", "description: a", "name: y"), "x", `line 4, column 1: "name" stands twice, first on line 2: keep one of them`},
		{"nested duplicate", head("description: a", "metadata:", "  a: b", "  a: c"), "x", `line 5, column 3: "a" stands twice`},
		{"duplicate of an unknown key", head("description: a", "z: 1", "z: 1"), "x", `"z" stands twice`},
		{"two documents", head("description: a", "...", "b: c"), "x", "more than one YAML document"},
		{"unknown alias", head("description: *a"), "x", "line 2, column 14"},
		{"key is a list", head("? [a]", ": b"), "x", "a field's name is not plain text"},
		{"not UTF-8", head("name: x", "description: ab\xff"), "x", "line 3, column 16: the front matter is not UTF-8"},
		{"no description", head("name: x"), "x", "line 1: the description is missing"},
		{"empty description", head("name: x", `description: " "`), "x", "line 3, column 14: the description is missing"},
		{"null description", head("description:"), "x", "line 2, column 13: the description is missing"},
		{"description is a map", head("description:", "  Use: when"), "x", "line 3, column 3: the description is not text"},
		{"description is a list", head("description: [a]"), "x", "line 2, column 14: the description is not text: put it in double quotes on the line of its name"},
		{"no name at all", head("description: d"), "", `line 1: the name "" cannot be used`},
		{"unusable name", head(`name: "!!!"`, "description: d"), "...", `line 2, column 7: the name "!!!" cannot be used`},
		{"bomb", head("a: &a [x,x,x,x,x,x,x,x,x]", "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]", "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]", "d: [*c,*c,*c,*c,*c,*c,*c,*c]", "description: d"), "x", "aliases unfold"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.text), tt.dir)
			if e, ok := errors.AsType[*ManifestError](err); !ok || e.File != ManifestFile {
				t.Fatalf("got %v, want a ManifestError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseWarns(t *testing.T) {
	long := strings.Repeat("é", 1025)
	tests := []struct{ name, yaml, code, want string }{
		{"description", "description: " + long, WarnDescriptionLong, "line 3, column 14: description has 1025 characters and may have 1024"},
		{"description after folding", "description: >\n  " + strings.Repeat("é ", 512) + "\n\n  é", WarnDescriptionLong, "description has 1025 characters"},
		{"compatibility", "description: d\ncompatibility: " + strings.Repeat("é", 501), WarnCompatibilityLong, "501 characters"},
		{"metadata is text", "description: d\nmetadata: x", WarnMetadata, "line 4, column 11: metadata must map"},
		{"metadata holds a number", "description: d\nmetadata:\n  version: 1.10\n  a: b", WarnMetadata, `line 5, column 12: metadata "version" is not text`},
		{"metadata holds a list", "description: d\nmetadata: {a: [x]}", WarnMetadata, `metadata "a"`},
		{"license is a list", "description: d\nlicense: [a]", WarnField, "license must be text"},
		{"tools is a map", "description: d\ntools: {a: b}", WarnField, "tools must be a list"},
		{"tools holds a list", "description: d\ntools: [[a], b]", WarnField, "an entry of tools"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, warnings, err := Parse([]byte(head("name: x", tt.yaml)), "x")
			if err != nil || len(warnings) != 1 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			if w := warnings[0]; w.Code != tt.code || !strings.Contains(w.String(), tt.want) {
				t.Errorf("got  %s %s\nwant %s %s", w.Code, w, tt.code, tt.want)
			}
			if tt.name == "description" && m.Description != long {
				t.Error("the long description was cut")
			}
		})
	}
}

// TestParseCountsCodePoints: the limits of texts are of code points, so that
// texts in every script may be equally long; combining marks count.
func TestParseCountsCodePoints(t *testing.T) {
	for _, r := range []string{"a", "é", "数", "😀", "\u0301"} {
		for _, over := range []int{0, 1} {
			m, w, err := Parse([]byte(head("name: x", `description: "`+strings.Repeat(r, 1024+over)+`"`, `compatibility: "`+strings.Repeat(r, 500+over)+`"`)), "x")
			if err != nil || len(w) != 2*over || len(m.Description) != len(r)*(1024+over) || len(m.Compatibility) != len(r)*(500+over) {
				t.Errorf("%q, %d over: %v, %v", r, over, w, err)
			}
		}
	}
}

func TestParseLists(t *testing.T) {
	tests := []struct {
		yaml string
		want []string
	}{
		{"Bash(git:*) Read", []string{"Bash(git:*)", "Read"}},
		{`"Bash(git add:*), Bash(git status:*)"`, []string{"Bash(git add:*)", "Bash(git status:*)"}},
		{"[Read, 'Bash(git add:*)']", []string{"Read", "Bash(git add:*)"}},
		{"\n  - Read\n  - Write", []string{"Read", "Write"}},
		{"a) b", []string{"a)", "b"}},
		{"", nil},
		{"[]", nil},
	}
	for _, tt := range tests {
		for _, key := range []string{"allowed-tools", "tools"} {
			m, warnings, err := Parse([]byte(head("name: x", "description: d", key+": "+tt.yaml)), "x")
			got := m.AllowedTools
			if key == "tools" {
				got = m.Tools
			}
			if diff := cmp.Diff(tt.want, got); err != nil || len(warnings) > 0 || diff != "" {
				t.Errorf("%s: %s: %v, %v, %s", key, tt.yaml, err, warnings, diff)
			}
		}
	}
}

func TestParseLineEndingsAndBOM(t *testing.T) {
	want, _, err := Parse([]byte(all), "pdf")
	if err != nil {
		t.Fatal(err)
	}
	raw := cmp.Transformer("raw", func(f Field) [2]any {
		return [2]any{f.Key, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(f.Raw)}
	})
	for name, text := range map[string]string{
		"BOM":             "\ufeff" + all,
		"CRLF":            strings.ReplaceAll(all, "\n", "\r\n"),
		"BOM and CRLF":    "\ufeff" + strings.ReplaceAll(all, "\n", "\r\n"),
		"CR":              strings.ReplaceAll(all, "\n", "\r"),
		"no last newline": strings.TrimSuffix(all, "\nBody\n"),
		"trailing spaces": strings.ReplaceAll(all, "---\n", "--- \t\n"),
	} {
		got, _, err := Parse([]byte(text), "pdf")
		if diff := cmp.Diff(want, got, raw); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestParseEndsWithDeepNesting(t *testing.T) {
	for _, deep := range []string{strings.Repeat("[", 200_000), strings.Repeat("- ", 100_000), strings.Repeat("{a: ", 100_000)} {
		if _, _, err := Parse([]byte(head("description: d", "a: "+deep)), "x"); err == nil {
			t.Errorf("%.10s...: no error", deep)
		}
	}
}

// readAsText says whether the field at or above a line has a text, or is
// metadata.
func readAsText(m Manifest, line int) bool {
	for _, f := range slices.Backward(m.Fields) {
		if f.Line <= line {
			_, text := f.Value.(string)
			return text || f.Key == "metadata"
		}
	}
	return false
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(all), "pdf")
	f.Add([]byte("\ufeff---\r\nname: My Tool\r\ndescription: |\r\n  a\r\n---\r\nx"), "")
	f.Add([]byte(head("a: &a [1]", "b: *a", "description: *a")), "x")
	f.Add([]byte(head("metadata: {a: 1}", "<<: {b: c}", "description: !!binary aGk=")), "x y")
	f.Add([]byte("---\rname: a: b\rdescription: 'x\r---"), "")
	f.Add([]byte(head("description: it's: so", "  and: more", "metadata:", "  k: v: w")), "x")
	f.Add([]byte(head("x: {", "description: a: b", "}", "metadata:", "- k: a: b")), "x")
	f.Add([]byte(head("x: &a", "  k: a: b", "metadata:", "    k: a: b", "  l: c: d", "? z", ": y: w")), "x")
	f.Add([]byte(head("- description: a: b", "description: !!str a: b", "a:", "- description: c: d", "  e: f: g")), "x")
	f.Fuzz(func(t *testing.T, data []byte, dir string) {
		m, warnings, err := Parse(data, dir)
		if err != nil {
			e, ok := errors.AsType[*ManifestError](err)
			if !ok || e.Problem == "" || e.Fix == "" || e.Line < 1 {
				t.Fatalf("error without a place or a fix: %#v", err)
			}
			return
		}
		if normalise(m.Name) != m.Name || m.Name == "" || len(m.Name) > maxName {
			t.Errorf("name %q is not legal", m.Name)
		}
		if m.Description == "" || oneLine(m.Description) != m.Description || !utf8.ValidString(m.Description) {
			t.Errorf("description %q is not one line of text", m.Description)
		}
		for _, w := range warnings {
			if w.Code == "" || w.Message == "" || w.File != ManifestFile {
				t.Errorf("empty warning %#v", w)
			}
			if w.Code == WarnColon && !readAsText(m, w.Line) {
				t.Errorf("%v: the value is not the text of a field or of an entry of metadata: %+v", w, m.Fields)
			}
		}
		again, _, err := Parse(data, dir)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(m) {
			t.Errorf("a second reading differs: %v", err)
		}
	})
}

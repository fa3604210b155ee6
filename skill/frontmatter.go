package skill

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// section is where front matter and body lie in a SKILL.md.
type section struct {
	head []byte
	// line is the number of head's first line, from 1.
	line int
	// body is the offset of the first byte after the closing line.
	body int
}

// split finds the front matter between the first line, which must be "---", and
// the next line that is. A "---" inside a line or indented does not count.
func split(data []byte) (section, error) {
	start := 0
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		start = len("\ufeff")
	}
	line, first := lineAt(data, start)
	if !fence(line) {
		return section{}, &ManifestError{
			Line: 1, Problem: "there is no front matter",
			Fix: `make "---" the first line, then "name: ..." and "description: ...", then another "---"`,
		}
	}
	for at := first; at < len(data); {
		line, next := lineAt(data, at)
		if fence(line) {
			return section{head: data[first:at], line: 2, body: next}, nil
		}
		at = next
	}
	return section{}, &ManifestError{
		Line: 1, Problem: "the front matter is not closed",
		Fix: `write "---" on a line of its own after the last field`,
	}
}

func lineAt(data []byte, start int) (line []byte, next int) {
	rest := data[start:]
	i := bytes.IndexByte(rest, '\n')
	if i < 0 {
		return rest, len(data)
	}
	return rest[:i], start + i + 1
}

func fence(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// field is one key of a mapping and its value.
type field struct {
	key   string
	value *yaml.Node
}

func (f field) line() int {
	if f.value == nil {
		return 0
	}
	return f.value.Line
}

// parseHead reads the front matter into the fields of its mapping.
func parseHead(s section) ([]field, error) {
	if i := invalid(s.head); i >= 0 {
		line, column := place(s.head, i)
		return nil, &ManifestError{
			Line: line + s.line - 1, Column: column, Problem: "the front matter is not UTF-8",
			Fix: "save the file as UTF-8",
		}
	}
	var doc yaml.Node
	if err := yaml.Load(s.head, &doc); err != nil {
		return nil, yamlError(s, err)
	}
	c := checker{section: s, left: 2*len(s.head) + 2}
	if err := c.check(&doc); err != nil {
		return nil, err
	}
	top := &doc
	if doc.Kind == yaml.DocumentNode {
		top = doc.Content[0]
	}
	switch {
	case top.Kind == yaml.ScalarNode && top.Tag == "!!null":
		return nil, nil
	case top.Kind != yaml.MappingNode:
		return nil, &ManifestError{
			Line: top.Line + s.line - 1, Column: top.Column, Problem: "the front matter is not a list of fields",
			Fix: `write lines of the form "name: value"`,
		}
	}
	return pairs(top), nil
}

// checker refuses keys that stand twice, keys that are not text, and aliases
// that unfold into more values than the front matter could write out itself.
type checker struct {
	section section
	left    int
}

func (c *checker) check(n *yaml.Node) error {
	if c.left--; c.left < 0 {
		return c.fail(n, "the aliases unfold into too much", "write the values out instead of using * and &")
	}
	n = follow(n)
	if n.Kind == yaml.MappingNode {
		if err := c.keys(n); err != nil {
			return err
		}
	}
	for _, child := range n.Content {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) keys(n *yaml.Node) error {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		key := follow(k)
		if key.Kind != yaml.ScalarNode {
			return c.fail(k, "a field's name is not plain text", `write fields as "name: value"`)
		}
		if line, twice := seen[key.Value]; twice {
			return c.fail(k, fmt.Sprintf("%q stands twice, first on line %d", key.Value, line+c.section.line-1), "keep one of them")
		}
		seen[key.Value] = k.Line
	}
	return nil
}

func (c *checker) fail(n *yaml.Node, problem, fix string) error {
	return &ManifestError{Line: n.Line + c.section.line - 1, Column: n.Column, Problem: problem, Fix: fix}
}

func pairs(n *yaml.Node) []field {
	fields := make([]field, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		fields = append(fields, field{key: follow(n.Content[i]).Value, value: n.Content[i+1]})
	}
	return fields
}

func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// plain is a value in Go's own types (see [Manifest.Extra]).
func plain(n *yaml.Node) any {
	n = follow(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for _, f := range pairs(n) {
			m[f.key] = plain(f.value)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, plain(item))
		}
		return list
	}
	return scalar(n)
}

func scalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v
		}
	case "!!int":
		var v int
		if n.Decode(&v) == nil {
			return v
		}
	}
	return n.Value
}

// yamlError gives a YAML library's failure its place in SKILL.md and says what
// to write.
func yamlError(s section, err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok || e.Mark.Line == 0 {
		return &ManifestError{Line: s.line, Problem: yamlProblem(s, err), Fix: `write lines of the form "name: value" between the two "---"`}
	}
	out := &ManifestError{
		Line: e.Mark.Line + s.line - 1, Column: e.Mark.Column,
		Problem: "the front matter is not valid YAML (" + e.Message + ")",
		Fix:     "correct this line, or put its value in double quotes",
	}
	line := lineNumber(s.head, e.Mark.Line)
	key, _, _ := strings.Cut(string(line), ":")
	switch {
	case strings.Contains(e.Message, "mapping values are not allowed"):
		out.Fix = fmt.Sprintf(`put the value of %q in double quotes, because it holds ": "`, strings.TrimSpace(key))
	case bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")):
		out.Fix = "indent with spaces, not with tabs"
	}
	return out
}

func yamlProblem(s section, err error) string {
	switch {
	case len(bytes.TrimSpace(s.head)) == 0 || strings.Contains(err.Error(), "no documents"):
		return "the front matter is empty"
	case strings.Contains(err.Error(), "multiple"):
		return "the front matter holds more than one YAML document"
	}
	return "the front matter is not valid YAML (" + err.Error() + ")"
}

// lineNumber is line n of b, from 1.
func lineNumber(b []byte, n int) []byte {
	var line []byte
	for at := 0; n > 0 && at < len(b); n-- {
		line, at = lineAt(b, at)
	}
	return line
}

// invalid is the offset of the first byte that is not UTF-8, or -1.
func invalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// place is the line and the column of an offset, both from 1, columns in code
// points.
func place(b []byte, offset int) (line, column int) {
	start := bytes.LastIndexByte(b[:offset], '\n') + 1
	return bytes.Count(b[:offset], []byte("\n")) + 1, utf8.RuneCount(b[start:offset]) + 1
}

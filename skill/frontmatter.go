package skill

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
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
			File: ManifestFile, Line: 1, Problem: "there is no front matter",
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
		File: ManifestFile, Line: 1, Problem: "the front matter is not closed",
		Fix: `write "---" on a line of its own after the last field`,
	}
}

// lineAt is the line that starts at an offset, without its ending (LF, CR LF or
// CR, as YAML has it), and the offset of the next one.
func lineAt(data []byte, start int) (line []byte, next int) {
	rest := data[start:]
	i := bytes.IndexAny(rest, "\r\n")
	switch {
	case i < 0:
		return rest, len(data)
	case rest[i] == '\r' && i+1 < len(rest) && rest[i+1] == '\n':
		return rest[:i], start + i + 2
	}
	return rest[:i], start + i + 1
}

func fence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == "---" }

// field is one key of a mapping and its value.
type field struct {
	key   string
	name  *yaml.Node
	value *yaml.Node
	raw   string
}

// parseHead reads the front matter into the fields of its mapping.
func parseHead(s section) ([]field, []Warning, error) {
	if err := judgeText(s); err != nil {
		return nil, nil, err
	}
	doc, warnings, err := readYAML(s)
	if err != nil {
		return nil, nil, err
	}
	c := checker{section: s, left: 2*len(s.head) + 2}
	if err := c.check(doc); err != nil {
		return nil, nil, err
	}
	top := doc
	if doc.Kind == yaml.DocumentNode {
		top = doc.Content[0]
	}
	switch {
	case top.Kind == yaml.ScalarNode && top.Tag == "!!null":
		return nil, nil, nil
	case top.Kind != yaml.MappingNode:
		return nil, nil, s.refuse(top.Line, top.Column, "the front matter is not a list of fields", `write lines of the form "name: value"`)
	}
	fields := pairs(top)
	for i, raw := range written(s, top) {
		fields[i].raw = raw
	}
	return fields, warnings, nil
}

// judgeText refuses bytes that no YAML reader takes, with their place.
func judgeText(s section) error {
	for i := 0; i < len(s.head); {
		r, n := utf8.DecodeRune(s.head[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			line, column := place(s.head, i)
			return s.refuse(line, column, "the front matter is not UTF-8", "save the file as UTF-8")
		case unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\u0085':
			line, column := place(s.head, i)
			return s.refuse(line, column, fmt.Sprintf("the front matter holds the control character %U", r), "take it out")
		}
		i += n
	}
	return nil
}

// refuse is an error at a line and column of the front matter.
func (s section) refuse(line, column int, problem, fix string) *ManifestError {
	if line > 0 {
		line += s.line - 1
	} else {
		line = 1 // the block that holds the problem starts here
	}
	return &ManifestError{File: ManifestFile, Line: line, Column: column, Problem: problem, Fix: fix}
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
	return c.section.refuse(n.Line, n.Column, problem, fix)
}

func pairs(n *yaml.Node) []field {
	fields := make([]field, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		fields = append(fields, field{key: follow(n.Content[i]).Value, name: n.Content[i], value: n.Content[i+1]})
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
		return s.refuse(1, 0, yamlProblem(s, err), `write lines of the form "name: value" between the two "---"`)
	}
	at := e.Mark
	if strings.Contains(e.ContextMsg, "quoted scalar") { // where it begins, not where it was missed
		at = e.ContextMark
	}
	return s.refuse(at.Line, at.Column, "the front matter is not valid YAML ("+e.Message+")", yamlFix(lineNumber(s.head, at.Line), at.Column, e))
}

func yamlFix(line []byte, column int, e *yaml.LoadError) string {
	before, _, _ := strings.Cut(string(line), ":")
	key := strings.TrimSpace(before)
	start := ""
	if runes := []rune(string(line)); column >= 1 && column <= len(runes) {
		start = string(runes[column-1])
	}
	switch {
	case strings.Contains(e.ContextMsg, "quoted scalar"):
		return fmt.Sprintf("close the quote (%s) that begins here", start)
	case strings.Contains(e.Message, "mapping values are not allowed") && utf8.RuneCountInString(before)+1 == column:
		return "indent this line like the other fields; if it goes on with the value above, put that value in double quotes"
	case strings.Contains(e.Message, "mapping values are not allowed"):
		return fmt.Sprintf(`put the value of %q in double quotes, because it holds ": "`, key)
	case bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")):
		return "indent with spaces, not with tabs"
	case strings.Contains(e.Message, "unknown anchor"), strings.Contains(e.Message, "cannot start any token"):
		return fmt.Sprintf("put the value of %q in double quotes, because it starts with %s", key, start)
	}
	return "correct this line, or put its value in double quotes"
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

// place is the line and the column of an offset, both from 1, columns in code
// points.
func place(b []byte, offset int) (line, column int) {
	for at := 0; ; line++ {
		_, next := lineAt(b, at)
		if next > offset || next >= len(b) {
			return line + 1, utf8.RuneCount(b[at:offset]) + 1
		}
		at = next
	}
}

package skill

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// repairWork bounds, in bytes of front matter that is read again, how much
// repairing costs: each colon is one more reading, and a hostile manifest can be
// all colons. An author's has a handful, in a few hundred bytes.
const repairWork = 1 << 20

// readYAML reads front matter. A value that YAML refuses only because a plain
// text holds ": " is read as that text, with a warning, where this is the only
// way to read it (see [quote]).
func readYAML(s section) (*yaml.Node, []Warning, error) {
	first := new(yaml.Node)
	err := yaml.Load(s.head, first)
	if err == nil {
		return first, nil, nil
	}
	refused := yamlError(s, err)
	head := s.head
	var repairs []repair
	for work := 0; work <= repairWork; work += len(head) {
		e, ok := errors.AsType[*yaml.LoadError](err)
		if !ok || !strings.Contains(e.Message, "mapping values are not allowed") {
			break
		}
		r, ok := quote(head, e.Mark.Line, e.Mark.Column)
		if !ok {
			break
		}
		head = r.head
		repairs = append(repairs, r)
		doc := new(yaml.Node)
		if err = yaml.Load(head, doc); err == nil {
			return doc, warnings(s, repairs), nil
		}
	}
	return nil, nil, refused
}

// repair is a value that was put in quotes.
type repair struct {
	head []byte // front matter with the quotes
	key  string
	text string // the value with its quotes
	// line and column are the colon's, from 1.
	line, column int
}

// quote puts the plain text that holds the colon at line and column in quotes.
// It gives up where more than one reading is left: the text is not the value of
// a field or of an entry of metadata, a comment may be part of it, it ends in a
// colon with lines below, or one of its lines is a field that may only be
// indented wrongly.
func quote(head []byte, line, column int) (repair, bool) {
	lines := linesOf(head)
	if line < 1 || line > len(lines) || !colonAt(lines[line-1].text, column) {
		return repair{}, false
	}
	key := fieldOf(lines, line-1, column)
	if key < 0 || !repairable(lines, key) {
		return repair{}, false
	}
	indent, name, value, _ := cutField(lines[key].text)
	last := key
	for i := key + 1; i < len(lines) && (blank(lines[i].text) || indentOf(lines[i].text) > indent); i++ {
		if !blank(lines[i].text) {
			last = i
		}
	}
	if last > key && (strings.HasSuffix(strings.TrimRight(lines[key].text, " \t"), ":") || slices.ContainsFunc(lines[key+1:last+1], known)) {
		return repair{}, false
	}
	start := lines[key].start + value
	end := lines[last].start + len(strings.TrimRight(lines[last].text, " \t"))
	text := string(head[start:end])
	if strings.Contains(text, " #") || strings.Contains(text, "\t#") || strings.Contains(text, "\n#") {
		return repair{}, false
	}
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	return repair{head: slices.Concat(head[:start], []byte(text), head[end:]), key: name, text: text, line: line, column: column}, true
}

// textLine is a line of front matter and where it starts.
type textLine struct {
	text  string
	start int
}

func linesOf(head []byte) []textLine {
	var lines []textLine
	for at := 0; at < len(head); {
		line, next := lineAt(head, at)
		lines = append(lines, textLine{text: string(line), start: at})
		at = next
	}
	return lines
}

func colonAt(line string, column int) bool {
	n := 0
	for _, r := range line {
		if n++; n == column {
			return r == ':'
		}
	}
	return false
}

// fieldOf is the index of the line with the field whose value holds the colon at
// a column of a line: that line itself, or the one above whose text it goes on
// with. It is -1 if there is none.
func fieldOf(lines []textLine, at, column int) int {
	if _, _, value, ok := cutField(lines[at].text); ok && utf8.RuneCountInString(lines[at].text[:value]) < column {
		return at
	}
	bound := indentOf(lines[at].text)
	for i := at - 1; i >= 0; i-- {
		if indent, _, _, ok := cutField(lines[i].text); !blank(lines[i].text) && indent < bound {
			if ok {
				return i
			}
			bound = indent
		}
	}
	return -1
}

// repairable says whether a line is a field with a plain text as its value, at
// the top or directly in metadata.
func repairable(lines []textLine, at int) bool {
	indent, name, value, ok := cutField(lines[at].text)
	if !ok || !plainStart(lines[at].text[value:]) {
		return false
	}
	if indent == 0 {
		return name != "metadata"
	}
	above := at - 1
	for above >= 0 && (blank(lines[above].text) || indentOf(lines[above].text) >= indent) {
		above--
	}
	return above >= 0 && strings.TrimRight(lines[above].text, " \t") == "metadata:"
}

// cutField cuts a line of the form "name: value". value is the byte at which the
// value starts.
func cutField(line string) (indent int, name string, value int, ok bool) {
	indent = indentOf(line)
	name, rest, ok := strings.Cut(line[indent:], ":")
	value = len(line) - len(strings.TrimLeft(rest, " \t"))
	ok = ok && plainStart(name) && value > indent+len(name)+1 && value < len(line)
	return indent, strings.TrimRight(name, " \t"), value, ok
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// plainStart says whether a text may start without quotes.
func plainStart(s string) bool {
	if s == "" || strings.ContainsRune(" \t[]{},&*!|>'\"%@`#", rune(s[0])) {
		return false
	}
	return !strings.ContainsRune("-?:", rune(s[0])) || len(s) > 1 && s[1] != ' ' && s[1] != '\t'
}

// known says whether a line could be a field of its own.
func known(l textLine) bool {
	_, name, _, ok := cutField(l.text)
	if !ok {
		name, ok = strings.CutSuffix(strings.TrimSpace(l.text), ":")
	}
	switch name {
	case "name", "description", "license", "compatibility", "metadata", "allowed-tools", "tools":
		return ok
	}
	return false
}

// shownText is how much of a value a warning repeats, in code points.
const shownText = 60

func warnings(s section, repairs []repair) []Warning {
	var all []Warning
	for _, r := range repairs {
		all = append(all, Warning{
			Code: WarnColon, File: ManifestFile, Line: r.line + s.line - 1, Column: r.column,
			Message: fmt.Sprintf("%s holds a colon that YAML takes for the start of a value, and is read as text: write it in quotes, as in %s: %s", r.key, r.key, shorten(oneLine(r.text))),
		})
	}
	return all
}

func shorten(quoted string) string {
	if utf8.RuneCountInString(quoted) <= shownText {
		return quoted
	}
	return string([]rune(quoted)[:shownText-2]) + "…'"
}

// written is the text of each field of a block of front matter as it was
// written: its lines up to the next field, without blank lines and comments
// after it. Front matter in braces gives no lines.
func written(s section, top *yaml.Node) []string {
	texts := make([]string, len(top.Content)/2)
	if top.Style&yaml.FlowStyle != 0 {
		return texts
	}
	lines := linesOf(s.head)
	for i := range texts {
		start, end := top.Content[2*i].Line-1, len(lines)
		if 2*i+2 < len(top.Content) {
			end = top.Content[2*i+2].Line - 1
		}
		start, end = min(start, len(lines)), min(end, len(lines))
		for end > start+1 && (blank(lines[end-1].text) || strings.HasPrefix(lines[end-1].text, "#")) {
			end--
		}
		if start >= end {
			continue
		}
		last := lines[end-1]
		texts[i] = string(bytes.Clone(s.head[lines[start].start : last.start+len(last.text)]))
	}
	return texts
}

package config

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// node is a value of a file and where it stands.
type node struct {
	at    Position
	value any              // a scalar, as the TOML library gives it
	table map[string]*node // not nil for a table
	list  []*node          // for an array
	kind  kind
}

// kind is what a person calls a value.
type kind string

const (
	isTable  kind = "a section"
	isList   kind = "a list"
	isText   kind = "a text"
	isWhole  kind = "a whole number"
	isNumber kind = "a number"
	isSwitch kind = "true or false"
	isDate   kind = "a date or a time"
)

// parseFile makes a tree of a file's values. The library decodes the values; a
// second walk over its syntax tree finds where each stands.
func parseFile(s Source, order int) (*node, *Problem) {
	text := bytes.TrimPrefix(s.Text, []byte("\xef\xbb\xbf"))
	start := Position{File: s.Name, Line: 1, Column: 1, order: order}
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		return nil, syntaxProblem(start, err)
	}
	m := marks{at: map[string]Position{}, start: start}
	m.walk(text)
	return m.build(values, "", start), nil
}

// syntaxProblem says what is no TOML. The library's drawing of the line is left
// out: a secret may stand there.
func syntaxProblem(start Position, err error) *Problem {
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		start.Line, start.Column = e.Position()
		return &Problem{At: start, Text: "this is not TOML: " + trimLibrary(e.Error())}
	}
	return &Problem{At: start, Text: "this is not TOML: " + trimLibrary(err.Error())}
}

func trimLibrary(text string) string {
	after, _ := bytes.CutPrefix([]byte(text), []byte("toml: "))
	return string(after)
}

// marks finds the place of each key and each element.
type marks struct {
	parser unstable.Parser
	start  Position
	at     map[string]Position // by path
	prefix string              // the section that the walk is in
}

// below is the path of a key or an index. A NUL cannot stand in a TOML key
// unescaped, and an escaped one can at worst mark a wrong line in an error.
func below(path, key string) string { return path + "\x00" + key }

func (m *marks) walk(text []byte) {
	m.parser.Reset(text)
	for m.parser.NextExpression() {
		e := m.parser.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			m.prefix = m.descend("", e.Key())
		case unstable.KeyValue:
			m.pair(m.prefix, e)
		}
	}
}

// descend marks each part of a dotted key that was not seen before.
func (m *marks) descend(path string, keys unstable.Iterator) string {
	for keys.Next() {
		n := keys.Node()
		path = below(path, string(n.Data))
		m.mark(path, n)
	}
	return path
}

func (m *marks) pair(prefix string, n *unstable.Node) {
	path := m.descend(prefix, n.Key())
	m.value(path, n.Value())
}

func (m *marks) value(path string, n *unstable.Node) {
	switch n.Kind {
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			m.pair(path, it.Node())
		}
	case unstable.Array:
		i := 0
		for it := n.Children(); it.Next(); i++ {
			element := below(path, strconv.Itoa(i))
			m.mark(element, it.Node())
			m.value(element, it.Node())
		}
	}
}

func (m *marks) mark(path string, n *unstable.Node) {
	if _, seen := m.at[path]; seen || n.Raw.Length == 0 {
		return // an array inside of an array has no place of its own, nor has [[a]]
	}
	p := m.start
	shape := m.parser.Shape(n.Raw)
	p.Line, p.Column = shape.Start.Line, shape.Start.Column
	m.at[path] = p
}

// build joins values and places.
func (m *marks) build(v any, path string, parent Position) *node {
	n := &node{at: parent}
	if p, ok := m.at[path]; ok {
		n.at = p
	}
	switch v := v.(type) {
	case map[string]any:
		n.kind, n.table = isTable, map[string]*node{}
		for key, child := range v {
			n.table[key] = m.build(child, below(path, key), n.at)
		}
	case []any:
		n.kind = isList
		for i, child := range v {
			n.list = append(n.list, m.build(child, below(path, strconv.Itoa(i)), n.at))
		}
	default:
		n.kind, n.value = kindOf(v), v
	}
	return n
}

func kindOf(v any) kind {
	switch v.(type) {
	case string:
		return isText
	case int64:
		return isWhole
	case float64:
		return isNumber
	case bool:
		return isSwitch
	}
	return isDate
}

// names are a table's keys in order.
func (n *node) names() []string {
	var names []string
	for name := range n.table {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

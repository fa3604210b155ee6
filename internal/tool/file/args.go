package file

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/tool"
)

// call is what a model wrote for the arguments of a tool, taken apart.
type call struct{ tool.Arguments }

// argumentError is an argument that cannot be taken as it is. Its text is a sentence
// for the model.
type argumentError struct{ text string }

func (e *argumentError) Error() string { return e.text }

func badArgument(format string, args ...any) error {
	return &argumentError{text: fmt.Sprintf(format, args...)}
}

func parse(text string) (call, error) {
	a, err := tool.ParseArguments(text)
	return call{a}, err
}

// pick is [tool.Arguments.Pick] with a sentence for a name that stands twice.
func (c call) pick(place int, keys []string) (jsontext.Value, error) {
	v, err := c.Pick(place, keys)
	if twice, ok := errors.AsType[*tool.TwiceError](err); ok {
		return nil, badArgument(argumentTwice, twice.Name)
	}
	return v, err
}

// path is the path that a call names, and how many more it names.
func (c call) path() (name string, others int, err error) {
	v, err := c.pick(0, pathKeys())
	if err != nil {
		return "", 0, err
	}
	if inner, ok := tool.Structure(v); ok && inner.Kind() == '[' {
		v = inner
	}
	if v.Kind() == '[' {
		elements := tool.Elements(v)
		if len(elements) == 0 {
			return "", 0, nil
		}
		return unquoted(tool.Exact(elements[0])), len(elements) - 1, nil
	}
	return unquoted(tool.Exact(v)), 0, nil
}

// unquoted is a path without white space and quotes around it (B1 4.5).
func unquoted(name string) string {
	name = strings.TrimSpace(name)
	for _, q := range []string{`"`, "'", "`"} {
		if inner, ok := strings.CutPrefix(name, q); ok && len(inner) > 1 && strings.HasSuffix(inner, q) {
			return strings.TrimSpace(strings.TrimSuffix(inner, q))
		}
	}
	return name
}

// whole is [tool.Exact], for what goes into a file. It fails on half a character, which a
// file cannot hold.
func whole(v jsontext.Value, name string) (string, error) {
	if !v.IsValid(jsontext.AllowDuplicateNames(true)) {
		return "", badArgument(argumentHalf, name)
	}
	return tool.Exact(v), nil
}

// lines is a part of a file: from first, n lines of it; 0 for what is not said.
type lines struct{ first, n int64 }

// lines reads which lines a call asks for, and whether it says so at all.
func (c call) lines() (l lines, said bool, err error) {
	values := map[string]jsontext.Value{}
	for i, keys := range [][]string{offsetKeys(), limitKeys(), rangeKeys(), lastKeys()} {
		place := i + 1
		if i > 1 {
			place = -1
		}
		v, err := c.pick(place, keys)
		if err != nil {
			return lines{}, false, err
		}
		if text := strings.TrimSpace(tool.Exact(v)); v != nil && !slices.Contains([]string{"", "null", "None", "undefined", "false", "[]"}, text) {
			values[keys[0]] = v
		}
	}
	if len(values) == 0 {
		return lines{}, false, nil
	}
	l, err = linesOf(values)
	return l, true, err
}

func linesOf(values map[string]jsontext.Value) (lines, error) {
	for _, key := range []string{"viewrange", "offset", "limit"} {
		if first, last, ok := pair(values[key]); ok {
			return between(first, last)
		}
	}
	if v := values["viewrange"]; v != nil {
		return lines{}, badArgument(badRange, tool.Clip(strings.TrimSpace(tool.Exact(v))))
	}
	first, err := integer("offset", values["offset"])
	if err != nil {
		return lines{}, err
	}
	if values["endline"] != nil {
		last, err := integer("end_line", values["endline"])
		if err != nil {
			return lines{}, err
		}
		return between(max(first, 1), last)
	}
	n, err := integer("limit", values["limit"])
	return lines{first: max(first, 0), n: max(n, 0)}, err
}

// between are the lines from first to last. A last one that is not above zero is the
// file's own.
func between(first, last int64) (lines, error) {
	first = max(first, 1)
	switch {
	case last <= 0:
		return lines{first: first, n: math.MaxInt64}, nil
	case last < first:
		return lines{}, badArgument(badRange, fmt.Sprintf("%d-%d", first, last))
	}
	return lines{first: first, n: last - first + 1}, nil
}

// pairText is two numbers as models write a range of lines.
var pairText = regexp.MustCompile(`^[\[(]?\s*L?(\d+)\s*(?:,|:|-|–|\.\.|\bto\b)\s*L?(-?\d+)\s*[\])]?$`)

// pair reads two numbers in a list, or in a text with something between them.
func pair(v jsontext.Value) (first, last int64, ok bool) {
	text := strings.TrimSpace(tool.Exact(v))
	if v.Kind() == '[' {
		elements := tool.Elements(v)
		if len(elements) != 2 {
			return 0, 0, false
		}
		first, err := integer("", elements[0])
		last, err2 := integer("", elements[1])
		return first, last, err == nil && err2 == nil
	}
	m := pairText.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	first, _ = tool.Whole(m[1])
	last, _ = tool.Whole(m[2])
	return first, last, true
}

// integer is a value as a number of lines: a number, also with a fraction, or one in a
// string. Numbers that are too large are the largest there is (B1 4.4).
func integer(name string, v jsontext.Value) (int64, error) {
	text := strings.TrimSpace(tool.Exact(v))
	if text == "" {
		return 0, nil
	}
	if n, ok := tool.Whole(text); ok {
		return n, nil
	}
	return 0, badArgument(badNumber, name, tool.Clip(text))
}

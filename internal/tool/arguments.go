package tool

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Arguments are what a model wrote for the arguments of a tool, taken apart.
type Arguments struct {
	// Members are those of the object that holds the arguments, and after them those
	// of the objects around it.
	Members []Member
	// Loose are values without a name, which mean something by their place.
	Loose []jsontext.Value
	// Others counts further calls in the same list.
	Others int
}

// ErrNoArguments says that nothing can be made of a text.
var ErrNoArguments = errors.New("the arguments are no JSON object")

// TwiceError says that an argument stands twice with different values: either may be
// meant.
type TwiceError struct{ Name string }

// Error names it.
func (e *TwiceError) Error() string {
	return "the argument " + strconv.Quote(e.Name) + " stands there twice with different values"
}

// deepest is how far values are looked for in values: more than any model nests
// them by mistake.
const deepest = 6

// ParseArguments reads whatever stands for arguments: an object, also in a string, in
// a list or under another name; a list of values; or a bare word.
func ParseArguments(text string) (Arguments, error) {
	text = Unfenced(text)
	v, ok := ReadJSON(text)
	switch {
	case ok:
		return argumentsOf(v, deepest)
	case text == "":
		return Arguments{}, nil
	case strings.ContainsAny(text, "{}[]<>\"'=,\n\t "):
		return Arguments{}, ErrNoArguments
	}
	return Arguments{Loose: []jsontext.Value{Quote(text)}}, nil
}

// Quote is a text as a JSON string.
func Quote(text string) jsontext.Value {
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil { // not UTF-8
		v, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd"))
	}
	return v
}

func argumentsOf(v jsontext.Value, depth int) (Arguments, error) {
	switch {
	case depth == 0 || v.Kind() == 'n':
		return Arguments{}, nil
	case v.Kind() == '"':
		if inner, ok := Structure(v); ok {
			return argumentsOf(inner, depth-1)
		}
		return Arguments{Loose: []jsontext.Value{v}}, nil
	case v.Kind() == '{':
		return argumentsOfObject(Members(v), depth)
	case v.Kind() == '[':
		return argumentsOfArray(Elements(v), depth)
	}
	return Arguments{}, ErrNoArguments
}

// Structure is the object, or in a string also the list, that a value is.
func Structure(v jsontext.Value) (jsontext.Value, bool) {
	if v.Kind() != '"' {
		return v, v.Kind() == '{'
	}
	text := Unfenced(Text(v))
	if text == "" || !strings.ContainsAny(text[:1], `{["`) {
		return nil, false
	}
	inner, ok := ReadJSON(text)
	return inner, ok && (inner.Kind() == '{' || inner.Kind() == '[' || inner.Kind() == '"')
}

// argumentsOfObject takes the arguments out of a member that holds them as a whole.
// What stands beside it counts too, less.
func argumentsOfObject(members []Member, depth int) (Arguments, error) {
	var inner Arguments
	var around []Member
	for _, m := range members {
		held, isObject := Structure(m.Value)
		if m.Value.Kind() == '[' {
			held, isObject = m.Value, true
		}
		if !wrapper(m.Key) || !isObject {
			around = append(around, m)
			continue
		}
		a, err := argumentsOf(held, depth-1)
		if err != nil {
			return Arguments{}, err
		}
		inner.Members = append(inner.Members, a.Members...)
		inner.Loose = append(inner.Loose, a.Loose...)
		inner.Others += a.Others
	}
	inner.Members = append(inner.Members, around...)
	return inner, nil
}

// wrapper reports whether a member may hold the arguments as a whole.
func wrapper(key string) bool {
	switch key {
	case "arguments", "input", "parameters", "params", "args", "kwargs":
		return true
	}
	return false
}

// argumentsOfArray reads a list of calls, of which one is carried out, or of values.
func argumentsOfArray(elements []jsontext.Value, depth int) (Arguments, error) {
	if len(elements) == 0 {
		return Arguments{}, nil
	}
	if _, ok := Structure(elements[0]); !ok {
		return Arguments{Loose: elements}, nil
	}
	a, err := argumentsOf(elements[0], depth-1)
	a.Others += len(elements) - 1
	return a, err
}

// Pick is the value under the surest of the keys that holds anything, or else under
// the surest that is there, or else the loose one at a place; nil when there is none.
// Keys are as [Key] folds them; a place below zero is none. It fails with a
// [*TwiceError].
func (a Arguments) Pick(place int, keys []string) (jsontext.Value, error) {
	var found jsontext.Value
	for _, key := range keys {
		v, err := a.member(key)
		if err != nil {
			return nil, err
		}
		if v != nil && (found == nil || Text(found) == "" && found.Kind() == '"') {
			found = v
		}
	}
	if found == nil && place >= 0 && place < len(a.Loose) && a.Loose[place].Kind() != 'n' {
		found = a.Loose[place]
	}
	return found, nil
}

func (a Arguments) member(key string) (jsontext.Value, error) {
	var found jsontext.Value
	for _, m := range a.Members {
		switch {
		case m.Key != key || m.Value.Kind() == 'n':
		case found == nil:
			found = m.Value
		case string(found) != string(m.Value):
			return nil, &TwiceError{Name: key}
		}
	}
	return found, nil
}

// Exact is a value as text: that of a string as it is, and anything else as JSON
// (B1 4.6).
func Exact(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		return Text(v)
	case '{', '[':
		pretty := v.Clone()
		if pretty.Indent(LenientJSON(), jsontext.WithIndent("  ")) != nil {
			return string(v)
		}
		return string(pretty) + "\n"
	case jsontext.KindInvalid, 'n':
		return ""
	}
	return string(v)
}

// IsTrue reads a boolean in whatever form it comes (B1 4.4).
func IsTrue(v jsontext.Value) bool {
	if v == nil {
		return false
	}
	return slices.Contains([]string{"true", "yes", "1", "on"}, strings.ToLower(strings.TrimSpace(Exact(v))))
}

// Whole is a text as a whole number: also with a fraction, which is dropped. Numbers
// that are too large are the largest there is (B1 4.4).
func Whole(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), math.IsNaN(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

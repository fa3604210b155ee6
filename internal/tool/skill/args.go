package skill

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// arguments are what a model wrote for skills_read, as far as it can be
// understood. A declaration is a hint: models write numbers as strings, whole
// objects as strings, and names of their own (seed 1, the args bug).
type arguments struct {
	target
	offset int64
	// also is what else the same call asks for.
	also []target
}

// target is a file of a skill, both as a model wrote them.
type target struct{ skill, path string }

var errNoObject = errors.New("the arguments are not a JSON object")

// offsetError is an offset that is not a number.
type offsetError struct{ text string }

func (e *offsetError) Error() string { return fmt.Sprintf("offset %q is not a whole number", e.text) }

// parseArguments reads whatever stands for arguments: an object, also in a
// string, in a list or under another name; a list of values; a bare word; or
// nothing at all.
func parseArguments(text string) (arguments, error) {
	var w written
	if err := w.read(text, deepest); err != nil {
		return arguments{}, err
	}
	return w.arguments()
}

// parseListOffset is the index of the first skill that a call of skills_list
// asks for. Everything else in its arguments is noise.
func parseListOffset(text string) int64 {
	var w written
	if w.read(text, deepest) != nil {
		return 0
	}
	n, err := integer(w.first(listOffsetKeys()))
	if err != nil {
		return 0
	}
	return n
}

// deepest is how far values are looked for in values: more than any model nests
// them by mistake.
const deepest = 6

// written is a call as it was written, taken apart.
type written struct {
	// layers are the objects that hold members, the innermost first.
	layers [][]member
	// loose are values without a name: skill, paths and offset, in that order.
	loose []jsontext.Value
	// others are further calls in the same list.
	others []written
}

// read takes text apart.
func (w *written) read(text string, depth int) error {
	text = unfenced(text)
	if text == "" || depth == 0 {
		return nil
	}
	v, ok := jsonValue(text)
	if ok {
		return w.take(v, depth)
	}
	if !bare(text) {
		return errNoObject
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return errNoObject
	}
	w.addLoose(quoted)
	return nil
}

// bare reports whether text is a name or a path without quotes.
func bare(text string) bool { return !strings.ContainsAny(text, "{}[]<>\"'=,\n\t ") }

// take takes a valid value apart.
func (w *written) take(v jsontext.Value, depth int) error {
	if depth == 0 {
		return nil
	}
	switch v.Kind() {
	case 'n':
		return nil
	case '"':
		w.takeString(v, depth)
		return nil
	case '{':
		w.takeObject(v, depth)
		return nil
	case '[':
		w.takeArray(v, depth)
		return nil
	}
	return errNoObject
}

// takeString looks for arguments in a string. What holds none is a word.
func (w *written) takeString(v jsontext.Value, depth int) {
	s := stringOf(v)
	if s == "" || structured(s) && w.read(s, depth-1) == nil {
		return
	}
	w.addLoose(v)
}

// structured reports whether the text of a string may be JSON itself.
func structured(s string) bool {
	return s != "" && strings.IndexByte("{[\"`", s[0]) >= 0
}

func (w *written) takeObject(v jsontext.Value, depth int) {
	members := membersOf(v)
	wrapped := false
	for _, m := range members {
		switch {
		case wrapper(m.key):
			wrapped = true
			_ = w.take(m.value, depth-1) // a wrapper that holds nothing changes nothing
		case holdsObject(m.value) && argument(m.key):
			_ = w.take(m.value, depth-1)
		}
	}
	// In {"name": "skills_read", "arguments": {…}} the name is not the skill's.
	members = slices.DeleteFunc(members, func(m member) bool {
		if m.key != "name" {
			return false
		}
		name := first(words(m.value))
		return wrapped && Means(name) != "" || name == ReadName || name == ListName
	})
	w.layers = append(w.layers, members)
}

// argument reports whether a member is one of ours.
func argument(key string) bool {
	return slices.Contains(skillKeys(), key) || slices.Contains(pathKeys(), key)
}

// holdsObject reports whether a value is an object, or a string with one.
func holdsObject(v jsontext.Value) bool {
	if v.Kind() == '"' {
		inner, ok := jsonValue(unfenced(stringOf(v)))
		return ok && inner.Kind() == '{'
	}
	return v.Kind() == '{'
}

func (w *written) takeArray(v jsontext.Value, depth int) {
	elements := elementsOf(v)
	if len(elements) == 0 {
		return
	}
	if !holdsObject(elements[0]) {
		w.addLoose(elements...)
		return
	}
	_ = w.take(elements[0], depth-1)
	for _, e := range elements[1:] {
		var other written
		if other.take(e, depth-1) == nil {
			w.others = append(w.others, other)
		}
	}
}

func (w *written) addLoose(v ...jsontext.Value) {
	if len(w.loose) == 0 {
		w.loose = v
	}
}

// first is the value under the surest of the keys that holds anything.
func (w *written) first(keys []string) jsontext.Value {
	for _, key := range keys {
		for _, layer := range w.layers {
			for _, m := range layer {
				if m.key == key && first(words(m.value)) != "" {
					return m.value
				}
			}
		}
	}
	return nil
}

// arguments reads the members by name, and values without a name by their
// place.
func (w *written) arguments() (arguments, error) {
	skills, paths := words(w.first(skillKeys())), words(w.first(pathKeys()))
	offset := w.first(offsetKeys())
	if first(skills) == "" && len(w.loose) > 0 {
		skills = words(w.loose[0])
		for _, v := range w.loose[1:] {
			switch _, err := integer(v); {
			case err != nil:
				paths = append(paths, words(v)...)
			case offset == nil:
				offset = v
			}
		}
	}
	a := arguments{target: target{skill: first(skills), path: first(paths)}}
	for _, p := range rest(paths) {
		a.also = append(a.also, target{skill: a.skill, path: p})
	}
	for _, s := range rest(skills) {
		a.also = append(a.also, target{skill: s})
	}
	for _, o := range w.others {
		if other, err := o.arguments(); err == nil && other.target != (target{}) {
			a.also = append(append(a.also, other.target), other.also...)
		}
	}
	var err error
	a.offset, err = integer(offset)
	return a, err
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func rest(words []string) []string { return words[min(1, len(words)):] }

// words is a value as names or paths: the text of a string, of each string of a
// list, also of a list in a string, and a number as written. Words for nothing
// are nothing.
func words(v jsontext.Value) []string { return appendWords(nil, v, deepest) }

func appendWords(out []string, v jsontext.Value, depth int) []string {
	switch {
	case depth == 0:
	case v.Kind() == '"':
		s := stringOf(v)
		if inner, ok := jsonValue(s); ok && structured(s) {
			return appendWords(out, inner, depth-1)
		}
		if !slices.Contains([]string{"", "null", "None", "undefined"}, s) {
			out = append(out, s)
		}
	case v.Kind() == '0':
		out = append(out, string(v))
	case v.Kind() == '[':
		for _, e := range elementsOf(v) {
			out = appendWords(out, e, depth-1)
		}
	}
	return out
}

// integer is a value as a count: a number, also with a fraction, or one in a
// string. Numbers that are too large are the largest there is.
func integer(v jsontext.Value) (int64, error) {
	text := first(words(v))
	if text == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(n, 0), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), math.IsNaN(f):
		return 0, &offsetError{text: text}
	case f <= 0:
		return 0, nil
	case f >= math.MaxInt64:
		return math.MaxInt64, nil
	}
	return int64(f), nil
}

package skill

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// arguments are what a model wrote for skills_read, as far as it can be
// understood. A declaration is a hint: models write numbers as strings, whole
// objects as strings, and names of their own.
type arguments struct {
	skill, path string
	offset      int64
}

var errNoObject = errors.New("the arguments are not a JSON object")

// offsetError is an offset that is not a number.
type offsetError struct{ text string }

func (e *offsetError) Error() string { return fmt.Sprintf("offset %q is not a whole number", e.text) }

// parseArguments reads an object, an object in a string, or nothing at all.
func parseArguments(text string) (arguments, error) {
	members, err := object(text)
	if err != nil {
		return arguments{}, err
	}
	a := arguments{skill: word(members["skill"])}
	for _, name := range []string{"path", "file", "resource"} {
		if a.path == "" {
			a.path = word(members[name])
		}
	}
	a.offset, err = integer(members["offset"])
	return a, err
}

// object reads a JSON object. Names that stand twice and text that is not UTF-8
// are taken as they come.
func object(text string) (map[string]jsontext.Value, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		return nil, nil
	}
	var inner string
	if text[0] == '"' && unmarshal(text, &inner) == nil {
		text = strings.TrimSpace(inner)
		if text == "" {
			return nil, nil
		}
	}
	if text[0] != '{' {
		return nil, errNoObject
	}
	var members map[string]jsontext.Value
	if err := unmarshal(text, &members); err != nil {
		return nil, errNoObject
	}
	return members, nil
}

func unmarshal(text string, out any) error {
	return json.Unmarshal([]byte(text), out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// word is a value as a name or a path: the text of a string, any other scalar
// as written.
func word(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var s string
		if unmarshal(string(v), &s) == nil {
			return strings.TrimSpace(s)
		}
	case '0':
		return string(v)
	case '[':
		var list []jsontext.Value
		if unmarshal(string(v), &list) == nil && len(list) == 1 {
			return word(list[0])
		}
	}
	return ""
}

// integer is a value as a count of bytes: a number, also with a fraction, or
// one in a string. Numbers that are too large are the largest there is.
func integer(v jsontext.Value) (int64, error) {
	text := word(v)
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

// cleanPath takes off what models put before a path: backslashes for slashes,
// "./", and the skill's own name. A ".." stays for the guard to refuse by name.
// has reports whether the skill holds a file or folder of that path.
func cleanPath(name, path string, has func(string) bool) string {
	path = strings.ReplaceAll(strings.TrimSpace(path), `\`, "/")
	if strings.HasPrefix(path, "//") {
		return path
	}
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[len("./"):], "/")
	}
	if first, rest, ok := strings.Cut(path, "/"); ok && strings.EqualFold(first, name) && !has(path) {
		path = rest
	}
	if path == "" || path == "." {
		return mainFile
	}
	return path
}

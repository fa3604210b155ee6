package tool

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What models write for arguments is seldom what was declared. Here is what all sets
// of tools read in the same way; what a value means is theirs.

// LenientJSON takes names that stand twice and text that is not UTF-8 as they come.
func LenientJSON() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// ReadJSON reads one JSON value, also with commas too many, with line breaks in its
// strings, or as Python writes it. Where the text is JSON, it means what JSON says.
func ReadJSON(text string) (jsontext.Value, bool) {
	v := jsontext.Value(text)
	if v.IsValid(LenientJSON()) {
		return v, true
	}
	v = jsontext.Value(relaxed(text))
	return v, v.IsValid(LenientJSON())
}

// Unfenced takes off white space, and the fences of Markdown code.
func Unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, fenced := strings.CutPrefix(text, "```")
	if !fenced {
		return text
	}
	inner = strings.TrimSpace(strings.TrimSuffix(inner, "```"))
	if len(inner) >= len("json") && strings.EqualFold(inner[:len("json")], "json") {
		inner = inner[len("json"):]
	}
	return strings.TrimSpace(inner)
}

// Member is a member of an object.
type Member struct {
	// Key is its name as [Key] folds it.
	Key   string
	Value jsontext.Value
}

// Members lists the members of a valid object in their order, and nothing of
// anything else.
func Members(v jsontext.Value) []Member {
	d := jsontext.NewDecoder(bytes.NewReader(v), LenientJSON())
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var members []Member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return members
		}
		key := Key(name.String())
		value, err := d.ReadValue()
		if err != nil {
			return members
		}
		members = append(members, Member{Key: key, Value: value.Clone()})
	}
	return members
}

// Elements lists the elements of a valid array, and nothing of anything else.
func Elements(v jsontext.Value) []jsontext.Value {
	var elements []jsontext.Value
	if json.Unmarshal(v, &elements, LenientJSON()) != nil {
		return nil
	}
	return elements
}

// Text is the text of a valid string, white space included; empty for anything else.
func Text(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s, LenientJSON()) != nil {
		return ""
	}
	return s
}

// relaxed writes strings in single quotes as JSON does, and Python's words, escapes
// what a string must not hold as it is, and leaves out commas before a closing
// bracket.
func relaxed(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			n, closed := quotedLength(text[i:])
			if closed {
				requote(&b, text[i:i+n])
			} else {
				b.WriteString(text[i : i+n])
			}
			i += n
		case c == ',' && closes(text[i+1:]):
			i++
		case isLetter(c):
			n := 1
			for i+n < len(text) && isLetter(text[i+n]) {
				n++
			}
			b.WriteString(literal(text[i : i+n]))
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func literal(word string) string {
	switch word {
	case "None":
		return "null"
	case "True", "False":
		return strings.ToLower(word)
	}
	return word
}

// closes reports whether a bracket closes next.
func closes(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest != "" && (rest[0] == '}' || rest[0] == ']')
}

// quotedLength is the length of the string in quotes that text begins with, or
// of all of it if the quote is never closed.
func quotedLength(text string) (n int, closed bool) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1, true
		}
	}
	return len(text), false
}

// requote writes a string with its quotes in double ones.
func requote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := 1; i < len(s)-1; i++ {
		switch c := s[i]; {
		case c == '"':
			b.WriteString(`\"`)
		case c == '\\' && s[0] == '\'' && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\\': // what follows may be a line break, which has no escape that is sure
			b.WriteString(s[i : i+2])
			i++
		case c < ' ':
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

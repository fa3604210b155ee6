package skill

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/tool"
)

// lenient takes names that stand twice and text that is not UTF-8 as they come.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// jsonValue reads one JSON value, also in Markdown fences, with commas too many or
// as Python writes it.
func jsonValue(text string) (jsontext.Value, bool) {
	v := jsontext.Value(text)
	if v.IsValid(lenient()) {
		return v, true
	}
	v = jsontext.Value(relaxed(text))
	return v, v.IsValid(lenient())
}

// unfenced takes off white space, and the fences of Markdown code.
func unfenced(text string) string {
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

// relaxed writes strings in single quotes as JSON does, and Python's words, and
// leaves out commas before a closing bracket. Strings in double quotes stay.
func relaxed(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			n := quotedLength(text[i:])
			requote(&b, text[i:i+n])
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
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// requote writes a string in double quotes.
func requote(b *strings.Builder, s string) {
	if s[0] == '"' || len(s) < 2 || s[len(s)-1] != s[0] {
		b.WriteString(s)
		return
	}
	b.WriteByte('"')
	for i := 1; i < len(s)-1; i++ {
		switch {
		case s[i] == '"':
			b.WriteString(`\"`)
		case s[i] == '\\' && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case s[i] == '\\':
			b.WriteString(s[i : i+2])
			i++
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
}

// member is a member of an object, its name folded.
type member struct {
	key   string
	value jsontext.Value
}

// membersOf lists the members of a valid object in their order.
func membersOf(v jsontext.Value) []member {
	d := jsontext.NewDecoder(bytes.NewReader(v), lenient())
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var members []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return members
		}
		key := tool.Key(name.String())
		value, err := d.ReadValue()
		if err != nil {
			return members
		}
		members = append(members, member{key: key, value: value.Clone()})
	}
	return members
}

// elementsOf lists the elements of a valid array.
func elementsOf(v jsontext.Value) []jsontext.Value {
	var elements []jsontext.Value
	if unmarshal(v, &elements) != nil {
		return nil
	}
	return elements
}

func unmarshal(v jsontext.Value, out any) error { return json.Unmarshal(v, out, lenient()) }

// stringOf is the text of a valid string.
func stringOf(v jsontext.Value) string {
	var s string
	if unmarshal(v, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

package rescue

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// Repair makes a JSON object of arguments that are none, if there is one way to
// read them: brackets that are missing at the end, or too
// many there or doubled; commas before a closing bracket; single or typographic quotes;
// keys without quotes; Python's True, False and None; line breaks and tabs inside
// strings; backslashes that begin no escape; a code fence around it; the object
// encoded once more as a string. It returns false when it is not an object then,
// and wherever two readings are possible: a quote inside a string that is not
// escaped, a value without quotes, a key without value, a bracket that is
// missing in the middle, a name that comes twice, a string that never ends.
//
// An object that is valid comes back as it is.
func Repair(arguments string) (string, bool) {
	v, ok := repairValue(arguments)
	if !ok || v.Kind() != '{' {
		return "", false
	}
	return string(v), true
}

// repairValue is Repair for any object or array.
func repairValue(s string) (jsontext.Value, bool) {
	s = unfence(strings.TrimSpace(s))
	if s == "" {
		return nil, false
	}
	// Brackets around an object's brackets hold nothing else.
	for strings.HasPrefix(s, "{{") && strings.HasSuffix(s, "}}") {
		s = s[1 : len(s)-1]
	}
	if v := jsontext.Value(s); v.IsValid() {
		if inner, ok := wire.String(v); ok {
			return repairInner(inner)
		}
		return v, true
	}
	v, ok := mend(s, reading{cut: true})
	if !ok {
		return nil, false
	}
	if inner, isString := wire.String(v); isString {
		return repairInner(inner)
	}
	return v, true
}

// repairInner reads a value that was encoded as a string. It was encoded once,
// so what it holds is no string again.
func repairInner(s string) (jsontext.Value, bool) {
	s = strings.TrimSpace(s)
	if s == "" || (s[0] != '{' && s[0] != '[') {
		return nil, false
	}
	if v := jsontext.Value(s); v.IsValid() {
		return v, true
	}
	return mend(s, reading{cut: true})
}

// unfence takes a code fence off that encloses all of s.
func unfence(s string) string {
	rest, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	line, body, ok := strings.Cut(rest, "\n")
	if !ok || strings.ContainsAny(line, "{[\"") {
		body = strings.TrimLeft(rest, letters)
	}
	body = strings.TrimSpace(body)
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

// reading says what a mender may take for a value.
type reading struct {
	// cut: what is missing at the end is filled in.
	cut bool
	// bare: strings may stand without quotes, or between the quote tokens of the
	// Gemma models.
	bare bool
}

// mend reads nearly-JSON and writes JSON.
func mend(s string, r reading) (jsontext.Value, bool) {
	m := mender{in: s, reading: r}
	if !m.value(0) {
		return nil, false
	}
	// Brackets too many at the end close nothing and say nothing.
	tail := strings.TrimSpace(m.in[m.at:])
	if strings.Trim(tail, "}] \t\r\n") != "" || (tail != "" && !r.cut) {
		return nil, false
	}
	v := jsontext.Value(bytes.Clone(m.out))
	return v, v.IsValid()
}

// mender is a recursive reader of nearly-JSON. Each method reports whether what
// it read has one meaning.
type mender struct {
	in  string
	at  int
	out []byte
	reading
}

// deepest is how far values nest that anyone means; what is deeper is noise, and
// the stack is ours.
const deepest = 100

func (m *mender) space() {
	for m.at < len(m.in) && isSpace(m.in[m.at]) {
		m.at++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func (m *mender) end() bool { return m.at >= len(m.in) }

func (m *mender) take(s string) bool {
	if strings.HasPrefix(m.in[m.at:], s) {
		m.at += len(s)
		return true
	}
	return false
}

func (m *mender) value(depth int) bool {
	m.space()
	if m.end() || depth > deepest {
		return false
	}
	if quote, ok := m.quote(); ok {
		return m.text(quote)
	}
	switch b := m.in[m.at]; {
	case b == '{':
		return m.object(depth)
	case b == '[':
		return m.array(depth)
	case b == '-' || (b >= '0' && b <= '9'):
		return m.number()
	}
	return m.word()
}

func (m *mender) object(depth int) bool {
	m.at++
	m.out = append(m.out, '{')
	for first := true; ; first = false {
		m.space()
		if m.end() || m.in[m.at] == '}' || m.closing() {
			return m.close('}')
		}
		if !first {
			m.out = append(m.out, ',')
		}
		if !m.key() {
			return false
		}
		m.space()
		if !m.take(":") {
			return false
		}
		m.out = append(m.out, ':')
		if !m.value(depth+1) || !m.comma('}') {
			return false
		}
	}
}

func (m *mender) array(depth int) bool {
	m.at++
	m.out = append(m.out, '[')
	for first := true; ; first = false {
		m.space()
		if m.end() || m.in[m.at] == ']' || m.closing() {
			return m.close(']')
		}
		if !first {
			m.out = append(m.out, ',')
		}
		if !m.value(depth+1) || !m.comma(']') {
			return false
		}
	}
}

// comma takes the comma behind an element, or sees that the closing bracket or
// the end follows.
func (m *mender) comma(closing byte) bool {
	m.space()
	return m.end() || m.take(",") || m.in[m.at] == closing || m.closing()
}

// closing reports whether nothing but closing brackets follows. Then one that is
// missing among them has one place.
func (m *mender) closing() bool {
	return m.cut && strings.TrimLeft(m.in[m.at:], "}] \t\r\n") == ""
}

func (m *mender) close(b byte) bool {
	m.out = append(m.out, b)
	switch {
	case m.end():
		return m.cut
	case m.in[m.at] == b:
		m.at++
		return true
	}
	return m.closing()
}

func (m *mender) key() bool {
	if quote, ok := m.quote(); ok {
		ok := m.text(quote)
		return ok && !m.end()
	}
	from := m.at
	for !m.end() && isNameByte(m.in[m.at]) {
		m.at++
	}
	if from == m.at {
		return false
	}
	m.out = wire.AppendString(m.out, m.in[from:m.at])
	return true
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.' || b == '$' || b >= 0x80
}

func (m *mender) number() bool {
	from := m.at
	for !m.end() && strings.IndexByte("+-0123456789.eE", m.in[m.at]) >= 0 {
		m.at++
	}
	v := jsontext.Value(m.in[from:m.at])
	if !v.IsValid() || !m.settled() {
		m.at = from
		return m.bareText()
	}
	m.out = append(m.out, v...)
	return true
}

// word reads a literal, as JSON or as Python writes it.
func (m *mender) word() bool {
	from := m.at
	for !m.end() && isNameByte(m.in[m.at]) {
		m.at++
	}
	literal := ""
	switch m.in[from:m.at] {
	case "true", "True":
		literal = "true"
	case "false", "False":
		literal = "false"
	case "null", "None":
		literal = "null"
	}
	if literal == "" || !m.settled() {
		m.at = from
		return m.bareText()
	}
	m.out = append(m.out, literal...)
	return true
}

// settled reports whether a value may end here.
func (m *mender) settled() bool {
	rest := strings.TrimLeft(m.in[m.at:], " \t\r\n")
	return rest == "" || strings.IndexByte(",:}])", rest[0]) >= 0
}

// bareText reads a string that has no quotes, up to what ends a value.
func (m *mender) bareText() bool {
	if !m.bare {
		return false
	}
	n := strings.IndexAny(m.in[m.at:], ",}]")
	if n < 0 {
		n = len(m.in) - m.at
	}
	text := strings.TrimSpace(m.in[m.at : m.at+n])
	m.at += n
	m.out = wire.AppendString(m.out, text)
	return text != "" && !strings.ContainsAny(text, "{[\"")
}

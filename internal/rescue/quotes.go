package rescue

import (
	"strings"
	"unicode/utf8"
)

// quote is a mark that begins a string and those that end it.
type quote struct {
	open  string
	close []string
	// verbatim: nothing inside is an escape.
	verbatim bool
}

// quote is the mark that stands here.
func (m *mender) quote() (quote, bool) {
	rest := m.in[m.at:]
	if rest == "" {
		return quote{}, false
	}
	switch {
	case strings.HasPrefix(rest, `"""`):
		return quote{open: `"""`, close: []string{`"""`}}, true
	case rest[0] == '"':
		return quote{open: `"`, close: []string{`"`}}, true
	case rest[0] == '\'':
		return quote{open: `'`, close: []string{`'`}}, true
	case strings.HasPrefix(rest, "“"), strings.HasPrefix(rest, "”"):
		return quote{open: rest[:len("“")], close: []string{"”", "“"}}, true
	case strings.HasPrefix(rest, "‘"), strings.HasPrefix(rest, "’"):
		return quote{open: rest[:len("‘")], close: []string{"’", "‘"}}, true
	}
	if m.bare {
		for _, mark := range tokens() {
			if strings.HasPrefix(rest, mark) {
				return quote{open: mark, close: []string{mark}, verbatim: true}, true
			}
		}
	}
	return quote{}, false
}

// tokens are what the Gemma models write for a quote.
func tokens() []string { return []string{`<|"|>`, "<escape>"} }

// text reads a string that ends. Its end must be followed by something that can follow a
// value: anything else shows that a quote inside it was not escaped.
func (m *mender) text(q quote) bool {
	m.at += len(q.open)
	m.out = append(m.out, '"')
	var plain, wild bool // escapes that mean something, backslashes that do not
	for !m.end() {
		if q.ends(m) {
			m.out = append(m.out, '"')
			return m.settled() && !(plain && wild)
		}
		if m.in[m.at] != '\\' || q.verbatim {
			m.out = appendChar(m.out, m.in[m.at])
			m.at++
			continue
		}
		if m.at+1 >= len(m.in) {
			return false
		}
		switch m.escape() {
		case meaning:
			plain = true
		case noMeaning:
			wild = true
		}
	}
	// It never ends: the reply was cut off inside it, and how it went on nobody knows. A
	// command or a file that is carried out in part is worse than one that is not.
	return false
}

func (q quote) ends(m *mender) bool {
	for _, c := range q.close {
		if m.take(c) {
			return true
		}
	}
	return false
}

// weight is what an escape says about the backslashes beside it.
type weight int

const (
	neutral   weight = iota // the same in every reading
	meaning                 // a letter that JSON gives a meaning: \n, \t
	noMeaning               // a backslash that was meant as one: \d, \.
)

// escape reads a backslash and what it stands before.
func (m *mender) escape() weight {
	next := m.in[m.at+1]
	m.at += 2
	switch {
	case next == '\'':
		m.out = append(m.out, '\'')
		return neutral
	case strings.IndexByte(`"\/`, next) >= 0:
		m.out = append(m.out, '\\', next)
		return neutral
	case strings.IndexByte("bfnrt", next) >= 0:
		m.out = append(m.out, '\\', next)
		return meaning
	case next == 'u' && isHex(m.in[m.at:]):
		m.out = append(m.out, '\\', 'u')
		return neutral
	case next == 'x', next == 'u' && len(m.in)-m.at < 4:
		// A byte in Python, two characters elsewhere; an escape that may have been
		// cut. What is written makes the whole invalid.
		m.out = append(m.out, '\\', 'x')
		return noMeaning
	}
	m.out = append(m.out, '\\', '\\')
	m.at--
	if next >= utf8.RuneSelf || next < ' ' {
		return noMeaning
	}
	m.out = appendChar(m.out, next)
	m.at++
	return noMeaning
}

func isHex(s string) bool {
	if len(s) < 4 {
		return false
	}
	for i := range 4 {
		if strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
			return false
		}
	}
	return true
}

// appendChar appends one byte of a string's contents, escaped where JSON wants it.
func appendChar(dst []byte, b byte) []byte {
	const digits = "0123456789abcdef"
	switch {
	case b == '"' || b == '\\':
		return append(dst, '\\', b)
	case b == '\n':
		return append(dst, '\\', 'n')
	case b == '\r':
		return append(dst, '\\', 'r')
	case b == '\t':
		return append(dst, '\\', 't')
	case b < ' ':
		return append(dst, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
	}
	return append(dst, b)
}

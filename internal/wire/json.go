// Package wire reads and writes what goes over connections without changing
// it: cursors over raw JSON, splicing of single members, server-sent events.
//
// It decodes no message and knows no dialect. Values are slices of the bytes
// they came in, so nothing that is left alone is ever encoded again.
//
// Start at [Object] and [NewEventReader].
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Check reports why b is not one strict JSON value: no duplicate names, valid
// UTF-8, nothing behind it. The error holds the JSON pointer of the fault.
func Check(b []byte) error {
	if jsontext.Value(b).IsValid() {
		return nil
	}
	// The decoder is slower and says what is wrong.
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if _, err := d.ReadValue(); err != nil {
		return plain(err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return fmt.Errorf("more text after the JSON value at byte %d", d.InputOffset())
	}
	return nil
}

// plain is a JSON error without its package's prefix.
func plain(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at := string(e.JSONPointer)
		if at == "" {
			at = "the top"
		}
		return fmt.Errorf("%w at %s, byte %d", e.Err, at, e.ByteOffset)
	}
	return err
}

// Lenient reports whether b is JSON as upstreams write it: surrogates may be
// cut in half between two events, and a name may come twice.
func Lenient(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// Cursor steps through the members of an object or the elements of an array.
// The value must be valid JSON; on anything else it stops early and never
// panics.
type Cursor struct {
	// Name is the member's name between its quotes, as written.
	Name []byte
	// Value is the member's or element's bytes.
	Value jsontext.Value

	rest   []byte
	whole  int // of what it goes through
	object bool
}

// Object is a cursor over the members of v. It yields nothing if v is no object.
func Object(v jsontext.Value) Cursor { return open(v, '{') }

// Array is a cursor over the elements of v. It yields nothing if v is no array.
func Array(v jsontext.Value) Cursor { return open(v, '[') }

func open(v []byte, bracket byte) Cursor {
	whole := len(v)
	v = skipSpace(v)
	if len(v) < 2 || v[0] != bracket {
		return Cursor{}
	}
	return Cursor{rest: v[1:], whole: whole, object: bracket == '{'}
}

// Offset is where Value begins in what the cursor goes through.
func (c *Cursor) Offset() int { return c.whole - len(c.rest) - len(c.Value) }

// Next moves to the next member or element and reports whether there is one.
func (c *Cursor) Next() bool {
	b := skipSpace(c.rest)
	if len(b) > 0 && b[0] == ',' {
		b = skipSpace(b[1:])
	}
	if len(b) == 0 || b[0] == '}' || b[0] == ']' {
		c.rest = nil
		return false
	}
	if c.object {
		n := valueEnd(b)
		if b[0] != '"' || n < 2 {
			c.rest = nil
			return false
		}
		c.Name = b[1 : n-1]
		b = skipSpace(b[n:])
		if len(b) == 0 || b[0] != ':' {
			c.rest = nil
			return false
		}
		b = skipSpace(b[1:])
	}
	n := valueEnd(b)
	if n == 0 {
		c.rest = nil
		return false
	}
	c.Value, c.rest = jsontext.Value(b[:n:n]), b[n:]
	return true
}

// Is reports whether the member has the given name, however it is escaped.
func (c *Cursor) Is(name string) bool {
	if bytes.IndexByte(c.Name, '\\') < 0 {
		return string(c.Name) == name
	}
	s, ok := unquote(c.Name)
	return ok && s == name
}

// Member is the value of the named member of an object, or nil.
func Member(v jsontext.Value, name string) jsontext.Value {
	for c := Object(v); c.Next(); {
		if c.Is(name) {
			return c.Value
		}
	}
	return nil
}

// String is the text of a JSON string. Halves of surrogate pairs and invalid
// UTF-8 become U+FFFD.
func String(v jsontext.Value) (string, bool) {
	b, ok := Contents(v)
	if !ok {
		return "", false
	}
	return Unquote(b)
}

// Unquote is the text of a JSON string's contents, such as a member's name.
func Unquote(b []byte) (string, bool) {
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b), true
	}
	return unquote(b)
}

func unquote(contents []byte) (string, bool) {
	quoted := make([]byte, 0, len(contents)+2)
	quoted = append(append(append(quoted, '"'), contents...), '"')
	// The text comes back even when it had to be mended.
	s, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil && len(s) == 0 {
		return "", false
	}
	return string(s), true
}

// Contents is what stands between the quotes of a JSON string, as written.
func Contents(v jsontext.Value) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		// Invalid UTF-8 was replaced by U+FFFD, which is what is wanted.
		return out
	}
	return out
}

// IsNull reports whether v is absent or null.
func IsNull(v jsontext.Value) bool { return len(v) == 0 || v[0] == 'n' }

// Set is object v with one member replaced, or added at its end. All other
// bytes stay as they are. What is no object stays whole.
func Set(v jsontext.Value, name string, value []byte) jsontext.Value {
	if v.Kind() != '{' {
		return v
	}
	for c := Object(v); c.Next(); {
		if !c.Is(name) {
			continue
		}
		start := c.Offset()
		out := make([]byte, 0, len(v)-len(c.Value)+len(value))
		out = append(append(append(out, v[:start]...), value...), c.rest...)
		return out
	}
	end := bytes.LastIndexByte(v, '}')
	if end < 0 {
		return v
	}
	out := make([]byte, 0, len(v)+len(name)+len(value)+4)
	out = append(out, v[:end]...)
	if c := Object(v); c.Next() {
		out = append(out, ',')
	}
	out = append(AppendString(out, name), ':')
	return append(append(out, value...), v[end:]...)
}

// Remove is object v without the named member.
func Remove(v jsontext.Value, name string) jsontext.Value {
	if Member(v, name) == nil {
		return v
	}
	out := append(make([]byte, 0, len(v)), '{')
	for c := Object(v); c.Next(); {
		if c.Is(name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), c.Name...), '"', ':')
		out = append(out, c.Value...)
	}
	return append(out, '}')
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// valueEnd is the length of the JSON value at the start of b.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		return nestedEnd(b)
	}
	for i, x := range b {
		switch x {
		case ',', '}', ']', ' ', '\n', '\t', '\r', ':':
			return i
		}
	}
	return len(b)
}

func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return len(b)
		}
		i += j
		// The quote is escaped when an odd number of backslashes stands before it.
		k := i
		for k > 1 && b[k-1] == '\\' {
			k--
		}
		if (i-k)%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

func nestedEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

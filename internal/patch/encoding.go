package patch

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Encoding is how a file's bytes spell its text.
type Encoding int

// The encodings.
const (
	Plain  Encoding = iota // UTF-8, or any other bytes that "\n" divides into lines
	Marked                 // UTF-8 after a byte order mark
	Little                 // UTF-16, little end first, after a byte order mark
	Big                    // UTF-16, big end first, after a byte order mark
)

// mark is the byte order mark.
func (e Encoding) mark() string {
	switch e {
	case Marked:
		return "\xef\xbb\xbf"
	case Little:
		return "\xff\xfe"
	case Big:
		return "\xfe\xff"
	}
	return ""
}

func (e Encoding) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if e == Big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Decode reads a file as text, without its byte order mark. What is no UTF-8 stays as it
// is; what is no UTF-16 is replaced, and then faithful is false: [Encode] gives other
// bytes.
func Decode(data []byte) (text string, e Encoding, faithful bool) {
	for _, e := range []Encoding{Marked, Little, Big} {
		body, marked := bytes.CutPrefix(data, []byte(e.mark()))
		switch {
		case !marked:
		case e == Marked:
			return string(body), e, true
		default:
			units := make([]uint16, len(body)/2)
			for i := range units {
				units[i] = e.order().Uint16(body[2*i:])
			}
			text := string(utf16.Decode(units))
			return text, e, bytes.Equal(Encode(text, e), data) // an unpaired half is lost
		}
	}
	return string(data), Plain, true
}

// Encode spells a text.
func Encode(text string, e Encoding) []byte {
	if e == Plain || e == Marked {
		return []byte(e.mark() + text)
	}
	units := utf16.Encode([]rune(text))
	data := append(make([]byte, 0, 2*len(units)+2), e.mark()...)
	for _, u := range units {
		data = e.order().AppendUint16(data, u)
	}
	return data
}

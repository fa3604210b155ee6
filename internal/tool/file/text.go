package file

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// encoding is how a file spells its text.
type encoding int

const (
	plain  encoding = iota // UTF-8, or any other bytes that "\n" divides into lines
	marked                 // UTF-8 after a byte order mark
	little                 // UTF-16, little end first, after a byte order mark
	big                    // UTF-16, big end first, after a byte order mark
)

// The byte order marks.
const (
	mark8      = "\xef\xbb\xbf"
	markLittle = "\xff\xfe"
	markBig    = "\xfe\xff"
)

// content is a file as text.
type content struct {
	text string
	enc  encoding
	// faithful says that encode gives the file's own bytes back.
	faithful bool
}

// decode reads a file as text, without its byte order mark. Bytes that are no text of
// the encoding stay as they are in UTF-8, and are replaced in UTF-16.
func decode(data []byte) content {
	switch {
	case bytes.HasPrefix(data, []byte(mark8)):
		return content{text: string(data[len(mark8):]), enc: marked, faithful: true}
	case bytes.HasPrefix(data, []byte(markLittle)):
		return decode16(data, little, binary.LittleEndian)
	case bytes.HasPrefix(data, []byte(markBig)):
		return decode16(data, big, binary.BigEndian)
	}
	return content{text: string(data), faithful: true}
}

func decode16(data []byte, enc encoding, order binary.ByteOrder) content {
	units := make([]uint16, (len(data)-2)/2)
	for i := range units {
		units[i] = order.Uint16(data[2+2*i:])
	}
	c := content{text: string(utf16.Decode(units)), enc: enc}
	c.faithful = bytes.Equal(encode(c.text, enc), data) // an unpaired half is not
	return c
}

// encode spells a text.
func encode(text string, enc encoding) []byte {
	switch enc {
	case marked:
		return []byte(mark8 + text)
	case little:
		return encode16(text, markLittle, binary.LittleEndian)
	case big:
		return encode16(text, markBig, binary.BigEndian)
	}
	return []byte(text)
}

func encode16(text, mark string, order binary.AppendByteOrder) []byte {
	data := []byte(mark)
	for _, u := range utf16.Encode([]rune(text)) {
		data = order.AppendUint16(data, u)
	}
	return data
}

// isBinary reports whether a file is no text.
func (c content) isBinary() bool { return strings.IndexByte(c.text, 0) >= 0 }

// lineCount is how many lines a text has. An end of a line at the end of the text begins
// none (B1 11.4).
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// linesAt are at most n lines of a text from the first on, counted from 1, without what
// ends them.
func linesAt(text string, first, n int) []string {
	for range first - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	var lines []string
	for text != "" && len(lines) < n {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		lines = append(lines, strings.TrimSuffix(line, "\r"))
	}
	return lines
}

// splitLines are all lines of a text.
func splitLines(text string) []string { return linesAt(text, 1, lineCount(text)) }

// commonPrefix is how many bytes two texts share at the beginning.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// endings says how the lines of a text end.
func endings(text string) (crlf, lf int) {
	crlf = strings.Count(text, "\r\n")
	return crlf, strings.Count(text, "\n") - crlf
}

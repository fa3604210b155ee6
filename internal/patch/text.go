package patch

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// fileLine is a line and how it ends: "\n", "\r\n", or "" at the end of a file.
type fileLine struct{ s, end string }

// text is a file as lines. What is not UTF-8 is kept byte for byte in them.
type text struct {
	enc   Encoding
	lines []fileLine
	// utf8 says that the text may be written in UTF-8.
	utf8 bool
}

var errUTF16 = errors.New("not UTF-16")

// decode reads a file. It fails with errUTF16 on bytes that claim to be UTF-16
// and would not come out again as they went in.
func decode(data []byte) (text, error) {
	s, enc, faithful := Decode(data)
	if !faithful {
		return text{}, errUTF16
	}
	return text{enc: enc, utf8: utf8.ValidString(s), lines: splitLines(s)}, nil
}

// encode writes lines in the way of the file that t was read from.
func (t text) encode(lines []fileLine) []byte {
	size := 0
	for _, l := range lines {
		size += len(l.s) + len(l.end)
	}
	var b strings.Builder
	b.Grow(size)
	for _, l := range lines {
		b.WriteString(l.s)
		b.WriteString(l.end)
	}
	return Encode(b.String(), t.enc)
}

// splitLines divides text after each "\n". An empty text has no line, and a last
// "\n" begins none.
func splitLines(s string) []fileLine {
	if s == "" {
		return nil
	}
	lines := make([]fileLine, 0, strings.Count(s, "\n")+1)
	for l := range strings.Lines(s) {
		lines = append(lines, cutEnd(l))
	}
	return lines
}

func cutEnd(l string) fileLine {
	for _, end := range []string{"\r\n", "\n"} {
		if s, ok := strings.CutSuffix(l, end); ok {
			return fileLine{s, end}
		}
	}
	return fileLine{l, ""}
}

// ended gives every line an ending, and the last one the ending that the file had:
// what ended without a line break goes on doing so (B1 11.9).
func ended(lines []fileLine, open bool) []fileLine {
	for i := range lines {
		switch {
		case i == len(lines)-1 && open:
			lines[i].end = ""
		case lines[i].end != "":
		case i > 0:
			lines[i].end = lines[i-1].end
		default:
			lines[i].end = "\n"
		}
	}
	return lines
}

// open says whether the text's last line has no line break.
func (t text) open() bool {
	n := len(t.lines)
	return n > 0 && t.lines[n-1].end == ""
}

// ending is the line break of the line at i, or of the nearest one that has one.
func (t text) ending(i int) string {
	for at := min(i, len(t.lines)-1); at >= 0; at-- {
		if t.lines[at].end != "" {
			return t.lines[at].end
		}
	}
	if len(t.lines) > 0 && t.lines[0].end != "" {
		return t.lines[0].end
	}
	return "\n"
}

// restyled are the lines of a whole new content, in the way of the file that it
// replaces, as far as that file has one way.
func (t text) restyled(body []fileLine) []fileLine {
	style := ""
	for _, l := range t.lines {
		if l.end == "" {
			continue
		}
		if style != "" && l.end != style {
			return body
		}
		style = l.end
	}
	if style == "" {
		return body
	}
	styled := make([]fileLine, len(body))
	for i, l := range body {
		styled[i] = fileLine{l.s, style}
	}
	return styled
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

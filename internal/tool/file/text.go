package file

import (
	"strings"

	"github.com/metier-run/metier/internal/patch"
)

// content is a file as text.
type content struct {
	text string
	enc  patch.Encoding
	// faithful says that [patch.Encode] gives the file's own bytes back.
	faithful bool
}

// decode reads a file as text, without its byte order mark.
func decode(data []byte) content {
	var c content
	c.text, c.enc, c.faithful = patch.Decode(data)
	return c
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

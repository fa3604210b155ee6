package diagnose

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a sentence quotes at most, in characters. These are no limits that an operator
// would set: they keep a sentence a sentence.
const (
	longestQuote = 160 // of a reason or a message
	longestLine  = 200 // of a line of a file
	longestName  = 80  // of a name
)

// escapes are the sequences by which programs colour and place what they write.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])")

// clean frees an output from escape sequences, for reading. A carriage return ends a
// line: programs that show their progress write over it.
func clean(output string) string {
	if strings.IndexByte(output, '\x1b') >= 0 {
		output = escapes.ReplaceAllString(output, "")
	}
	return lineEnds.Replace(output)
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// plain is a text that may be quoted: one line, no characters that steer a terminal or
// hide, and not longer than most characters.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, strings.ToValidUTF8(escapes.ReplaceAllString(text, ""), ""))
	short, _ := clip(strings.TrimSpace(text), most)
	return short
}

// clip cuts a text after most characters and says whether it did.
func clip(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "...", true
		}
		n++
	}
	return text, false
}

// sourceLine is a line of a file as it may be quoted: tabs stay, for they may matter,
// and whole says that it is what the file holds.
func sourceLine(line string) (shown string, whole bool) {
	line = strings.TrimRight(line, "\r\n")
	shown = strings.Map(func(r rune) rune {
		if r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	whole = shown == line
	shown, cut := clip(shown, longestLine)
	return shown, whole && !cut
}

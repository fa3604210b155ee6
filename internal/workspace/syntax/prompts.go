package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Everything that this package says to a model. The golden files of testdata pin it.
const (
	parses      = "%s parses (%s): no need to read it back."
	allParse    = "%s parse (%s): no need to read them back."
	doNotParse  = "%s does not parse (%s)%s: %s"
	atLine      = ", line %d"
	atColumn    = ", column %d"
	fixIt       = "The file stands as it was written. Correct this place with apply_patch before you use it."
	jsonBOM     = "the file begins with a byte order mark, which JSON does not allow"
	jsonEmpty   = "the file is empty, and that is no JSON value"
	jsonComma   = "a comma stands before the closing %c"
	jsonMore    = "something follows after the value"
	jsonEnds    = "the file ends in the middle of a value"
	noPlaceText = "the parser does not say where"
)

// What a sentence quotes at most, in characters.
const (
	longestMessage = 200
	longestLine    = 200
	around         = 3 // lines before and after a place
)

// Sentence tells a model what the parser says.
func (v Verdict) Sentence() string {
	name := plain(v.Path, longestMessage)
	if v.OK {
		return fmt.Sprintf(parses, name, v.Language)
	}
	where := ""
	if v.Line > 0 {
		where = fmt.Sprintf(atLine, v.Line)
		if v.Column > 0 {
			where += fmt.Sprintf(atColumn, v.Column)
		}
	}
	text := fmt.Sprintf(doNotParse, name, v.Language, where, v.Message)
	if v.Line == 0 {
		text += " (" + noPlaceText + ")"
	}
	return text + "\n" + v.Excerpt + fixIt
}

// Report tells a model of several files: those that parse in one line a language, then
// each that does not.
func Report(verdicts []Verdict) string {
	var order, texts []string
	good := map[string][]string{}
	for _, v := range verdicts {
		if !v.OK {
			texts = append(texts, v.Sentence())
			continue
		}
		if good[v.Language] == nil {
			order = append(order, v.Language)
		}
		good[v.Language] = append(good[v.Language], plain(v.Path, longestMessage))
	}
	var lines []string
	for _, lang := range order {
		form := parses
		if len(good[lang]) > 1 {
			form = allParse
		}
		lines = append(lines, fmt.Sprintf(form, strings.Join(good[lang], ", "), lang))
	}
	return strings.Join(append(lines, texts...), "\n")
}

// excerpt are the lines around a place, numbered as read_file shows them (B1 11.3), and
// the numbers of those that are shown whole.
func excerpt(lines []string, line int) (string, []int) {
	first, last := max(1, line-around), min(len(lines), line+around)
	var b strings.Builder
	var whole []int
	for n := first; n <= last; n++ {
		raw := strings.TrimRight(lines[n-1], "\r")
		shown := visible(raw)
		cut := clip(shown, longestLine)
		if cut == raw {
			whole = append(whole, n)
		}
		fmt.Fprintf(&b, "%*d | %s\n", len(fmt.Sprint(last)), n, cut)
	}
	return b.String(), whole
}

// visible leaves out what steers a terminal or hides.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)) {
			return -1
		}
		return r
	}, text)
}

// plain is a text on one line that may be quoted.
func plain(text string, most int) string {
	return clip(visible(strings.Join(strings.Fields(text), " ")), most)
}

// clip cuts a text after most characters.
func clip(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "..."
		}
		n++
	}
	return text
}

package install

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a command, as far as it can be known before the shell runs.
type word struct {
	// text is the word without its quotes. Of a word that the shell expands it is
	// what stands before the first expansion.
	text string
	// expands says that the shell puts something in.
	expands bool
	// tail is what stands behind the last expansion.
	tail     string
	raw      string // as it stands in the source
	from, to int
	// glued is a comparison that the shell would take for a redirection, in
	// numpy>=1.2, and gluedTo where it ends. Empty if there is none.
	glued   string
	gluedTo int
}

// option says whether a word is one, and gives its name without a value that is
// attached with "=".
func (w word) option() (name, value string, attached bool) {
	name, value, attached = strings.Cut(w.text, "=")
	return name, value, attached
}

func (w word) isOption() bool { return len(w.text) > 1 && w.text[0] == '-' }

// is says whether a word is exactly one of some texts.
func (w word) is(texts ...string) bool {
	if w.expands {
		return false
	}
	for _, t := range texts {
		if w.text == t {
			return true
		}
	}
	return false
}

// wordOf reads a word of a source.
func wordOf(source string, w *syntax.Word) word {
	from, to := int(w.Pos().Offset()), int(w.End().Offset())
	out := word{from: from, to: to}
	if from <= to && to <= len(source) {
		out.raw = source[from:to]
	}
	var all literal
	all.parts(w.Parts, false)
	out.text, out.expands, out.tail = all.head.String(), all.expands, all.tail.String()
	return out
}

// literal gathers the text of a word.
type literal struct {
	head, tail strings.Builder
	expands    bool
}

func (l *literal) write(text string) {
	if l.expands {
		l.tail.WriteString(text)
		return
	}
	l.head.WriteString(text)
}

func (l *literal) expand() {
	l.expands = true
	l.tail.Reset()
}

func (l *literal) parts(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !quoted && braces(part.Value) {
				l.expand()
				continue
			}
			l.write(unescape(part.Value, quoted))
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				l.expand()
				continue
			}
			l.write(part.Value)
		case *syntax.DblQuoted:
			l.parts(part.Parts, true)
		default:
			l.expand()
		}
	}
}

// braces says whether bash makes several words of one, as of {a,b} and {1..3}.
func braces(text string) bool {
	_, rest, open := strings.Cut(text, "{")
	return open && strings.Contains(rest, "}") && (strings.Contains(rest, ",") || strings.Contains(rest, ".."))
}

// unescape takes the backslashes out that the shell would. Patterns stay as they
// are: one that no file matches is what it says, and a spec never names a file.
func unescape(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) || quoted && !strings.ContainsRune("$`\"\\\n", rune(text[i+1])) {
			out.WriteByte(text[i])
			continue
		}
		i++
		if text[i] != '\n' {
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// glue finds comparisons that stand right behind a word and that the shell would
// read as redirections: numpy>=1.2,<2 writes to a file "=1.2,". What is meant is
// never in doubt, for no file of a log begins with a version.
func glue(source string, words []word, redirs []*syntax.Redirect) []word {
	at := map[int]*syntax.Redirect{}
	for _, r := range redirs {
		if r.N == nil && (r.Op == syntax.RdrIn || r.Op == syntax.RdrOut) {
			at[int(r.OpPos.Offset())] = r
		}
	}
	for i := range words {
		w := &words[i]
		for end := w.to; !w.expands; end = w.gluedTo {
			r := at[end]
			if r == nil {
				break
			}
			target := wordOf(source, r.Word)
			if target.expands || target.from != end+1 || w.glued == "" && !versionLike(target.text) {
				break
			}
			w.glued += r.Op.String() + target.text
			w.gluedTo = target.to
		}
	}
	return words
}

// versionLike says whether what follows a ">" is a version and not a file.
func versionLike(text string) bool {
	text = strings.TrimPrefix(text, "=")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

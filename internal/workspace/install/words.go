package install

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
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
	l := bash.Read(w)
	out.text, out.expands, out.tail = l.Head, l.Expands, l.Tail
	return out
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

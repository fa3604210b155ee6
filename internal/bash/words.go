package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Literal is what a word says before a shell runs. Patterns and a "~" stay as they are:
// what they become is known only where the files are.
type Literal struct {
	// Head is the text in front of what is expanded first; all of it where nothing is.
	Head string
	// Tail is the text behind what is expanded last; empty where nothing is.
	Tail string
	// Expands says that the shell puts something in: a variable, the output of a
	// command, or the words of {a,b}.
	Expands bool
}

// Read reads a word without its quotes and backslashes.
func Read(w *syntax.Word) Literal {
	if w == nil {
		return Literal{}
	}
	if braces(w.Parts) {
		return Literal{Expands: true}
	}
	var r reading
	r.parts(w.Parts, false)
	return Literal{Head: r.head.String(), Tail: r.tail.String(), Expands: r.expands}
}

// Word is the text of a word in which nothing is expanded; plain is false, and the text
// empty, where something is, and for no word at all.
func Word(w *syntax.Word) (text string, plain bool) {
	l := Read(w)
	if w == nil || l.Expands {
		return "", false
	}
	return l.Head, true
}

// Words are the words of a simple command, each as [Word] gives it: one in which
// something is expanded is empty.
func Words(c *syntax.CallExpr) []string {
	found := make([]string, len(c.Args))
	for i, w := range c.Args {
		found[i], _ = Word(w)
	}
	return found
}

// reading gathers a [Literal].
type reading struct {
	head, tail strings.Builder
	expands    bool
}

func (r *reading) write(text string) {
	if r.expands {
		r.tail.WriteString(text)
		return
	}
	r.head.WriteString(text)
}

func (r *reading) expand() {
	r.expands = true
	r.tail.Reset()
}

func (r *reading) parts(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			r.write(unescape(part.Value, quoted))
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				r.expand()
				continue
			}
			r.write(part.Value)
		case *syntax.DblQuoted:
			r.parts(part.Parts, true)
		default:
			r.expand()
		}
	}
}

// braces reports whether bash may make several words of one, as of {a,b} and {1..3}. The
// signs that count are those outside of quotes, whatever stands between them.
func braces(parts []syntax.WordPart) bool {
	var open, separated, dots bool
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			dots = false
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			switch {
			case c == '\\':
				i++
			case c == '{':
				open = true
			case c == ',', c == '.' && dots:
				separated = separated || open
			case c == '}' && separated:
				return true
			}
			dots = c == '.'
		}
	}
	return false
}

// unescape takes the backslashes out that a shell would: in double quotes only those
// before a few signs.
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
		if i++; text[i] != '\n' {
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// Quote makes one word of a text for any shell like sh, with all of it in quotes.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Argument is [Quote] for a line that somebody reads: a text that no shell changes stays
// as it is. It is no name of a command, for a shell has words of its own.
func Argument(text string) string {
	special := strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./,:@%+", r)
	})
	if text == "" || special {
		return Quote(text)
	}
	return text
}

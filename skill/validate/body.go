package validate

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/guard"
)

// What the specification advises for a body, and the four bytes that Metier
// counts as a token.
const (
	adviseLines  = 500
	adviseTokens = 5000
	tokenBytes   = 4
)

// body gives advice on the instructions.
func (c *checker) body(m manifest) {
	h, _, p := cut(m.data)
	if p != nil {
		return
	}
	text := bytes.TrimSpace(m.data[h.body:])
	lines, tokens := bytes.Count(text, []byte("\n"))+1, (len(text)+tokenBytes-1)/tokenBytes
	advise := func(f Finding) {
		f.Severity, f.Field, f.File = Advice, FieldBody, m.file
		c.add(f)
	}
	if lines > adviseLines || tokens > adviseTokens {
		advise(Finding{Code: CodeBodyLong, Line: h.bodyLine, Message: fmt.Sprintf(
			"the instructions have %d lines and about %d tokens, all of which the model reads each time: keep them under %d lines and %d tokens, and move details into files below references/",
			lines, tokens, adviseLines, adviseTokens)})
	}
	for _, l := range links(string(m.data[h.body:])) {
		if code, what := c.follow(l.target); code != "" {
			advise(Finding{Code: code, Line: h.bodyLine + l.line, Column: l.column, Message: what})
		}
	}
}

// follow says what is wrong with a file that a body names.
func (c *checker) follow(target string) (code, message string) {
	if _, err := guard.Clean(target); err != nil {
		return CodeLinkOutside, fmt.Sprintf("%q is not a path inside the skill, so no model can read it: %v", target, reason(err))
	}
	if _, err := c.root.Stat(target); err != nil {
		return CodeDeadLink, fmt.Sprintf("there is no file %q in the skill: correct the path or add the file", target)
	}
	return "", ""
}

// reason drops the path that the message names already.
func reason(err error) error {
	if e, ok := errors.AsType[*guard.PathError](err); ok {
		return e.Err
	}
	return err
}

// link is a path that a body names; line counts from 0, column from 1.
type link struct {
	target       string
	line, column int
}

var (
	// inline is [text](target "title") and the same with a "!"; definition is
	// "[label]: target".
	inline     = regexp.MustCompile(`\]\(\s*<?([^\s()<>]+)>?(?:\s+["'(][^)]*)?\)`)
	definition = regexp.MustCompile(`^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s<>]+)>?`)
	// mention is code that begins with a path in one of the folders that skills
	// have by convention, to its first blank.
	mention = regexp.MustCompile("`((?:scripts|references|reference|assets)/[^`\\s]+)[^`]*`")
	// scheme is the start of a URL.
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)
	// code is a code span: links inside are examples.
	code = regexp.MustCompile("`+[^`]*`+")
)

// links lists the files of the skill that a body names, outside of fenced code:
// Markdown links, and code that spells a path below scripts/, references/ or
// assets/.
func links(body string) []link {
	var out []link
	fence := ""
	n := -1
	for line := range strings.Lines(body) {
		n++
		trimmed := strings.TrimSpace(line)
		mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`~"))]
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && mark == trimmed {
				fence = ""
			}
			continue
		case len(mark) >= len("```"):
			fence = mark
			continue
		}
		out = append(out, linksIn(line, n)...)
	}
	return out
}

func linksIn(text string, n int) []link {
	var out []link
	line := text
	put := func(start, end int) {
		if target := local(line[start:end]); target != "" {
			out = append(out, link{target: target, line: n, column: utf8.RuneCountInString(text[:start]) + 1})
		}
	}
	for _, m := range mention.FindAllStringSubmatchIndex(line, -1) {
		put(m[2], m[3])
	}
	// Code is blanked, not cut out, so that columns stay.
	line = code.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat(" ", len(s)) })
	for _, re := range []*regexp.Regexp{inline, definition} {
		for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
			put(m[2], m[3])
		}
	}
	return out
}

// local is the path of a link to a file, or nothing for a URL, a place in the
// same text, and a pattern that stands for several files.
func local(target string) string {
	if scheme.MatchString(target) && !drive(target) || strings.HasPrefix(target, "//") || strings.HasPrefix(target, "#") {
		return ""
	}
	target, _, _ = strings.Cut(target, "#")
	target, _, _ = strings.Cut(target, "?")
	if plain, err := url.PathUnescape(target); err == nil {
		target = plain
	}
	if strings.ContainsAny(target, "*<>{}$|[]") || strings.Contains(target, "...") {
		return ""
	}
	return strings.TrimSuffix(target, "/")
}

// drive reports whether what looks like a URL is a path of Windows.
func drive(target string) bool { return len(target) > 1 && target[1] == ':' }

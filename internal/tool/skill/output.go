package skill

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/sandbox"
)

// stream is what one stream of a script said, made safe to show: it may hold
// anything, and a model must be able to tell it from what the host says.
type stream struct {
	head, tail string
	cut        bool // something between head and tail is left out
	total      int64
	controls   int // that were left out
}

// shown makes a stream of what was collected. Host paths become paths that mean
// something to a model.
func shown(o sandbox.Output, paths []hostPath) stream {
	s := stream{total: o.Total, cut: o.Dropped() > 0}
	var n, m int
	s.head, n = plainText(shorten(string(o.Head), paths))
	s.tail, m = plainText(shorten(string(o.Tail), paths))
	s.controls = n + m
	if !s.cut {
		s.head, s.tail = s.head+s.tail, ""
	}
	return s
}

// clip keeps about n bytes, from both ends.
func (s stream) clip(n int) stream {
	if len(s.head)+len(s.tail) <= n {
		return s
	}
	all := s.head + s.tail
	begin, end := n/2, len(all)-n/2
	for begin > 0 && !utf8.RuneStart(all[begin]) {
		begin--
	}
	for end < len(all) && !utf8.RuneStart(all[end]) {
		end++
	}
	s.head, s.tail, s.cut = all[:begin], all[end:], true
	return s
}

func (s stream) empty() bool { return s.head == "" && s.tail == "" }

// text is everything that is kept, for finding out what went wrong.
func (s stream) text() string { return s.head + "\n" + s.tail }

// render writes a stream under its label, in a fence that nothing in it closes.
func (s stream) render(b *strings.Builder, label, fence string) {
	if s.empty() {
		return
	}
	b.WriteString(label)
	if s.cut {
		fmt.Fprintf(b, runCut, s.total)
	}
	if s.controls > 0 {
		fmt.Fprintf(b, runControls, s.controls)
	}
	b.WriteString(":\n" + fence + "\n")
	text := s.head
	if s.cut {
		text = strings.TrimSuffix(s.head, "\n") + "\n[...]\n" + s.tail
	}
	b.WriteString(strings.TrimSuffix(text, "\n") + "\n" + fence + "\n")
}

// fenceFor is longer than any row of backticks in the texts.
func fenceFor(streams ...stream) string {
	longest := 2
	for _, s := range streams {
		for _, text := range []string{s.head, s.tail} {
			row := 0
			for i := range len(text) {
				if row++; text[i] != '`' {
					row = 0
				}
				longest = max(longest, row)
			}
		}
	}
	return strings.Repeat("`", longest+1)
}

// plainText is text of lines: valid UTF-8, without the sequences that move a
// terminal's cursor or colour it, and without the characters that cannot be seen or
// turn the order of letters around. It tells how many of these it left out.
func plainText(text string) (string, int) {
	text = strings.ToValidUTF8(text, "\ufffd")
	var b strings.Builder
	dropped := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\x1b' || r == '\u009b':
			dropped++
			n = sequence(text[i:], n)
		case r == '\r' && strings.HasPrefix(text[i+n:], "\n"):
		case r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case invisible(r):
			dropped++
		default:
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String(), dropped
}

// invisible reports a control character other than a newline and a tab, or one that
// reorders or tags what stands around it.
func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c, r == 0xfeff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// sequence is the length of the terminal sequence that text begins with, at least n.
// One that is not finished ends with its line, so that it hides no more than that.
func sequence(text string, n int) int {
	at := n
	kind := byte('[')
	if text[0] == '\x1b' {
		if at == len(text) {
			return at
		}
		kind = text[at]
		at++
	}
	switch {
	case kind == '[':
		for at < len(text) && text[at] >= 0x20 && text[at] <= 0x3f {
			at++
		}
		if at < len(text) && text[at] >= 0x40 && text[at] <= 0x7e {
			at++
		}
		return at
	case strings.IndexByte("]PX^_", kind) >= 0:
		return at + stringLength(text[at:])
	case kind >= 0x20 && kind <= 0x2f:
		for at < len(text) && text[at] >= 0x20 && text[at] <= 0x2f {
			at++
		}
		if at < len(text) && text[at] >= 0x30 && text[at] <= 0x7e {
			at++
		}
		return at
	case kind < 0x30 || kind > 0x7e:
		return n // the escape alone
	}
	return at
}

// stringLength is the length of a terminal's string with its end.
func stringLength(text string) int {
	for i := range len(text) {
		switch {
		case text[i] == '\a':
			return i + 1
		case text[i] == '\x1b' && i+1 < len(text) && text[i+1] == '\\':
			return i + 2
		case text[i] == '\n':
			return i
		}
	}
	return len(text)
}

// hostPath is a directory of this host, and what stands for it where a model reads.
type hostPath struct{ dir, name string }

// hostPaths are the directories that mean nothing to a model: the working directory,
// which paths become relative to, the skill's, and the interpreters' (seed 1, "recovers
// instead of reporting"). The longest come first.
func (c script) hostPaths(scratch string) []hostPath {
	paths := []hostPath{{scratch, ""}, {c.dir, c.skill.Name}}
	if dir := c.skill.Dir(); filepath.IsAbs(dir) {
		paths = append(paths, hostPath{dir, c.skill.Name})
	}
	for _, i := range c.interpreters() {
		for _, dir := range i.Read {
			paths = append(paths, hostPath{dir, "<" + string(i.Kind) + ">"})
		}
	}
	slices.SortStableFunc(paths, func(a, b hostPath) int { return len(b.dir) - len(a.dir) })
	return paths
}

// shorten puts names for the host's paths in a text. It leaves alone what only begins
// or ends like one of them.
func shorten(text string, paths []hostPath) string {
	for _, p := range paths {
		text = p.replace(text)
	}
	return text
}

func (p hostPath) replace(text string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, p.dir)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		rest := text[at+len(p.dir):]
		switch {
		case at > 0 && inPath(text[at-1]) || goesOn(rest):
			b.WriteString(text[:at] + p.dir)
		case p.name != "":
			b.WriteString(text[:at] + p.name)
		case len(rest) > 1 && rest[0] == filepath.Separator && inPath(rest[1]):
			b.WriteString(text[:at])
			rest = rest[1:]
		default:
			b.WriteString(text[:at] + ".")
		}
		text = rest
	}
}

// goesOn reports whether the last name of a path goes on in what follows it. A full
// stop that ends a sentence is no part of it.
func goesOn(rest string) bool {
	rest = strings.TrimPrefix(rest, ".")
	return rest != "" && inPath(rest[0]) && rest[0] != filepath.Separator
}

// inPath reports whether a byte next to a path would make it another path.
func inPath(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c >= 0x80 || strings.IndexByte("._-"+string(filepath.Separator), c) >= 0
}

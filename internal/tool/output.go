package tool

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/sandbox"
)

// Stream is what one stream of a launch said, made safe to show: it may hold
// anything, and a model must be able to tell it from what the host says.
type Stream struct {
	Head, Tail string
	Cut        bool // something between head and tail is left out
	Total      int64
	Controls   int // control characters that were left out
}

// NewStream makes a stream of what was collected. rewrite puts what means something to
// a model in the place of this host's paths.
func NewStream(o sandbox.Output, rewrite func(string) string) Stream {
	s := Stream{Total: o.Total, Cut: o.Dropped() > 0}
	var n, m int
	s.Head, n = PlainText(rewrite(string(o.Head)))
	s.Tail, m = PlainText(rewrite(string(o.Tail)))
	s.Controls = n + m
	if !s.Cut {
		s.Head, s.Tail = s.Head+s.Tail, ""
	}
	return s
}

// Clip keeps about n bytes, from both ends.
func (s Stream) Clip(n int) Stream {
	if len(s.Head)+len(s.Tail) <= n {
		return s
	}
	all := s.Head + s.Tail
	begin, end := n/2, len(all)-n/2
	for begin > 0 && !utf8.RuneStart(all[begin]) {
		begin--
	}
	for end < len(all) && !utf8.RuneStart(all[end]) {
		end++
	}
	s.Head, s.Tail, s.Cut = all[:begin], all[end:], true
	return s
}

// Empty reports that nothing was said.
func (s Stream) Empty() bool { return s.Head == "" && s.Tail == "" }

// Text is everything that is kept, for finding out what went wrong.
func (s Stream) Text() string { return s.Head + "\n" + s.Tail }

// Render writes a Stream under its label, in a fence that nothing in it closes.
func (s Stream) Render(b *strings.Builder, label, fence string) {
	if s.Empty() {
		return
	}
	b.WriteString(label)
	if s.Cut {
		fmt.Fprintf(b, streamCut, s.Total)
	}
	if s.Controls > 0 {
		fmt.Fprintf(b, streamControls, s.Controls)
	}
	b.WriteString(":\n" + fence + "\n")
	text := s.Head
	if s.Cut {
		text = strings.TrimSuffix(s.Head, "\n") + "\n[...]\n" + s.Tail
	}
	b.WriteString(strings.TrimSuffix(text, "\n") + "\n" + fence + "\n")
}

// FenceFor is longer than any row of backticks in the texts.
func FenceFor(streams ...Stream) string {
	longest := 2
	for _, s := range streams {
		for _, text := range []string{s.Head, s.Tail} {
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

// PlainText is text of lines: valid UTF-8, without the sequences that move a
// terminal's cursor or colour it, and without the characters that cannot be seen or
// turn the order of letters around. It tells how many of these it left out.
func PlainText(text string) (string, int) {
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

// quotedBytes is how much of a model's own words is quoted back at it.
const quotedBytes = 200

// Clip is a text as it may be quoted in a sentence: not long, and without control
// characters.
func Clip(text string) string {
	cut := text
	if len(cut) > quotedBytes {
		n := quotedBytes
		for n > 0 && !utf8.RuneStart(cut[n]) {
			n--
		}
		cut = cut[:n] + "..."
	}
	clean, _ := PlainText(cut)
	return strings.ReplaceAll(clean, "\n", " ")
}

// Seconds is a time as a person reads it.
func Seconds(d time.Duration) string {
	if d%time.Second == 0 && d > 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

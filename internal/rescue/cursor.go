package rescue

import "strings"

// fate is what is known of a text that may be a call.
type fate int

const (
	open fate = iota // still being read
	more             // what follows decides
	no               // it is none
)

// cursor reads a text that may go on. Once its fate is not open, all that it
// returns is empty. What it decides never changes when more text comes: where the
// end of the text would decide, it asks for more, unless the text is final.
type cursor struct {
	text  string
	at    int
	final bool
	fate  fate
	// trigger lists the bytes of which one must come before another attempt makes
	// sense; empty for any.
	trigger string
	// reasoning is the mark that ends the reasoning that was found in place of a
	// call.
	reasoning string
	// scans remembers how far JSON values were followed.
	scans *scans
	// work is the filter's count of what was read.
	work *int
}

// spend counts n bytes that are read, or n comparisons.
func (c *cursor) spend(n int) { *c.work += n }

func (c *cursor) ok() bool { return c.fate == open }

func (c *cursor) fail() {
	if c.fate == open {
		c.fate = no
	}
}

// want ends the attempt because the text ends too early.
func (c *cursor) want(trigger string) {
	if c.fate != open {
		return
	}
	c.fate, c.trigger = more, trigger
	if c.final {
		c.fate = no
	}
}

func (c *cursor) rest() string { return c.text[c.at:] }

func (c *cursor) space() {
	from := c.at
	for c.at < len(c.text) && isSpace(c.text[c.at]) {
		c.at++
	}
	c.spend(c.at - from)
}

// peek is the next byte; 0 at the end of a final text. Where text may still come
// it asks for it and returns 0.
func (c *cursor) peek() byte {
	if !c.ok() {
		return 0
	}
	if c.at == len(c.text) {
		if !c.final {
			c.want("")
		}
		return 0
	}
	return c.text[c.at]
}

// match takes the longest of the given strings that stands here and returns its
// place in the list, or -1. It asks for more text while that could still change
// the answer.
func (c *cursor) match(list []string) int {
	if !c.ok() {
		return -1
	}
	c.spend(len(list))
	rest, best := c.rest(), -1
	for i, s := range list {
		if rest != "" && s[0] != rest[0] {
			continue
		}
		switch {
		case strings.HasPrefix(rest, s):
			if best < 0 || len(s) > len(list[best]) {
				best = i
			}
		case !c.final && strings.HasPrefix(s, rest):
			c.want("")
			return -1
		}
	}
	if best >= 0 {
		c.at += len(list[best])
	}
	return best
}

func (c *cursor) take(s string) bool {
	if !c.ok() {
		return false
	}
	rest := c.rest()
	if strings.HasPrefix(rest, s) {
		c.at += len(s)
		return true
	}
	if !c.final && strings.HasPrefix(s, rest) {
		c.want("")
	}
	return false
}

// until is the text before the next mark, which is taken too. A text of more
// than most bytes without the mark is not what was looked for; most 0 is no
// bound.
func (c *cursor) until(mark string, most int) string {
	if !c.ok() {
		return ""
	}
	i := strings.Index(c.rest(), mark)
	if i < 0 {
		c.spend(len(c.rest()))
	} else {
		c.spend(i)
	}
	if i < 0 && (most == 0 || len(c.rest()) < most+len(mark)) {
		c.want(mark[len(mark)-1:])
		return ""
	}
	if i < 0 || (most > 0 && i > most) {
		c.fail()
		return ""
	}
	s := c.rest()[:i]
	c.at += i + len(mark)
	return s
}

// word takes the bytes that names are made of. It asks for more at the end.
func (c *cursor) word(also string) string {
	from := c.at
	for c.at < len(c.text) && (isNameByte(c.text[c.at]) || strings.IndexByte(also, c.text[c.at]) >= 0) {
		c.at++
	}
	c.spend(c.at - from)
	if c.ok() && c.at == len(c.text) && !c.final {
		c.want("")
	}
	if c.fate == more {
		return ""
	}
	return c.text[from:c.at]
}

// probe is a cursor at the same place that can be thrown away.
func (c *cursor) probe() *cursor {
	p := *c
	return &p
}

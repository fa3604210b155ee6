package rescue

import "strings"

// harmony reads a message's header and, if it is sent to a declared tool, its
// arguments.
func (p *parser) harmony(c *cursor) []found {
	from := c.at
	header := c.until("<|message|>", longestTag)
	if c.fate == more {
		c.trigger = ""
		if !headerSoFar(c.text[from:]) {
			c.fate = no
		}
	}
	if !c.ok() {
		return nil
	}
	if !headerSoFar(header) {
		c.fail()
		return nil
	}
	t, ok := p.recipient(header)
	if !ok {
		if strings.Contains(header, "analysis") && !strings.Contains(header, "to=") {
			c.reasoning = "<|end|>"
		}
		c.fail()
		return nil
	}
	c.space()
	if c.peek() != '{' {
		c.fail()
		return nil
	}
	return p.follow(c, p.withArguments(c, t))
}

// headerSoFar reports whether text behind a channel mark can be the header of a
// call, which begins with the channel or the recipient.
func headerSoFar(s string) bool {
	s = strings.TrimLeft(s, " ")
	for _, word := range []string{"commentary", "analysis", "to=", "<|channel|>"} {
		if strings.HasPrefix(s, word) || strings.HasPrefix(word, s) {
			return true
		}
	}
	return false
}

// recipient is the tool that a header names.
func (p *parser) recipient(header string) (tool, bool) {
	_, to, ok := strings.Cut(header, "to=")
	if !ok {
		return tool{}, false
	}
	to, _, _ = strings.Cut(to, "<")
	to, _, _ = strings.Cut(to, " ")
	return p.names.find(to)
}

// plain reads a Harmony call whose marks were lost: behind the recipient's name
// stand the word json, or nothing, and the arguments.
func (p *parser) plain(c *cursor) []found {
	t, ok := p.names.find(p.name(c))
	if !c.ok() {
		return nil
	}
	if !ok {
		c.fail()
		return nil
	}
	c.space()
	c.match([]string{"json", "code", "<|constrain|>json"})
	c.space()
	c.match([]string{"<|message|>"})
	c.space()
	if c.peek() != '{' {
		c.fail()
		return nil
	}
	return p.withArguments(c, t)
}

package rescue

// reply reads a whole reply that is nothing but calls, though no mark says so.
// It answers only when the text is final; before that it says whether the text
// can still be one.
func (p *parser) reply(c *cursor) []found {
	c.space()
	calls := p.lead(c)
	if c.ok() && calls == nil {
		calls = p.items(c, item{whole: true})
	}
	p.skipClosers(c)
	c.space()
	if c.peek() != 0 {
		c.fail()
	}
	return calls
}

// lead takes a word that some models begin a call with, and reads the call if
// the word says how.
func (p *parser) lead(c *cursor) []found {
	from := c.at
	words := []string{"functools[", "Action:", startFunctionary, "assistantcommentary to=", "commentary to=", "to=functions."}
	switch c.match(words) {
	case -1:
	case 0:
		c.at = from + len("functools")
	case 1, 2:
		c.space()
	default:
		return p.plain(c)
	}
	return nil
}

package rescue

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// parser reads calls. It holds what is the same for a whole reply.
type parser struct {
	names names
	marks *markers
}

// block reads from an opening mark to where its calls are known to be whole: the
// closing marks themselves are left for what skips them.
func (p *parser) block(c *cursor) ([]found, kind) {
	k := p.opener(c)
	if !c.ok() {
		return nil, k
	}
	switch k {
	case harmony:
		return p.harmony(c), tagged
	case element:
		calls, closed := p.element(c)
		if closed {
			return calls, tagged
		}
		return p.follow(c, calls), tagged
	}
	calls := p.items(c, item{loose: k == loose, inside: true})
	return calls, k
}

// deepestMarks is how many opening marks stand one inside the other before a
// call; the known families write two. It bounds what one place in a reply costs.
const deepestMarks = 4

// opener takes the opening marks that stand here, one inside the other.
func (p *parser) opener(c *cursor) kind {
	k := kind(255)
	for n := 0; c.ok(); n++ {
		from := c.at
		i := c.match(p.marks.open)
		if i < 0 {
			c.at = from
			break
		}
		if n == deepestMarks {
			c.fail()
			return k
		}
		switch next := p.marks.kinds[i]; next {
		case harmony:
			return harmony
		case restart:
			c.fail()
			return k
		case element:
			c.at = from
			return element
		case decorated:
			if p.decoratedCall(c) {
				c.at = from
				return element
			}
			k = tagged
		default:
			k = next
		}
		c.space()
		p.prelude(c)
	}
	if k == kind(255) {
		c.fail()
	}
	return k
}

// prelude takes the word "function" that DeepSeek writes before a call's name.
func (p *parser) prelude(c *cursor) {
	if c.at < len(c.text) && c.text[c.at] != 'f' {
		return
	}
	for _, sep := range separators() {
		if c.take("function" + sep) {
			return
		}
	}
}

// separators stand between a call's name and its arguments.
func separators() []string {
	return []string{"<｜tool▁sep｜>", "<|tool_sep|>", "<｜tool_sep｜>", "<｜tool sep｜>", "<|tool_call_argument_begin|>", "[ARGS]"}
}

// decoratedCall reads the tag behind a DSML mark: that of a list of calls, which
// it takes, or that of a call.
func (p *parser) decoratedCall(c *cursor) bool {
	switch name := c.word(""); {
	case !c.ok():
		return false
	case name == "invoke":
		return true
	case strings.HasPrefix(name, "tool") || strings.HasPrefix(name, "function"):
		if !c.take(">") {
			c.fail()
		}
	default:
		c.fail()
	}
	return false
}

// item says where calls are read.
type item struct {
	loose  bool // one is enough
	inside bool // an opening mark says that a call is meant
	whole  bool // nothing but the shape says so, and the reply holds nothing else
	fence  bool // inside a code fence
}

// items reads calls, one behind the other, until something else follows.
func (p *parser) items(c *cursor, it item) []found {
	var calls []found
	for c.ok() {
		c.space()
		one, closed := p.item(c, it)
		if !c.ok() {
			return nil
		}
		calls = append(calls, one...)
		if closed && !it.whole {
			return calls
		}
		if it.loose || !p.another(c, it) {
			break
		}
	}
	if it.loose || it.whole {
		return calls
	}
	return p.follow(c, calls)
}

// another reports whether one more call follows, and takes what stands between.
func (p *parser) another(c *cursor, it item) bool {
	from := c.at
	for c.ok() {
		switch b := c.peek(); b {
		case ' ', '\t', '\n', '\r', ',', ';', '}', ']':
			c.at++
		case '{', '[':
			return c.ok() && (b == '{' || !p.marked(c))
		case '`':
			return it.whole && !it.fence
		default:
			if !it.whole || b == 0 || b == '<' {
				return false
			}
			if c.take(startFunctionary) {
				return true
			}
			if c.ok() && !p.named(c.probe(), it) {
				c.at = from
				return false
			}
			return c.ok()
		}
	}
	return false
}

// marked reports whether a mark stands here.
func (p *parser) marked(c *cursor) bool {
	probe := c.probe()
	for _, list := range [][]string{p.marks.closers, p.marks.open} {
		if probe.match(list) >= 0 {
			return true
		}
	}
	if probe.fate == more {
		c.want("")
	}
	return false
}

// named reports whether a call by name could begin here.
func (p *parser) named(c *cursor, it item) bool {
	p.call(c, it)
	return c.fate != no
}

// follow sees that calls are followed by what ends them: a closing mark, an
// opening mark, or the end of the reply.
func (p *parser) follow(c *cursor, calls []found) []found {
	if !c.ok() {
		return nil
	}
	probe := c.probe()
	probe.space()
	if probe.peek() == 0 && probe.ok() {
		return calls
	}
	for _, list := range [][]string{p.marks.closers, p.marks.open} {
		if probe.ok() && probe.match(list) >= 0 {
			return calls
		}
	}
	if probe.fate == more {
		c.want("")
	} else {
		c.fail()
	}
	return nil
}

// item reads one call, or a list of them. closed says that a tag ended it.
func (p *parser) item(c *cursor, it item) (calls []found, closed bool) {
	switch b := c.peek(); {
	case !c.ok():
		return nil, false
	case b == '{':
		return p.json(c, it), false
	case b == '[':
		return p.list(c, it), false
	case b == '`':
		return p.fenced(c, it), false
	case b == '<' && !it.whole:
		return p.element(c)
	case isNameByte(b):
		return p.call(c, it), false
	}
	c.fail()
	return nil, false
}

// list reads [ and then JSON objects or calls as Python writes them.
func (p *parser) list(c *cursor, it item) []found {
	inner := c.probe()
	inner.at++
	inner.space()
	b := inner.peek()
	switch {
	case !inner.ok():
		c.want("")
		return nil
	case !isNameByte(b) || b == '"':
		return p.json(c, it)
	}
	var calls []found
	for inner.ok() {
		one := p.call(inner, item{inside: true, whole: true})
		calls = append(calls, one...)
		inner.space()
		if inner.peek() == ',' {
			inner.at++
			inner.space()
			continue
		}
		if !inner.take("]") {
			inner.fail()
		}
		break
	}
	c.at, c.fate, c.trigger = inner.at, inner.fate, inner.trigger
	return calls
}

// json reads a JSON object or a list of them.
func (p *parser) json(c *cursor, it item) []found {
	s := c.scans.follow(c, c.at, p.names, it.whole)
	body, from := "", c.at
	switch s.state {
	case foreign:
		c.fail()
		return nil
	case unfinished:
		if !c.final {
			c.want("")
			return nil
		}
		body = p.unclosed(c, it)
	case finished, broken:
		body = c.text[from:s.at]
		c.at = s.at
	}
	c.spend(len(body))
	v := jsontext.Value(body)
	if !v.IsValid() {
		var ok bool
		if v, ok = repairValue(body); !ok {
			c.fail()
			return nil
		}
	}
	calls, ok := p.names.callsIn(v, it.whole)
	if !ok {
		c.fail()
	}
	return calls
}

// unclosed is the body of a value that the reply ends in: up to the first
// closing mark, if there is one, or all of it.
func (p *parser) unclosed(c *cursor, it item) string {
	rest := c.rest()
	n := len(rest)
	marks := p.marks.closers
	if it.fence {
		marks = []string{"```"}
	}
	for _, m := range marks {
		if i := strings.Index(rest[:n], m); i >= 0 {
			n = i
		}
	}
	c.at += n
	return rest[:n]
}

// fenced reads calls inside a code fence.
func (p *parser) fenced(c *cursor, it item) []found {
	if !c.take("```") {
		c.fail()
		return nil
	}
	label := c.text[c.at:]
	if got := c.word(""); c.ok() {
		label = got
	}
	if !fits(label, c.ok()) {
		c.fate = no
	}
	if !c.ok() {
		return nil
	}
	it.inside = it.inside || strings.Contains(label, "tool")
	c.space()
	calls := p.fence(c, item{inside: it.inside, whole: true, fence: true})
	c.space()
	if c.peek() == 0 && c.ok() {
		return calls
	}
	if !c.take("```") {
		c.fail()
	}
	return calls
}

// fits reports whether a fence's label, or the beginning of one, is one under
// which models write calls.
func fits(label string, complete bool) bool {
	label = strings.ToLower(label)
	for _, l := range []string{"", "json", "jsonc", "json5", "xml", "python", "py", "plaintext", "text", "tool_call", "tool_calls", "tool_code", "tool", "function_call"} {
		if label == l || (!complete && strings.HasPrefix(l, label)) {
			return true
		}
	}
	return false
}

// fence reads what stands in a fence: calls, or calls between marks.
func (p *parser) fence(c *cursor, it item) []found {
	var calls []found
	for c.ok() {
		c.space()
		if b := c.peek(); b == '<' || (b == '[' && p.marked(c)) {
			one, _ := p.block(c)
			calls = append(calls, one...)
			p.skipClosers(c)
		} else if len(calls) == 0 {
			return p.items(c, it)
		} else {
			return calls
		}
	}
	return nil
}

// skipClosers takes the closing marks that stand here and the space around them.
// It returns where the last of them ended.
func (p *parser) skipClosers(c *cursor) (last int) {
	for c.ok() {
		c.space()
		i := c.match(p.marks.closers)
		if i < 0 {
			break
		}
		if strings.Contains(p.marks.closers[i], "DSML") {
			c.until(">", longestTag)
		}
		last = c.at
	}
	return last
}

// longestTag is the longest tag that is read as one.
const longestTag = 256

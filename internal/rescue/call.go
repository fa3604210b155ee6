package rescue

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// call reads a call that begins with its name: a JSON object behind it, with or
// without marks between, arguments in round brackets as in Python, or the
// key and value elements of GLM.
func (p *parser) call(c *cursor, it item) []found {
	if it.inside && c.take(startPrint) {
		calls := p.call(c, item{inside: true, whole: true})
		c.space()
		if c.ok() && !c.take(")") {
			c.fail()
		}
		return calls
	}
	gemma := c.ok() && c.take(startCall)
	if !c.ok() {
		return nil
	}
	name := p.name(c)
	if !c.ok() {
		return nil
	}
	t, ok := p.names.find(name)
	if !ok {
		c.fail()
		return nil
	}
	line := c.at
	c.space()
	between := p.separator(c)
	if !c.ok() {
		return nil
	}
	broke := between || strings.Contains(c.text[line:c.at], "\n")
	switch b := c.peek(); {
	case !c.ok():
		return nil
	case b == '(' && !between:
		return p.bracketed(c, t, gemma)
	case b == '{' && gemma:
		return p.bracketed(c, t, true)
	case b == '{' && (!it.whole || broke || line == c.at):
		return p.withArguments(c, t)
	case b == '`' && it.inside:
		return p.fencedArguments(c, t)
	case b == '"' && between:
		return p.quotedArguments(c, t)
	case it.inside && !it.whole && !it.loose:
		return p.keysAndValues(c, t)
	}
	c.fail()
	return nil
}

// name reads a call's name. It gives up when no declared name begins so.
func (p *parser) name(c *cursor) string {
	probe := c.probe()
	name := probe.word(":/")
	if probe.fate == more {
		if !p.names.begins(stem(probe.text[c.at:])) && !p.builtIn(probe.text[c.at:]) {
			c.fail()
			return ""
		}
		c.want("")
		return ""
	}
	c.at = probe.at
	return stem(name)
}

// method is what Llama puts behind the name of a built-in tool.
const method = ".call"

// builtIn reports whether s is a declared name and the beginning of a method.
func (p *parser) builtIn(s string) bool {
	i := strings.LastIndexByte(s, '.')
	if i < 0 || !strings.HasPrefix(method, s[i:]) {
		return false
	}
	_, ok := p.names.find(s[:i])
	return ok
}

// stem is a name without what models put behind it: Kimi the number of the call,
// Llama the method of a built-in tool.
func stem(s string) string {
	if i := strings.LastIndexByte(s, ':'); i > 0 && strings.Trim(s[i+1:], "0123456789") == "" {
		s = s[:i]
	}
	return strings.TrimSuffix(s, method)
}

// separator takes the mark between a call's name and its arguments.
func (p *parser) separator(c *cursor) bool {
	if c.take("[CALL_ID]") {
		c.word("")
	}
	if !c.ok() || c.match(separators()) < 0 {
		return false
	}
	c.space()
	return true
}

// withArguments reads the JSON object of a call's arguments.
func (p *parser) withArguments(c *cursor, t tool) []found {
	text := p.object(c)
	if !c.ok() {
		return nil
	}
	return []found{{tool: t, arguments: text}}
}

// fencedArguments reads the same in a code fence.
func (p *parser) fencedArguments(c *cursor, t tool) []found {
	if !c.take("```") {
		c.fail()
		return nil
	}
	c.word("")
	c.space()
	if c.peek() != '{' {
		c.fail()
		return nil
	}
	calls := p.withArguments(c, t)
	c.space()
	if c.peek() == '`' && !c.take("```") {
		c.fail()
	}
	return calls
}

// quotedArguments reads them encoded as a string.
func (p *parser) quotedArguments(c *cursor, t tool) []found {
	for at := c.at + 1; ; at++ {
		i := strings.IndexAny(c.text[at:], `"\`)
		if i < 0 || (c.text[at+i] == '\\' && at+i+1 >= len(c.text)) {
			c.spend(len(c.text) - c.at)
			c.want(`"`)
			return nil
		}
		if at += i; c.text[at] == '\\' {
			at++
			continue
		}
		c.spend(at - c.at)
		text, ok := t.argumentText(jsontext.Value(c.text[c.at : at+1]))
		if !ok {
			c.fail()
		}
		c.at = at + 1
		return []found{{tool: t, arguments: text}}
	}
}

// keysAndValues reads GLM's arguments: elements for key and value in turn, or
// none.
func (p *parser) keysAndValues(c *cursor, t tool) []found {
	var args arguments
	for c.ok() {
		c.space()
		if !c.take("<arg_key>") {
			break
		}
		key := strings.TrimSpace(c.until("</arg_key>", longestTag))
		c.space()
		if !c.take("<arg_value>") {
			c.fail()
			return nil
		}
		value := c.until("</arg_value>", 0)
		if c.ok() {
			args.add(key, t.value(key, value))
		}
	}
	if !c.ok() {
		return nil
	}
	text, ok := args.text()
	if !ok {
		c.fail()
	}
	return []found{{tool: t, arguments: text}}
}

// bracketed reads name=value or name: value pairs in brackets, as Python and
// Gemma write them.
func (p *parser) bracketed(c *cursor, t tool, bare bool) []found {
	end := balanced(c.rest())
	if end < 0 {
		c.spend(len(c.rest()))
		c.want(")}]")
		return nil
	}
	c.spend(end)
	body := c.rest()[1 : end-1]
	c.at += end
	text, ok := t.pairs(body, bare)
	if !ok {
		c.fail()
		return nil
	}
	return []found{{tool: t, arguments: text}}
}

// balanced is the length of the bracketed text that s begins with, or -1 while
// its end is missing. Brackets in strings do not count.
func balanced(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		for _, mark := range tokens() {
			if strings.HasPrefix(s[i:], mark) {
				n := strings.Index(s[i+len(mark):], mark)
				if n < 0 {
					return -1
				}
				i += len(mark) + n + len(mark)
			}
		}
		if i >= len(s) {
			return -1
		}
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if i = closingQuote(s, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// closingQuote is the place of the quote that ends the string begun at i.
func closingQuote(s string, i int) int {
	q := s[i]
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case q:
			return j
		}
	}
	return -1
}

// pairs reads the inside of a call's brackets.
func (t tool) pairs(body string, bare bool) (string, bool) {
	m := mender{in: body, reading: reading{bare: bare}}
	var args arguments
	for {
		m.space()
		if m.end() {
			return args.text()
		}
		key, ok := m.argumentName()
		if !ok {
			return t.positional(body)
		}
		m.out = m.out[:0]
		if !m.value(0) || !m.comma(0) {
			return "", false
		}
		v := jsontext.Value(string(m.out))
		if !v.IsValid() {
			return "", false
		}
		if bare {
			v = t.settle(key, v)
		}
		args.add(key, v)
	}
}

// argumentName reads a name and the sign behind it.
func (m *mender) argumentName() (string, bool) {
	m.out = m.out[:0]
	if quote, ok := m.quote(); ok {
		if !m.text(quote) {
			return "", false
		}
	} else {
		from := m.at
		for !m.end() && isNameByte(m.in[m.at]) {
			m.at++
		}
		if from == m.at {
			return "", false
		}
		m.out = wire.AppendString(m.out, m.in[from:m.at])
	}
	m.space()
	name, ok := wire.String(m.out)
	return name, ok && (m.take("=") || m.take(":"))
}

// positional reads the one argument without name of a tool that has one
// property.
func (t tool) positional(body string) (string, bool) {
	only, ok := t.single()
	if !ok {
		return "", false
	}
	v, ok := mend(body, reading{})
	if !ok {
		return "", false
	}
	var args arguments
	args.add(only, v)
	return args.text()
}

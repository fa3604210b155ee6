package rescue

import "strings"

// element reads a call that is an element: <function=name> or <invoke
// name="name">, with its arguments as elements or as a JSON object, plain or with
// DSML marks. closed says that the element has its closing tag.
func (p *parser) element(c *cursor) (calls []found, closed bool) {
	if !c.take("<") {
		c.fail()
		return nil, false
	}
	p.decoration(c)
	switch name := c.word(":"); {
	case !c.ok():
		return nil, false
	case name != "function" && name != "invoke" && name != "antml:invoke":
		c.fail()
		return nil, false
	}
	t, ok := p.names.find(attribute(c.until(">", longestTag)))
	if !c.ok() || !ok {
		c.fail()
		return nil, false
	}
	c.space()
	if c.peek() == '{' {
		return p.jsonBody(c, t)
	}
	return p.parameters(c, t)
}

// decoration takes a DSML mark.
func (p *parser) decoration(c *cursor) {
	c.match([]string{"｜DSML｜", "|DSML|", "‖DSML‖", "｜｜DSML｜｜", "||DSML||", " | DSML | ", "DSML "})
}

// attribute is the value of a tag's one attribute, or of its name attribute:
// =value, name="value".
func attribute(s string) string {
	if _, after, ok := strings.Cut(s, "name="); ok {
		s = "=" + after
	}
	s = strings.TrimSpace(strings.TrimPrefix(s, "="))
	for _, q := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(s, q); ok {
			s, _, _ = strings.Cut(inner, q)
			return s
		}
	}
	s, _, _ = strings.Cut(s, " ")
	return s
}

// jsonBody reads the arguments of an element as one JSON object.
func (p *parser) jsonBody(c *cursor, t tool) (calls []found, closed bool) {
	text := p.object(c)
	if !c.ok() {
		return nil, false
	}
	closed = p.endElement(c)
	return []found{{tool: t, arguments: text}}, closed
}

// object reads a JSON object of arguments.
func (p *parser) object(c *cursor) string {
	s := c.scans.arguments(c, c.at)
	body := ""
	switch s.state {
	case foreign:
		c.fail()
		return ""
	case unfinished:
		if !c.final {
			c.want("")
			return ""
		}
		body = p.unclosed(c, item{})
	default:
		body = c.text[c.at:s.at]
		c.at = s.at
	}
	c.spend(len(body))
	text, ok := Repair(body)
	if !ok {
		c.fail()
		return ""
	}
	return text
}

// endElement takes the tag that closes a call's element, which may be missing.
func (p *parser) endElement(c *cursor) bool {
	c.space()
	if c.peek() != '<' {
		return false
	}
	from := c.at
	switch p.tag(c) {
	case "/function", "/invoke":
		return c.ok()
	}
	c.at = from
	return false
}

// tag takes a whole tag and returns its name, with a slash before it if it
// closes; empty if none stands here.
func (p *parser) tag(c *cursor) string {
	if !c.take("<") {
		return ""
	}
	slash := ""
	if c.take("/") {
		slash = "/"
	}
	p.decoration(c)
	name := c.word(":")
	if !c.ok() || name == "" {
		return ""
	}
	_, local, ok := strings.Cut(name, ":")
	if !ok {
		local = name
	}
	if slash != "" && !c.take(">") {
		return ""
	}
	return slash + local
}

// parameters reads the arguments of an element as elements.
func (p *parser) parameters(c *cursor, t tool) (calls []found, closed bool) {
	var args arguments
	for c.ok() {
		c.space()
		if b := c.peek(); b != '<' {
			if b != 0 {
				c.fail() // text where a parameter or the end should be
			}
			break
		}
		from := c.at
		name := p.tag(c)
		if !c.ok() {
			return nil, false
		}
		if name == "/function" || name == "/invoke" {
			closed = true
			break
		}
		if name != "parameter" && name != "param" {
			c.at = from
			break
		}
		p.parameter(c, t, &args)
	}
	if !c.ok() {
		return nil, false
	}
	text, ok := args.text()
	if !ok {
		c.fail()
	}
	return []found{{tool: t, arguments: text}}, closed
}

// parameter reads the rest of a parameter's tag, its value and the tag that
// closes it.
func (p *parser) parameter(c *cursor, t tool, args *arguments) {
	head := c.until(">", longestTag)
	if !c.ok() {
		return
	}
	if name, value, ok := cutFused(head); ok {
		args.add(name, t.value(name, value))
		return
	}
	name := attribute(head)
	text := p.parameterText(c, t)
	if !c.ok() {
		return
	}
	if name == "" {
		c.fail()
		return
	}
	if strings.Contains(head, `string="false"`) {
		if v, ok := literal(strings.TrimSpace(text)); ok {
			args.add(name, v)
			return
		}
	}
	args.add(name, t.value(name, text))
}

// cutFused reads <parameter=name=value</parameter>, where the model forgot to
// close the tag.
func cutFused(head string) (name, value string, ok bool) {
	head, ok = strings.CutSuffix(head, "</parameter")
	if !ok {
		return "", "", false
	}
	return strings.Cut(strings.TrimPrefix(head, "="), "=")
}

// parameterText is a parameter's value. A closing tag ends it only if what
// follows can follow a parameter: files hold such tags too.
func (p *parser) parameterText(c *cursor, t tool) string {
	for at := c.at; c.ok(); at++ {
		i := strings.IndexByte(c.text[at:], '<')
		if i < 0 {
			c.spend(len(c.text) - at)
			break
		}
		c.spend(i + 1)
		at += i
		probe := c.probe()
		probe.at = at
		end, ok := p.parameterEnd(probe, t)
		if probe.fate == more {
			c.want(">")
			return ""
		}
		if ok {
			text := c.text[c.at:at]
			c.at = end
			return trimLines(text)
		}
	}
	if !c.final {
		c.want(">")
		return ""
	}
	text := c.rest()
	c.at = len(c.text)
	return trimLines(text)
}

// parameterEnd reports whether a parameter's value ends at this tag, and where
// what follows begins.
func (p *parser) parameterEnd(c *cursor, t tool) (int, bool) {
	from := c.at
	switch name := p.tag(c); name {
	case "/parameter", "/param":
		end := c.at
		c.space()
		if b := c.peek(); b == 0 && c.ok() {
			return end, true
		}
		return end, c.ok() && p.afterParameter(c)
	case "/function", "/invoke":
		c.space()
		if c.peek() == 0 && c.ok() {
			return from, true
		}
		return from, c.ok() && (c.match(p.marks.closers) >= 0 || c.ok() && c.match(p.marks.open) >= 0)
	case "parameter", "param":
		name := attribute(c.until(">", longestTag))
		return from, c.ok() && t.has(name) && lineBegins(c.text, from)
	}
	if c.fate == no {
		c.fate = open
	}
	return from, false
}

// afterParameter reports whether what stands here can follow a parameter.
func (p *parser) afterParameter(c *cursor) bool {
	probe := c.probe()
	switch p.tag(probe) {
	case "parameter", "param", "/function", "/invoke":
		return true
	}
	if probe.fate == more {
		c.want(">")
		return false
	}
	return c.match(p.marks.closers) >= 0
}

func lineBegins(s string, at int) bool {
	before := strings.TrimRight(s[:at], " \t")
	return before == "" || before[len(before)-1] == '\n'
}

// trimLines takes off the line break that stands after the opening tag and the
// one before the closing tag.
func trimLines(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

package shell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseExports reads what "export -p" wrote, up to a line that begins with "#" and is
// no part of a value; rest begins with that line. The forms are those of bash ("declare
// -x NAME="value""), of dash, busybox and ksh ("export NAME='value'") and of zsh. They
// are read strictly and as data: nothing in them is expanded. Arrays are known in bash
// alone, so that none gets into the script of another shell.
//
// An error tells that the text is not what a shell writes.
func parseExports(text string, d Dialect) (vars []variable, rest string, err error) {
	p := parser{text: text, arrays: d == Bash}
	for {
		for p.take("\n") || p.take("\r") {
		}
		if p.at == len(text) || text[p.at] == '#' {
			return vars, text[p.at:], nil
		}
		v, set, err := p.statement()
		if err != nil {
			return nil, "", fmt.Errorf("read exported variables: byte %d: %w", p.at, err)
		}
		if set {
			vars = append(vars, v)
		}
	}
}

// parser is where reading is.
type parser struct {
	text   string
	at     int
	arrays bool
}

var (
	errStatement = errors.New("this is no exported variable")
	errName      = errors.New("this is no name of a variable")
	errQuote     = errors.New("a quoted text does not end, or holds what a shell would expand")
	errArray     = errors.New("this is no array")
)

func (p *parser) take(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// next is the byte here; 0 at the end, which is no byte of a value either.
func (p *parser) next() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// while takes what ok accepts.
func (p *parser) while(ok func(byte) bool) string {
	from := p.at
	for p.at < len(p.text) && ok(p.text[p.at]) {
		p.at++
	}
	return p.text[from:p.at]
}

// statement reads one line. set is false when the variable has no value to remember.
func (p *parser) statement() (v variable, set bool, err error) {
	if !p.take("declare ") && !p.take("export ") && !p.take("typeset ") {
		return v, false, errStatement
	}
	flags := ""
	for p.take("-") {
		flags += p.while(isNameByte)
		if !p.take(" ") {
			return v, false, errStatement
		}
	}
	if strings.Contains(flags, "T") {
		// zsh's PATH, tied to an array.
		p.while(func(b byte) bool { return b != '\n' })
		return v, false, p.end()
	}
	v.name = p.while(isNameByte)
	if v.name == "" || v.name[0] >= '0' && v.name[0] <= '9' {
		return v, false, errName
	}
	if !p.take("=") {
		return v, false, p.end()
	}
	named := strings.Contains(flags, "A")
	isArray := named || strings.Contains(flags, "a")
	if isArray && p.next() == '(' {
		v.array, err = p.list(named)
	} else if v.value, err = p.word(); err == nil && isArray {
		// Old bashes write the list as one quoted word.
		inner := parser{text: v.value, arrays: p.arrays}
		if v.array, err = inner.list(named); err == nil && inner.at < len(inner.text) {
			err = errArray
		}
		v.value = ""
	}
	if err != nil {
		return v, false, err
	}
	// What a reference refers to may be gone.
	return v, !strings.Contains(flags, "n"), p.end()
}

// end takes the end of a line.
func (p *parser) end() error {
	p.take("\r")
	if p.at < len(p.text) && !p.take("\n") {
		return errStatement
	}
	return nil
}

func isNameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// word reads a value: plain and quoted parts that follow each other.
func (p *parser) word() (string, error) {
	var b strings.Builder
	for {
		switch c := p.next(); {
		case p.take("$'"):
			if err := p.ansi(&b); err != nil {
				return "", err
			}
		case c == '\'':
			end := strings.IndexByte(p.text[p.at+1:], '\'')
			if end < 0 {
				return "", errQuote
			}
			b.WriteString(p.text[p.at+1 : p.at+1+end])
			p.at += end + 2
		case p.take(`"`):
			if err := p.double(&b); err != nil {
				return "", err
			}
		case c == '\\' && p.at+1 < len(p.text):
			b.WriteByte(p.text[p.at+1])
			p.at += 2
		case c <= ' ' || strings.IndexByte("$`;&|<>()[]\\", c) >= 0:
			// NUL among them: no variable holds one.
			value := b.String()
			if strings.IndexByte(value, 0) >= 0 {
				return "", errQuote
			}
			return value, nil
		default:
			b.WriteByte(c)
			p.at++
		}
	}
}

// double reads the rest of a text in double quotes.
func (p *parser) double(b *strings.Builder) error {
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch c {
		case '"':
			return nil
		case '$', '`':
			return errQuote
		case '\\':
			if e := p.next(); strings.IndexByte("\"$`\\", e) >= 0 && e != 0 {
				c = e
				p.at++
			}
		}
		b.WriteByte(c)
	}
	return errQuote
}

// ansi reads the rest of a text in $'...'.
func (p *parser) ansi(b *strings.Builder) error {
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		if c == '\'' {
			return nil
		}
		if c != '\\' {
			b.WriteByte(c)
		} else if err := p.escape(b); err != nil {
			return err
		}
	}
	return errQuote
}

// escape reads what follows a backslash in $'...'.
func (p *parser) escape(b *strings.Builder) error {
	c := p.next()
	if c >= '0' && c <= '7' {
		return p.number(b, 3, 8)
	}
	p.at = min(p.at+1, len(p.text))
	if i := strings.IndexByte(`abeEfnrtv\'"?`, c); i >= 0 && c != 0 {
		b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[i])
		return nil
	}
	switch c {
	case 'x':
		return p.number(b, 2, 16)
	case 'u':
		return p.letter(b, 4)
	case 'U':
		return p.letter(b, 8)
	case 'C', 'M', 'c':
		p.at--
		control, err := p.zsh()
		b.WriteByte(control)
		return err
	}
	return errQuote
}

// zsh reads the names that zsh has for bytes: "C-a" for a control, "M-" for one of the
// upper half; and ksh's "ca".
func (p *parser) zsh() (byte, error) {
	switch {
	case p.take("M-"):
		if p.take(`\`) {
			low, err := p.zsh()
			return low | 0x80, err
		}
		low := p.next()
		p.at = min(p.at+1, len(p.text))
		return low | 0x80, nil
	case p.take("C-"), p.take("c"):
		c := p.next()
		p.at = min(p.at+1, len(p.text))
		if c == '?' {
			return 0x7f, nil
		}
		return c & 0x1f, nil
	}
	return 0, errQuote
}

// digits takes at most so many digits of a base and is their value.
func (p *parser) digits(most, base int) (uint64, error) {
	n := 0
	for n < most && p.at+n < len(p.text) && isDigit(p.text[p.at+n], base) {
		n++
	}
	value, err := strconv.ParseUint(p.text[p.at:p.at+n], base, 64)
	p.at += n
	if err != nil {
		return 0, errQuote
	}
	return value, nil
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(rune(c)), base, 8)
	return err == nil
}

// number reads a byte.
func (p *parser) number(b *strings.Builder, most, base int) error {
	value, err := p.digits(most, base)
	b.WriteByte(byte(value))
	return err
}

// letter reads a character.
func (p *parser) letter(b *strings.Builder, most int) error {
	value, err := p.digits(most, 16)
	if err != nil || value > utf8.MaxRune {
		return errQuote
	}
	b.WriteRune(rune(value))
	return nil
}

// list reads an array: ([0]="a" [1]="b").
func (p *parser) list(named bool) (*array, error) {
	if !p.arrays || !p.take("(") {
		return nil, errArray
	}
	a := &array{named: named}
	for {
		for p.take(" ") {
		}
		if p.take(")") {
			return a, nil
		}
		if !p.take("[") {
			return nil, errArray
		}
		key, err := p.word()
		if err != nil {
			return nil, err
		}
		if !p.take("]=") || !named && !isNumber(key) || key == "" {
			return nil, errArray
		}
		value, err := p.word()
		if err != nil {
			return nil, err
		}
		a.items = append(a.items, item{key, value})
	}
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 63)
	return err == nil
}

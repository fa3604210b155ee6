package scripted

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type opKind int

const (
	opWrite opKind = iota
	opStall
	opHang
	opCut
	opClose
	opRepeat
)

// op is one thing that a player does.
type op struct {
	kind opKind
	data []byte
	// fill: the data holds placeholders.
	fill bool
	// flush: the data ends an event.
	flush bool
	// split is the size of the pieces that the data is sent in; 0 sends it whole.
	split int
	pause time.Duration
	times int
	ops   []op
}

// placeholders in a body.
const (
	placeIndex   = "{{i}}"
	placeResults = "{{results}}"
)

// script compiles the lines of a body.
type script struct {
	p      *parser
	sse    bool
	eol    string
	split  int
	buf    strings.Builder
	done   []op
	outer  []op // what stood before the open @repeat
	times  int  // of the open @repeat; 0 when none is open
	opened int  // its line
}

func (p *parser) ops(data []byte, sse bool) ([]op, error) {
	s := &script{p: p, sse: sse, eol: "\n"}
	at := p.line
	for _, line := range lines(data) {
		at++
		if err := s.line(at, line); err != nil {
			return nil, err
		}
	}
	if s.times > 0 {
		return nil, p.fail(s.opened, "@repeat without an @end")
	}
	s.emit()
	if s.split > 0 {
		return nil, p.fail(at, "@split with no event behind it")
	}
	return s.done, nil
}

func (s *script) line(at int, line string) error {
	if strings.HasPrefix(line, "@") && !strings.HasPrefix(line, "@@") {
		return s.directive(at, line)
	}
	s.buf.WriteString(strings.TrimPrefix(line, "@"))
	s.buf.WriteString(s.eol)
	if s.sse && line == "" {
		s.emit()
	}
	return nil
}

// emit turns what was gathered into an op.
func (s *script) emit() {
	if s.buf.Len() == 0 {
		return
	}
	text := s.buf.String()
	s.buf.Reset()
	s.done = append(s.done, op{
		kind: opWrite, data: []byte(text), flush: s.sse, split: s.split,
		fill: strings.Contains(text, placeResults) || s.times > 0 && strings.Contains(text, placeIndex),
	})
	s.split = 0
}

func (s *script) directive(at int, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "@crlf":
		s.eol = "\r\n"
		return s.alone(at, word, rest)
	case "@chomp":
		return s.chomp(at, rest)
	case "@raw":
		return s.raw(at, rest)
	case "@split":
		return s.splitting(at, rest)
	case "@repeat":
		return s.repeat(at, rest)
	case "@end":
		return s.end(at, rest)
	case "@stall":
		o, err := s.p.stall(at, rest)
		s.add(o)
		return err
	case "@cut":
		s.add(op{kind: opCut})
		return s.alone(at, word, rest)
	case "@close":
		s.add(op{kind: opClose})
		return s.alone(at, word, rest)
	}
	return s.p.fail(at, fmt.Sprintf("directive %q: use @stall, @cut, @close, @split, @crlf, @chomp, @raw, @repeat or @end, or @@ for a line that begins with @", word))
}

func (s *script) add(o op) {
	s.emit()
	s.done = append(s.done, o)
}

func (s *script) alone(at int, word, rest string) error {
	if rest != "" {
		return s.p.fail(at, fmt.Sprintf("%s %s: the directive stands alone", word, rest))
	}
	return nil
}

func (s *script) chomp(at int, rest string) error {
	text := s.buf.String()
	if !strings.HasSuffix(text, s.eol) {
		return s.p.fail(at, "@chomp: there is no open line before it")
	}
	s.buf.Reset()
	s.buf.WriteString(strings.TrimSuffix(text, s.eol))
	return s.alone(at, "@chomp", rest)
}

func (s *script) raw(at int, rest string) error {
	text, err := strconv.Unquote(rest)
	if err != nil {
		return s.p.fail(at, fmt.Sprintf("@raw %s: give one Go string in quotes", rest))
	}
	s.emit()
	if text != "" {
		s.done = append(s.done, op{kind: opWrite, data: []byte(text), flush: s.sse, split: s.split})
		s.split = 0
	}
	return nil
}

func (s *script) splitting(at int, rest string) error {
	n, err := count(rest)
	if err != nil {
		return s.p.fail(at, "@split "+err.Error())
	}
	s.emit()
	s.split = n
	return nil
}

func (s *script) repeat(at int, rest string) error {
	if s.times > 0 {
		return s.p.fail(at, "@repeat inside a @repeat: end the first with @end")
	}
	n, err := count(rest)
	if err != nil {
		return s.p.fail(at, "@repeat "+err.Error())
	}
	s.emit()
	s.outer, s.done, s.times, s.opened = s.done, nil, n, at
	return nil
}

func (s *script) end(at int, rest string) error {
	if s.times == 0 {
		return s.p.fail(at, "@end without a @repeat")
	}
	s.emit()
	s.done = append(s.outer, op{kind: opRepeat, times: s.times, ops: s.done})
	s.outer, s.times = nil, 0
	return s.alone(at, "@end", rest)
}

func (p *parser) stall(at int, rest string) (op, error) {
	rest = strings.TrimSpace(rest)
	if rest == "forever" {
		return op{kind: opHang}, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return op{}, p.fail(at, fmt.Sprintf("@stall %s: give a duration such as 200ms, or forever", rest))
	}
	return op{kind: opStall, pause: d}, nil
}

func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s: give a number from 1", s)
	}
	return n, nil
}

package rescue

import (
	"bytes"
	"strings"
)

// progress says how far a JSON value is known.
type progress int

const (
	unfinished progress = iota
	finished
	broken  // markup stands where JSON should go on
	foreign // it can be no call
)

// scans keeps the values that were followed in one held text, by where they
// begin, so that none is followed twice.
type scans struct{ known map[place]*scan }

// place is where a value begins and what it is read as.
type place struct {
	start     int
	arguments bool
}

func (s *scans) reset() { s.known = nil }

// follow goes on with the call, or list of calls, that begins at from.
func (s *scans) follow(c *cursor, from int, n names, whole bool) *scan {
	return s.run(c, place{start: from}, scan{at: from, names: n, whole: whole})
}

// arguments goes on with the arguments of a call that begin at from.
func (s *scans) arguments(c *cursor, from int) *scan {
	return s.run(c, place{start: from, arguments: true}, scan{at: from, arguments: true})
}

// run goes on with the value at a place, which begins as fresh.
func (s *scans) run(c *cursor, at place, fresh scan) *scan {
	k := s.known[at]
	if k == nil {
		if s.known == nil {
			s.known = map[place]*scan{}
		}
		k = &fresh
		s.known[at] = k
	}
	from := k.at
	k.run(c.text)
	c.spend(k.at - from)
	return k
}

// scan follows a JSON object or array, well-formed or nearly so, through text
// that is still arriving, and gives up as soon as it can be no call: the name is
// not declared or, where the value is the whole reply, a member is none that a
// call has.
type scan struct {
	at    int
	state progress
	names names
	whole bool

	open    []byte // the closing brackets that are awaited
	level   int    // the depth of a call's own members
	quote   byte
	escaped bool
	begun   int    // where the current string began
	key     bool   // a string here is a name
	last    string // the last name at level
	named   bool   // a declared name was seen
	before  byte   // the last byte that is no space
	// arguments: the value is that of a call's arguments, whose members are
	// anyone's.
	arguments bool
}

func (s *scan) run(text string) {
	for s.state == unfinished && s.at < len(text) {
		b := text[s.at]
		s.at++
		if s.quote != 0 {
			s.inside(text, b)
			continue
		}
		if !isSpace(b) {
			s.outside(b)
			s.before = b
		}
	}
}

func (s *scan) inside(text string, b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case b == '\\':
		s.escaped = true
	case b == s.quote:
		s.quote = 0
		s.text(text[s.begun : s.at-1])
	}
}

func (s *scan) outside(b byte) {
	switch b {
	case '"':
		s.quote, s.begun = b, s.at
	case '\'':
		if strings.IndexByte("{[,:", s.before) >= 0 {
			s.quote, s.begun = b, s.at
		}
	case '{', '[':
		s.push(b)
	case '}', ']':
		s.pop(b)
	case ',':
		s.key = len(s.open) > 0 && s.open[len(s.open)-1] == '}'
	case ':':
		s.key = false
	case '<':
		s.state = broken
		s.at--
	}
}

func (s *scan) push(b byte) {
	if b == '{' {
		s.open = append(s.open, '}')
	} else {
		s.open = append(s.open, ']')
	}
	s.key = b == '{'
	switch {
	case len(s.open) == 1 && b == '{':
		s.level = 1
	case len(s.open) == 1:
		s.level = 2
	case len(s.open) == 2 && s.level == 2 && b == '[' && !s.arguments:
		s.state = foreign // a list of lists
	}
}

func (s *scan) pop(b byte) {
	// A bracket that is missing before this one is for the repair to judge.
	n := bytes.LastIndexByte(s.open, b)
	if n < 0 {
		s.state = foreign
		return
	}
	s.open = s.open[:n]
	s.key = false
	if n == 0 {
		s.state = finished
	}
}

// text sees a whole string.
func (s *scan) text(t string) {
	if s.arguments {
		return
	}
	if len(s.open) != s.level {
		if s.level == 2 && len(s.open) == 1 {
			s.state = foreign // a list of strings
		}
		return
	}
	if s.key {
		s.last = t
		if s.whole && !isMember(t) {
			s.state = foreign
		}
		return
	}
	if !s.named && isNameMember(s.last) {
		if _, s.named = s.names.find(t); !s.named {
			s.state = foreign
		}
	}
}

// Package bash reads command lines as bash does, within bounds.
//
// The parser underneath calls itself for each level of nesting and knows no bound, so a
// line of nothing but brackets would take all memory of this process. Here it stops.
// The package runs nothing, expands nothing and knows nothing of what a line means.
//
// Start at [Parse].
package bash

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ErrDeep says that a text is nested deeper than is read.
var ErrDeep = errors.New("it is nested too deep")

// ErrNUL says that a text holds a NUL byte, which a shell reads as if it were not there.
var ErrNUL = errors.New("it holds a NUL byte")

// Parse reads a text in the dialect of bash. It fails with [ErrDeep], [ErrNUL], or the
// parser's own word on what is wrong. Its time and memory grow with the length of the
// text, which its caller bounds.
func Parse(text string) (*syntax.File, error) { return ParseIn(syntax.LangBash, text) }

// ParseIn reads a text in another dialect.
func ParseIn(dialect syntax.LangVariant, text string) (*syntax.File, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("read a command line: %w", ErrNUL)
	}
	file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(&source{text: text}, "")
	if err != nil {
		return nil, fmt.Errorf("read a command line: %w", err)
	}
	return file, nil
}

// How deep the parser may be. A level of nesting takes a handful of calls, and a text
// that a person or a model wrote has not a hundred levels. Between two reads the parser
// sees no more than a chunk, so it is never deeper than the calls and the levels of one.
const (
	deepest = 16000 // calls on the stack
	chunk   = 512   // bytes
)

// source gives a parser a text piece by piece. Each time it asks for more it shows how
// deep it is: by the calls on the stack, which no trick of quoting can hide.
type source struct {
	text  string
	calls []uintptr
}

// Read gives the next piece, or ErrDeep.
func (s *source) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	if s.calls == nil {
		s.calls = make([]uintptr, 64)
	}
	for {
		n := runtime.Callers(1, s.calls)
		if n < len(s.calls) {
			break
		}
		if n >= deepest {
			return 0, ErrDeep
		}
		s.calls = make([]uintptr, 4*len(s.calls))
	}
	n := copy(p[:min(len(p), chunk)], s.text)
	s.text = s.text[n:]
	return n, nil
}

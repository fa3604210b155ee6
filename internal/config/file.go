package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// FileName is the file that is read from the working directory when none is
// named. Parent directories are not searched.
const FileName = "metier.toml"

// Position is a place in a configuration file. Line and column count from 1,
// the column in bytes.
type Position struct {
	File         string
	Line, Column int
	order        int // of the file among those that were read
}

// String is the place as compilers write it.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Problem is one mistake of a file.
type Problem struct {
	At Position
	// Text names the section and the key, says what is wrong and what to do. It
	// never repeats a value that could be a secret.
	Text string
}

// FileError lists all mistakes of the files, in their order.
type FileError struct{ Problems []Problem }

// Error is one line a mistake.
func (e *FileError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.At.String()+": "+p.Text)
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("the configuration has %d mistakes\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Source is the text of one file.
type Source struct {
	// Name is how errors name the file. Paths inside are relative to its folder.
	Name string
	Text []byte
}

// Document is what one or more files say together: later files win key by key,
// and a list is replaced whole.
//
// A section is read where it is used: a room takes its [Table] from [Document.Top]
// and asks for the keys that it knows. What was asked for is what may be
// there; [Document.Check] reports everything else, so it is called once, after all
// sections have been read. A Document is for one goroutine.
type Document struct {
	files    []Source
	top      *Table
	problems []Problem
}

// OpenFiles reads and parses files. With no path it is an empty document. The
// error is that of a file that cannot be read, or a [*FileError] with what is no
// TOML.
func OpenFiles(paths ...string) (*Document, error) {
	var sources []Source
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
		sources = append(sources, Source{Name: p, Text: text})
	}
	return ParseFiles(sources...)
}

// ParseFiles is [OpenFiles] over texts.
func ParseFiles(sources ...Source) (*Document, error) {
	d := &Document{files: sources}
	d.top = &Table{doc: d}
	for i, s := range sources {
		root, err := parseFile(s, i)
		if err != nil {
			d.problems = append(d.problems, *err)
			continue
		}
		d.top.layers = append(d.top.layers, root)
	}
	if len(d.problems) > 0 {
		return nil, &FileError{Problems: d.problems}
	}
	return d, nil
}

// Top is the table of the keys that stand before all sections, and of the
// sections themselves.
func (d *Document) Top() *Table { return d.top }

// Check lists everything that was found wrong while the sections were read, and
// each key that nobody asked for. It is nil or a [*FileError].
func (d *Document) Check() error {
	all := slices.Clone(d.problems)
	for problem := range d.top.unknown() {
		all = append(all, problem)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.order, b.At.order), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return &FileError{Problems: slices.Compact(all)}
}

func (d *Document) problem(at Position, format string, args ...any) {
	d.problems = append(d.problems, Problem{At: at, Text: fmt.Sprintf(format, args...)})
}

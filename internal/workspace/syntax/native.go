package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v4"
	shsyntax "mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
)

// native parses what needs no launch; nil is no verdict.
func (c *Checker) native(lang language, f File) *Verdict {
	size := int64(len(f.Data))
	switch lang {
	case jsonText:
		return jsonVerdict("JSON", f.Data)
	case jsonLines:
		return jsonLinesVerdict(f.Data)
	case goSource:
		return goVerdict(f.Data)
	case shell:
		if size <= c.o.Limits.Get(config.CodeLine) {
			return shellVerdict(f.Data)
		}
	// These parsers have no bound of their own on nesting.
	case tomlText:
		if size <= c.o.Limits.Get(config.SeenBytes) {
			return tomlVerdict(f.Data)
		}
	case yamlText:
		if size <= c.o.Limits.Get(config.SeenBytes) {
			return yamlVerdict(f.Data)
		}
	}
	return nil
}

// jsonOptions allow a name twice in an object: that is bad style and parses.
func jsonOptions() jsontext.Options { return jsontext.AllowDuplicateNames(true) }

// jsonVerdict parses one value, which must be all there is.
func jsonVerdict(lang string, data []byte) *Verdict {
	v := &Verdict{Language: lang}
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		v.Line, v.Column, v.Message = 1, 1, jsonBOM
		return v
	case len(bytes.TrimSpace(data)) == 0:
		v.Message = jsonEmpty
		return v
	}
	d := jsontext.NewDecoder(bytes.NewReader(data), jsonOptions())
	err := d.SkipValue()
	offset := d.InputOffset()
	if err == nil {
		rest := bytes.TrimLeft(data[offset:], " \t\r\n")
		if len(rest) == 0 {
			v.OK = true
			return v
		}
		v.Message = jsonMore
		v.Line, v.Column = position(data, len(data)-len(rest))
		return v
	}
	v.Message = err.Error()
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, v.Message = bad.ByteOffset, bad.Err.Error()
	}
	if strings.Contains(v.Message, "depth") {
		return nil // deeper than this parser goes
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		offset, v.Message = int64(len(bytes.TrimRight(data, " \t\r\n"))), jsonEnds
	}
	v.Message = strings.TrimPrefix(v.Message, "jsontext: ")
	if closing := afterComma(data, int(offset)); closing != 0 {
		v.Message = fmt.Sprintf(jsonComma, closing)
	}
	v.Line, v.Column = position(data, int(offset))
	return v
}

// afterComma is the bracket that follows a comma at an offset, or 0: the mistake that
// is made most, and which the parser has other words for.
func afterComma(data []byte, offset int) byte {
	if offset < 0 || offset >= len(data) || data[offset] != ',' {
		return 0
	}
	if rest := bytes.TrimLeft(data[offset+1:], " \t\r\n"); len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') {
		return rest[0]
	}
	return 0
}

// jsonLinesVerdict parses a value a line; empty lines are allowed.
func jsonLinesVerdict(data []byte) *Verdict {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v := jsonVerdict("JSON Lines", line)
		if v == nil {
			return nil
		}
		if !v.OK {
			v.Line = n
			return v
		}
	}
	return &Verdict{Language: "JSON Lines", OK: true}
}

// position is the line and column of an offset.
func position(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// goVerdict parses a Go file.
func goVerdict(data []byte) *Verdict {
	v := &Verdict{Language: "Go"}
	_, err := parser.ParseFile(token.NewFileSet(), "file.go", data, parser.SkipObjectResolution)
	if err == nil {
		v.OK = true
		return v
	}
	list, ok := errors.AsType[scanner.ErrorList](err)
	if !ok || len(list) == 0 || strings.Contains(list[0].Msg, "nesting") {
		return nil
	}
	v.Line, v.Message = list[0].Pos.Line, list[0].Msg
	v.Column = columnOf(data, v.Line, list[0].Pos.Column)
	return v
}

// columnOf turns a column in bytes into one in characters.
func columnOf(data []byte, line, column int) int {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return column
	}
	text := lines[line-1]
	return utf8.RuneCount(text[:min(max(column-1, 0), len(text))]) + 1
}

// shellVerdict parses a script of a POSIX shell. What only another dialect has, and what
// is nested too deep, gets no verdict.
func shellVerdict(data []byte) *Verdict {
	v := &Verdict{Language: "shell"}
	_, err := bash.Parse(string(data))
	if err == nil {
		v.OK = true
		return v
	}
	bad, ok := errors.AsType[shsyntax.ParseError](err)
	if !ok {
		return nil
	}
	v.Line, v.Message = int(bad.Pos.Line()), bad.Text
	v.Column = columnOf(data, v.Line, int(bad.Pos.Col()))
	return v
}

// tomlVerdict parses a TOML file.
func tomlVerdict(data []byte) *Verdict {
	v := &Verdict{Language: "TOML"}
	var all map[string]any
	err := toml.Unmarshal(data, &all)
	if err == nil {
		v.OK = true
		return v
	}
	v.Message = strings.TrimPrefix(err.Error(), "toml: ")
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		v.Line, v.Column = bad.Position()
		v.Column = columnOf(data, v.Line, v.Column)
	}
	return v
}

// yamlVerdict parses all documents of a YAML file into nodes: tags and duplicate names
// are the reader's matter.
func yamlVerdict(data []byte) *Verdict {
	v := &Verdict{Language: "YAML"}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil {
		var n yaml.Node
		err = loader.Load(&n)
	}
	if errors.Is(err, io.EOF) {
		v.OK = true
		return v
	}
	bad, ok := errors.AsType[*yaml.LoadError](err)
	if !ok || bytes.Contains(data, []byte("{{")) || strings.Contains(bad.Message, "depth") {
		return nil // a template, or deeper than this parser goes
	}
	v.Line, v.Column, v.Message = bad.Mark.Line, bad.Mark.Column, bad.Message
	return v
}

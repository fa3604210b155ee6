// Package syntax says whether files parse, in the words of their language's own parser.
//
// It is asked after something was written, with the bytes that were written (B1 10.11).
// It runs no code of a file: Python and JavaScript compile it in one confined launch a
// language, however many files there are; JSON, Go, shell, TOML and YAML are parsed here. A
// language that it does not know, a parser that is not there, and a file that a parser
// gives up on have no verdict: it never says that a file is wrong without a parser's
// word, nor that code is right.
//
// Start at [New], then [Checker.Check].
package syntax

import (
	"bytes"
	"context"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// Runner launches the parsers; the room launch has one. It is safe for concurrent use.
type Runner interface {
	// Run starts a launch and waits for its end. An error means that nothing ran.
	Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error)
}

// Options say how files are checked.
type Options struct {
	// Runner launches parsers; nil checks only what is parsed here.
	Runner Runner
	// Interpreters finds the programs of a place that names none.
	Interpreters interpreter.Options
	// Environ is the environment of this program, of which a parser gets what programs
	// cannot start without on Windows.
	Environ []string
	// Limits has the time of a launch, its output, and the size of what is looked at.
	Limits config.Values
	Logger *slog.Logger // nil logs nothing
}

// Checker checks files. It is safe for concurrent use.
type Checker struct{ o Options }

// New makes a checker.
func New(o Options) *Checker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Checker{o: o}
}

// Place is where parsers are launched.
type Place struct {
	// Temp is a directory of the host's own, absolute and free of links, that no command
	// can write: below it each launch gets a directory with copies of the files, which is
	// gone when it has ended.
	Temp string
	// Hide are the directories that a launch does not see.
	Hide []string
	// Interpreters finds the programs of a workspace's own; nil takes those of the
	// options.
	Interpreters *interpreter.Options
}

// File is what was written.
type File struct {
	// Path names the file to the model; its ending says what it is.
	Path string
	Data []byte
}

// Verdict is what a parser says of a file.
type Verdict struct {
	Path string
	// Language has the parser's version where that matters: "Python 3.11".
	Language string
	OK       bool
	// Line and Column count from 1, columns in characters; 0 when the parser does not
	// say.
	Line, Column int
	// Message is the parser's, on one line. Excerpt has the lines around, numbered as
	// read_file shows them.
	Message, Excerpt string
	// Shown are the numbers of the lines that Excerpt holds whole.
	Shown []int
}

// language is what a file is written in.
type language int

const (
	unknown language = iota
	python
	javaScript
	typeScript
	jsonText
	jsonLines
	goSource
	shell
	tomlText
	yamlText
)

// Check says of each file whether it parses, in their order, and leaves out those that
// it can say nothing about. It fails only when ctx has ended.
func (c *Checker) Check(ctx context.Context, at Place, files []File) ([]Verdict, error) {
	found := make([]*Verdict, len(files))
	var pythons, scripts []int
	for i, f := range files {
		switch lang := languageOf(f); {
		case int64(len(f.Data)) > c.o.Limits.Get(config.FileSize):
		case lang == python:
			pythons = append(pythons, i)
		case lang == javaScript || lang == typeScript:
			scripts = append(scripts, i)
		default:
			found[i] = c.native(lang, f)
		}
	}
	for _, batch := range []launch{{kind: interpreter.Python, files: pythons}, {kind: interpreter.Node, files: scripts}} {
		if len(batch.files) > 0 && c.o.Runner != nil {
			c.launch(ctx, at, batch, files, found)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var verdicts []Verdict
	for i, v := range found {
		if v != nil {
			verdicts = append(verdicts, v.of(files[i]))
		}
	}
	return verdicts, nil
}

// of completes a verdict on a file.
func (v Verdict) of(f File) Verdict {
	v.Path = f.Path
	v.Message = plain(v.Message, longestMessage)
	if v.OK {
		return v
	}
	lines := strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
	if v.Line > len(lines) {
		// Parsers place an unexpected end behind it.
		v.Line, v.Column = len(lines), 0
	}
	v.Line, v.Column = max(v.Line, 0), max(v.Column, 0)
	if v.Line > 0 {
		v.Excerpt, v.Shown = excerpt(lines, v.Line)
	}
	return v
}

// languages are the endings of file names, in small letters.
func languages() map[string]language {
	return map[string]language{
		".py": python, ".pyi": python, ".pyw": python,
		".js": javaScript, ".mjs": javaScript, ".cjs": javaScript,
		".ts": typeScript, ".mts": typeScript, ".cts": typeScript,
		".json": jsonText, ".geojson": jsonText, ".ipynb": jsonText, ".webmanifest": jsonText,
		".jsonl": jsonLines, ".ndjson": jsonLines,
		".go": goSource, ".sh": shell, ".bash": shell,
		".toml": tomlText, ".yaml": yamlText, ".yml": yamlText,
	}
}

// languageOf tells the language by the ending, else by a "#!" line.
func languageOf(f File) language {
	name := strings.ToLower(path.Base(strings.ReplaceAll(f.Path, `\`, "/")))
	lang, ok := languages()[path.Ext(name)]
	switch {
	case !ok && path.Ext(name) == "":
		return shebang(f.Data)
	case lang == jsonText && commented(f.Path):
		return unknown
	case lang == typeScript && bytes.IndexByte(f.Data, 0) >= 0:
		return unknown // a film has the same ending
	case lang == shell && shebang(f.Data) != shell && bytes.HasPrefix(f.Data, []byte("#!")):
		return unknown // zsh, fish and others
	}
	return lang
}

// commented reports whether a JSON file is one of those in which comments are usual.
func commented(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, `\`, "/"))
	base := path.Base(name)
	return strings.HasPrefix(base, "tsconfig") || strings.HasPrefix(base, "jsconfig") || base == "devcontainer.json" || base == ".eslintrc.json" || base == ".babelrc.json" || path.Base(path.Dir(name)) == ".vscode"
}

// shebang is the language of a "#!" line.
func shebang(data []byte) language {
	line, _, _ := bytes.Cut(data[:min(len(data), longestMessage)], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return unknown
	}
	words := strings.Fields(string(rest))
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
	}
	if len(words) == 0 {
		return unknown
	}
	switch base := path.Base(words[0]); {
	case strings.HasPrefix(base, "python3") || base == "python":
		return python
	case base == "node" || base == "nodejs":
		return javaScript
	case base == "sh" || base == "bash" || base == "dash":
		return shell
	}
	return unknown
}

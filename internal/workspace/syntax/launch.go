package syntax

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

//go:embed check.py
var pythonProgram string

//go:embed check.mjs
var nodeProgram string

// launch is what one launch checks.
type launch struct {
	kind  interpreter.Kind
	files []int // places in the list of all files
}

// launch checks the files of one language. Whatever keeps it from that is logged: the
// files then have no verdict.
func (c *Checker) launch(ctx context.Context, at Place, batch launch, files []File, found []*Verdict) {
	options := c.o.Interpreters
	if at.Interpreters != nil {
		options = *at.Interpreters
	}
	with, err := options.Find(batch.kind)
	if err != nil {
		return // a parser that is not there gives none
	}
	dir, err := os.MkdirTemp(at.Temp, "syntax-")
	if err != nil {
		c.o.Logger.ErrorContext(ctx, "no directory to check syntax in", "error", err)
		return
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			c.o.Logger.ErrorContext(ctx, "copies of checked files left behind", "dir", dir, "error", err)
		}
	}()
	var names []string
	for n, i := range batch.files {
		name := strconv.Itoa(n) + batch.ending(files[i])
		if err := os.WriteFile(filepath.Join(dir, name), files[i].Data, 0o600); err != nil {
			c.o.Logger.ErrorContext(ctx, "no copy to check the syntax of", "error", err)
			return
		}
		names = append(names, name)
	}
	result, err := c.o.Runner.Run(ctx, c.describe(with, at, dir, names))
	if err != nil {
		c.o.Logger.WarnContext(ctx, "syntax not checked", "kind", batch.kind, "error", err)
		return
	}
	batch.read(string(result.Stdout.Head)+string(result.Stdout.Tail), found)
}

// ending is what tells Node the kind of a file. Python gets none: nothing there may
// look like a module.
func (l launch) ending(f File) string {
	if l.kind == interpreter.Python {
		return ""
	}
	if ext := strings.ToLower(path.Ext(strings.ReplaceAll(f.Path, `\`, "/"))); ext != "" {
		return ext
	}
	return ".js"
}

// describe is the launch: the parser's program is an argument, and it sees nothing of
// the workspace but the copies.
func (c *Checker) describe(with interpreter.Interpreter, at Place, dir string, names []string) sandbox.Launch {
	argv := []string{with.Path, "-I", "-S", "-B", "-c", pythonProgram, dir, strconv.Itoa(len(names))}
	if with.Kind == interpreter.Node {
		argv = append([]string{with.Path, "--no-warnings", "--experimental-vm-modules", "--input-type=module", "-e", nodeProgram, "--", dir}, names...)
	}
	env := []string{"PATH=" + strings.Join(with.Bin, string(filepath.ListSeparator)), "HOME=" + dir, "TMPDIR=" + dir, "TEMP=" + dir, "TMP=" + dir, "LANG=C.UTF-8"}
	for _, e := range c.o.Environ {
		if name, _, _ := strings.Cut(e, "="); runtime.GOOS == "windows" && strings.EqualFold(name, "SystemRoot") {
			env = append(env, e)
		}
	}
	return sandbox.Launch{
		Purpose: sandbox.Syntax, Argv: argv, Dir: dir, Env: env,
		Write: []string{dir}, Read: slices.Clone(with.Read), Hide: at.Hide,
		Deadline: c.o.Limits.Duration(config.SyntaxTime), Output: c.o.Limits.Get(config.CodeOutput),
	}
}

// read takes the verdicts from a launch's output. A line that is none is passed over:
// an output that was cut in the middle has two.
func (l launch) read(output string, found []*Verdict) {
	version := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		word, rest, _ := strings.Cut(line, " ")
		if v, ok := l.version(word, rest); ok {
			version = v
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n >= len(l.files) {
			continue
		}
		if v, ok := verdictOf(rest); ok {
			v.Language = version
			found[l.files[n]] = &v
		}
	}
}

// version is the parser's line about itself.
func (l launch) version(word, rest string) (string, bool) {
	digits := strings.Trim(rest, "0123456789.") == "" && rest != "" && len(rest) < 20
	switch {
	case word == "python" && digits:
		return "Python " + rest, true
	case word == "node" && digits:
		return "Node " + rest, true
	}
	return "", false
}

// verdictOf reads "ok", or line, column and message.
func verdictOf(text string) (Verdict, bool) {
	if text == "ok" {
		return Verdict{OK: true}, true
	}
	var v Verdict
	if _, err := fmt.Sscanf(text, "%d %d", &v.Line, &v.Column); err != nil {
		return Verdict{}, false
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) < 3 || parts[2] == "" {
		return Verdict{}, false
	}
	v.Message = parts[2]
	return v, true
}

package install

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// written is a file that the line writes before it is read.
type written struct {
	text  string
	known bool
}

// writes remembers the files that a statement writes. Models write the list and
// install from it in one line, so a text that stands in the line is taken from
// there; any other is not known before the line runs.
func (r *reader) writes(s *syntax.Stmt, p place) {
	if p.dir == nil {
		return
	}
	var words []word
	if c, ok := s.Cmd.(*syntax.CallExpr); ok {
		for _, w := range c.Args {
			words = append(words, wordOf(p.text, w))
		}
	}
	for _, redirect := range s.Redirs {
		target := wordOf(p.text, redirect.Word)
		if target.expands {
			continue
		}
		switch redirect.Op {
		case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
			text, known := printed(p.text, s, words)
			r.files[join(*p.dir, target.text)] = written{text, known && !p.maybe}
		case syntax.AppOut, syntax.AppAll:
			r.files[join(*p.dir, target.text)] = written{}
		}
	}
	if len(words) == 0 || !words[0].is("tee", "cp", "mv", "sed") || words[0].is("sed") && !edits(words) {
		return
	}
	for _, w := range words[1:] {
		if !w.expands && !w.isOption() {
			r.files[join(*p.dir, w.text)] = written{}
		}
	}
}

// edits says whether a sed changes its files.
func edits(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") })
}

// printed is what a statement writes, if it is a cat of a heredoc, or an echo or
// a printf of plain words.
func printed(source string, s *syntax.Stmt, words []word) (string, bool) {
	outputs := 0
	var doc *syntax.Redirect
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.RdrClob:
			outputs++
		case syntax.Hdoc:
			doc = r
		default:
			return "", false
		}
	}
	switch {
	case outputs != 1 || len(words) == 0 || slices.ContainsFunc(words, func(w word) bool { return w.expands }):
		return "", false
	case len(words) == 1 && words[0].is("cat") && doc != nil && doc.Hdoc != nil:
		return heredoc(wordOf(source, doc.Word), doc.Hdoc)
	case words[0].is("echo") && doc == nil:
		var text []string
		for _, w := range words[1:] {
			if w.isOption() || strings.Contains(w.text, `\`) {
				return "", false
			}
			text = append(text, w.text)
		}
		return strings.Join(text, " ") + "\n", true
	case words[0].is("printf") && doc == nil && len(words) == 2 && !words[1].isOption():
		text := strings.ReplaceAll(words[1].text, `\n`, "\n")
		return text, !strings.ContainsAny(text, `\%`)
	}
	return "", false
}

// heredoc is the text of one in which nothing is expanded.
func heredoc(delimiter word, body *syntax.Word) (string, bool) {
	quoted := strings.ContainsAny(delimiter.raw, `'"\`)
	var text strings.Builder
	for _, part := range body.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !quoted && strings.Contains(lit.Value, `\`) {
			return "", false
		}
		text.WriteString(lit.Value)
	}
	return text.String(), true
}

// hasHeredoc says whether a script has one.
func hasHeredoc(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) {
			found = true
		}
		return !found
	})
	return found
}

// bare says whether a statement does nothing but installs, so that nothing of it
// need run when they are done.
func bare(source string, s *syntax.Stmt, only map[*syntax.CallExpr]bool) bool {
	if s.Negated || s.Background || s.Coprocess {
		return false
	}
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && only[c] {
		return true
	}
	if slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return !quiet(source, r) }) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return len(c.Assigns) == 0 && len(c.Args) == 1 && wordOf(source, c.Args[0]).is("true", ":")
	case *syntax.Block:
		return all(source, c.Stmts, only)
	case *syntax.Subshell:
		return all(source, c.Stmts, only)
	case *syntax.BinaryCmd:
		if c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
			return bare(source, c.X, only) && bare(source, c.Y, only)
		}
		pipeline := stages(s)
		return bare(source, pipeline[0], only) && !slices.ContainsFunc(pipeline[1:], func(s *syntax.Stmt) bool { return !filters(source, s) })
	}
	return false
}

func all(source string, list []*syntax.Stmt, only map[*syntax.CallExpr]bool) bool {
	return !slices.ContainsFunc(list, func(s *syntax.Stmt) bool { return !bare(source, s, only) })
}

// quiet says whether a redirection leaves nothing behind.
func quiet(source string, r *syntax.Redirect) bool {
	target := wordOf(source, r.Word)
	return !target.expands && (r.Op == syntax.DplOut || target.text == "/dev/null")
}

// filters says whether a stage of a pipeline does nothing but show some of what
// it is fed.
func filters(source string, s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || len(c.Args) == 0 || len(c.Assigns) > 0 ||
		slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return !quiet(source, r) }) {
		return false
	}
	operands, drops := 0, false
	for _, a := range c.Args[1:] {
		w := wordOf(source, a)
		switch {
		case w.expands:
			return false
		case w.isOption():
			drops = drops || !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "v") || w.is("--invert-match")
		case strings.Trim(w.text, "0123456789") != "" || w.text == "":
			operands++
		}
	}
	switch wordOf(source, c.Args[0]).text {
	case "tail", "head", "cat", "wc":
		return operands == 0
	case "grep", "egrep", "fgrep":
		// Without -v it is a question, and its answer is a status.
		return drops && operands <= 1
	}
	return false
}

package shell

import (
	"context"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/journal"
)

// lineShape is what is known of a command line before it runs.
type lineShape struct {
	// patches: apply_patch is a command in it.
	patches bool
	// background: its last command is sent to the background.
	background bool
	// envelope is the patch, where the line is nothing but one (B1 12.15).
	envelope string
}

// lookAtLine reads a line as bash does. Of one that cannot be read only what is
// certain is told: the shell says what is wrong with it.
func lookAtLine(line string) lineShape {
	var shape lineShape
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		shape.patches = strings.HasPrefix(strings.TrimSpace(line), "apply_patch")
		return shape
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && isPatch(call.Args[0].Lit()) {
			shape.patches = true
		}
		return true
	})
	if len(file.Stmts) == 0 {
		return shape
	}
	shape.background = file.Stmts[len(file.Stmts)-1].Background
	if len(file.Stmts) == 1 {
		shape.envelope = envelope(file.Stmts[0])
	}
	return shape
}

func isPatch(word string) bool {
	switch strings.ToLower(word) {
	case "apply_patch", "apply-patch", "applypatch":
		return true
	}
	return false
}

// envelope is the patch of a statement that is nothing but one: the tool with one
// heredoc, or with one argument in quotes.
func envelope(s *syntax.Stmt) string {
	call, ok := s.Cmd.(*syntax.CallExpr)
	plain := !s.Background && !s.Negated && !s.Coprocess && ok && len(call.Assigns) == 0
	if !plain || len(call.Args) == 0 || !isPatch(call.Args[0].Lit()) {
		return ""
	}
	switch {
	case len(s.Redirs) == 0 && len(call.Args) == 2:
		return quotedText(call.Args[1])
	case len(s.Redirs) == 1 && len(call.Args) == 1:
		return heredoc(s.Redirs[0])
	}
	return ""
}

// heredoc is the text of a heredoc as the model wrote it: an envelope is no place for
// expansions, so a "$" in one with a bare tag is a "$".
func heredoc(r *syntax.Redirect) string {
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc || r.Hdoc == nil || (r.N != nil && r.N.Value != "0") {
		return ""
	}
	text := source(r.Hdoc)
	if r.Op != syntax.DashHdoc {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// source prints a heredoc's body as it stood in the line.
func source(w *syntax.Word) string {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, w) != nil {
		return ""
	}
	return b.String()
}

// quotedText is the text of a word that is one string in quotes without an expansion.
func quotedText(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	switch part := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		if !part.Dollar {
			return part.Value
		}
	case *syntax.DblQuoted:
		if len(part.Parts) == 1 && !part.Dollar {
			if lit, ok := part.Parts[0].(*syntax.Lit); ok {
				return unescaped.Replace(lit.Value)
			}
		}
	}
	return ""
}

// unescaped takes away the backslashes that a shell takes away in double quotes.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, "\\`", "`", `\$`, "$", "\\\n", "")

// patch applies the command if it is nothing but a patch; done reports that it was.
func (r *run) patch(ctx context.Context) (result journal.Result, done bool, err error) {
	if r.o.Patch == nil || r.args.workdir != "" && r.args.workdir != "." {
		return journal.Result{}, false, nil
	}
	text := lookAtLine(r.args.command).envelope
	if text == "" {
		return journal.Result{}, false, nil
	}
	result, err = r.o.Patch(ctx, text)
	return result, true, err
}

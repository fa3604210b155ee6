package diagnose

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// answers are the commands whose exit status 1 is an answer and no failure, and what it
// means (B1 10.9).
func answers() map[string]string {
	return map[string]string{
		"grep": benignGrep, "egrep": benignGrep, "fgrep": benignGrep, "rg": benignGrep, "ripgrep": benignGrep, "ugrep": benignGrep, "git grep": benignGrep,
		"find": benignFind, "diff": benignDiff, "cmp": benignDiff, "git diff": benignDiff,
		"test": benignTest, "[": benignTest, "[[": benignTest,
	}
}

// Benign reports whether an exit status is the answer of the last simple command of a
// line and no failure (seed 1, "A benign exit code is not a failure"; B1 10.9). name is
// that command: "grep", "git diff". stderr is what the line wrote there: where commands
// before the last one may have ended the line, it must be silent.
func Benign(command string, exit int, stderr string) (name string, ok bool) {
	if exit != 1 {
		return "", false
	}
	f, ok := parse(command)
	if !ok || len(f.Stmts) == 0 {
		return "", false
	}
	b := benign{strict: errexit.MatchString(command)}
	if b.strict && len(f.Stmts) > 1 {
		b.chained = true
	}
	name = b.last(f.Stmts)
	if _, known := answers()[name]; !known || b.chained && strings.TrimSpace(stderr) != "" {
		return "", false
	}
	return name, true
}

// BenignMeaning says what exit status 1 of a command that [Benign] named means.
func BenignMeaning(name string) string { return answers()[name] }

// errexit is a setting under which a line may end before its last command, or with the
// status of another one.
var errexit = regexp.MustCompile(`\bset\s+(?:-\S+\s+)*[-+](?:[a-zA-Z]*e[a-zA-Z]*\b|o\s+errexit|[a-zA-Z]*o\s+pipefail)|\bpipefail\b|(?:^|\s)(?:trap|exec)\s`)

type benign struct {
	strict bool // errexit or pipefail may be on
	// chained says that a command before the last one may have given the status.
	chained bool
}

// last is the name of the last simple command, or empty if another kind of command is
// last or there may be several.
func (b *benign) last(list []*syntax.Stmt) string {
	if len(list) == 0 {
		return ""
	}
	return b.stmt(list[len(list)-1])
}

func (b *benign) stmt(s *syntax.Stmt) string {
	if s == nil || s.Negated || s.Background || s.Coprocess {
		return ""
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return simpleName(bash.Words(c))
	case *syntax.TestClause:
		return "[["
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			b.chained = true
		case syntax.Pipe, syntax.PipeAll:
			b.chained = b.chained || b.strict
		}
		return b.stmt(c.Y)
	case *syntax.Subshell:
		return b.last(c.Stmts)
	case *syntax.Block:
		return b.last(c.Stmts)
	case *syntax.TimeClause:
		return b.stmt(c.Stmt)
	case *syntax.ForClause:
		return b.last(c.Do)
	case *syntax.WhileClause:
		return b.last(c.Do)
	case *syntax.IfClause:
		return b.branches(c)
	}
	return ""
}

// branches is the last command of all branches, if all end in the same.
func (b *benign) branches(c *syntax.IfClause) string {
	name := b.last(c.Then)
	for clause := c.Else; clause != nil; clause = clause.Else {
		if other := b.last(clause.Then); other != name {
			return ""
		}
	}
	return name
}

// simpleName is the name of a simple command: without what only starts it, its path
// reduced, and git's subcommand with it.
func simpleName(args []string) string {
	for len(args) > 0 && (args[0] == "command" || args[0] == "builtin" || args[0] == "env" || args[0] == "nice" || args[0] == "nohup" || strings.Contains(args[0], "=") && args[0][0] != '=') {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	name := path.Base(strings.ReplaceAll(args[0], `\`, "/"))
	name = strings.TrimSuffix(name, ".exe")
	if name != "git" {
		return name
	}
	for i := 1; i < len(args); i++ {
		switch {
		case slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return "git " + args[i]
		}
	}
	return name
}

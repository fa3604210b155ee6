package diagnose

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// parsedLine is how long a line may be to be parsed, in bytes: what its parts mean takes
// memory for each.
const parsedLine = 256 << 10

// parse parses a command line of a POSIX shell. A line that does not parse, or that is
// nested too deep, has no meaning here.
func parse(command string) (*syntax.File, bool) {
	if len(command) > parsedLine {
		return nil, false
	}
	f, err := bash.Parse(command)
	return f, err == nil
}

// Redirect is a file that a command line writes to.
type Redirect struct {
	// Path is relative to where the command began, or absolute.
	Path string
	// Append says that the file is added to and not replaced.
	Append bool
}

// Redirects lists the files that a command line of a POSIX shell redirects into or
// has tee write, each once, in their order (B1 10.8, 10.11). A cd before that counts;
// names that depend on an expansion are left out.
func Redirects(command string) []Redirect {
	f, ok := parse(command)
	if !ok {
		return nil
	}
	r := redirects{dir: "."}
	r.stmts(f.Stmts)
	return r.found
}

type redirects struct {
	dir   string // where the command is; empty when that is not known
	found []Redirect
}

func (r *redirects) add(name string, appends bool) {
	if name == "" || strings.HasPrefix(name, "/dev/") || strings.ContainsAny(name, "*?[~") && !strings.HasPrefix(name, "./") {
		return
	}
	if !path.IsAbs(name) {
		if r.dir == "" {
			return
		}
		name = path.Join(r.dir, name)
	}
	i := slices.IndexFunc(r.found, func(x Redirect) bool { return x.Path == name })
	if i < 0 {
		r.found = append(r.found, Redirect{Path: name, Append: appends})
		return
	}
	r.found[i].Append = r.found[i].Append && appends
}

func (r *redirects) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

func (r *redirects) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	for _, redirect := range s.Redirs {
		name, plain := bash.Word(redirect.Word)
		switch redirect.Op {
		case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
			if plain {
				r.add(name, false)
			}
		case syntax.AppOut, syntax.AppAll:
			if plain {
				r.add(name, true)
			}
		}
	}
	r.command(s.Cmd)
}

func (r *redirects) command(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		r.call(bash.Words(c))
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			dir := r.dir // each side of a pipe is a shell of its own
			r.stmt(c.X)
			r.dir = dir
			r.stmt(c.Y)
			r.dir = dir
			return
		}
		r.stmt(c.X)
		r.stmt(c.Y)
	case *syntax.Subshell:
		dir := r.dir
		r.stmts(c.Stmts)
		r.dir = dir
	case *syntax.Block:
		r.stmts(c.Stmts)
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			r.stmts(clause.Cond)
			r.stmts(clause.Then)
		}
	case *syntax.WhileClause:
		r.stmts(c.Do)
	case *syntax.ForClause:
		r.stmts(c.Do)
	case *syntax.TimeClause:
		r.stmt(c.Stmt)
	}
}

// call follows cd, and takes what tee writes.
func (r *redirects) call(args []string) {
	if len(args) == 0 {
		return
	}
	switch args[0] {
	case "cd", "pushd", "popd":
		switch {
		case args[0] == "popd" || len(args) != 2 || args[1] == "" || args[1][0] == '-' || args[1][0] == '~':
			r.dir = ""
		case path.IsAbs(args[1]):
			r.dir = path.Clean(args[1])
		case r.dir != "":
			r.dir = path.Join(r.dir, args[1])
		}
	case "tee":
		appends := slices.Contains(args, "-a") || slices.Contains(args, "--append")
		for _, name := range args[1:] {
			if !strings.HasPrefix(name, "-") {
				r.add(name, appends)
			}
		}
	}
}

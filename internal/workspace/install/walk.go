package install

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// Bounds of what is parsed and followed. They bound no line: one over them is looked
// through instead.
const (
	longestParsed = 1 << 20
	longestPath   = 4096 // of a folder that the line changes to, as systems have it
	mostLooks     = 256  // at programs that a folder may have
)

// reader reads one line.
type reader struct {
	options  Options
	tools    map[string]tool
	wrappers map[string]wrapper
	known    map[Kind]map[string]option
	listed   map[Kind]map[string]bool

	requests []Request
	refusal  string
	routes   []string // assignments that would change what an install does
	files    map[string]written
	reads    int // files of the workspace that were asked for
	looks    int // programs of the workspace that were asked for

	// activated says that the line has turned to a virtual environment, and environment
	// which folder that has, if it is known.
	activated   bool
	environment string
}

// place is where in the line a command stands.
type place struct {
	text  string  // the script that it is in: the line, or the text of a sh -c
	edits *[]edit // of that script
	// only are the commands of the script that are nothing but installs.
	only map[*syntax.CallExpr]bool
	// inner says that the script is the text of a sh -c.
	inner bool
	// dir is the folder that the command runs in; nil when it cannot be known.
	dir *string
	// loops says that the command is a loop's condition.
	loops bool
	// maybe says that the command may not run, though what follows does.
	maybe bool
	// escaped says that the command stands in backquotes with backslashes in
	// them, where positions of the source are not what they seem.
	escaped bool
	// heredocs says that the script has some, whose text may stand in between.
	heredocs bool
}

// fork is a place whose changes of folder stay its own, as in a subshell.
func (p place) fork() place {
	if p.dir != nil {
		dir := *p.dir
		p.dir = &dir
	}
	return p
}

// refuse keeps the first refusal.
func (r *reader) refuse(sentence string) {
	if r.refusal == "" {
		r.refusal = sentence
	}
}

// readScript reads the whole line.
func (r *reader) readScript(line string) (script, bool) {
	dir := "."
	return r.scriptAt(line, place{dir: &dir})
}

// scriptAt reads a script.
func (r *reader) scriptAt(text string, p place) (script, bool) {
	file, problem := parse(text)
	if problem != "" {
		if _, asks := r.mentioned(text); asks {
			r.refuse(unreadable(problem))
		}
		return script{text: text}, false
	}
	var edits []edit
	p.text, p.edits, p.only = text, &edits, map[*syntax.CallExpr]bool{}
	p.heredocs = hasHeredoc(file)
	r.stmts(file.Stmts, p)
	only := !slices.ContainsFunc(file.Stmts, func(s *syntax.Stmt) bool { return !bare(text, s, p.only) })
	return script{text: text, edits: edits}, only
}

// parse parses a script in bash's dialect. The problem is what is wrong.
func parse(text string) (*syntax.File, string) {
	if len(text) > longestParsed {
		return nil, tooMuch
	}
	file, err := bash.Parse(text)
	if errors.Is(err, bash.ErrDeep) {
		return nil, tooMuch
	}
	if err != nil {
		return nil, clip(strings.TrimPrefix(err.Error(), "read a command line: "))
	}
	return file, ""
}

func (r *reader) stmts(list []*syntax.Stmt, p place) {
	for _, s := range list {
		if r.refusal != "" {
			return
		}
		r.stmt(s, p, nil)
	}
}

// stmt reads a statement; later are the stages of a pipeline behind it.
func (r *reader) stmt(s *syntax.Stmt, p place, later []*syntax.Stmt) {
	if s.Background {
		p = p.fork()
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c, s, p, later)
	case *syntax.BinaryCmd:
		r.binary(s, c, p)
	case *syntax.Block:
		r.stmts(c.Stmts, p)
	case *syntax.Subshell:
		r.stmts(c.Stmts, p.fork())
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt, p, nil)
		}
	case *syntax.CoprocClause:
		r.stmt(c.Stmt, p.fork(), nil)
	case *syntax.DeclClause:
		r.assigned(c.Args, p)
		r.within(c, p)
	default:
		r.compound(s.Cmd, p)
	}
	for _, redirect := range s.Redirs {
		r.within(redirect.Word, p)
	}
	r.writes(s, p)
}

// compound reads what may run or not, or more than once. If the folder changes in
// it, it is not known afterwards.
func (r *reader) compound(c syntax.Command, p place) {
	var before string
	if p.dir != nil {
		before = *p.dir
	}
	branch := func(list []*syntax.Stmt, loops bool) {
		b := p.fork()
		b.loops, b.maybe = loops, true
		r.stmts(list, b)
		if p.dir != nil && *b.dir != before {
			*p.dir = unknownDir
		}
	}
	switch c := c.(type) {
	case *syntax.IfClause:
		for part := c; part != nil; part = part.Else {
			branch(part.Cond, p.loops)
			branch(part.Then, p.loops)
		}
	case *syntax.WhileClause:
		branch(c.Cond, true)
		branch(c.Do, p.loops)
	case *syntax.ForClause:
		r.within(c.Loop, p)
		branch(c.Do, p.loops)
	case *syntax.CaseClause:
		r.within(c.Word, p)
		for _, item := range c.Items {
			branch(item.Stmts, p.loops)
		}
	case *syntax.FuncDecl:
		branch([]*syntax.Stmt{c.Body}, p.loops)
	default:
		r.within(c, p)
	}
}

// unknownDir is a folder that cannot be told before the line runs.
const unknownDir = "\x00"

// binary reads lists and pipelines.
func (r *reader) binary(s *syntax.Stmt, c *syntax.BinaryCmd, p place) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		all := stages(s)
		for i, stage := range all {
			r.stmt(stage, p.fork(), all[i+1:])
		}
	case syntax.OrStmt:
		r.stmt(c.X, p, nil)
		before := len(r.requests)
		alternative := p.fork()
		alternative.maybe = true
		r.stmt(c.Y, alternative, nil)
		if len(r.requests) == before+1 && p.installs(c.X) && p.installs(c.Y) {
			r.requests[before].Fallback = true
		}
		if p.dir != nil && *alternative.dir != *p.dir {
			*p.dir = unknownDir
		}
	default:
		r.stmt(c.X, p, nil)
		r.stmt(c.Y, p, nil)
	}
}

// installs says whether a statement succeeds just when an install does: it is one, or
// several of which one is enough.
func (p place) installs(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return p.only[c]
	case *syntax.BinaryCmd:
		return c.Op == syntax.OrStmt && p.installs(c.X) && p.installs(c.Y)
	}
	return false
}

// stages are the commands of a pipeline in order. It is as deep as it is long,
// but for pieces that have redirections of their own.
func stages(s *syntax.Stmt) []*syntax.Stmt {
	var all []*syntax.Stmt
	for {
		c, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || c.Op != syntax.Pipe && c.Op != syntax.PipeAll || len(s.Redirs) > 0 {
			all = append(all, s)
			slices.Reverse(all)
			return all
		}
		all = append(all, c.Y)
		s = c.X
	}
}

// within reads the commands that stand in a word or an expression: $(...), `...`
// and <(...).
func (r *reader) within(n syntax.Node, p place) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner := p.fork()
			inner.loops = false
			inner.escaped = p.escaped || n.Backquotes && strings.Contains(p.text[n.Pos().Offset():n.End().Offset()], `\`)
			r.stmts(n.Stmts, inner)
			return false
		case *syntax.ProcSubst:
			inner := p.fork()
			inner.loops = false
			r.stmts(n.Stmts, inner)
			return false
		}
		return true
	})
}

// call reads a simple command.
func (r *reader) call(c *syntax.CallExpr, s *syntax.Stmt, p place, later []*syntax.Stmt) {
	defer func() {
		for _, a := range c.Assigns {
			r.within(a, p)
		}
		for _, w := range c.Args {
			r.within(w, p)
		}
	}()
	r.assigned(c.Assigns, p)
	if len(c.Args) == 0 {
		return
	}
	words := make([]word, 0, len(c.Args))
	for _, w := range c.Args {
		words = append(words, wordOf(p.text, w))
	}
	r.changesDir(words, p)
	r.activates(words, p)
	a, asks := r.recognise(glue(p.text, words, s.Redirs))
	if !asks {
		return
	}
	switch {
	case a.input:
		r.input(a, s, p)
		return
	case a.family == shell, a.family == evals:
		p.only[c] = r.nested(a, s, p)
		return
	case a.family == traps:
		if command, asks := r.hidden(a.script); asks {
			r.refuseHidden(a, trapRefused(a, command))
		}
		return
	}
	before := len(r.requests)
	if r.perform(a, p); len(r.requests) > before {
		plain := r.replace(words, s, p, later)
		p.only[c] = plain && !slices.ContainsFunc(c.Assigns, func(a *syntax.Assign) bool {
			return a.Value != nil && wordOf(p.text, a.Value).expands
		})
	}
}

// input looks into what a shell is given to read, where that stands in the line. It is
// the shell's, and so nothing is taken out of it.
func (r *reader) input(a ask, s *syntax.Stmt, p place) {
	for _, redirect := range s.Redirs {
		text := redirect.Hdoc
		if redirect.Op == syntax.WordHdoc {
			text = redirect.Word
		}
		if text == nil {
			continue
		}
		if command, asks := r.mentioned(wordOf(p.text, text).raw); asks {
			r.refuseHidden(a, hiddenRefused(a, command))
		}
	}
}

// nested reads the text of a sh -c or an eval, and says whether there is nothing
// but installs in it. In such a text another is not read but searched.
func (r *reader) nested(a ask, s *syntax.Stmt, p place) (only bool) {
	first, last := a.script[0], a.script[len(a.script)-1]
	expands := slices.ContainsFunc(a.script, func(w word) bool { return w.expands })
	if p.inner || p.escaped || expands {
		if command, asks := r.hidden(a.script); asks {
			r.refuseHidden(a, hiddenRefused(a, command))
		}
		return false
	}
	var text []string
	for _, w := range a.script {
		text = append(text, w.text)
	}
	e := edit{from: first.from, to: last.to}
	inner := p.fork()
	inner.inner = true
	read, only := r.scriptAt(strings.Join(text, " "), inner)
	if a.family == evals && p.dir != nil && *inner.dir != *p.dir {
		*p.dir = unknownDir
	}
	if len(read.edits) == 0 {
		return false
	}
	for _, redirect := range s.Redirs {
		only = only && quiet(p.text, redirect)
		if at := (span{int(redirect.Pos().Offset()), int(redirect.Word.End().Offset())}); at.from >= e.from {
			e.keep = append(e.keep, at)
		}
	}
	e.inner = &read
	*p.edits = append(*p.edits, e)
	return only
}

// replace makes the edit for the request that was read last. It says whether
// nothing is left behind by the command's redirections.
func (r *reader) replace(words []word, s *syntax.Stmt, p place, later []*syntax.Stmt) (plain bool) {
	e := edit{from: words[0].from, request: len(r.requests) - 1}
	for _, w := range words {
		e.to = max(e.to, w.to, w.gluedTo)
	}
	glued := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return w.glued == "" })
	plain = true
	for _, redirect := range s.Redirs {
		at := span{int(redirect.Pos().Offset()), int(redirect.Word.End().Offset())}
		for len(glued) > 0 && glued[0].gluedTo < at.to {
			glued = glued[1:]
		}
		if len(glued) > 0 && at.from >= glued[0].to {
			continue // it is a comparison
		}
		plain = plain && quiet(p.text, redirect)
		if at.from >= e.from {
			e.keep = append(e.keep, at)
		}
	}
	e.fold, e.shows = r.folds(e, p, later)
	*p.edits = append(*p.edits, e)
	return plain
}

// folds says how far the pipeline goes that an install feeds, if that can be
// taken out with it, and whether all of it only shows what it is fed.
func (r *reader) folds(e edit, p place, later []*syntax.Stmt) (end int, shows bool) {
	if len(later) == 0 {
		return 0, false
	}
	end = int(later[len(later)-1].End().Offset())
	if last := later[len(later)-1]; last.Semicolon.IsValid() {
		end = int(last.Semicolon.Offset())
	}
	if end <= e.from || end > len(p.text) {
		return 0, false
	}
	// The text of a heredoc stands behind the line that it is asked for in. It
	// would become commands if only its "<<" went, and go if it lay in between.
	if p.heredocs && strings.ContainsAny(p.text[e.from:end], "\n<") {
		return 0, false
	}
	return end, !slices.ContainsFunc(later, func(s *syntax.Stmt) bool { return !filters(p.text, s) })
}

// refuseHidden refuses an install that is read but cannot be taken out.
func (r *reader) refuseHidden(a ask, sentence string) {
	if !r.options.Allowed {
		sentence = offRefused(a)
	}
	r.refuse(sentence)
}

// assigned looks for assignments that would change what an install does, or for whom.
func (r *reader) assigned(assigns []*syntax.Assign, p place) {
	for _, a := range assigns {
		if a.Name == nil {
			continue
		}
		var value string
		if a.Value != nil {
			value = wordOf(p.text, a.Value).raw
		}
		r.setting(a.Name.Value, value)
	}
}

// activates follows what turns the shell to a virtual environment and back.
func (r *reader) activates(words []word, p place) {
	switch {
	case words[0].is("deactivate"):
		r.activated = false
	case len(words) > 1 && words[0].is(".", "source"):
		script := words[1]
		if script.expands {
			script.text = script.tail
		}
		if path.Base(script.text) == "activate" {
			r.activated, r.environment = true, p.environment(script)
		}
	}
}

// environment is the folder of a virtual environment that has a program in its bin; ""
// if it is not known.
func (p place) environment(program word) string {
	if program.expands || p.dir == nil || strings.HasPrefix(program.text, "~") {
		return ""
	}
	dir := join(*p.dir, path.Dir(program.text)+"/..")
	if dir == unknownDir {
		return ""
	}
	return dir
}

// changesDir follows cd and pushd.
func (r *reader) changesDir(words []word, p place) {
	if p.dir == nil || !words[0].is("cd", "pushd", "popd") {
		return
	}
	args := slices.DeleteFunc(slices.Clone(words[1:]), func(w word) bool { return w.isOption() })
	switch {
	case words[0].is("popd"), len(args) != 1, args[0].expands, args[0].text == "", strings.HasPrefix(args[0].text, "~"), args[0].text == "-":
		*p.dir = unknownDir
	default:
		*p.dir = join(*p.dir, args[0].text)
	}
}

// join is a path seen from a folder; an absolute one is itself.
func join(dir, name string) string {
	switch {
	case strings.HasPrefix(name, "/"):
		return path.Clean(name)
	case dir == unknownDir, len(dir) > longestPath:
		return unknownDir
	}
	return path.Join(dir, name)
}

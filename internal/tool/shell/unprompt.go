package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// unprompt takes the prompts of a terminal or a notebook away that models paste with
// their commands, and notes it.
func (r *run) unprompt() {
	if r.o.Facts.powerShell() { // which has a meaning for "%" and "$"
		return
	}
	line, prompts := unprompted(r.args.command, r.known)
	if len(prompts) == 0 {
		return
	}
	r.args.command, r.line = line, line
	r.notes = append(r.notes, fmt.Sprintf(promptTaken, strings.Join(prompts, ", ")))
}

// known reports whether a name is that of a command that would do something here.
func (r *run) known(name string) bool {
	switch name {
	case "pip", "pip3", "npm", "npx", "pnpm", "yarn", "uv", "conda", "python", "python3", // the host's, whether they are found or not
		"cd", "pwd", "echo", "export", "source", "printf", "unset", "pushd", "popd":
		return true
	}
	return r.finds(name)
}

var (
	commandName = regexp.MustCompile(`^[A-Za-z_./~][A-Za-z0-9_./~+-]*$`)
	setsFirst   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// unprompted is a line without the prompts in it, and which these were. A prompt stands
// at the start of a line in front of a simple command: "$ ls", "!ls", "%ls", "> ls". The
// last two mean something to a shell, so there the command must be one that is known.
func unprompted(line string, known func(name string) bool) (string, []string) {
	if !strings.ContainsAny(line, "$!%>") {
		return line, nil
	}
	file, err := bash.Parse(line)
	if err != nil {
		return line, nil
	}
	var prompts []string
	rest, at := strings.Builder{}, 0
	syntax.Walk(file, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		from := int(s.Pos().Offset())
		if before := strings.TrimRight(line[:from], " \t"); from < at || before != "" && !strings.HasSuffix(before, "\n") {
			return true
		}
		prompt, to := promptOf(line, s, known)
		if prompt == "" {
			return true
		}
		rest.WriteString(line[at:from])
		at = to
		if prompt = "`" + prompt + "`"; !slices.Contains(prompts, prompt) {
			prompts = append(prompts, prompt)
		}
		return true
	})
	rest.WriteString(line[at:])
	return rest.String(), prompts
}

// promptOf is the prompt that a statement begins with, and where its command begins.
func promptOf(line string, s *syntax.Stmt, known func(name string) bool) (prompt string, to int) {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || len(c.Assigns) > 0 || len(c.Args) == 0 {
		return "", 0
	}
	first, _ := bash.Word(c.Args[0])
	from := int(c.Args[0].Pos().Offset())
	switch {
	case len(s.Redirs) > 0 && from > int(s.Redirs[0].Pos().Offset()):
		return redirectPrompt(s, known)
	case first == "$" && len(c.Args) > 1:
		l, to := bash.Read(c.Args[1]), int(c.Args[1].Pos().Offset())
		command := !l.Expands && commandName.MatchString(l.Head) || setsFirst.MatchString(l.Head)
		if command && strings.Trim(line[from:to], " \t") == "$" {
			return "$", to
		}
	case strings.HasPrefix(first, "!") && line[from] == '!' && commandName.MatchString(first[1:]):
		return "!", from + 1
	case strings.HasPrefix(first, "%") && line[from] == '%' && commandName.MatchString(first[1:]) && known(first[1:]):
		return "%", from + 1
	}
	return "", 0
}

// redirectPrompt is the prompt of "> python3 a.py", which a shell reads as a.py with its
// output in a file of the name python3.
func redirectPrompt(s *syntax.Stmt, known func(name string) bool) (prompt string, to int) {
	first := s.Redirs[0]
	name, _ := bash.Word(first.Word)
	at := int(first.Word.Pos().Offset())
	if first.Op != syntax.RdrOut || first.N != nil || first.Pos() != s.Pos() || at < int(s.Pos().Offset())+len("> ") || !commandName.MatchString(name) || !known(name) {
		return "", 0
	}
	return ">", at
}

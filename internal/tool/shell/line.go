package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// lineShape is what is known of a command line before it runs.
type lineShape struct {
	// patches: apply_patch is a command in it.
	patches bool
	// background: its last command is sent to the background. jobs: one of its commands
	// is.
	background, jobs bool
	// envelope is the patch, where the line is nothing but one (B1 12.15).
	envelope string
	// bodies are what its heredocs give, as a file gets it.
	bodies []string
}

// innerLines is how many shells in shells are looked into: sh -c 'bash -c "..."'.
const innerLines = 4

// lookAtLine reads a line as bash does. Of one that cannot be read only what is likely
// is told: the shell says what is wrong with it.
func lookAtLine(line string) lineShape { return look(line, innerLines) }

func look(line string, inner int) lineShape {
	file, err := bash.Parse(line)
	if err != nil {
		if line, file = closed(line, err); file == nil {
			return unreadable(line)
		}
	}
	l := looker{text: line, inner: inner}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			l.call(n)
		case *syntax.CoprocClause: // whose command may be taken for its name
			l.shape.patches = l.shape.patches || namesPatch(n.Name)
		case *syntax.Redirect:
			if isHeredoc(n) {
				l.shape.bodies = append(l.shape.bodies, l.heredoc(n))
			}
		}
		return true
	})
	for i, s := range file.Stmts {
		l.shape.jobs = l.shape.jobs || s.Background
		l.shape.background = i == len(file.Stmts)-1 && s.Background
	}
	if len(file.Stmts) == 1 {
		l.shape.envelope = l.envelope(file.Stmts[0])
	}
	return l.shape
}

var (
	// heredocTag is the tag of a heredoc, at the end of a line or before something else.
	heredocTag = regexp.MustCompile(`<<-?[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([\w.-]+))`)
	// seemsPatch is the name as a word, in a text without quotes.
	seemsPatch = regexp.MustCompile(`(?i)(?:^|[^\w./-])apply[_-]?patch\b`)
	// quotesPatch is the name where a command may begin in the text for another shell.
	quotesPatch = regexp.MustCompile("(?i)[\"'\n;|&({`]\\s*apply[_-]?patch\\b")
)

// closed adds the end of a heredoc that was forgotten: a shell takes all that follows
// for it.
func closed(line string, err error) (string, *syntax.File) {
	bad, ok := errors.AsType[syntax.ParseError](err)
	if !ok || !strings.HasPrefix(bad.Text, "unclosed here-document") {
		return line, nil
	}
	tag := heredocTag.FindStringSubmatch(line)
	if tag == nil {
		return line, nil
	}
	whole := strings.TrimSuffix(line, "\n") + "\n" + tag[1] + tag[2] + tag[3] + "\n"
	file, err := bash.Parse(whole)
	if err != nil {
		return line, nil
	}
	return whole, file
}

// unreadable is what seems to be in a line that nobody can read.
func unreadable(line string) lineShape {
	end := strings.TrimSpace(line)
	single := strings.HasSuffix(end, "&") && !strings.HasSuffix(end, "&&")
	return lineShape{patches: seemsPatch.MatchString(bare.Replace(line)), background: single, jobs: single}
}

// bare takes away all that quotes.
var bare = strings.NewReplacer("\\\n", "", `\`, "", "'", "", `"`, "")

// looker looks at the commands of a line.
type looker struct {
	text  string
	inner int
	shape lineShape
}

// call looks at one simple command: what runs another one is looked through.
func (l *looker) call(c *syntax.CallExpr) {
	words := bash.Words(c)
	if len(words) == 0 {
		return
	}
	raw := l.text[c.Pos().Offset():c.End().Offset()]
	switch {
	case isPatch(words[0]):
		l.shape.patches = true
	case words[0] == "": // known only when it runs
		name := c.Args[0]
		l.shape.patches = l.shape.patches || seemsPatch.MatchString(bare.Replace(l.text[name.Pos().Offset():name.End().Offset()]))
	case runsOther(words[0]):
		asks := words[0] == "command" && len(words) > 1 && strings.HasPrefix(words[1], "-")
		l.shape.patches = l.shape.patches || !asks && slices.ContainsFunc(words[1:], isPatch)
	}
	switch text, ok := innerText(words); {
	case !ok:
	case slices.Contains(words, ""):
		l.shape.patches = l.shape.patches || quotesPatch.MatchString(raw)
	case l.inner > 0:
		l.shape.patches = l.shape.patches || look(text, l.inner-1).patches
	}
}

// innerText is what a command gives another shell to run.
func innerText(words []string) (string, bool) {
	if words[0] == "eval" {
		return strings.Join(words[1:], " "), len(words) > 1
	}
	for len(words) > 0 && runsOther(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || !isShell(words[0]) {
		return "", false
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	if at < 1 { // no line, or a file in its place
		return "", false
	}
	_, reads := shellLine([]string{words[0], words[at], words[at+1]})
	return words[at+1], reads
}

// runsOther are commands whose words hold another command.
func runsOther(name string) bool {
	switch name {
	case "command", "builtin", "exec", "env", "sudo", "doas", "nohup", "nice", "timeout", "stdbuf", "setsid", "xargs", "time", "coproc", "!":
		return true
	}
	return false
}

func namesPatch(w *syntax.Word) bool {
	name, _ := bash.Word(w)
	return isPatch(name)
}

func isPatch(word string) bool {
	if at := strings.IndexAny(word, " \t\n"); at > 0 {
		word = word[:at] // all of it in one word, as no program is called
	}
	switch strings.ToLower(word) {
	case "apply_patch", "apply-patch", "applypatch":
		return true
	}
	return false
}

// envelope is the patch of a statement that is nothing but one: the tool with one
// heredoc, or with one argument in quotes. A shell around it makes no difference.
func (l *looker) envelope(s *syntax.Stmt) string {
	call, ok := s.Cmd.(*syntax.CallExpr)
	plain := !s.Background && !s.Negated && !s.Coprocess && ok && len(call.Assigns) == 0
	if !plain || len(call.Args) == 0 {
		return ""
	}
	words := bash.Words(call)
	switch {
	case len(s.Redirs) == 0 && isShell(words[0]) && l.inner > 0:
		text, _ := shellLine(words)
		return look(text, l.inner-1).envelope
	case !isPatch(words[0]):
		return ""
	case len(s.Redirs) == 0 && len(words) == 2:
		return words[1]
	case len(s.Redirs) == 1 && len(words) == 1 && isHeredoc(s.Redirs[0]):
		return l.heredoc(s.Redirs[0])
	}
	return ""
}

func isHeredoc(r *syntax.Redirect) bool {
	return (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) && r.Hdoc != nil && (r.N == nil || r.N.Value == "0")
}

// heredoc is the text of a heredoc as the model wrote it: an envelope and a source are
// no places for expansions, so a "$" in one with a bare tag is a "$". Where all are
// escaped, whoever wrote it knew that, and they are taken as a shell takes them.
func (l *looker) heredoc(r *syntax.Redirect) string {
	from, to := int(r.Hdoc.Pos().Offset()), int(r.Hdoc.End().Offset())
	if from > to || to > len(l.text) {
		return ""
	}
	text := l.text[from:to]
	text = text[:strings.LastIndexByte(text, '\n')+1] // without the tag
	if r.Op == syntax.DashHdoc {
		lines := strings.SplitAfter(text, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimLeft(line, "\t")
		}
		text = strings.Join(lines, "")
	}
	if r.Word.Lit() != "" && escapes(r.Hdoc) && (strings.Contains(text, `\$`) || strings.Contains(text, "\\`")) {
		return unescaped.Replace(text)
	}
	return text
}

// escapes reports whether nothing in a heredoc is expanded.
func escapes(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		_, plain := p.(*syntax.Lit)
		return !plain
	})
}

// unescaped takes away the backslashes that a shell takes away in a heredoc.
var unescaped = strings.NewReplacer(`\\`, `\`, "\\`", "`", `\$`, "$", "\\\n", "")

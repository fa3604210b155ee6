package shell

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/tool"
)

// arguments are those of one call (B1 3, 4.3, 4.4).
type arguments struct {
	command    string
	workdir    string
	timeout    time.Duration // 0 asks for none
	background bool
}

// The keys under which an argument comes, the surest first, as [tool.Key] folds them.

func commandKeys() []string {
	return []string{"command", "cmd", "script", "input", "shell", "commands"}
}

func workdirKeys() []string {
	return []string{"workdir", "cwd", "directory", "workingdirectory", "workingdir"}
}

func millisecondKeys() []string { return []string{"timeoutms", "timeoutmilliseconds"} }

func secondKeys() []string { return []string{"timeout", "timeouts", "timeoutseconds", "timeoutsec"} }

func backgroundKeys() []string {
	return []string{"runinbackground", "background", "isbackground", "detach"}
}

// parse reads a call; the sentence says what is wrong with it.
func parse(text string) (arguments, string) {
	given, err := tool.ParseArguments(text)
	if err != nil {
		line, ok := bareLine(text)
		if !ok {
			return arguments{}, badArguments
		}
		given = tool.Arguments{Loose: []jsontext.Value{tool.Quote(line)}}
	}
	var a arguments
	var picked [5]jsontext.Value
	for i, keys := range [][]string{commandKeys(), workdirKeys(), millisecondKeys(), secondKeys(), backgroundKeys()} {
		if picked[i], err = given.Pick(-1, keys); err != nil {
			twice, _ := errors.AsType[*tool.TwiceError](err)
			return arguments{}, fmt.Sprintf(argumentTwice, twice.Name)
		}
	}
	if given.Others > 0 {
		return arguments{}, oneCall
	}
	a.command = unfenced(commandOf(picked[0], given.Loose))
	switch {
	case strings.TrimSpace(a.command) == "":
		return arguments{}, noCommand
	case strings.IndexByte(a.command, 0) >= 0:
		return arguments{}, nulByte
	}
	a.workdir = strings.TrimSpace(tool.Exact(picked[1]))
	a.background = tool.IsTrue(picked[4])
	var sentence string
	a.timeout, sentence = timeoutOf(picked[2], picked[3])
	return a, sentence
}

// bareLine is a command that was sent as it is, in place of arguments. What may be
// the beginning of JSON or of markup is none: it may have been cut off.
func bareLine(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.IndexByte("{[\"'<(", text[0]) >= 0 {
		return "", false
	}
	if at := strings.IndexAny(text, ":="); at > 0 && slices.Contains(commandKeys(), tool.Key(text[:at])) {
		return "", false
	}
	return text, true
}

// unfenced takes a command out of a fence of Markdown, in which no command can begin.
func unfenced(command string) string {
	text := strings.TrimSpace(command)
	inner, opened := strings.CutPrefix(text, "```")
	inner, closed := strings.CutSuffix(inner, "```")
	label, rest, lines := strings.Cut(inner, "\n")
	if !opened || !closed || !lines || strings.ContainsAny(label, " \t`;|&<>$'\"") {
		return command
	}
	return rest
}

// commandOf is a command line. A list is the words of one, or the shell that is to run
// it, or its lines; and so are values without a name (B1 4.3).
func commandOf(v jsontext.Value, loose []jsontext.Value) string {
	if inner, ok := tool.Structure(v); ok && inner.Kind() == '[' {
		v = inner
	}
	var words []string
	switch {
	case v.Kind() == '[':
		words = texts(append(tool.Elements(v), loose...))
	case v == nil || v.Kind() == 'n':
		words = texts(loose)
	case len(loose) == 0:
		return tool.Exact(v)
	default: // a program, and its arguments beside it
		return tool.Exact(v) + " " + joinWords(texts(loose))
	}
	switch line, ok := shellLine(words); {
	case ok:
		return line
	case len(words) == 1:
		return words[0] // a list of one line
	case areLines(words):
		return strings.Join(words, " && ")
	}
	return joinWords(words)
}

func texts(values []jsontext.Value) []string {
	words := make([]string, 0, len(values))
	for _, v := range values {
		words = append(words, tool.Exact(v))
	}
	return words
}

// areLines reports whether the elements of a list are commands and no words: no program
// has a name with a space in it.
func areLines(words []string) bool {
	return len(words) > 1 && strings.ContainsAny(words[0], " \t") && !slices.ContainsFunc(words, func(w string) bool {
		return strings.Contains(w, "\n") || strings.HasPrefix(w, "-") || isOperator(w)
	})
}

// joinWords makes a line of words. What a shell does between words stays what it is: it
// is never meant as an argument.
func joinWords(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		if line[i] = w; !isOperator(w) {
			line[i] = bash.Argument(w)
		}
	}
	return strings.Join(line, " ")
}

func isOperator(word string) bool {
	switch word {
	case "|", "||", "&&", ";", ">", ">>", "<", "2>&1", "2>", "&>":
		return true
	}
	return false
}

// shellLine is the line of ["bash", "-lc", LINE].
func shellLine(words []string) (string, bool) {
	if len(words) < 3 || !isShell(words[0]) {
		return "", false
	}
	line, reads := words[len(words)-1], false
	for _, option := range words[1 : len(words)-1] {
		if !strings.HasPrefix(option, "-") {
			return "", false
		}
		reads = reads || strings.HasSuffix(option, "c") || strings.EqualFold(option, "-command")
	}
	return line, reads
}

// isShell reports whether a program, by its name or its path, reads command lines.
func isShell(program string) bool {
	switch strings.TrimSuffix(program[strings.LastIndexAny(program, `/\`)+1:], ".exe") {
	case "bash", "sh", "zsh", "dash", "ksh", "pwsh", "powershell":
		return true
	}
	return false
}

// secondsBelow is the number from which a timeout without a unit is one of milliseconds
// (B1 4.3).
const secondsBelow = 1000

// timeoutOf is what a call asks for: in milliseconds, or in what has no sure unit. A
// time with its unit, such as "30s", is what it says.
func timeoutOf(milliseconds, unsure jsontext.Value) (time.Duration, string) {
	text, unit := given(milliseconds), time.Millisecond
	sure := text != ""
	if !sure {
		text = given(unsure)
	}
	if text == "" {
		return 0, ""
	}
	n, ok := tool.Whole(text)
	if !ok {
		if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil {
			return max(d, 0), ""
		}
		return 0, fmt.Sprintf(badTimeout, tool.Clip(text))
	}
	if !sure && n < secondsBelow {
		unit = time.Second
	}
	switch {
	case n <= 0:
		return 0, ""
	case n > math.MaxInt64/int64(unit):
		return math.MaxInt64, ""
	}
	return time.Duration(n) * unit, ""
}

// given is the text of a value; empty for the words that stand for none.
func given(v jsontext.Value) string {
	text := strings.TrimSpace(tool.Exact(v))
	switch strings.ToLower(text) {
	case "null", "none", "default", "undefined":
		return ""
	}
	return text
}

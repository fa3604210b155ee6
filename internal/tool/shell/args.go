package shell

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"mvdan.cc/sh/v3/syntax"

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
	return []string{"command", "cmd", "script", "shell", "input", "commands", "code"}
}

func workdirKeys() []string { return []string{"workdir", "cwd", "directory", "workingdirectory"} }

func millisecondKeys() []string { return []string{"timeoutms", "timeoutmilliseconds"} }

func secondKeys() []string { return []string{"timeout", "timeouts", "timeoutseconds"} }

func backgroundKeys() []string { return []string{"runinbackground", "background", "detach"} }

// parse reads a call; the sentence says what is wrong with it.
func parse(text string) (arguments, string) {
	given, err := tool.ParseArguments(text)
	if err != nil {
		return arguments{}, badArguments
	}
	var a arguments
	var picked [5]jsontext.Value
	for i, keys := range [][]string{commandKeys(), workdirKeys(), millisecondKeys(), secondKeys(), backgroundKeys()} {
		place := -1
		if i == 0 {
			place = 0
		}
		if picked[i], err = given.Pick(place, keys); err != nil {
			twice, _ := errors.AsType[*tool.TwiceError](err)
			return arguments{}, fmt.Sprintf(argumentTwice, twice.Name)
		}
	}
	if given.Others > 0 {
		return arguments{}, oneCall
	}
	if a.command = commandOf(picked[0]); strings.TrimSpace(a.command) == "" {
		return arguments{}, noCommand
	}
	if strings.IndexByte(a.command, 0) >= 0 {
		return arguments{}, nulByte
	}
	a.workdir = strings.TrimSpace(tool.Exact(picked[1]))
	a.background = tool.IsTrue(picked[4])
	var sentence string
	a.timeout, sentence = timeoutOf(picked[2], picked[3])
	return a, sentence
}

// commandOf is a command line, of which a list is the words: a program with its
// arguments, or the shell that is to run a line.
func commandOf(v jsontext.Value) string {
	if inner, ok := tool.Structure(v); ok && inner.Kind() == '[' {
		v = inner
	}
	if v.Kind() != '[' {
		return tool.Exact(v)
	}
	var words []string
	for _, element := range tool.Elements(v) {
		words = append(words, tool.Exact(element))
	}
	if line, ok := shellLine(words); ok {
		return line
	}
	if len(words) == 1 {
		return words[0] // a list of one line
	}
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

// shellLine is the line of ["bash", "-lc", LINE].
func shellLine(words []string) (string, bool) {
	if len(words) != 3 || !strings.HasPrefix(words[1], "-") || !strings.HasSuffix(words[1], "c") {
		return "", false
	}
	switch words[0][strings.LastIndexByte(words[0], '/')+1:] {
	case "bash", "sh", "zsh", "dash":
		return words[2], true
	}
	return "", false
}

// quoted is one word of a shell.
func quoted(word string) string {
	q, err := syntax.Quote(word, syntax.LangBash)
	if err != nil { // a NUL byte, which is refused later
		return word
	}
	return q
}

// secondsBelow is the number from which a timeout without a unit is one of milliseconds
// (B1 4.3).
const secondsBelow = 1000

func timeoutOf(milliseconds, unsure jsontext.Value) (time.Duration, string) {
	unit := time.Millisecond
	v := milliseconds
	if strings.TrimSpace(tool.Exact(v)) == "" {
		v = unsure
	}
	text := strings.TrimSpace(tool.Exact(v))
	if text == "" {
		return 0, ""
	}
	n, ok := tool.Whole(text)
	if !ok {
		return 0, fmt.Sprintf(badTimeout, tool.Clip(text))
	}
	if strings.TrimSpace(tool.Exact(milliseconds)) == "" && n < secondsBelow {
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

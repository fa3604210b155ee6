package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/metier-run/metier/internal/bash"
)

// setsExitTrap reports whether a text that a shell reads to its end gives the shell a
// trap of its own for its end. Of a text that does not parse the answer is no: what
// follows it might be taken for a part of it.
func setsExitTrap(line string, d Dialect) bool {
	if !strings.Contains(line, "trap") {
		return false
	}
	language := syntax.LangPOSIX
	switch d {
	case Bash, Zsh:
		language = syntax.LangBash
	case Ksh:
		language = syntax.LangMirBSDKorn
	}
	file, err := bash.ParseIn(language, line)
	if err != nil {
		return false
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 1 {
			words := bash.Words(call)
			found = found || words[0] == "trap" && slices.ContainsFunc(words[1:], isExit)
		}
		return !found
	})
	return found
}

// isExit reports whether a word names the end of a shell.
func isExit(word string) bool {
	switch strings.ToUpper(word) {
	case "EXIT", "SIGEXIT", "0":
		return true
	}
	return false
}

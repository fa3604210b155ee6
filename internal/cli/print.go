package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/fault"
)

// noArgs refuses arguments as a wrong call.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Usage("%s takes no arguments, and got %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// printable keeps text of a stranger from steering the terminal, and from showing
// other than it is: characters that format are taken out, those that control
// become spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, s)
}

// shownPath is a path as people read it: quoted, with escapes, when it holds what
// is not to be seen.
func shownPath(path string) string {
	hidden := func(r rune) bool { return !strconv.IsPrint(r) }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, hidden) {
		return strconv.Quote(path)
	}
	return path
}

// printJSON prints a value for other programs to read.
func (s *session) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = fmt.Fprintf(s.std.Out, "%s\n", b)
	return err
}

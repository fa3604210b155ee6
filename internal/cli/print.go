package cli

import (
	"fmt"

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

// printJSON prints a value for other programs to read.
func (s *session) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = fmt.Fprintf(s.std.Out, "%s\n", b)
	return err
}

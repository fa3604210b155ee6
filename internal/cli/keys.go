package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

func (s *session) newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make keys for callers of the server",
		Args:  cobra.ArbitraryArgs,
		// One slip of two letters is still understood.
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(s.newKeysNew())
	return cmd
}

// newKey is a key as --json prints it.
type newKey struct {
	ID   string `json:"id"`
	Key  string `json:"key"`
	Hash string `json:"hash"`
}

func (s *session) newKeysNew() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a key; the server's file gets its hash only",
		Long: "Make a key and print it once, with the lines for the server's configuration file.\n" +
			"The file holds the key's hash: nobody who reads it can use the key.",
		Example: "  metier keys new laptop",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !config.KeyID(args[0]) {
				return fault.Usage("keys new needs one name of 1 to 64 letters, digits and -_., for example: metier keys new laptop")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			key, hash := access.NewKey()
			if asJSON {
				return s.printJSON(newKey{ID: args[0], Key: key.Reveal(), Hash: hash})
			}
			fmt.Fprintf(s.std.Out, "%s\n\n%s", key.Reveal(), config.KeyLines(args[0], hash))
			fmt.Fprintf(s.std.Err, "The first line is the key: it is not shown again. Put the other lines into the server's %s.\n", config.FileName)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

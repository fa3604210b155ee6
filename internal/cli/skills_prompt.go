package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/skill/validate"
)

func (s *session) newSkillsToPrompt() *cobra.Command {
	return &cobra.Command{
		Use:   "to-prompt DIR...",
		Short: "Print skills as the XML catalog of the reference library",
		Long: "Print an <available_skills> block with name, description and the absolute path of each SKILL.md, as the\n" +
			"reference library of the Agent Skills specification does. It is for agents that read files by\n" +
			"themselves; what Metier tells a model is another text (metier run --show-prompt).",
		Example: "  metier skills to-prompt .agents/skills/*",
		Args:    atLeast(1, "at least one skill folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := skillFolders(args)
			if err != nil {
				return err
			}
			var all []validate.Properties
			for _, dir := range dirs {
				p, err := validate.ReadProperties(cmd.Context(), dir)
				if err != nil {
					return err
				}
				if shownPath(p.Location) != p.Location {
					// A line of its own would be read as the catalog's, and an escape opens no file.
					return fmt.Errorf("%q holds characters that cannot be seen, so no model could open it: rename the folder", p.Location)
				}
				all = append(all, p)
			}
			_, err = fmt.Fprintln(s.std.Out, validate.Prompt(all))
			return err
		},
	}
}

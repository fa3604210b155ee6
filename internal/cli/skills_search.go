package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/search"
	"github.com/metier-run/metier/skill"
)

func (s *session) newSkillsSearch() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "search [QUERY...]",
		Short: "Find skills by name, description and the headings of their instructions",
		Long: "List the skills that hold a word of the query, the best first (BM25). A word of the query also finds longer\n" +
			"words that start with it. Without a query all skills are listed.",
		Example: "  metier skills search fill in a form\n" +
			"  metier skills search --json pdf",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.searchSkills(cmd, strings.Join(args, " "), asJSON)
		},
	}
	s.registryFlags(cmd.Flags())
	s.limitFlags(cmd.Flags(), ofRegistry)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// matchRow is a skill that was found, as --json prints it.
type matchRow struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Score       float64 `json:"score"`
}

func (s *session) searchSkills(cmd *cobra.Command, query string, asJSON bool) error {
	snapshot, err := s.loadSkills(cmd)
	if err != nil {
		return err
	}
	all := snapshot.Skills()
	docs := make([]search.Doc, 0, len(all))
	for _, k := range all {
		docs = append(docs, s.searchDoc(cmd.Context(), k))
	}
	var rows []matchRow
	for _, m := range search.New(docs).Search(query, 0) {
		rows = append(rows, matchRow{Name: m.ID, Description: all[m.Index].Description, Score: m.Score})
	}
	if asJSON {
		return s.printJSON(struct {
			Query   string     `json:"query"`
			Matches []matchRow `json:"matches"`
		}{query, rows})
	}
	if len(rows) == 0 {
		fmt.Fprintf(s.std.Err, "none of %s matches %q\n", plural(len(all), "skill"), query)
	}
	for _, r := range rows {
		fmt.Fprintf(s.std.Out, "%s\n    %s\n", r.Name, r.Description)
	}
	return nil
}

// searchDoc is what is searched of a skill. One whose instructions cannot be
// read is found by the rest.
func (s *session) searchDoc(ctx context.Context, k skill.Skill) search.Doc {
	body, err := k.Body(ctx)
	if err != nil {
		fmt.Fprintf(s.std.Err, "warning: %s\n", printable(err.Error()))
	}
	return search.Doc{ID: k.Name, Text: strings.Join(append([]string{k.Name, k.Description}, search.Headings(body)...), "\n")}
}

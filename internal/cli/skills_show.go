package cli

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/server/skills"
	"github.com/metier-run/metier/skill"
)

func (s *session) newSkillsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME [FILE]",
		Short: "Show a skill, or one of its files",
		Long: "Show what a skill says of itself, where it is, what it holds and what is out of order. With FILE, print that\n" +
			"file as a model would read it; SKILL.md is the instructions.",
		Example: "  metier skills show pdf\n" +
			"  metier skills show pdf SKILL.md\n" +
			"  metier skills show pdf references/forms.md",
		Args: between(1, 2, "the name of a skill and perhaps one of its files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			snapshot, err := s.loadSkills(cmd)
			if err != nil {
				return err
			}
			k, err := findSkill(snapshot, args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return s.showFile(cmd, k, args[1], asJSON)
			}
			return s.showSkill(cmd, k, asJSON)
		},
	}
	s.registryFlags(cmd.Flags())
	s.limitFlags(cmd.Flags(), ofRegistry)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// findSkill finds a skill by name, and otherwise says why it is not there.
func findSkill(snapshot *skill.Snapshot, name string) (skill.Skill, error) {
	if k, ok := snapshot.Find(name); ok {
		return k, nil
	}
	for _, e := range snapshot.Errors() {
		if strings.EqualFold(filepath.Base(e.Dir), strings.TrimSpace(name)) {
			return skill.Skill{}, fmt.Errorf("the skill in %s did not load: %w", shownPath(e.Dir), e.Err)
		}
	}
	var names []string
	for _, k := range snapshot.Skills() {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return skill.Skill{}, fmt.Errorf("there is no skill %q, nor any other: name a directory with --skills-dir", name)
	}
	return skill.Skill{}, fmt.Errorf("there is no skill %q; the skills are %s", name, strings.Join(names, ", "))
}

// shownFile is a file as --json prints it.
type shownFile struct {
	Skill  string `json:"skill"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Binary bool   `json:"binary"`
	Text   string `json:"text"`
}

func (s *session) showFile(cmd *cobra.Command, k skill.Skill, name string, asJSON bool) error {
	page, err := k.Read(cmd.Context(), name, 0, 0)
	switch {
	case err != nil:
		return err
	case asJSON:
		return s.printJSON(shownFile{Skill: k.Name, Path: page.Path, Bytes: page.Total, Binary: page.Binary, Text: page.Text})
	case page.Binary:
		return fmt.Errorf("%s of %s is not text (%d bytes) and is not printed; it is %s", shownPath(page.Path), k.Name, page.Total, shownPath(filepath.Join(k.Dir(), filepath.FromSlash(page.Path))))
	}
	_, err = io.WriteString(s.std.Out, page.Text)
	return err
}

// shownSkill is a skill as --json prints it: the object that the server has, and
// what only its own machine may see.
type shownSkill struct {
	skills.Object `json:",inline"`
	Tools         []string       `json:"tools"`
	Extra         map[string]any `json:"extra"`
	Path          string         `json:"path"`
	Digest        string         `json:"digest"`
	Instructions  string         `json:"instructions"`
}

func (s *session) showSkill(cmd *cobra.Command, k skill.Skill, asJSON bool) error {
	body, err := k.Body(cmd.Context())
	if err != nil {
		return err
	}
	if asJSON {
		return s.printJSON(shownSkill{
			Object: skills.Describe(k), Tools: k.Tools, Extra: k.Extra, Path: k.Dir(), Digest: k.Digest(), Instructions: body,
		})
	}
	fmt.Fprintf(s.std.Out, "%s\n    %s\n\n", k.Name, k.Description)
	t := tabwriter.NewWriter(s.std.Out, 0, 0, 2, ' ', 0)
	for _, row := range facts(k, body) {
		if row[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", row[0], printable(row[1]))
		}
	}
	fmt.Fprintf(t, "\nfiles\n")
	for _, f := range k.Files {
		note := string(f.Kind)
		if !f.Text {
			note += ", not text"
		}
		fmt.Fprintf(t, "  %s\t%d bytes\t%s\n", shownPath(f.Path), f.Bytes, note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(k.Warnings) > 0 {
		fmt.Fprintf(s.std.Out, "\nwarnings\n")
	}
	for _, w := range k.Warnings {
		fmt.Fprintf(s.std.Out, "  %s\n", printable(w.String()))
	}
	return nil
}

// tokenBytes is how many bytes make about one token (seed 1, "The budget").
const tokenBytes = 4

// facts are what a person wants to know of a skill; what it does not say is
// empty.
func facts(k skill.Skill, body string) [][2]string {
	declared := ""
	if k.Declared != k.Name {
		declared = k.Declared
	}
	return [][2]string{
		{"declared name", declared},
		{"license", k.License},
		{"needs", k.Compatibility},
		{"allowed tools", strings.Join(k.AllowedTools, ", ")},
		{"holds back", strings.Join(k.Tools, ", ")},
		{"metadata", joined(k.Metadata)},
		{"other keys", joined(k.Extra)},
		{"instructions", fmt.Sprintf("%s, about %d tokens (metier skills show %s SKILL.md)", plural(strings.Count(body, "\n")+1, "line"), (len(body)+tokenBytes-1)/tokenBytes, k.Name)},
		{"size", fmt.Sprintf("%s, %d bytes", plural(len(k.Files), "file"), k.Bytes)},
		{"origin", string(k.Origin)},
		{"path", shownPath(k.Dir())},
		{"modified", k.Modified.UTC().Format(time.RFC3339)},
		{"digest", k.Digest()},
	}
}

// joined prints a map on one line, sorted by key.
func joined[V any](m map[string]V) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := fmt.Sprint(m[key])
		if b, err := json.Marshal(m[key], json.Deterministic(true)); err == nil {
			value = string(b)
		}
		parts = append(parts, key+": "+value)
	}
	return strings.Join(parts, ", ")
}

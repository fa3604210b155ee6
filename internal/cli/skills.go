package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/skill"
)

func (s *session) newSkills() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Look at, check, make and pack skills",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(
		s.newSkillsList(), s.newSkillsShow(), s.newSkillsSearch(),
		s.newSkillsValidate(), s.newSkillsToPrompt(), s.newSkillsNew(), s.newSkillsPack(),
	)
	return cmd
}

// loadSkills reads the registry that the flags name.
func (s *session) loadSkills(cmd *cobra.Command) (*skill.Snapshot, error) {
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	return openSnapshot(cmd.Context(), settings)
}

func openSnapshot(ctx context.Context, settings app.Settings) (*skill.Snapshot, error) {
	if settings.NoSkills {
		return nil, fault.Usage("--no-skills leaves nothing to list")
	}
	registry, err := app.OpenSkills(ctx, settings)
	if err != nil {
		return nil, err
	}
	return registry.Snapshot(), nil
}

// atLeast refuses a call with fewer arguments than a command needs.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return fault.Usage("%s needs %s (see %s --help)", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// between refuses a call with too few or too many arguments.
func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > most {
			return fault.Usage("%s takes %s, and got %q as well (see %s --help)", cmd.CommandPath(), what, args[most], cmd.CommandPath())
		}
		return atLeast(least, what)(cmd, args)
	}
}

func (s *session) newSkillsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the skills that are found, with warnings and with what did not load",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.listSkills(cmd, asJSON)
		},
	}
	s.registryFlags(cmd.Flags())
	s.scriptFlags(cmd.Flags())
	s.limitFlags(cmd.Flags(), ofRegistry)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) listSkills(cmd *cobra.Command, asJSON bool) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	snapshot, err := openSnapshot(cmd.Context(), settings)
	if err != nil {
		return err
	}
	confinement, on, err := s.confinement(cmd.Context(), settings)
	if err != nil {
		return err
	}
	if asJSON {
		l := listing(snapshot)
		l.Scripts = scriptsOf(confinement, on)
		return s.printJSON(l)
	}
	s.printSkills(snapshot)
	sayScripts(s.std.Out, confinement, on)
	return nil
}

// skillRow is a skill as --json prints it.
type skillRow struct {
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	License       string   `json:"license,omitzero"`
	Compatibility string   `json:"compatibility,omitzero"`
	Origin        string   `json:"origin"`
	Path          string   `json:"path"`
	Digest        string   `json:"digest"`
	Files         int      `json:"files"`
	Bytes         int64    `json:"bytes"`
	Warnings      []string `json:"warnings"`
}

type errorRow struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

type skillListing struct {
	Skills []skillRow `json:"skills"`
	Errors []errorRow `json:"errors"`
	// Scripts is there when scripts may run.
	Scripts *scriptsRow `json:"scripts,omitzero"`
}

// scriptsRow says what confines scripts, and what does not.
type scriptsRow struct {
	Sandbox     string   `json:"sandbox,omitzero"`
	Tier        string   `json:"tier,omitzero"`
	NotConfined []string `json:"not_confined"`
	// Refused says why no script runs.
	Refused string `json:"refused,omitzero"`
}

func scriptsOf(c app.Confinement, on bool) *scriptsRow {
	switch {
	case !on:
		return nil
	case c.Problem != nil:
		return &scriptsRow{Refused: c.Problem.Error()}
	}
	return &scriptsRow{Sandbox: c.Capabilities.Backend, Tier: c.Capabilities.Tier.String(), NotConfined: c.Gaps()}
}

func listing(snapshot *skill.Snapshot) skillListing {
	var l skillListing
	for _, k := range snapshot.Skills() {
		row := skillRow{
			Name: k.Name, Description: k.Description, License: k.License, Compatibility: k.Compatibility,
			Origin: string(k.Origin), Path: k.Dir(), Digest: k.Digest(), Files: len(k.Files), Bytes: k.Bytes,
		}
		for _, w := range k.Warnings {
			row.Warnings = append(row.Warnings, w.String())
		}
		l.Skills = append(l.Skills, row)
	}
	for _, e := range snapshot.Errors() {
		l.Errors = append(l.Errors, errorRow{Path: e.Dir, Message: e.Err.Error()})
	}
	return l
}

// sayNotLoaded tells the operator which folders look like skills and are none.
func (s *session) sayNotLoaded(l skillListing) {
	for _, e := range l.Errors {
		fmt.Fprintf(s.std.Err, "skills: not loaded: %s: %s\n", shownPath(e.Path), printable(e.Message))
	}
}

const noSkills = "no skills found: put folders with a SKILL.md into .agents/skills, or name a directory with --skills-dir"

func (s *session) printSkills(snapshot *skill.Snapshot) {
	l := listing(snapshot)
	if len(l.Skills)+len(l.Errors) == 0 {
		fmt.Fprintln(s.std.Err, noSkills)
	}
	for _, k := range l.Skills {
		fmt.Fprintf(s.std.Out, "%s\n    %s\n    %s, %s, %s\n", k.Name, k.Description, plural(k.Files, "file"), k.Origin, shownPath(k.Path))
		for _, w := range k.Warnings {
			fmt.Fprintf(s.std.Out, "    warning: %s\n", printable(w))
		}
	}
	for _, e := range l.Errors {
		fmt.Fprintf(s.std.Out, "not loaded: %s\n", shownPath(e.Path))
		for line := range strings.SplitSeq(e.Message, "\n") {
			fmt.Fprintf(s.std.Out, "    %s\n", printable(line))
		}
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

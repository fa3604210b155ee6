package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/skill"
	"github.com/metier-run/metier/skill/validate"
)

func (s *session) newSkillsValidate() *cobra.Command {
	var asJSON bool
	var targets []string
	cmd := &cobra.Command{
		Use:   "validate DIR...",
		Short: "Say who would refuse a skill, and why",
		Long: "Check skill folders. A folder without a SKILL.md is looked through for skills, but for --target spec alone.\n\n" +
			"Targets:\n" +
			"  metier      what this program loads; what it mends is a warning (the default)\n" +
			"  spec        the reference validator of the Agent Skills specification, with its messages and exit codes\n" +
			"  openai      an upload to OpenAI's Skills API\n" +
			"  anthropic   an upload to Anthropic's Skills API\n" +
			"  well-known  an archive for /.well-known/agent-skills/ of a web site\n" +
			"  all         each of them\n\n" +
			"The exit status is 0 when all are valid, 1 when one is not, 2 when a path does not exist.\n" +
			"Warnings and advice do not make a skill invalid.",
		Example: "  metier skills validate .agents/skills\n" +
			"  metier skills validate --target anthropic ./pdf\n" +
			"  metier skills validate --target all --json ./pdf",
		Args: atLeast(1, "at least one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.validateSkills(cmd, args, targets, asJSON)
		},
	}
	cmd.Flags().StringSliceVar(&targets, "target", []string{string(validate.Metier)}, "whom the skills are for: metier, spec, openai, anthropic, well-known or all (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verdict is a report as --json prints it.
type verdict struct {
	validate.Report `json:",inline"`
	Valid           bool `json:"valid"`
}

func (s *session) validateSkills(cmd *cobra.Command, args, names []string, asJSON bool) error {
	targets, err := validateTargets(names)
	if err != nil {
		return err
	}
	dirs, err := skillFolders(args)
	if err != nil {
		return err
	}
	var all []verdict
	bad := 0
	for _, dir := range dirs {
		for _, r := range validate.CheckAll(cmd.Context(), dir, targets...) {
			all = append(all, verdict{Report: r, Valid: r.Valid()})
			if !r.Valid() {
				bad++
			}
		}
	}
	if asJSON {
		err = s.printJSON(struct {
			Valid   bool      `json:"valid"`
			Reports []verdict `json:"reports"`
		}{bad == 0, all})
	} else {
		s.printVerdicts(all, len(targets) > 1)
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("not valid: %d of %d", bad, len(all))
	}
	return err
}

func validateTargets(names []string) ([]validate.Target, error) {
	known := validate.Targets()
	var targets []validate.Target
	for _, name := range names {
		t := validate.Target(strings.ToLower(name))
		switch {
		case t == "all":
			return known, nil
		case !slices.Contains(known, t):
			return nil, fault.Usage("--target %s: there is no such target: give metier, spec, openai, anthropic, well-known or all", name)
		case !slices.Contains(targets, t):
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// skillFolders takes paths as the reference's commands do: they must exist, and
// a SKILL.md stands for its folder.
func skillFolders(args []string) ([]string, error) {
	var dirs []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fault.Usage("path %q does not exist", arg)
		case err != nil:
			return nil, fault.Usage("path %q cannot be read: %w", arg, err)
		case !info.IsDir() && strings.EqualFold(filepath.Base(arg), skill.ManifestFile):
			arg = filepath.Dir(arg)
		}
		dirs = append(dirs, arg)
	}
	return dirs, nil
}

// printVerdicts prints what is valid to standard output and what is not to
// standard error, in the reference's form.
func (s *session) printVerdicts(all []verdict, label bool) {
	for _, v := range all {
		path := shownPath(v.Path)
		if label {
			path += " (" + string(v.Target) + ")"
		}
		w := s.std.Out
		if v.Valid {
			fmt.Fprintf(w, "Valid skill: %s\n", path)
		} else {
			w = s.std.Err
			fmt.Fprintf(w, "Validation failed for %s:\n", path)
		}
		for _, f := range v.Findings {
			printFinding(w, v.Target, f)
		}
	}
}

// printFinding prints one line. The reference has neither places nor advice.
func printFinding(w io.Writer, t validate.Target, f validate.Finding) {
	switch {
	case f.Severity == validate.Error && t == validate.Spec:
		fmt.Fprintf(w, "  - %s\n", printable(f.Message))
	case f.Severity == validate.Error:
		fmt.Fprintf(w, "  - %s\n", printable(f.String()))
	case t != validate.Spec:
		fmt.Fprintf(w, "  %s: %s\n", f.Severity, printable(f.String()))
	}
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/skill"
	"github.com/metier-run/metier/skill/validate"
)

func (s *session) newSkillsNew() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a skill to fill in",
		Long: "Make a folder with a SKILL.md whose comments say what to write. Nothing that exists is overwritten. The name\n" +
			"is lower-case letters, digits and single hyphens, so that every host takes it.",
		Example: "  metier skills new pdf-forms\n" +
			"  metier skills new pdf-forms --dir ~/skills",
		Args: between(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.makeSkill(cmd, args[0], dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", filepath.Join(".agents", "skills"), "directory to make it in, made if it is missing; the default one is scanned from here and below")
	return cmd
}

func (s *session) makeSkill(cmd *cobra.Command, name, dir string) error {
	if err := validate.PortableName(name); err != nil {
		return fault.Usage("%w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make skill %s: %w", name, err)
	}
	folder := filepath.Join(dir, name)
	err := os.Mkdir(folder, 0o755) // fails when anything is there
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("make skill %s: %s exists already and is left as it is: choose another name or --dir", name, folder)
	case err != nil:
		return fmt.Errorf("make skill %s: %w", name, err)
	}
	file := filepath.Join(folder, skill.ManifestFile)
	if err := os.WriteFile(file, []byte(skeleton(name)), 0o644); err != nil {
		_ = os.Remove(folder) // empty, or it stays for a person to look at
		return fmt.Errorf("make skill %s: %w", name, err)
	}
	fmt.Fprintln(s.std.Out, file)
	fmt.Fprintf(s.std.Err, "Write its description and instructions, then check it: metier skills validate --target all %s\n", folder)
	return nil
}

// skeleton is a SKILL.md that every host takes as it is, and that says to a
// person what to write and to a model that nothing is written yet.
func skeleton(name string) string {
	title := strings.ReplaceAll(name, "-", " ")
	title = strings.ToUpper(title[:1]) + title[1:]
	return strings.NewReplacer("{name}", name, "{title}", title).Replace(skeletonText)
}

const skeletonText = `---
# Lower-case letters, digits and single hyphens, at most 64. The folder must have the same name.
name: {name}

# A model decides by this text alone whether to open the skill. Say what it does and when to use it, in the words
# that a user would write: verbs, file types, names of tools. At most 1024 characters, on one line; put it in double
# quotes if it holds a colon followed by a space.
description: Replace this sentence with what the skill does. Use when the user asks for it in these or similar words.

# Optional. Take the "# " away from lines that are true, and delete the others. A key besides these six makes some
# hosts refuse the skill; what is your own goes below metadata, as text in quotes.
# license: Apache-2.0
# compatibility: Requires python3.
# allowed-tools: Read
# metadata:
#   version: "1.0"
---

# {title}

This skill is not written yet. A model that has opened it tells the user so and goes on without it.

What belongs here, in place of this text:

- The steps, in order, with what to do when one fails, and what a good result looks like.
- What a model cannot know by itself: formats, limits, names, rules of the house. Leave out what it knows anyway.
- Which file to read and when. A folder called references holds what is long and seldom needed; it costs nothing
  until it is read, while these instructions are read whole each time. Keep them under 500 lines.
- Which script to run, with its arguments and what it prints. A folder called scripts holds programs, which is safer
  than having the model write them again each time.
- Paths that start at this folder, never at the root of a disk or at a home directory.
`

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/skill/validate"
)

func (s *session) newSkillsPack() *cobra.Command {
	var out, target string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack a skill into a zip, for an upload or a web site",
		Long: "Pack a skill. The archive holds one folder of the skill's name, as OpenAI and Anthropic take it; for the\n" +
			"target well-known SKILL.md is at its top. What the target would refuse is not packed. The same files give\n" +
			"the same bytes, wherever and whenever they are packed. Folders called .git and node_modules stay out.\n\n" +
			"Prints path, bytes and SHA-256 of the archive.",
		Example: "  metier skills pack ./pdf\n" +
			"  metier skills pack ./pdf --target anthropic -o /tmp/pdf.zip",
		Args: between(1, 1, "one skill folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.packSkill(cmd, args[0], out, target, asJSON)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write (NAME.zip in the working directory)")
	cmd.Flags().StringVar(&target, "target", string(validate.Metier), "who will take it: metier, openai, anthropic or well-known")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// packedRow is an archive as --json prints it.
type packedRow struct {
	Path            string `json:"path"`
	Target          string `json:"target"`
	validate.Packed `json:",inline"`
}

func (s *session) packSkill(cmd *cobra.Command, arg, out, name string, asJSON bool) error {
	target := validate.Target(strings.ToLower(name))
	if target == validate.Spec || !slices.Contains(validate.Targets(), target) {
		return fault.Usage("--target %s: nobody of that name takes archives: give metier, openai, anthropic or well-known", name)
	}
	dirs, err := skillFolders([]string{arg})
	if err != nil {
		return err
	}
	if out == "" {
		abs, err := filepath.Abs(dirs[0])
		if err != nil {
			return fmt.Errorf("pack %s: %w", arg, err)
		}
		out = filepath.Base(abs) + ".zip"
	}
	if inside(dirs[0], out) {
		return fault.Usage("%s lies in the skill itself, so the next archive would hold it: give a place outside with -o", out)
	}
	packed, err := packTo(cmd.Context(), dirs[0], out, target)
	if err != nil {
		return err
	}
	if asJSON {
		return s.printJSON(packedRow{Path: out, Target: string(target), Packed: packed})
	}
	fmt.Fprintf(s.std.Out, "%s %d bytes sha256:%s\n", out, packed.Bytes, packed.SHA256)
	fmt.Fprintf(s.std.Err, "%s, %d bytes unpacked\n", plural(packed.Files, "file"), packed.Unpacked)
	return nil
}

// inside reports whether a file lies in a folder, links resolved as far as they
// exist.
func inside(dir, file string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return false
	}
	absDir, err1 := filepath.Abs(dir)
	absParent, err2 := filepath.Abs(parent)
	if err := errors.Join(err1, err2); err != nil {
		return false
	}
	rel, err := filepath.Rel(absDir, absParent)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// packTo writes the archive beside its place first, so that a failure leaves
// what was there.
func packTo(ctx context.Context, dir, out string, target validate.Target) (p validate.Packed, err error) {
	f, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return p, fmt.Errorf("write %s: %w", out, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	p, err = validate.Pack(ctx, f, dir, target)
	if err != nil {
		return p, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(archiveMode), f.Close()); err != nil {
		return p, fmt.Errorf("write %s: %w", out, err)
	}
	if err := os.Rename(f.Name(), out); err != nil {
		return p, fmt.Errorf("write %s: %w", out, err)
	}
	return p, nil
}

// archiveMode lets others read an archive, as what a compiler writes.
const archiveMode = 0o644

package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/metier-run/metier/internal/config"
)

// Root is a directory to scan.
type Root struct {
	Dir string
	// Origin of what is found there; empty means [Discovered].
	Origin Origin
	// Optional roots may be missing.
	Optional bool
	// Setting is what names the directory, such as "--skills-dir". Errors repeat
	// it, so that an operator knows where to look.
	Setting string
}

// Options say where skills are and how large they may be. A ceiling of 0 is the
// default, which stands in brackets with the name of the row in the table of
// limits.
type Options struct {
	// Roots come in order of precedence: the earlier keeps a name.
	Roots []Root
	// MaxManifest is the size of a SKILL.md in bytes (skills-manifest, 4 MiB).
	MaxManifest int64
	// MaxFiles is the number of files in a skill (skills-files, 4096). What is
	// left out counts, and no more folders may there be.
	MaxFiles int
	// MaxBytes is the size of all files of a skill (skills-bytes, 256 MiB).
	MaxBytes int64
	// MaxSkills is the number of skills in all roots (skills-count, 512).
	MaxSkills int
	// MaxDepth is how many levels below a root a skill may lie (skills-depth, 3).
	MaxDepth int
}

func (o Options) limits() limits {
	var v config.Values
	return limits{
		manifest: cmp.Or(o.MaxManifest, v.Get(config.ManifestSize)),
		bytes:    cmp.Or(o.MaxBytes, v.Get(config.SkillBytes)),
		files:    cmp.Or(o.MaxFiles, v.Int(config.SkillFiles)),
		skills:   cmp.Or(o.MaxSkills, v.Int(config.SkillCount)),
		depth:    cmp.Or(o.MaxDepth, v.Int(config.ScanDepth)),
	}
}

// limits are the ceilings in force.
type limits struct {
	manifest, bytes      int64
	files, skills, depth int
}

// DefaultRoots are the .agents/skills directories from dir up to the root of its
// Git repository, the closest first. Outside a repository only dir's own counts,
// and no directory of the user's or the host's ever does. A repository ends below
// a directory that another user owns, as it does for Git (its safe.directory). All are optional: one
// that does not exist yet is found by the scan after it has appeared.
func DefaultRoots(dir string) ([]Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find skills: %w", err)
	}
	top := gitRoot(dir, ours)
	var roots []Root
	for {
		skills := filepath.Join(dir, ".agents", "skills")
		if info, err := os.Stat(skills); err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist) {
			roots = append(roots, Root{Dir: skills, Origin: Discovered, Optional: true})
		}
		if dir == top {
			return roots, nil
		}
		dir = filepath.Dir(dir)
	}
}

// gitRoot is the closest directory that holds a .git, or dir if none does before
// one that is not ours: whoever owns it could plant skills above everybody's work.
func gitRoot(dir string, ours func(string) bool) string {
	for at := dir; ours(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return dir
}

package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
)

// Root is a directory to scan.
type Root struct {
	Dir string
	// Origin of what is found there; empty means [Discovered].
	Origin Origin
	// Optional roots may be missing.
	Optional bool
}

// Options say where skills are and how large they may be. A ceiling of 0 is the
// default, which stands in brackets with the name of the row in the table of
// limits.
type Options struct {
	// Roots come in order of precedence: the earlier keeps a name.
	Roots []Root
	// MaxManifest is the size of a SKILL.md in bytes (skills-manifest, 4 MiB).
	MaxManifest int64
	// MaxFiles is the number of files in a skill (skills-files, 4096).
	MaxFiles int
	// MaxBytes is the size of all files of a skill (skills-bytes, 256 MiB).
	MaxBytes int64
	// MaxSkills is the number of skills in all roots (skills-count, 512).
	MaxSkills int
	// MaxDepth is how many levels below a root a skill may lie (skills-depth, 3).
	MaxDepth int
}

// The limits that a [LimitError] names: rows of the table of limits.
const (
	LimitManifest = string(config.ManifestSize)
	LimitFiles    = string(config.SkillFiles)
	LimitBytes    = string(config.SkillBytes)
	LimitSkills   = string(config.SkillCount)
)

// LimitError is a ceiling that was passed.
type LimitError struct {
	// Limit is one of the Limit constants.
	Limit string
	Max   int64
	// What is counted, in words.
	What string
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("too many %s: at most %d are allowed (%s): remove some, or raise the limit", e.What, e.Max, e.Limit)
}

// RootError is a root that cannot be read.
type RootError struct {
	Dir string
	Err error
}

// Error names the directory and says what to do.
func (e *RootError) Error() string {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Sprintf("load skills: directory %q does not exist: create it or correct the setting that names it", e.Dir)
	}
	return fmt.Sprintf("load skills: directory %q: %v", e.Dir, e.Err)
}

// Unwrap is the cause.
func (e *RootError) Unwrap() error { return e.Err }

// LoadError is a skill that was found and could not be loaded.
type LoadError struct {
	// Dir is the skill's directory.
	Dir string
	// Err is a [*ManifestError], a [*LimitError], a [*ClashError] or a failure of
	// the disk.
	Err error
}

// Error names the directory and the cause.
func (e *LoadError) Error() string { return fmt.Sprintf("load skill %s: %v", e.Dir, e.Err) }

// Unwrap is the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// ClashError is a skill whose name an earlier one has.
type ClashError struct {
	Name string
	// Kept and Dropped are the directories of the two.
	Kept, Dropped string
}

// Error names both places.
func (e *ClashError) Error() string {
	return fmt.Sprintf("the name %q is taken by %s, so %s is left out: rename one of them", e.Name, e.Kept, e.Dropped)
}

// Snapshot is a view of all skills of all roots that never changes.
type Snapshot struct {
	skills []Skill
	errs   []*LoadError
	digest string
}

// Skills lists the skills sorted by name, byte by byte.
func (s *Snapshot) Skills() []Skill { return slices.Clone(s.skills) }

// Errors lists what was found and not loaded, in the order of the scan.
func (s *Snapshot) Errors() []*LoadError { return slices.Clone(s.errs) }

// Digest is the SHA-256, in hexadecimal, over the digests of all skills (see
// [Skill.Digest]): equal snapshots hold the same names, paths and bytes.
func (s *Snapshot) Digest() string { return s.digest }

// Find looks a skill up by name. White space around it and case do not matter.
func (s *Snapshot) Find(name string) (Skill, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	i, ok := slices.BinarySearchFunc(s.skills, name, func(k Skill, name string) int { return cmp.Compare(k.Name, name) })
	if !ok {
		return Skill{}, false
	}
	return s.skills[i], true
}

// Load scans the roots. A folder with a SKILL.md, in exactly that case, is a
// skill, and what lies below it belongs to it; a root may be one itself.
// Folders called .git and node_modules are passed over. A link to a folder
// inside a root is resolved once, here; a folder that several links name is
// loaded once. Every file is read once, for its digest.
//
// It fails with a [*RootError] when a root cannot be read, with a [*LimitError]
// when there are too many skills, and when ctx ends. What is wrong with a single
// skill is in [Snapshot.Errors].
func Load(ctx context.Context, o Options) (*Snapshot, error) {
	l := loader{max: o.limits(), named: map[string]Skill{}, loaded: map[string]string{}}
	for _, root := range o.Roots {
		if err := l.root(ctx, root); err != nil {
			return nil, err
		}
	}
	return l.snapshot(), nil
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

type loader struct {
	max    limits
	named  map[string]Skill
	loaded map[string]string // the folder of a skill, links resolved, to its name
	errs   []*LoadError
}

func (l *loader) snapshot() *Snapshot {
	s := &Snapshot{errs: l.errs}
	for _, k := range l.named {
		s.skills = append(s.skills, k)
	}
	slices.SortFunc(s.skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, k := range s.skills {
		put(sum, k.digest)
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return s
}

// folder is a place to look at.
type folder struct {
	dir  string // as named, for people
	real string // links resolved
	link bool
}

// root looks at a root level by level, so that of two skills of one name in a
// root the upper one keeps it.
func (l *loader) root(ctx context.Context, root Root) error {
	dir, err := filepath.Abs(root.Dir)
	if err != nil {
		return &RootError{Dir: root.Dir, Err: err}
	}
	real, err := resolveDir(dir)
	switch {
	case root.Optional && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &RootError{Dir: root.Dir, Err: err}
	}
	if _, err := os.ReadDir(real); err != nil {
		return &RootError{Dir: root.Dir, Err: hidePath(err)}
	}
	seen := map[string]bool{}
	level := []folder{{dir: dir, real: real}}
	for depth := 0; depth <= l.max.depth && len(level) > 0; depth++ {
		var below []folder
		for _, f := range level {
			if err := ctx.Err(); err != nil {
				return err
			}
			if seen[f.real] && l.loaded[f.real] == "" {
				continue
			}
			seen[f.real] = true
			next, err := l.look(ctx, f, cmp.Or(root.Origin, Discovered))
			if err != nil {
				return err
			}
			below = append(below, next...)
		}
		level = below
		slices.SortStableFunc(level, realFirst)
	}
	return nil
}

// realFirst puts folders before links to folders, so that a folder is loaded
// under its own name when both lie in a root.
func realFirst(a, b folder) int {
	switch {
	case a.link == b.link:
		return cmp.Compare(a.dir, b.dir)
	case b.link:
		return -1
	}
	return 1
}

// look loads the skill in a folder, or gives back the folders below it.
func (l *loader) look(ctx context.Context, f folder, origin Origin) ([]folder, error) {
	entries, err := os.ReadDir(f.real)
	if err != nil {
		l.fail(f.dir, hidePath(err))
		return nil, nil
	}
	for _, e := range entries {
		if e.Name() == ManifestFile && !e.IsDir() {
			return nil, l.add(ctx, f, origin)
		}
	}
	var below []folder
	for _, e := range entries {
		switch {
		case skipped(e.Name()):
		case e.IsDir():
			below = append(below, folder{dir: filepath.Join(f.dir, e.Name()), real: filepath.Join(f.real, e.Name())})
		case e.Type()&fs.ModeSymlink != 0:
			below = append(below, l.behind(f, e.Name())...)
		}
	}
	return below, nil
}

// behind is the folder that a link names, if it names one.
func (l *loader) behind(f folder, name string) []folder {
	link := filepath.Join(f.dir, name)
	real, err := resolveDir(filepath.Join(f.real, name))
	switch {
	case errors.Is(err, errNoDir):
		return nil
	case err != nil:
		l.fail(link, fmt.Errorf("the link leads to nothing that can be read: %w", err))
		return nil
	}
	return []folder{{dir: link, real: real, link: true}}
}

var errNoDir = errors.New("it is not a directory")

func resolveDir(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", hidePath(err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", hidePath(err)
	case !info.IsDir():
		return "", errNoDir
	}
	return real, nil
}

// add loads a skill. Only too many of them and the end of ctx are errors.
func (l *loader) add(ctx context.Context, f folder, origin Origin) error {
	base := filepath.Base(f.dir)
	if name, again := l.loaded[f.real]; again {
		if base != filepath.Base(l.named[name].dir) {
			l.fail(f.dir, fmt.Errorf("it is the folder of the skill %q, which is loaded already: remove the link", name))
		}
		return nil
	}
	k, err := readSkill(ctx, f.dir, f.real, base, origin, l.max)
	if err != nil {
		l.fail(f.dir, err)
		return ctx.Err()
	}
	if kept, taken := l.named[k.Name]; taken {
		l.fail(f.dir, &ClashError{Name: k.Name, Kept: kept.dir, Dropped: f.dir})
		return nil
	}
	if len(l.named) == l.max.skills {
		return fmt.Errorf("load skills: %s: %w", f.dir, &LimitError{Limit: LimitSkills, Max: int64(l.max.skills), What: "skills"})
	}
	l.named[k.Name] = k
	l.loaded[f.real] = k.Name
	return nil
}

func (l *loader) fail(dir string, err error) {
	l.errs = append(l.errs, &LoadError{Dir: dir, Err: err})
}

// DefaultRoots lists every .agents/skills directory that exists from dir up to
// the root of its Git repository, the closest first. Outside a repository only
// dir's own counts.
func DefaultRoots(dir string) ([]Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find skills: %w", err)
	}
	top := gitRoot(dir)
	var roots []Root
	for {
		skills := filepath.Join(dir, ".agents", "skills")
		if info, err := os.Stat(skills); err == nil && info.IsDir() {
			roots = append(roots, Root{Dir: skills, Origin: Discovered, Optional: true})
		}
		if dir == top {
			return roots, nil
		}
		dir = filepath.Dir(dir)
	}
}

// gitRoot is the closest directory that holds a .git, or dir if none does.
func gitRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

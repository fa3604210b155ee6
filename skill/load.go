package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Load scans the roots. A folder with a SKILL.md, in exactly that case, is a
// skill, and what lies below it belongs to it; a root may be one itself.
// Folders called .git and node_modules are passed over. A link to a folder
// inside a root is resolved once, here; a folder that several links name is
// loaded once. A link to a folder that holds the root itself is refused. It reads each manifest, and of other files the start, which tells
// text from binary.
//
// It fails with a [*RootError] when a root cannot be read, with a [*LimitError]
// when there are too many skills, and when ctx ends. What is wrong with a single
// skill is in [Snapshot.Errors].
func Load(ctx context.Context, o Options) (*Snapshot, error) {
	l := newLoader(o)
	if err := l.scan(ctx); err != nil {
		return nil, err
	}
	return l.snapshot(), nil
}

func newLoader(o Options) *loader {
	return &loader{
		roots: o.Roots, max: o.limits(), named: map[string]Skill{}, loaded: map[string]string{},
		writing: func(string) bool { return false },
	}
}

// loader gathers one snapshot.
type loader struct {
	roots []Root
	max   limits
	// careful: what changes while it is read is not taken.
	careful bool
	// previous are the skills of the snapshot before, by their folders, and
	// writing tells which folders are to stay as they were there.
	previous map[string]Skill
	writing  func(dir string) bool

	named   map[string]Skill
	loaded  map[string]string // the folder of a skill, links resolved, to its name
	errs    []*LoadError
	pending []string
	folders []string
}

func (l *loader) scan(ctx context.Context) error {
	for _, root := range l.roots {
		if err := l.root(ctx, root); err != nil {
			return err
		}
	}
	return l.keepMissing()
}

func (l *loader) snapshot() *Snapshot {
	s := &Snapshot{errs: l.errs, pending: l.pending, folders: l.folders}
	for _, k := range l.named {
		s.skills = append(s.skills, k)
	}
	slices.SortFunc(s.skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// folder is a place to look at.
type folder struct {
	dir  string // as named, for people
	real string // links resolved
	link bool
	top  string // the root that it was reached from, links resolved
}

// root looks at a root level by level, so that of two skills of one name in a
// root the upper one keeps it.
func (l *loader) root(ctx context.Context, root Root) error {
	dir, err := filepath.Abs(root.Dir)
	if err != nil {
		return &RootError{Dir: root.Dir, Setting: root.Setting, Err: err}
	}
	real, err := resolveDir(dir)
	switch {
	case root.Optional && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &RootError{Dir: root.Dir, Setting: root.Setting, Err: err}
	}
	if _, err := os.ReadDir(real); err != nil {
		return &RootError{Dir: root.Dir, Setting: root.Setting, Err: hidePath(err)}
	}
	seen := map[string]bool{}
	level := []folder{{dir: dir, real: real, top: real}}
	for depth := 0; depth <= l.max.depth && len(level) > 0; depth++ {
		if level, err = l.level(ctx, level, seen, cmp.Or(root.Origin, Discovered)); err != nil {
			return err
		}
	}
	return nil
}

// level looks at the folders of one level, loads the skills among them, and
// gives back the folders below the others.
func (l *loader) level(ctx context.Context, level []folder, seen map[string]bool, origin Origin) ([]folder, error) {
	var skills, below []folder
	found := map[string]bool{}
	for _, f := range level {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if seen[f.real] && l.loaded[f.real] == "" && !found[f.real] {
			continue
		}
		seen[f.real] = true
		isSkill, next := l.look(f)
		if isSkill {
			found[f.real] = true
			skills = append(skills, f)
		}
		below = append(below, next...)
	}
	slices.SortStableFunc(below, realFirst)
	return below, l.addAll(ctx, skills, origin)
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

// look tells whether a folder is a skill, and otherwise lists those below it.
func (l *loader) look(f folder) (isSkill bool, below []folder) {
	l.folders = append(l.folders, f.real)
	entries, err := os.ReadDir(f.real)
	if err != nil {
		l.fail(f.dir, hidePath(err))
		return false, nil
	}
	for _, e := range entries {
		if e.Name() == ManifestFile && !e.IsDir() {
			return true, nil
		}
	}
	for _, e := range entries {
		switch {
		case skipped(e.Name()):
		case e.IsDir():
			below = append(below, folder{dir: filepath.Join(f.dir, e.Name()), real: filepath.Join(f.real, e.Name()), top: f.top})
		case e.Type()&fs.ModeSymlink != 0:
			below = append(below, l.behind(f, e.Name())...)
		}
	}
	return false, below
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
	case holds(real, f.top):
		// To follow it would be to scan, and to watch, what may be the whole disk.
		l.fail(link, fmt.Errorf("the link leads to %q, which holds the skills directory itself: link to the folder of a skill instead", real))
		return nil
	}
	return []folder{{dir: link, real: real, link: true, top: f.top}}
}

// holds reports whether top lies below dir.
func holds(dir, top string) bool {
	rel, err := filepath.Rel(dir, top)
	return err == nil && rel != "." && filepath.IsLocal(rel)
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

// batch is how many skills are read before they are counted: a root that holds
// far too many is noticed early.
const batch = 64

// addAll loads skills, many at a time, and takes them in order.
func (l *loader) addAll(ctx context.Context, skills []folder, origin Origin) error {
	for some := range slices.Chunk(skills, batch) {
		read := make([]reading, len(some))
		parallel(len(some), func(i int) { read[i] = l.read(ctx, some[i], origin) })
		for i, f := range some {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.add(f, read[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading is what became of the skill in a folder.
type reading struct {
	skill Skill
	err   error
	// folders are those of the skill, as far as it was read.
	folders []string
	// pending: it is being written. skill is then the previous one, or empty.
	pending bool
}

// read runs beside others of its kind and changes nothing of the loader.
func (l *loader) read(ctx context.Context, f folder, origin Origin) reading {
	if _, again := l.loaded[f.real]; again {
		return reading{}
	}
	previous, known := l.previous[f.real]
	known = known && previous.dir == f.dir && previous.Origin == origin
	if l.writing(f.real) {
		return waiting(previous, known)
	}
	r := reader{max: l.max, careful: l.careful, dir: f.dir, real: f.real, origin: origin}
	if known {
		r.previous = previous
	}
	k, err := r.read(ctx)
	if errors.Is(err, errChanging) || l.writing(f.real) {
		return waiting(previous, known)
	}
	return reading{skill: k, err: err, folders: r.folders}
}

func waiting(previous Skill, known bool) reading {
	if !known {
		return reading{pending: true}
	}
	return reading{skill: previous, folders: previous.content.folders, pending: true}
}

// add takes a skill. Only too many of them is an error.
func (l *loader) add(f folder, r reading) error {
	if name, again := l.loaded[f.real]; again {
		if filepath.Base(f.dir) != filepath.Base(l.named[name].dir) {
			l.fail(f.dir, fmt.Errorf("it is the folder of the skill %q, which is loaded already: remove the link", name))
		}
		return nil
	}
	l.folders = append(l.folders, r.folders...)
	if r.pending {
		l.pending = append(l.pending, f.dir)
	}
	switch {
	case r.err != nil:
		l.fail(f.dir, r.err)
	case r.skill.Name != "":
		return l.name(f.dir, f.real, r.skill)
	}
	return nil
}

// name gives a skill its name, unless an earlier one has it.
func (l *loader) name(dir, real string, k Skill) error {
	if kept, taken := l.named[k.Name]; taken {
		l.fail(dir, &ClashError{Name: k.Name, Kept: kept.dir, Dropped: dir})
		return nil
	}
	if len(l.named) == l.max.skills {
		return fmt.Errorf("load skills: %s: %w", dir, &LimitError{Limit: LimitSkills, Max: int64(l.max.skills), What: "skills"})
	}
	l.named[k.Name] = k
	l.loaded[real] = k.Name
	return nil
}

// keepMissing keeps skills whose folders are not there at this moment but are
// being written: one is replaced by removing it first.
func (l *loader) keepMissing() error {
	var gone []string
	for real := range l.previous {
		if l.loaded[real] == "" && !slices.Contains(l.pending, l.previous[real].dir) && l.writing(real) {
			gone = append(gone, real)
		}
	}
	slices.Sort(gone)
	for _, real := range gone {
		k := l.previous[real]
		if _, taken := l.named[k.Name]; taken {
			continue
		}
		l.pending = append(l.pending, k.dir)
		if err := l.name(k.dir, real, k); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) fail(dir string, err error) {
	l.errs = append(l.errs, &LoadError{Dir: dir, Err: err})
}

package artifact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

// Scope says what of a workdir is looked at.
type Scope struct {
	// Ignore are patterns of [path.Match] for what is never an artifact and is not
	// reported as skipped either. One that ends in "/" is for folders with all that
	// is in them, the others are for everything else. One that begins with "/" is
	// for the top of the workdir, the others are for every level. See
	// [DefaultIgnore].
	Ignore []string
	// Entries is how many files and folders are looked at, Depth how many folders
	// lie above a file at most. 0 is the default of the limits artifact-entries and
	// artifact-depth: more than an honest workdir holds, and little enough for a
	// hostile one to cost the host some megabytes and a second.
	Entries, Depth int
}

// DefaultIgnore are the patterns for what no person wants to fetch: hidden files
// and folders, and what interpreters leave behind.
func DefaultIgnore() []string { return []string{".*", ".*/", "__pycache__/", "*.pyc", "node_modules/"} }

func (s Scope) entries() int {
	return cmp.Or(s.Entries, config.Values{}.Int(config.ArtifactEntries))
}

func (s Scope) depth() int { return cmp.Or(s.Depth, config.Values{}.Int(config.ArtifactDepth)) }

// check finds a pattern that matches nothing because it is misspelled.
func (s Scope) check() error {
	for _, p := range s.Ignore {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("ignore %q: %w", p, err)
		}
	}
	return nil
}

func (s Scope) ignores(name string, folder bool) bool {
	return slices.ContainsFunc(s.Ignore, func(pattern string) bool {
		pattern, forFolders := strings.CutSuffix(pattern, "/")
		if forFolders != folder {
			return false
		}
		subject := path.Base(name)
		if anchored, ok := strings.CutPrefix(pattern, "/"); ok {
			pattern, subject = anchored, name
		}
		ok, _ := path.Match(pattern, subject) // check has seen the pattern
		return ok
	})
}

// Snapshot is how a workdir was before a launch. It takes memory for each entry,
// whatever the length of its path, and holds nothing open. The zero value is an
// empty workdir in the default scope, with nothing ignored.
type Snapshot struct {
	scope Scope
	seen  map[key]stamp
	// cut says that there was more than the scope looks at.
	cut bool
}

// key stands for a path.
type key [sha256.Size]byte

func keyOf(name string) key { return sha256.Sum256([]byte(name)) }

// stamp tells a file from a changed one. It is zero for what could not be looked
// at. A change that leaves the inode, the size and the time is not noticed: its
// maker only keeps its own file from being kept.
type stamp struct {
	kind           fs.FileMode
	size, modified int64
	inode          uint64
}

func stampOf(info fs.FileInfo) stamp {
	if info == nil {
		return stamp{}
	}
	inode, _ := identity(info)
	return stamp{kind: info.Mode().Type(), size: info.Size(), modified: info.ModTime().UnixNano(), inode: inode}
}

// Take looks at a workdir before a launch. It fails only if the directory itself
// cannot be opened, a pattern is misspelled, or ctx ends.
func Take(ctx context.Context, dir string, scope Scope) (Snapshot, error) {
	s := Snapshot{scope: scope, seen: map[key]stamp{}}
	cut, err := look(ctx, dir, scope, func(e entry) { s.seen[keyOf(e.path)] = stampOf(e.info) })
	if err != nil {
		return Snapshot{}, fmt.Errorf("look at the workdir: %w", err)
	}
	s.cut = cut
	return s, nil
}

// Without is the snapshot as if it had not seen some paths, so that they count as new.
func (s Snapshot) Without(paths ...string) Snapshot {
	seen := maps.Clone(s.seen)
	for _, p := range paths {
		delete(seen, keyOf(p))
	}
	s.seen = seen
	return s
}

// has reports whether an entry is as it was.
func (s Snapshot) has(e entry) bool {
	was, ok := s.seen[keyOf(e.path)]
	return ok && was == stampOf(e.info)
}

// entry is something in a workdir that is no folder, or a folder that was not
// looked into.
type entry struct {
	path string
	info fs.FileInfo // links not followed; nil if it could not be had
	why  string      // why it is not kept, if that is known already
}

// look goes through a workdir: what a folder holds, in the order of names, then
// its folders. cut tells that there was more than the scope allows.
//
// It lists folders itself, because [guard.Root.Walk] reads a folder whole and has
// no bound. Every step is taken from an [os.Root] by a single name, so it leads
// nowhere else.
func look(ctx context.Context, dir string, scope Scope, see func(entry)) (cut bool, err error) {
	if err := scope.check(); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	l := &looker{scope: scope, left: scope.entries(), see: see}
	err = l.folder(ctx, root, ".", 0)
	return l.cut, err
}

type looker struct {
	scope Scope
	left  int
	cut   bool
	see   func(entry)
}

func (l *looker) folder(ctx context.Context, root *os.Root, dir string, depth int) error {
	below, err := l.files(ctx, root, dir)
	if err != nil {
		return err
	}
	for _, name := range below {
		p := path.Join(dir, name)
		if depth >= l.scope.depth() {
			l.see(entry{path: p, why: tooDeep(l.scope.depth())})
			continue
		}
		sub, err := root.OpenRoot(name)
		if err != nil {
			l.see(entry{path: p, why: reason(err)})
			continue
		}
		err = l.folder(ctx, sub, p, depth+1)
		_ = sub.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}

// files shows what a folder holds and gives back the names of its folders.
func (l *looker) files(ctx context.Context, root *os.Root, dir string) (below []string, err error) {
	entries, err := l.list(root)
	if err != nil {
		l.see(entry{path: dir, why: reason(err)})
	}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := path.Join(dir, d.Name())
		if l.scope.ignores(p, d.IsDir()) {
			continue
		}
		info, err := root.Lstat(d.Name())
		if err != nil {
			l.see(entry{path: p, why: reason(err)})
			continue
		}
		e := entry{path: p, info: info}
		if _, err := guard.Clean(p); err != nil {
			e.why = reason(err)
		}
		if info.IsDir() && e.why == "" {
			below = append(below, d.Name())
			continue
		}
		if info.IsDir() {
			e.info = nil // its time changes with every file in it
		}
		l.see(e)
	}
	return below, nil
}

// batch is how many names are asked for at once.
const batch = 1024

// list reads as many entries as are left, sorted by name. What it could read goes
// along with an error.
func (l *looker) list(root *os.Root) ([]fs.DirEntry, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for err == nil && len(all) <= l.left {
		var some []fs.DirEntry
		some, err = f.ReadDir(min(batch, l.left+1-len(all)))
		all = append(all, some...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(all) > l.left {
		all, l.cut = all[:l.left], true
	}
	l.left -= len(all)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, err
}

package guard

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Entry is something that [Root.Walk] found.
type Entry struct {
	// Path is relative to the root, with "/" between names.
	Path string
	// Info describes the entry, links followed; nil beside an error.
	Info fs.FileInfo
	// Link is where a link points to, as a path below the root; empty for
	// anything else.
	Link string

	dir *os.Root // the folder that holds the entry, while it is listed
}

// Open opens a regular file that is no link, as [Root.Open] does and with fewer
// steps. It works only inside the loop that yielded the entry.
func (e Entry) Open() (*os.File, error) {
	if e.Info == nil || e.Link != "" || !e.Info.Mode().IsRegular() {
		return nil, &PathError{Path: e.Path, Err: ErrIrregular}
	}
	f, err := e.dir.OpenFile(path.Base(e.Path), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, refusal(e.Path, err)
	}
	return regular(e.Path, f)
}

// Walk yields everything below the root: what a folder holds, names in order,
// then what its folders hold, and links without what lies behind them. A folder
// for whose name skip is true is passed over; a nil skip passes over nothing.
//
// An error belongs to its entry (a [*PathError] for what may not be opened) and
// the walk goes on, but for the end of ctx, which is the last element.
func (r *Root) Walk(ctx context.Context, skip func(name string) bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w := walker{root: r, skip: skip, yield: yield}
		w.folder(ctx, ".")
	}
}

type walker struct {
	root  *Root
	skip  func(name string) bool
	yield func(Entry, error) bool
}

// folder reports whether the walk goes on. Its handle is closed before the
// folders below are opened, so that no depth uses up the host's handles.
func (w walker) folder(ctx context.Context, dir string) bool {
	if err := ctx.Err(); err != nil {
		w.yield(Entry{Path: dir}, err)
		return false
	}
	below, on := w.list(dir)
	for _, name := range below {
		if !on {
			break
		}
		on = w.folder(ctx, name)
	}
	return on
}

// list yields what a folder holds and gives back the folders among it.
func (w walker) list(dir string) (below []string, on bool) {
	sub, entries, err := w.root.readDir(dir)
	if err != nil {
		return nil, w.yield(Entry{Path: dir}, err)
	}
	defer sub.Close()
	for _, d := range entries {
		if d.IsDir() && w.skip != nil && w.skip(d.Name()) {
			continue
		}
		e, err := w.root.entry(sub, path.Join(dir, d.Name()), d)
		if !w.yield(e, err) {
			return nil, false
		}
		if err == nil && e.Link == "" && e.Info.IsDir() {
			below = append(below, e.Path)
		}
	}
	return below, true
}

func (r *Root) readDir(dir string) (*os.Root, []fs.DirEntry, error) {
	sub, err := r.root.OpenRoot(dir)
	if err != nil {
		return nil, nil, refusal(dir, err)
	}
	f, err := sub.Open(".")
	if err == nil {
		defer f.Close()
		var entries []fs.DirEntry
		if entries, err = f.ReadDir(-1); err == nil {
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
			return sub, entries, nil
		}
	}
	_ = sub.Close() // nothing was written through it
	return nil, nil, fmt.Errorf("list folder %q: %w", dir, reason(err))
}

func (r *Root) entry(sub *os.Root, name string, d fs.DirEntry) (Entry, error) {
	if _, err := Clean(name); err != nil {
		return Entry{Path: name}, err
	}
	if d.Type()&fs.ModeSymlink != 0 {
		return r.linked(name)
	}
	info, err := sub.Lstat(d.Name())
	if err != nil {
		return Entry{Path: name}, refusal(name, err)
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return Entry{Path: name}, &PathError{Path: name, Err: ErrIrregular}
	}
	return Entry{Path: name, Info: info, dir: sub}, nil
}

// linked looks at what a link leads to, from the top of the root: a link may
// leave its own folder, but not the root.
func (r *Root) linked(name string) (Entry, error) {
	info, err := r.Stat(name)
	if err != nil {
		return Entry{Path: name}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return Entry{Path: name}, &PathError{Path: name, Err: ErrIrregular}
	}
	target, err := r.root.Readlink(name)
	if err != nil {
		return Entry{Path: name}, refusal(name, err)
	}
	return Entry{Path: name, Info: info, Link: path.Join(path.Dir(name), filepath.ToSlash(target))}, nil
}

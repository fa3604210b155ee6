package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Root is a directory that no path leads out of. It holds the directory open
// until [Root.Close], and stays with it if it is renamed. It is safe for
// concurrent use.
type Root struct{ root *os.Root }

// OpenRoot opens a directory of the host. The way to the directory itself is
// the caller's: links on it are followed.
func OpenRoot(dir string) (*Root, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Root{root: r}, nil
}

// Close releases the directory. Files that were opened stay open.
func (r *Root) Close() error { return r.root.Close() }

// Stat describes the file or folder at a path, links followed.
func (r *Root) Stat(name string) (fs.FileInfo, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Stat(clean)
	if err != nil {
		return nil, refusal(name, err)
	}
	return info, nil
}

// Open opens a regular file for reading. It does not wait for the other end of
// a FIFO, and refuses everything that is not a regular file with [ErrIrregular]
// or [ErrFolder].
func (r *Root) Open(name string) (*os.File, error) {
	f, info, err := r.open(name)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Mode().IsRegular():
		return f, nil
	case info.IsDir():
		err = ErrFolder
	default:
		err = ErrIrregular
	}
	return nil, errors.Join(&PathError{Path: name, Err: err}, f.Close())
}

// ReadDir lists a folder, sorted by name. Links are listed as links.
func (r *Root) ReadDir(name string) ([]fs.DirEntry, error) {
	f, info, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, &PathError{Path: name, Err: ErrNoFolder}
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list folder %q: %w", name, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// open looks before it opens, because opening a device can have effects of its
// own, and looks again at what it has got, because the two may differ.
func (r *Root) open(name string) (*os.File, fs.FileInfo, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, &PathError{Path: name, Err: ErrIrregular}
	}
	f, err := r.root.OpenFile(path.Clean(name), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, refusal(name, err)
	}
	info, err = f.Stat()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open %q: %w", name, err), f.Close())
	}
	return f, info, nil
}

// Entry is something that [Root.Walk] found.
type Entry struct {
	// Path is relative to the root, with "/" between names.
	Path string
	// Info describes the entry, links followed; nil beside an error.
	Info fs.FileInfo
	// Link is where a link points to, as a path below the root; empty for
	// anything else.
	Link string
}

// Walk yields everything below the root: a folder before what it holds, names
// in order, and links without what lies behind them. A folder for whose name
// skip is true is passed over; a nil skip passes over nothing.
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

// folder reports whether the walk goes on.
func (w walker) folder(ctx context.Context, dir string) bool {
	if err := ctx.Err(); err != nil {
		w.yield(Entry{Path: dir}, err)
		return false
	}
	entries, err := w.root.ReadDir(dir)
	if err != nil {
		return w.yield(Entry{Path: dir}, err)
	}
	for _, d := range entries {
		if d.IsDir() && w.skip != nil && w.skip(d.Name()) {
			continue
		}
		if !w.entry(ctx, path.Join(dir, d.Name()), d) {
			return false
		}
	}
	return true
}

func (w walker) entry(ctx context.Context, name string, d fs.DirEntry) bool {
	e, err := w.root.entry(name, d)
	if !w.yield(e, err) {
		return false
	}
	return err != nil || !d.IsDir() || w.folder(ctx, name)
}

func (r *Root) entry(name string, d fs.DirEntry) (Entry, error) {
	info, err := r.Stat(name)
	if err != nil {
		return Entry{Path: name}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return Entry{Path: name}, &PathError{Path: name, Err: ErrIrregular}
	}
	if d.Type()&fs.ModeSymlink == 0 {
		return Entry{Path: name, Info: info}, nil
	}
	target, err := r.root.Readlink(name)
	if err != nil {
		return Entry{Path: name}, refusal(name, err)
	}
	return Entry{Path: name, Info: info, Link: path.Join(path.Dir(name), filepath.ToSlash(target))}, nil
}

// refusal tells a path that leads out from a failure of the disk. os.Root has
// no exported error for it, and both are refusals: only the text depends on it.
func refusal(name string, err error) error {
	if strings.Contains(err.Error(), "escapes from parent") {
		return &PathError{Path: name, Err: ErrEscape}
	}
	return fmt.Errorf("open %q: %w", name, reason(err))
}

// reason drops the host's path from an error of the disk.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
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
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	return regular(name, f)
}

// OpenPlain is [Root.Open] for a file that is no link itself: one that was swapped for
// a link is refused.
func (r *Root) OpenPlain(name string) (*os.File, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Lstat(clean)
	if err != nil {
		return nil, refusal(name, err)
	}
	f, err := r.Open(clean)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(&PathError{Path: name, Err: ErrIrregular}, f.Close())
	}
	return f, nil
}

// regular gives an opened file back if it is a regular one, and closes it
// otherwise: it may have changed since it was looked at.
func regular(name string, f *os.File) (*os.File, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("open %q: %w", name, reason(err))
	case info.Mode().IsRegular():
		return f, nil
	case info.IsDir():
		err = &PathError{Path: name, Err: ErrFolder}
	default:
		err = &PathError{Path: name, Err: ErrIrregular}
	}
	return nil, errors.Join(err, f.Close())
}

// ReadDir lists a folder, sorted by name. Links are listed as links.
func (r *Root) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &PathError{Path: name, Err: ErrNoFolder}
	}
	sub, entries, err := r.readDir(path.Clean(name))
	if err != nil {
		return nil, err
	}
	return entries, sub.Close()
}

// open looks before it opens, because opening a device can have effects of its
// own. The caller looks again at what it has got, because the two may differ.
func (r *Root) open(name string) (*os.File, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &PathError{Path: name, Err: ErrIrregular}
	}
	f, err := r.root.OpenFile(path.Clean(name), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, refusal(name, err)
	}
	return f, nil
}

// FoldsCase reports whether this file system finds a file by its name in another
// case. It asks the file system itself, by the name of a file that is there:
// one host can have both kinds, so the operating system does not tell.
func (r *Root) FoldsCase(name string) (bool, error) {
	info, err := r.Stat(name)
	if err != nil {
		return false, err
	}
	clean := path.Clean(name)
	other := path.Join(path.Dir(clean), swapCase(path.Base(clean)))
	found, err := r.root.Stat(other)
	if other == clean || err != nil || !os.SameFile(info, found) {
		return false, nil
	}
	// A hard link or a link of that name finds the same file, and has an entry.
	entries, err := r.ReadDir(path.Dir(clean))
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == path.Base(other) }), nil
}

func swapCase(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, name)
}

// refusal tells a path that is refused from a failure of the disk. os.Root has
// no exported error for a path that leads out, and both are refusals: only the
// text depends on it.
func refusal(name string, err error) error {
	for _, known := range []error{ErrEscape, ErrLoop, ErrNoFolder} {
		if errors.Is(err, known) {
			return &PathError{Path: name, Err: known}
		}
	}
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
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

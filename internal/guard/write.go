package guard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Pending is a file that is being written under a temporary name beside its own.
// [Pending.Commit] puts it in its place in one step, so that a reader sees the
// old content or the new and never a part. It is not safe for concurrent use.
type Pending struct {
	*os.File
	root         *Root
	temp, target string
	settled      bool
}

// Create begins a file that replaces what has its name, or is new. A file that
// is replaced is never written to, so that its other names (hard links) keep
// their bytes; it hands down its permission bits, and perm counts for a new
// file. A link is followed inside the root and refused with [ErrEscape] if it
// leads out. What is neither a regular file nor absent is refused with
// [ErrFolder] or [ErrIrregular]; the folder must exist.
//
// The caller ends it with [Pending.Close], and before that, if all went well,
// with [Pending.Commit].
func (r *Root) Create(name string, perm fs.FileMode) (*Pending, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	target, err := r.canonical(clean)
	if err != nil {
		return nil, refusal(name, err)
	}
	info, err := r.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, refusal(name, err)
	case info.IsDir():
		return nil, &PathError{Path: name, Err: ErrFolder}
	case !info.Mode().IsRegular():
		return nil, &PathError{Path: name, Err: ErrIrregular}
	default:
		perm = info.Mode().Perm()
	}
	temp := path.Join(path.Dir(target), ".metier-"+rand.Text())
	f, err := r.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, refusal(name, err)
	}
	p := &Pending{File: f, root: r, temp: temp, target: target}
	if err := f.Chmod(perm); err != nil { // whatever the umask took away
		return nil, errors.Join(fmt.Errorf("create %q: %w", name, reason(err)), p.Close())
	}
	return p, nil
}

// Commit closes the file and gives it its name. The content is not forced to the
// disk: call Sync before it where a crash must not lose it.
func (p *Pending) Commit() error {
	if err := p.File.Close(); err != nil {
		return fmt.Errorf("write %q: %w", p.target, reason(err))
	}
	if err := p.root.root.Rename(p.temp, p.target); err != nil {
		return refusal(p.target, err)
	}
	p.settled = true
	return nil
}

// Close removes the file unless [Pending.Commit] has given it its name.
func (p *Pending) Close() error {
	if p.settled {
		return nil
	}
	p.settled = true
	_ = p.File.Close() // Commit may have closed it; nothing of it is kept
	if err := p.root.root.Remove(p.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %q: %w", p.temp, reason(err))
	}
	return nil
}

// WriteFile replaces a file's content in one step, or makes the file (see
// [Root.Create]).
func (r *Root) WriteFile(name string, data []byte, perm fs.FileMode) (err error) {
	p, err := r.Create(name, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Write(data); err != nil {
		return fmt.Errorf("write %q: %w", name, reason(err))
	}
	return p.Commit()
}

// AddFile makes a file that must not be there yet, in one step: whoever reads it
// sees all of it, and what has its name already stays as it is, also if it came a
// moment ago. It fails with [fs.ErrExist] then. The folder must exist.
func (r *Root) AddFile(name string, data []byte, perm fs.FileMode) (err error) {
	clean, err := Clean(name)
	if err != nil {
		return err
	}
	temp := path.Join(path.Dir(clean), ".metier-"+rand.Text())
	f, err := r.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return refusal(name, err)
	}
	defer func() {
		if gone := r.root.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove %q: %w", temp, reason(gone)))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(perm), f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", name, reason(err))
	}
	err = r.root.Link(temp, clean)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links cannot do it in one step.
		err = r.addPlain(clean, data, perm)
	}
	if err != nil {
		return refusal(name, err)
	}
	return nil
}

// addPlain is AddFile where a reader may see a part.
func (r *Root) addPlain(clean string, data []byte, perm fs.FileMode) error {
	f, err := r.root.OpenFile(clean, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.root.Remove(clean))
	}
	return nil
}

// Remove removes a file, or a link and not what it leads to. A folder is refused
// with [ErrFolder].
func (r *Root) Remove(name string) error {
	clean, err := Clean(name)
	if err != nil {
		return err
	}
	info, err := r.root.Lstat(clean)
	if err != nil {
		return refusal(name, err)
	}
	if info.IsDir() {
		return &PathError{Path: name, Err: ErrFolder}
	}
	if err := r.root.Remove(clean); err != nil {
		return refusal(name, err)
	}
	return nil
}

// MkdirAll makes a folder and those above it, as far as they are missing.
func (r *Root) MkdirAll(name string, perm fs.FileMode) error {
	clean, err := Clean(name)
	if err != nil {
		return err
	}
	if err := r.root.MkdirAll(clean, perm); err != nil {
		return refusal(name, err)
	}
	return nil
}

// maxLinks is how many links a path may pass, as on Linux.
const maxLinks = 40

// canonical puts the targets of links for the links on a path, name by name. The
// last name need not exist. What it gives back is used through [os.Root] like
// any other path: a link that comes in between cannot lead out either.
func (r *Root) canonical(clean string) (string, error) {
	at, left := ".", strings.Split(clean, "/")
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && at == ".":
			return "", ErrEscape
		case name == "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		info, err := r.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(left) == 0:
			return next, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0 && !info.IsDir() && len(left) > 0:
			return "", ErrNoFolder
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", ErrLoop
		}
		target, err := r.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
			return "", ErrEscape
		}
		left = append(strings.Split(filepath.ToSlash(target), "/"), left...)
	}
	return at, nil
}

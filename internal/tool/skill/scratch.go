package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// tempName is the folder for temporary files in a working directory. Its dot keeps
// what is left in it out of the files that are kept of a launch.
const tempName = ".tmp"

// makeScratch makes the working directory of one call below dir, links resolved.
func makeScratch(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	real, err := canonical(dir)
	if err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	scratch, err := os.MkdirTemp(real, "run-") // of mode 0700
	if err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	if err := os.Mkdir(filepath.Join(scratch, tempName), 0o700); err != nil {
		return "", errors.Join(fmt.Errorf("make a working directory: %w", err), removeScratch(scratch))
	}
	return scratch, nil
}

// removeScratch removes a working directory, whatever a script has made of it:
// folders that nobody may enter, and folders in folders without end. It follows
// no link and never holds more than three folders open: a folder that holds others
// is taken apart by moving these up beside it.
func removeScratch(scratch string) error {
	if err := os.Chmod(scratch, 0o700); err != nil {
		return fmt.Errorf("remove a working directory: %w", err)
	}
	root, err := os.OpenRoot(scratch)
	if err != nil {
		return fmt.Errorf("remove a working directory: %w", err)
	}
	c := clearing{root: root}
	err = errors.Join(c.clear(), root.Close(), os.Remove(scratch))
	if err != nil {
		return fmt.Errorf("remove a working directory: %w", err)
	}
	return nil
}

// clearing empties a directory.
type clearing struct {
	root *os.Root
	next int // of the names for folders that are moved up
}

// clear goes over the top until nothing is left. Each folder is moved once, so it
// ends, and stops at the first thing that cannot be done.
func (c *clearing) clear() error {
	for {
		entries, err := c.list(".")
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if err := c.drop(e); err != nil {
				return err
			}
		}
	}
}

// drop removes an entry of the top, and moves up what folders it holds.
func (c *clearing) drop(e fs.DirEntry) error {
	if !e.IsDir() {
		return c.root.Remove(e.Name())
	}
	below, err := c.list(e.Name())
	if err != nil {
		return err
	}
	for _, b := range below {
		name := path.Join(e.Name(), b.Name())
		if !b.IsDir() {
			err = c.root.Remove(name)
		} else {
			err = c.lift(name)
		}
		if err != nil {
			return err
		}
	}
	return c.root.Remove(e.Name())
}

// lift moves a folder to the top under a name that is free. Its mode must allow
// that, because the move changes what it holds as its parent.
func (c *clearing) lift(name string) error {
	if err := c.root.Chmod(name, 0o700); err != nil {
		return err
	}
	for {
		c.next++
		to := ".up-" + strconv.Itoa(c.next)
		if _, err := c.root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return c.root.Rename(name, to)
		}
	}
}

// list opens a folder for its owner and lists it.
func (c *clearing) list(name string) ([]fs.DirEntry, error) {
	if err := c.root.Chmod(name, 0o700); err != nil {
		return nil, err
	}
	f, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

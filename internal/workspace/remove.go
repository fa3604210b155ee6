package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// Remove removes a directory in which launches have worked and work no more,
// whatever they have made of it: folders that nobody may enter, and folders in
// folders without end. It follows
// no link and never holds more than three folders open: a folder that holds others
// is taken apart by moving these up beside it.
func Remove(dir string) error {
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("remove a place of launches: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("remove a place of launches: %w", err)
	}
	c := clearing{root: root}
	err = errors.Join(c.clear(), root.Close(), os.Remove(dir))
	if err != nil {
		return fmt.Errorf("remove a place of launches: %w", err)
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

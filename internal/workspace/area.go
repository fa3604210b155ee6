package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Area is a directory below a folder of METIER_HOME that belongs to this process
// alone: other processes may share METIER_HOME. It is marked as in use, so that the
// next process can tell what a dead one left.
type Area struct {
	dir  string
	mark *os.File // nil where the system has no such marks
}

// areaPrefix begins the names of areas, and nameBytes is what follows: short,
// because paths of sockets below it may be no longer than 107 bytes. What is called
// otherwise is nobody's to remove.
const (
	areaPrefix = "process-"
	nameBytes  = 10
)

// passable is the mode of a directory that others may pass and not list: where no
// namespaces are to be had, a launch of root's runs as a user who must get to its own
// directory below, which is that user's alone.
const passable = 0o711

// OpenArea makes an area below parent, and removes those of dead processes. What
// cannot be removed is logged, and no reason not to start.
func OpenArea(parent string, logger *slog.Logger) (*Area, error) {
	if err := os.MkdirAll(parent, passable); err != nil {
		return nil, fmt.Errorf("make a place for launches: %w", err)
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return nil, fmt.Errorf("make a place for launches: %w", err)
	}
	if err := sweep(parent); err != nil {
		logger.Warn("the place of a dead process was left behind", "error", err)
	}
	for {
		a, err := claim(filepath.Join(parent, areaPrefix+shortName()))
		if err != nil {
			return nil, fmt.Errorf("make a place for launches: %w", err)
		}
		if a != nil {
			return a, nil
		}
	}
}

// shortName is a name that nothing else has.
func shortName() string { return strings.ToLower(rand.Text())[:nameBytes] }

// Dir is the directory: absolute and free of links.
func (a *Area) Dir() string { return a.dir }

// claim makes a directory and marks it. It is nil when another process that
// starts at this moment took the directory for abandoned and removed it, or when
// there is one of the name already.
func claim(dir string) (*Area, error) {
	if err := os.Mkdir(dir, passable); errors.Is(err, fs.ErrExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	mark, err := markDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errInUse) {
		return nil, nil
	}
	if err != nil || mark == nil {
		// A file system without marks: no process takes the directory for abandoned.
		return &Area{dir: dir}, nil
	}
	here, err := os.Lstat(dir)
	marked, markedErr := mark.Stat()
	if err != nil || markedErr != nil || !os.SameFile(here, marked) {
		return nil, mark.Close()
	}
	return &Area{dir: dir, mark: mark}, nil
}

// Close removes the directory.
func (a *Area) Close() error {
	err := Remove(a.dir)
	if a.mark != nil {
		err = errors.Join(err, a.mark.Close())
	}
	return err
}

// sweep removes the areas that no living process has marked.
func sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), areaPrefix) && isAbandoned(dir) {
			failed = append(failed, Remove(dir))
		}
	}
	return errors.Join(failed...)
}

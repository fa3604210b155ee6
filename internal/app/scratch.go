package app

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

// scratch is a directory of METIER_HOME for what scripts work on, of this process
// alone: other processes may share METIER_HOME. It is marked as in use, so that the
// next process can tell what a dead one left.
type scratch struct {
	dir  string
	mark *os.File // nil where the system has no such marks
}

// scratchPrefix begins the names of directories that processes work in. What is
// called otherwise is nobody's to remove.
const scratchPrefix = "process-"

// passable is the mode of a directory that others may pass and not list: where no
// namespaces are to be had, a script of root's runs as a user who must get to its own
// directory below, which is that user's alone.
const passable = 0o711

// openScratch makes a directory below parent, and removes those of dead processes.
// What cannot be removed is logged, and no reason not to start.
func openScratch(parent string, logger *slog.Logger) (*scratch, error) {
	if err := os.MkdirAll(parent, passable); err != nil {
		return nil, fmt.Errorf("make a place for scripts: %w", err)
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return nil, fmt.Errorf("make a place for scripts: %w", err)
	}
	if err := sweepScratch(parent); err != nil {
		logger.Warn("scratch of a dead process was left behind", "error", err)
	}
	for {
		s, err := claimScratch(filepath.Join(parent, scratchPrefix+strings.ToLower(rand.Text())))
		if err != nil {
			return nil, fmt.Errorf("make a place for scripts: %w", err)
		}
		if s != nil {
			return s, nil
		}
	}
}

// claimScratch makes a directory and marks it. It is nil when another process that
// starts at this moment took the directory for abandoned and removed it.
func claimScratch(dir string) (*scratch, error) {
	if err := os.Mkdir(dir, passable); err != nil {
		return nil, err
	}
	mark, err := markDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errInUse) {
		return nil, nil
	}
	if err != nil || mark == nil {
		// A file system without marks: no process takes the directory for abandoned.
		return &scratch{dir: dir}, nil
	}
	here, err := os.Lstat(dir)
	marked, markedErr := mark.Stat()
	if err != nil || markedErr != nil || !os.SameFile(here, marked) {
		return nil, mark.Close()
	}
	return &scratch{dir: dir, mark: mark}, nil
}

// close removes the directory.
func (s *scratch) close() error {
	err := removeHostile(s.dir)
	if s.mark != nil {
		err = errors.Join(err, s.mark.Close())
	}
	return err
}

// sweepScratch removes the directories that no living process has marked.
func sweepScratch(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), scratchPrefix) && isAbandoned(dir) {
			failed = append(failed, removeHostile(dir))
		}
	}
	return errors.Join(failed...)
}

// removeHostile removes a directory in which scripts have worked and work no more:
// they may have closed folders to their own user.
func removeHostile(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(path, 0o700) // what it does not mend, RemoveAll reports
		}
		return nil
	})
	return errors.Join(err, root.Close(), os.RemoveAll(dir))
}

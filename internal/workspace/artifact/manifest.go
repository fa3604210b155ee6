package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/guard"
)

// A run is a folder named by its id. It holds recordName and filesDir; below
// filesDir the copies lie under the paths that they had.
const (
	recordName = "run.json"
	filesDir   = "files"
)

// record is what is written beside the copies of a run.
type record struct {
	Owner   string    `json:"owner"`
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
}

// errBroken is a run that no store has finished, or that the disk has lost parts
// of.
var errBroken = errors.New("the run is damaged")

// load reads the record of a run. It fails with [ErrNotFound] and errBroken.
func (s *Store) load(runID string) (record, error) {
	if !validID(runID) {
		return record{}, ErrNotFound
	}
	root, err := guard.OpenRoot(filepath.Join(s.options.Dir, runID))
	if err != nil {
		return record{}, gone(err)
	}
	defer root.Close()
	f, err := root.Open(recordName)
	if errors.Is(err, os.ErrNotExist) {
		return record{}, errBroken
	}
	if err != nil {
		return record{}, fmt.Errorf("read run %s: %w", runID, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return record{}, fmt.Errorf("read run %s: %w", runID, err)
	}
	return parse(data)
}

func parse(data []byte) (record, error) {
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return record{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	for _, f := range rec.Files {
		if clean, err := guard.Clean(f.Path); err != nil || clean != f.Path || f.Bytes < 0 {
			return record{}, fmt.Errorf("%w: it names %q", errBroken, f.Path)
		}
	}
	return rec, nil
}

// verify finds out whether the disk has every byte of a run.
func (s *Store) verify(runID string, rec record) error {
	for _, want := range rec.Files {
		f, err := openCopy(s.Dir(runID), want)
		if _, bad := errors.AsType[*guard.PathError](err); bad || errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%w: %q is not as it was", errBroken, want.Path)
		}
		if err != nil {
			return fmt.Errorf("look at run %s: %w", runID, err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("look at run %s: %w", runID, err)
		}
	}
	return nil
}

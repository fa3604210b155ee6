// Package artifact keeps copies of the files that a launch has written, so that
// a person can fetch them when the workdir is long gone or has changed (seed 1,
// "Running scripts").
//
// A caller takes a [Snapshot] of the workdir, launches, and lets [Store.Capture]
// copy what is new or changed under a fresh run id. The workdir is hostile: it is
// never written to, no link in it is followed, and nothing but a regular file is
// opened. A copy shares nothing with its source. A run appears as a whole or not
// at all, and only its owner finds it.
//
// The package launches nothing, serves nothing, and forces nothing to the disk: a
// run that a power failure has damaged is thrown away when the store is opened.
// More than one process may use a directory.
//
// Start at [Open], [Take] and [Store.Capture].
package artifact

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

// ErrNotFound is a run or a file that is not there for this owner: never made,
// somebody else's, too old, or pushed out by newer ones. Which of them it is, is
// not told.
var ErrNotFound = errors.New("there are no such files: they are kept for a time only, and for the caller whose launch wrote them")

// Options set up a [Store].
type Options struct {
	// Dir is where the copies are; it is made if it is missing. What the store does
	// not know by its name there, it leaves alone.
	Dir string
	// Limits holds [config.ArtifactBytes], [config.ArtifactCount],
	// [config.ArtifactTotal] and [config.ArtifactAge].
	Limits config.Values
	Now    func() time.Time // nil is time.Now
	// NewID gives run ids: 16 lower-case hexadecimal digits that nobody can guess.
	// Nil takes them from crypto/rand.
	NewID  func() string
	Logger *slog.Logger // nil logs nothing
}

// Store keeps runs. It is safe for concurrent use.
type Store struct {
	options             Options
	bytes, total, count int64
	age                 time.Duration

	mu      sync.Mutex
	runs    map[string]kept
	used    int64 // by runs
	pending int64 // promised to captures that are under way
}

// Open makes a store over a directory, which is private to its user, and removes
// what a dead process left half done, what is damaged, what is too old and what
// is too much.
func Open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	s := &Store{
		options: o, runs: map[string]kept{},
		bytes: o.Limits.Get(config.ArtifactBytes), total: o.Limits.Get(config.ArtifactTotal),
		count: o.Limits.Get(config.ArtifactCount), age: o.Limits.Duration(config.ArtifactAge),
	}
	// Opening happens once, before there is anybody who could cancel it.
	if err := s.Sweep(context.Background()); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	return s, nil
}

// File is a copy.
type File struct {
	// Path is relative to the workdir, "/" between names, spelled as
	// [guard.Clean] spells it.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Run is what one launch wrote.
type Run struct {
	ID      string
	Created time.Time
	// Files are in the order in which they were found: the top of the workdir
	// first.
	Files []File
}

// List is a run of an owner; [ErrNotFound] if there is none.
func (s *Store) List(owner, runID string) (Run, error) {
	rec, err := s.load(runID)
	switch {
	case errors.Is(err, errBroken):
		return Run{}, ErrNotFound
	case err != nil:
		return Run{}, err
	case rec.Owner != owner || s.expired(rec.Created):
		return Run{}, ErrNotFound
	}
	return Run{ID: runID, Created: rec.Created, Files: rec.Files}, nil
}

// Open opens a copy of an owner's run for reading. It fails with [ErrNotFound],
// and with a [*guard.PathError] if the path is one that no copy can have. The
// file can be read to its end even if the run is removed meanwhile.
func (s *Store) Open(owner, runID, path string) (*os.File, File, error) {
	run, err := s.List(owner, runID)
	if err != nil {
		return nil, File{}, err
	}
	clean, err := guard.Clean(path)
	if err != nil {
		return nil, File{}, err
	}
	at := slices.IndexFunc(run.Files, func(f File) bool { return f.Path == clean })
	if at < 0 {
		return nil, File{}, ErrNotFound
	}
	f, err := openCopy(s.Dir(runID), run.Files[at])
	if err != nil {
		return nil, File{}, err
	}
	return f, run.Files[at], nil
}

func openCopy(dir string, want File) (*os.File, error) {
	root, err := guard.OpenRoot(dir)
	if err != nil {
		return nil, gone(err)
	}
	defer root.Close()
	f, err := root.Open(want.Path)
	if err != nil {
		return nil, gone(err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != want.Bytes {
		err = ErrNotFound // half a file is not what the launch wrote
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// gone makes a run that was removed between two looks one that is not there.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return ErrNotFound
	}
	return err
}

// Dir is the directory of this host that holds the copies of a run, for readers
// who have no server to fetch them from.
func (s *Store) Dir(runID string) string { return filepath.Join(s.options.Dir, runID, filesDir) }

// Owner is who may fetch the files of a launch, made from a caller's tenant and
// the id of its key. Different callers have different owners.
func Owner(tenant, key string) string { return url.PathEscape(tenant) + "/" + url.PathEscape(key) }

// URL is where a copy is fetched: the prefix, the run and the path, each name
// escaped and the "/" between them kept.
func URL(prefix, runID, path string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(prefix, "/"))
	b.WriteByte('/')
	b.WriteString(url.PathEscape(runID))
	for name := range strings.SplitSeq(path, "/") {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(name))
	}
	return b.String()
}

// idBytes is the length of a run id before it is written in hexadecimal.
const idBytes = 8

func newID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

func validID(id string) bool {
	return len(id) == 2*idBytes && strings.Trim(id, "0123456789abcdef") == ""
}

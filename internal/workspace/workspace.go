// Package workspace is where the files of one conversation are: the folder that a
// model works in, and beside it what the host keeps for its launches.
//
// It decides what a launch of the conversation sees, may write and finds in its
// environment, and leads the file tools to a path inside. What is below the work
// folder belongs to hostile programs: it is read and written through the guard, and
// no link in it is believed. The package starts no process; its children say what is
// to be launched.
//
// Start at [New], then [Workspace.Launch] and [Workspace.Resolve].
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// The folders of a workspace (B1 8.1). There is no folder for packages: these are
// sets that all workspaces share and none can write.
const (
	workDir  = "work"  // the model's files
	stateDir = "state" // the host's scripts and logs: commands only read it
	savedDir = "shell" // below state: what the shell remembers, which commands write
	shimDir  = "bin"   // below state
	jobsDir  = ".jobs" // below state: what background commands say
	tempDir  = "tmp"
	localDir = ".local" // below work: programs and modules that the conversation unpacked
)

// Options set up workspaces.
type Options struct {
	// Area is the directory in which they are made: see [Area].
	Area string
	// Interpreters finds the programs that launches use; Environ is the environment
	// of this process, of which they get the language and the time zone.
	Interpreters interpreter.Options
	Environ      []string
	// Hide are directories that no launch sees, but for what is named below them: the
	// roots of all skills, and what this host keeps for itself.
	Hide []string
	// Direct are the purposes whose launches have this host's network: they are told of
	// its proxies and certificates.
	Direct []sandbox.Purpose
	// NoShims leaves python to what this host calls it, for who measures what the shims
	// are worth.
	NoShims bool
	Limits  config.Values
	Logger  *slog.Logger // nil logs nothing
}

// Workspace holds the files of one conversation. All methods are safe for concurrent
// use; whoever starts a launch in it or changes its files holds [Workspace.Lock].
type Workspace struct {
	o    Options
	base string
	lock chan struct{}
	gone chan struct{} // is closed when the workspace is
	// Seen is what the model knows of the files.
	Seen *Seen
	// direct is what launches with this host's network are told.
	direct []string

	mu     sync.Mutex
	sets   []Packages
	closed bool
}

// New makes an empty workspace.
func New(o Options) (*Workspace, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	area, err := filepath.EvalSymlinks(o.Area)
	if err != nil {
		return nil, fmt.Errorf("make a workspace: %w", err)
	}
	w := &Workspace{o: o, lock: make(chan struct{}, 1), gone: make(chan struct{}), Seen: newSeen(o.Limits)}
	for w.base == "" {
		// Short, because paths of sockets below it may be no longer than 107 bytes.
		base := filepath.Join(area, shortName())
		if err := os.Mkdir(base, passable); err == nil {
			w.base = base
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make a workspace: %w", err)
		}
	}
	if _, err := w.Restore(); err != nil {
		return nil, errors.Join(err, Remove(w.base))
	}
	if len(o.Direct) > 0 {
		w.direct = w.network()
	}
	return w, nil
}

// Work is the folder of the model's files: absolute and free of links.
func (w *Workspace) Work() string { return filepath.Join(w.base, workDir) }

// State is the folder of the host's own files, which commands can read.
func (w *Workspace) State() string { return filepath.Join(w.base, stateDir) }

// Saved is the folder in which the shell leaves what it remembers. Commands write
// it: nothing there is to be believed.
func (w *Workspace) Saved() string { return filepath.Join(w.base, stateDir, savedDir) }

// Jobs is the folder for the logs of background commands.
func (w *Workspace) Jobs() string { return filepath.Join(w.base, stateDir, jobsDir) }

// Temp is the folder for temporary files of launches.
func (w *Workspace) Temp() string { return filepath.Join(w.base, tempDir) }

func (w *Workspace) shims() string { return filepath.Join(w.base, stateDir, shimDir) }

// Limits are those in force.
func (w *Workspace) Limits() config.Values { return w.o.Limits }

// Lock waits until nobody else works in the workspace: one command or file tool at a
// time (B1 8.10). It fails when ctx ends first, or the workspace is closed.
func (w *Workspace) Lock(ctx context.Context) (unlock func(), err error) {
	select {
	case w.lock <- struct{}{}:
		return func() { <-w.lock }, nil
	case <-w.gone:
		return nil, fmt.Errorf("wait for the workspace: %w", errClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the workspace: %w", context.Cause(ctx))
	}
}

// Restore makes the folders that are missing (B1 8.3). lost reports that the model's
// own folder was among them: its earlier files are gone, and what it knew of them.
func (w *Workspace) Restore() (lost bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, fmt.Errorf("restore the workspace: %w", errClosed)
	}
	_, statErr := os.Lstat(w.Work())
	lost = errors.Is(statErr, fs.ErrNotExist)
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{{w.base, passable}, {w.Work(), 0o700}, {w.State(), 0o755}, {w.Saved(), 0o700}, {w.Jobs(), 0o755}, {w.shims(), 0o755}, {w.Temp(), 0o700}} {
		if err := os.Mkdir(dir.path, dir.mode); err == nil {
			err = os.Chmod(dir.path, dir.mode) // whatever the umask took away
			if err != nil {
				return lost, fmt.Errorf("restore the workspace: %w", err)
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return lost, fmt.Errorf("restore the workspace: %w", err)
		}
	}
	if err := w.writeShims(); err != nil {
		return lost, fmt.Errorf("restore the workspace: %w", err)
	}
	if lost {
		w.Seen.clear()
		for _, p := range w.sets {
			if p.Kind == interpreter.Node && len(p.Imports) > 0 {
				w.linkModules(p.Imports[0])
			}
		}
	}
	return lost, nil
}

// Files opens the model's folder for the file tools. The caller closes it.
func (w *Workspace) Files() (*guard.Root, error) {
	root, err := guard.OpenRoot(w.Work())
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return root, nil
}

// Close removes everything. Whoever works in the workspace is to have ended: the
// lock is taken first and never given back.
func (w *Workspace) Close(ctx context.Context) error {
	if _, err := w.Lock(ctx); err != nil {
		return err
	}
	close(w.gone)
	w.mu.Lock()
	w.closed = true
	sets := w.sets
	w.sets = nil
	w.mu.Unlock()
	for _, set := range sets {
		set.release()
	}
	return Remove(w.base)
}

var errClosed = errors.New("it is closed")

// Packages is a set of installed packages that launches see.
type Packages struct {
	// Kind tells whose packages they are.
	Kind interpreter.Kind
	// Dir holds the whole set; Imports are the directories below it in which the
	// interpreter looks for modules, and Bin those of its programs.
	Dir          string
	Imports, Bin []string
	// Release is told that the workspace needs the set no more; it may be nil.
	Release func()
}

func (p Packages) release() {
	if p.Release != nil {
		p.Release()
	}
}

// Use has later launches see a set, in place of the one of its kind.
func (w *Workspace) Use(p Packages) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Kind == interpreter.Node && len(p.Imports) > 0 {
		w.linkModules(p.Imports[0])
	}
	at := slices.IndexFunc(w.sets, func(q Packages) bool { return q.Kind == p.Kind })
	if at < 0 {
		w.sets = append(w.sets, p)
		return
	}
	w.sets[at].release()
	w.sets[at] = p
}

// linkModules makes node_modules in the work folder lead to a set, where import looks
// for packages: NODE_PATH is for require alone (B1 8.7). What the model has put there
// itself stays.
func (w *Workspace) linkModules(to string) {
	const name = "node_modules"
	root, err := os.OpenRoot(w.Work())
	if err != nil {
		return // Restore tells
	}
	defer root.Close()
	if led, err := root.Readlink(name); err == nil && slices.ContainsFunc(w.sets, func(p Packages) bool { return len(p.Imports) > 0 && p.Imports[0] == led }) {
		_ = root.Remove(name) // a link that cannot go stays, and leads to the set before
	}
	if err := root.Symlink(to, name); err != nil {
		w.o.Logger.Debug("no link to the packages of Node", "error", err)
	}
}

// Packages is the set of a kind that launches see; false when there is none.
func (w *Workspace) Packages(kind interpreter.Kind) (Packages, bool) {
	for _, p := range w.packages() {
		if p.Kind == kind {
			return p, true
		}
	}
	return Packages{}, false
}

func (w *Workspace) packages() []Packages {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sets)
}

// Repairs is the folder at the top of the work folder that holds copies of scripts for
// a model to repair. They are no product of a command.
const Repairs = "skill-repairs"

// Skips reports whether a folder of a name is left out where the files of a model are
// looked for: what package managers, interpreters and version control keep (B1 8.9).
func Skips(name string) bool {
	switch name {
	case "node_modules", "__pycache__", ".venv", ".git", ".npm", ".cargo", ".gradle", ".m2", ".config", ".cache", ".local", ".fontconfig",
		".pytest_cache", ".ruff_cache", ".mypy_cache", Repairs:
		return true
	}
	return false
}

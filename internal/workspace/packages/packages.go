// Package packages installs what a conversation asks for: it runs pip or npm in a
// confined launch that reaches nothing but the operator's registries, looks at what
// came, and keeps it as a set, an immutable directory that is named by its content
// and shared, read-only, by all workspaces (B1 13.13 to 13.17).
//
// It runs no script of a package, builds nothing, and reads no command line: who asks,
// and for what, is the caller's. A set never changes; another package makes another
// set, resolved from all that the workspace has. More than one process may use a
// directory.
//
// Start at [Open], then [Store.Install].
package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// Runner carries launches out; internal/launch has one. It must leave the network of a
// launch that has one as it is.
type Runner interface {
	Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error)
}

// Options set up a [Store].
type Options struct {
	// Dir is where sets are kept; it is made if it is missing. Launches see it under
	// this name, so it is absolute and free of links.
	Dir    string
	Limits config.Values
	Runner Runner
	// Front fetches from the registries.
	Front *registry.Front
	// Interpreters find Python, Node and npm on this host.
	Interpreters interpreter.Options
	// Hide are directories that no installer sees.
	Hide []string
	// Open gives installers the network of the host, with the front on its loopback, for
	// a backend that cannot limit a network. Only the operator's word for that sets it.
	Open   bool
	Now    func() time.Time // nil is time.Now
	Logger *slog.Logger     // nil logs nothing
}

// Store keeps sets. It is safe for concurrent use.
type Store struct {
	o   Options
	now func() time.Time
	log *slog.Logger

	mu     sync.Mutex
	under  map[string]*flight // installs under way, by key
	leases map[string]int     // sets that this process uses, by digest
}

// Spec is one package that is wanted.
type Spec struct {
	Name string
	// Extras are the optional parts of a Python project.
	Extras []string
	// Version is "==1.2" or ">=1,<2" for Python, "1.2.3", "^1" or "latest" for npm; empty
	// for any.
	Version string
	// Marker is the condition of a Python project, such as python_version < "3.12".
	Marker string
}

// Installed is one package of a set.
type Installed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Request is one install.
type Request struct {
	// Kind is what runs the code that wants the packages: Python or Node.
	Kind interpreter.Kind
	// Have is what the workspace has already, Add what it wants besides. The later word
	// on a name counts.
	Have, Add []Spec
	// Use is the interpreter of this host that the packages are for; zero means the one
	// that is found. Nothing that a workspace holds may be it: it runs as the installer,
	// which reaches the registries.
	Use interpreter.Interpreter
}

// Set is an immutable set of packages. It stays on the disk until it is closed.
type Set struct {
	// Dir is the directory to show to a launch.
	Dir string
	// Python are directories for PYTHONPATH, NodePath is one for NODE_PATH, and Bin are
	// directories for PATH; each empty where there is none.
	Python   []string
	NodePath string
	Bin      []string
	// Names are what it holds, by name.
	Names []Installed

	release func()
}

// Close lets the set go, which may then be removed to make room. It may be called more
// than once, and on a copy.
func (s Set) Close() {
	if s.release != nil {
		s.release()
	}
}

// Open makes a store over a directory and removes what a dead process left half done.
func Open(o Options) (*Store, error) {
	s := &Store{o: o, now: o.Now, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), under: map[string]*flight{}, leases: map[string]int{}}
	if s.now == nil {
		s.now = time.Now
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("open package store: %q is not a whole path: give one", o.Dir)
	}
	for _, dir := range []string{o.Dir, s.sets(), s.stages(), s.index()} {
		// Others may pass, since a launch can be another user, and see no names.
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, fmt.Errorf("open package store: %w", err)
		}
	}
	if err := s.tidy(); err != nil {
		return nil, fmt.Errorf("open package store: %w", err)
	}
	return s, nil
}

func (s *Store) sets() string   { return filepath.Join(s.o.Dir, "sets") }
func (s *Store) stages() string { return filepath.Join(s.o.Dir, "stages") }
func (s *Store) index() string  { return filepath.Join(s.o.Dir, "index") }

// Install makes the set that holds all of a request, or finds it. What is kept is
// given without asking a registry for as long as packages-fresh says, and also later
// when no registry answers.
//
// A [*Failure] is for the model: nothing was installed, and it says why. Any other
// error is the host's.
func (s *Store) Install(ctx context.Context, r Request) (Set, error) {
	p, err := s.plan(r)
	if err != nil {
		return Set{}, err
	}
	for waited := false; ; {
		set, fresh, err := s.recall(p)
		if err != nil {
			return Set{}, fmt.Errorf("install: %w", err)
		}
		if fresh || waited && set.Dir != "" {
			return set, nil
		}
		f, first := s.begin(p.key)
		if first {
			set, err := s.refresh(ctx, p, set)
			s.end(p.key, f, err)
			return set, err
		}
		set.Close()
		select {
		case <-f.done:
		case <-ctx.Done():
			return Set{}, fmt.Errorf("install: %w", context.Cause(ctx))
		}
		if shared, ok := errors.AsType[*Failure](f.err); ok {
			return Set{}, shared
		}
		waited = f.err == nil
	}
}

// flight is an install under way. Those who want the same wait for it and share a
// [*Failure]; the end of its caller is no failure of theirs.
type flight struct {
	done chan struct{}
	err  error // to be read when done is closed
}

// refresh installs anew, and falls back on an old set when no registry answers.
func (s *Store) refresh(ctx context.Context, p plan, old Set) (Set, error) {
	set, err := s.perform(ctx, p)
	if f, ok := errors.AsType[*Failure](err); ok && old.Dir != "" && f.Reason == NoAnswer {
		s.log.WarnContext(ctx, "no registry answers; the packages of an earlier install are used", "kind", string(p.kind))
		return old, nil
	}
	old.Close()
	return set, err
}

// begin is false while another call installs the same.
func (s *Store) begin(key string) (*flight, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.under[key]; ok {
		return f, false
	}
	f := &flight{done: make(chan struct{})}
	s.under[key] = f
	return f, true
}

func (s *Store) end(key string, f *flight, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.err = err
	close(f.done)
	delete(s.under, key)
}

// What names and versions are made of. They become arguments of an installer, so that
// nothing in them may be an option, an address or a path.
var (
	pipName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	pipMarker  = regexp.MustCompile(`^[A-Za-z0-9 ._<>=!~'"()*+-]*$`)
	pipVersion = regexp.MustCompile(`^(\s*(===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9._*+!-]+\s*(,|$))*$`)
	npmName    = regexp.MustCompile(`^(@[a-z0-9~_-][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`)
	npmVersion = regexp.MustCompile(`^([A-Za-z0-9^~<>=*][A-Za-z0-9.^~<>=*|+ _-]*)?$`)
)

// check reports what keeps a spec from being an argument.
func (x Spec) check(kind registry.Kind) bool {
	if kind == registry.Npm {
		return !strings.Contains(x.Version, " --") && npmName.MatchString(x.Name) && npmVersion.MatchString(x.Version) && len(x.Extras) == 0 && x.Marker == ""
	}
	for _, e := range x.Extras {
		if !pipName.MatchString(e) {
			return false
		}
	}
	return pipName.MatchString(x.Name) && pipVersion.MatchString(x.Version) && pipMarker.MatchString(x.Marker)
}

// argument is the spec as its installer reads it.
func (x Spec) argument(kind registry.Kind) string {
	switch {
	case kind == registry.Npm && x.Version == "":
		return x.Name
	case kind == registry.Npm:
		return x.Name + "@" + x.Version
	}
	text := x.Name
	if len(x.Extras) > 0 {
		text += "[" + strings.Join(x.Extras, ",") + "]"
	}
	text += x.Version
	if x.Marker != "" {
		text += " ; " + x.Marker
	}
	return text
}

// fold is a name as its registry compares it.
func fold(kind registry.Kind, name string) string {
	if kind == registry.Pip {
		return registry.Fold(name)
	}
	return name
}

// union is all that a set is made from, in the order of names.
func union(kind registry.Kind, have, add []Spec) ([]Spec, error) {
	last := map[string]Spec{}
	for _, x := range slices.Concat(have, add) {
		if !x.check(kind) {
			return nil, failure(Refused, fmt.Sprintf("%q is no package that can be installed: write a name, and a version if one is needed.", clip(x.Name+x.Version)))
		}
		// One name, however it is spelled, is one key and one argument.
		x.Name = fold(kind, x.Name)
		x.Extras = slices.Concat(last[x.Name].Extras, x.Extras)
		slices.Sort(x.Extras)
		x.Extras = slices.Compact(x.Extras)
		last[x.Name] = x
	}
	var all []Spec
	for _, x := range last {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Spec) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

package skill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Registry keeps a [Snapshot] of its roots up to date. Readers never wait: they
// get the snapshot in force, and keep it for as long as they like. It never
// rescans by itself; [Registry.Rescan] does, and so does package skill/watch.
// It is safe for concurrent use.
type Registry struct {
	options Options
	current atomic.Pointer[Snapshot]
	turn    chan struct{} // holds the right to rescan
}

// Open scans the roots, as [Load] does, and fails as it does.
func Open(ctx context.Context, o Options) (*Registry, error) {
	o.Roots = slices.Clone(o.Roots)
	r := &Registry{options: o, turn: make(chan struct{}, 1)}
	s, err := r.scan(ctx, nil)
	if err != nil {
		return nil, err
	}
	r.current.Store(s)
	return r, nil
}

// Snapshot is the one in force; never nil.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Roots are those that the registry was opened with.
func (r *Registry) Roots() []Root { return slices.Clone(r.options.Roots) }

// Rescan scans the roots again and puts the new snapshot in force, which it
// gives back. When it fails, as [Load] does, the old one stays. One rescan runs
// at a time; others wait for it, or for the end of their ctx.
//
// A skill whose files change while they are read is not taken as it is then: it
// stays as it was, or out if it is new, and stands in [Snapshot.Pending]. A
// folder in which nothing has changed is not read again.
func (r *Registry) Rescan(ctx context.Context) (*Snapshot, error) { return r.RescanExcept(ctx, nil) }

// RescanExcept is [Registry.Rescan] that leaves every skill as it was whose
// folder, links resolved, is being written: such a one neither goes when it is
// missing for a moment nor appears half written. writing is asked before and
// after a folder is read, from several goroutines; nil says no of each.
func (r *Registry) RescanExcept(ctx context.Context, writing func(dir string) bool) (*Snapshot, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("rescan skills: %w", ctx.Err())
	}
	s, err := r.scan(ctx, writing)
	if err != nil {
		return nil, err
	}
	s.Digest() // here, so that no request waits for it
	r.current.Store(s)
	return s, nil
}

func (r *Registry) scan(ctx context.Context, writing func(dir string) bool) (*Snapshot, error) {
	l := newLoader(r.options)
	l.careful = true
	l.previous = map[string]Skill{}
	if s := r.Snapshot(); s != nil {
		for _, k := range s.skills {
			l.previous[k.real] = k
		}
	}
	if writing != nil {
		l.writing = writing
	}
	if err := l.scan(ctx); err != nil {
		return nil, err
	}
	return l.snapshot(), nil
}

// Place is a folder of this host in which a change can change what a scan finds.
type Place struct {
	Dir string
	// Only, unless it is empty, is the one name in the folder that matters.
	Only string
}

// Places are the folders to watch: those that the last scan looked at, the
// folders of every skill among them, and for each root the closest folder above
// it that exists, so that a root that is missing or replaced is noticed. Watching
// is not recursive.
func (r *Registry) Places() []Place {
	var places []Place
	for _, root := range r.options.Roots {
		if dir, err := filepath.Abs(root.Dir); err == nil {
			places = append(places, above(dir))
		}
	}
	for _, dir := range r.Snapshot().folders {
		places = append(places, Place{Dir: dir})
	}
	slices.SortFunc(places, func(a, b Place) int {
		if c := strings.Compare(a.Dir, b.Dir); c != 0 {
			return c
		}
		return strings.Compare(a.Only, b.Only)
	})
	return slices.Compact(places)
}

// above is the closest folder above dir that exists.
func above(dir string) Place {
	for {
		up := filepath.Dir(dir)
		if info, err := os.Stat(up); up == dir || err == nil && info.IsDir() {
			return Place{Dir: up, Only: filepath.Base(dir)}
		}
		dir = up
	}
}

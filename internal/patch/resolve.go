package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// View is the files as they are. Paths are as the [Cleaner] gave them; that no
// link leads outside is the view's business.
type View interface {
	// Read gives a file. A missing one is [fs.ErrNotExist]; any other error ends
	// [Patch.Resolve] and is returned as it is.
	Read(path string) (File, error)
	// Near says in a sentence what there is instead of a missing file: the
	// nearest name, what is in its folder. "" says nothing.
	Near(path string) string
}

// newMode are the permissions of a file that the patch makes.
const newMode fs.FileMode = 0o644

// Resolve makes the change in memory (B1 12.13): every section sees what those
// before it have done, and no file is written. It fails with an [*Error] on
// anything the patch has wrong, with the view's error, or with the context's.
func (p Patch) Resolve(ctx context.Context, v View, l Limits) (Change, error) {
	r := resolver{view: v, limits: l, files: map[string]*entry{}, left: map[string]string{}, failed: map[string]bool{}}
	for _, s := range p.sections {
		if err := ctx.Err(); err != nil {
			return Change{}, fmt.Errorf("patch: %w", err)
		}
		if r.failed[s.path] || r.failed[s.move] {
			continue // it would only fail for the same reason
		}
		bad, err := r.section(ctx, s)
		if err != nil {
			return Change{}, err
		}
		if bad != nil {
			r.fail(s, bad)
		}
		if len(r.faults) > shownFaults {
			break
		}
	}
	if len(r.faults) > 0 {
		shown := r.faults[:min(len(r.faults), shownFaults)]
		return Change{}, &Error{Faults: shown, More: len(r.faults) > len(shown)}
	}
	return r.change(p.notes), nil
}

// entry is a file in the course of the patch.
type entry struct {
	was  *File // before the patch, nil if there was none
	now  *File // nil if there is none
	from string
	// What the sections did to the content that is here now.
	added, deleted, fuzz int
}

type resolver struct {
	view   View
	limits Limits
	files  map[string]*entry
	order  []string
	left   map[string]string // why a path has no file: where it was moved, "" for deleted
	failed map[string]bool
	faults []Fault
	notes  []string
	held   int
}

// fail keeps a fault and goes on, so that a model learns of all of them in one
// round.
func (r *resolver) fail(s section, bad *Error) {
	r.faults = append(r.faults, bad.Faults...)
	r.failed[s.path] = true
	if s.move != "" {
		r.failed[s.move] = true
	}
}

// load is the entry of a path, read when it is first named.
func (r *resolver) load(path string) (*entry, error) {
	if e, ok := r.files[path]; ok {
		return e, nil
	}
	e := &entry{}
	f, err := r.view.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("patch: read %q: %w", path, err)
	default:
		e.was, e.now, e.from = &f, &f, path
		r.held += len(f.Data)
	}
	r.files[path] = e
	r.order = append(r.order, path)
	return e, nil
}

func (r *resolver) section(ctx context.Context, s section) (*Error, error) {
	e, err := r.load(s.path)
	if err != nil {
		return nil, err
	}
	var bad *Error
	switch {
	case r.limits.TotalBytes > 0 && r.held > r.limits.TotalBytes:
		bad = refuse(s.line, sayTotalLarge, r.limits.TotalBytes).about(s.path, nil)
	case s.kind == Add:
		bad = r.add(s, e)
	case e.now == nil:
		bad = r.missing(s)
	case r.limits.FileBytes > 0 && len(e.now.Data) > r.limits.FileBytes:
		bad = refuse(s.line, sayFileLarge, s.path, len(e.now.Data), r.limits.FileBytes).about(s.path, nil)
	case s.kind == Delete:
		e.now, e.from = nil, ""
		r.left[s.path] = ""
	default:
		return r.update(ctx, s, e)
	}
	return bad, nil
}

func (r *resolver) missing(s section) *Error {
	done := wordUpdated
	if s.kind == Delete {
		done = wordDeleted
	}
	said := sprint(sayMissing, s.path, done)
	to, gone := r.left[s.path]
	switch {
	case gone && to != "":
		said += sprint(sayMissingMoved, to)
	case gone:
		said += sayMissingGone
	default:
		if near := r.view.Near(s.path); near != "" {
			said += " " + near
		}
		if s.kind == Update {
			said += sprint(sayMissingAdd, s.path)
		}
	}
	return refuse(s.line, "%s", said).about(s.path, fs.ErrNotExist)
}

// add makes a file. Where an earlier section has taken one away, it is a rewrite
// and keeps that one's mode.
func (r *resolver) add(s section, e *entry) *Error {
	if e.now != nil {
		return refuse(s.line, sayExists, s.path).about(s.path, fs.ErrExist)
	}
	f := File{Data: text{}.encode(s.body), Mode: newMode}
	if e.was != nil {
		f.Mode = e.was.Mode
	}
	if bad := r.fits(s, e, f.Data); bad != nil {
		return bad
	}
	*e = entry{was: e.was, now: &f, added: len(s.body)}
	return nil
}

// fits checks a new content of an entry against the limits.
func (r *resolver) fits(s section, e *entry, data []byte) *Error {
	if r.limits.FileBytes > 0 && len(data) > r.limits.FileBytes {
		return refuse(s.line, sayResultLarge, s.path, len(data), r.limits.FileBytes).about(s.path, nil)
	}
	if e.now != nil && e.now != e.was {
		r.held -= len(e.now.Data)
	}
	r.held += len(data)
	if r.limits.TotalBytes > 0 && r.held > r.limits.TotalBytes {
		return refuse(s.line, sayTotalLarge, r.limits.TotalBytes).about(s.path, nil)
	}
	return nil
}

// update changes a file and moves it, if the section says so.
func (r *resolver) update(ctx context.Context, s section, e *entry) (*Error, error) {
	after := *e
	bad, err := r.content(ctx, s, &after)
	if bad != nil || err != nil {
		return bad, err
	}
	if s.move == "" || s.move == s.path {
		*e = after
		return nil, nil
	}
	to, err := r.load(s.move)
	if err != nil {
		return nil, err
	}
	if to.now != nil {
		return refuse(s.line, sayTargetExists, s.path, s.move).about(s.move, fs.ErrExist), nil
	}
	after.was = to.was
	*to = after
	e.now, e.from = nil, ""
	r.left[s.path] = s.move
	return nil, nil
}

// content applies the section to the content of an entry.
func (r *resolver) content(ctx context.Context, s section, e *entry) (*Error, error) {
	t, err := decode(e.now.Data)
	if err != nil {
		return refuse(s.line, sayNoDecode, s.path).about(s.path, err), nil
	}
	var lines []fileLine
	if s.whole {
		lines = t.restyled(s.body)
		e.added, e.deleted = e.added+len(s.body), e.deleted+len(t.lines)
	} else {
		var bad *Error
		if lines, bad, err = r.hunks(ctx, s, t, e); bad != nil || err != nil {
			return bad, err
		}
	}
	f := File{Data: t.encode(lines), Mode: e.now.Mode}
	if bad := r.fits(s, e, f.Data); bad != nil {
		return bad, nil
	}
	e.now = &f
	return nil, nil
}

// hunks applies the hunks of a section to a text. It reports the faults of more
// than one, so that a model mends them in one round.
func (r *resolver) hunks(ctx context.Context, s section, t text, e *entry) ([]fileLine, *Error, error) {
	l := locator{path: s.path, x: newIndex(t.lines)}
	var steps []edit
	bad := &Error{}
	for _, h := range s.hunks {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("patch: %w", err)
		}
		where, fault := l.locate(h)
		var made []edit
		if fault == nil {
			made, fault = l.edits(t, h, where)
		}
		if fault != nil {
			bad.Faults = append(bad.Faults, fault.Faults...)
			if len(bad.Faults) > shownFaults {
				break
			}
			continue
		}
		e.fuzz += where.fuzz
		for _, m := range made {
			if m.take {
				e.deleted++
			} else {
				e.added++
			}
		}
		steps = append(steps, made...)
	}
	if len(bad.Faults) > 0 {
		return nil, bad, nil
	}
	r.notes = append(r.notes, l.notes...)
	return splice(t, steps), nil, nil
}

// change is the sum of all sections.
func (r *resolver) change(notes []string) Change {
	c := Change{Notes: append(slices.Clone(notes), r.notes...)}
	moved := map[string]bool{}
	for _, path := range r.order {
		if e := r.files[path]; e.now != nil && e.from != "" && e.from != path {
			moved[e.from] = true
		}
	}
	for _, path := range r.order {
		e := r.files[path]
		c.steps = append(c.steps, step{path: path, before: e.was, after: e.now})
		switch {
		case e.now == nil && e.was != nil && !moved[path]:
			c.Files = append(c.Files, FileChange{Path: path, Kind: Delete, Before: *e.was, Deleted: countLines(e.was.Data)})
		case e.now != nil:
			c.Files = append(c.Files, r.fileChange(path, e))
		}
	}
	c.steps = ordered(c.steps)
	return c
}

func (r *resolver) fileChange(path string, e *entry) FileChange {
	f := FileChange{Path: path, Kind: Update, After: *e.now, Added: e.added, Deleted: e.deleted, Fuzz: e.fuzz}
	switch {
	case e.from != "" && e.from != path:
		f.From, f.Before = e.from, *r.files[e.from].was
	case e.was == nil:
		f.Kind = Add
	default:
		f.Before = *e.was
		if e.from == "" { // deleted and added again
			f.Deleted += countLines(e.was.Data)
		}
	}
	return f
}

// ordered drops the steps that change nothing, and puts those that make files
// before those that take files away, so that a crash between them leaves two
// copies and not none. What stands where a new file needs a folder goes first.
func ordered(steps []step) []step {
	var first, makes, takes []step
	for _, s := range steps {
		switch {
		case s.idle():
		case s.after != nil:
			makes = append(makes, s)
		case slices.ContainsFunc(steps, func(o step) bool { return o.after != nil && strings.HasPrefix(o.path, s.path+"/") }):
			first = append(first, s)
		default:
			takes = append(takes, s)
		}
	}
	return slices.Concat(first, makes, takes)
}

func (s step) idle() bool {
	if s.before == nil || s.after == nil {
		return s.before == s.after
	}
	return s.before.Mode == s.after.Mode && bytes.Equal(s.before.Data, s.after.Data)
}

func countLines(data []byte) int {
	t, err := decode(data)
	if err != nil {
		return 0
	}
	return len(t.lines)
}

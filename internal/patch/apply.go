package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Target is where a change is written. Paths are as the [Cleaner] gave them;
// parent folders, links and containment are the target's business. It works on the
// same files as the [View] that the patch was resolved against.
type Target interface {
	// Read gives a file as [View] does.
	Read(path string) (File, error)
	// Create makes a file that is not there, in one step; one that has appeared
	// meanwhile is [fs.ErrExist] and keeps its content.
	Create(path string, f File) error
	// Write replaces a file that is there, in one step.
	Write(path string, f File) error
	// Remove takes a file away.
	Remove(path string) error
}

// step is what happens at one path: nil is no file.
type step struct {
	path          string
	before, after *File
}

// Apply writes the change, whole or not at all. It fails with an [*Error] if a
// file is not any more what it was resolved against, and with an [*UndoneError]
// if one could not be written or the context ended: in both cases what had been
// written is taken back first, and the latter names what could not be.
func (c Change) Apply(ctx context.Context, t Target) error {
	for i, s := range c.steps {
		tried, err := s.try(ctx, t)
		if err == nil {
			continue
		}
		var lost []string
		if tried && !s.settle(t) {
			lost = append(lost, s.path)
		}
		for _, done := range slices.Backward(c.steps[:i]) {
			if !done.back(t) {
				lost = append(lost, done.path)
			}
		}
		if len(lost) == 0 && errors.Is(err, errMeanwhile) {
			return refuse(0, sayChangedSince, s.path).about(s.path, nil)
		}
		return &UndoneError{Path: s.path, Err: err, Lost: lost}
	}
	return nil
}

var errMeanwhile = errors.New(sayBecauseMeanwhile)

// try makes one step, if all is as it was resolved against. It looks at each file
// just before it is written, so that it also sees two paths that are one file.
// It reports whether it went as far as to write.
func (s step) try(ctx context.Context, t Target) (tried bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	is, err := stands(t, s.path, s.before)
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	if !is {
		return false, errMeanwhile
	}
	switch {
	case s.after == nil:
		return true, t.Remove(s.path)
	case s.before != nil:
		return true, t.Write(s.path, *s.after)
	}
	err = t.Create(s.path, *s.after)
	if errors.Is(err, fs.ErrExist) {
		return false, errMeanwhile
	}
	return true, err
}

// stands says whether a path holds exactly a file, or none.
func stands(t Target, path string, want *File) (bool, error) {
	have, err := t.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return want == nil, nil
	case err != nil:
		return false, err
	}
	return want != nil && have.Mode.Perm() == want.Mode.Perm() && bytes.Equal(have.Data, want.Data), nil
}

// back takes a step back that was made, and reports whether the path is again as
// it was.
func (s step) back(t Target) bool {
	var err error
	switch {
	case s.before == nil:
		err = t.Remove(s.path)
	case s.after == nil:
		err = t.Create(s.path, *s.before)
	default:
		err = t.Write(s.path, *s.before)
	}
	if err == nil {
		return true
	}
	is, err := stands(t, s.path, s.before)
	return is && err == nil
}

// settle takes a step back that failed and may have been made in part, or as a
// whole before its error.
func (s step) settle(t Target) bool {
	have, err := t.Read(s.path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return false
	}
	is, err := stands(t, s.path, s.before)
	switch {
	case err != nil:
		return false
	case is:
		return true
	case s.before == nil && !bytes.HasPrefix(s.after.Data, have.Data):
		return true // not ours
	case s.before == nil:
		return t.Remove(s.path) == nil
	case missing:
		return t.Create(s.path, *s.before) == nil
	}
	return t.Write(s.path, *s.before) == nil
}

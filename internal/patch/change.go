package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Change is what a patch does to the files that it was resolved against.
type Change struct {
	// Files are the files that the patch named, in its order. One that was made
	// and taken away again is not among them.
	Files []FileChange
	// Notes are sentences without an end for the model: what was read
	// generously, and where a hunk went that could have gone elsewhere.
	Notes []string

	steps []step
}

// FileChange is what happens to one file.
type FileChange struct {
	Path string
	// From is where an updated file was before, "" if it stays.
	From string
	Kind Kind
	// Before and After are the whole file; of an added file only After, of a
	// deleted one only Before. Of a moved one, Before is what stood at From.
	Before, After File
	// Added and Deleted count lines.
	Added, Deleted int
	// Fuzz is what the matches cost: from 100 on indentation was ignored, from
	// 10000 on a hunk was not at the end as it said (B1 12.8).
	Fuzz int
}

// Unchanged says whether the file is as it was and where it was.
func (f FileChange) Unchanged() bool {
	return f.Kind == Update && f.From == "" && bytes.Equal(f.Before.Data, f.After.Data)
}

// Summary is the text of a success (B1 12.14): a line for each file, that they
// need not be read again, and the notes.
func (c Change) Summary() string {
	var b strings.Builder
	changed := 0
	for _, f := range c.Files {
		if !f.Unchanged() {
			changed++
		}
	}
	switch changed {
	case 0:
		b.WriteString(sayNothingAtAll)
	case 1:
		fmt.Fprintf(&b, sayApplied, sayOneFile)
	default:
		fmt.Fprintf(&b, sayApplied, sprint(sayFiles, changed))
	}
	for _, f := range c.Files {
		b.WriteString(f.line())
	}
	if changed > 0 {
		b.WriteString(sayNoReadBack)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, sayNote, n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f FileChange) line() string {
	switch {
	case f.Unchanged():
		return sprint(sayUnchanged, f.Path)
	case f.From != "":
		return sprint(sayMoved, f.From, f.Path, f.Added, f.Deleted)
	case f.Kind == Add:
		return sprint(sayAdded, f.Path, f.Added, f.Deleted)
	case f.Kind == Delete:
		return sprint(sayDeleted, f.Path, f.Added, f.Deleted)
	}
	return sprint(sayUpdated, f.Path, f.Added, f.Deleted)
}

// Paths are the files that [Change.Apply] writes or removes.
func (c Change) Paths() []string {
	var paths []string
	for _, s := range c.steps {
		paths = append(paths, s.path)
	}
	slices.Sort(paths)
	return paths
}

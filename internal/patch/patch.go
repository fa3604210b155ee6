// Package patch is the patch that a model sends: it reads one, finds where its
// hunks belong in the files, and makes the change, whole or not at all.
//
// A patch is an envelope of sections (add, update, delete a file) or the same
// said as JSON operations; a section that updates holds hunks in the V4A form:
// lines to keep, to remove and to add, found by their content and never by a
// line number. It is lenient only where the meaning is certain: what could mean
// two things is refused with a sentence that says what to send instead, and what
// was read generously is told in a note.
//
// It never opens a file: a [View] reads and a [Target] writes, and containment
// is theirs; the spelling of a path is judged by the [Cleaner] that it is given.
// It never scores similarity to decide where a hunk goes, strips line numbers, or
// runs anything.
//
// Start at [Parse], then [Patch.Resolve], then [Change.Apply] and
// [Change.Summary]. The values are not changed after they are made and may be
// shared.
package patch

import (
	"fmt"
	"io/fs"
)

// Limits bound one patch. A field that is not above zero bounds nothing.
type Limits struct {
	// PatchBytes is the longest text of a patch, in bytes (config.PatchBytes).
	PatchBytes int
	// PatchFiles is the most files that one patch names (config.PatchFiles).
	PatchFiles int
	// FileBytes is the largest file, in bytes, before and after (config.FileSize).
	FileBytes int
	// TotalBytes bounds what all files of one patch hold in memory together, in
	// bytes, before and after.
	TotalBytes int
}

// Cleaner judges the spelling of a path that a patch names, and gives its one
// short relative form; "." is the folder itself. Its error is for the model. In
// the program it is guard.Clean, which refuses rooted paths, drives, shares and
// all that leads above (B1 12.4).
type Cleaner func(path string) (string, error)

// Kind is what a section does to its file, and what a change did.
type Kind int

// The kinds of sections and of changes. A move is an update.
const (
	Add Kind = iota
	Update
	Delete
)

// String is the kind as headers and operations spell it.
func (k Kind) String() string {
	switch k {
	case Add:
		return "Add"
	case Update:
		return "Update"
	case Delete:
		return "Delete"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// File is a file's content and permission bits.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Patch is a patch that was read and not yet compared with any file. Its zero
// value changes nothing.
type Patch struct {
	sections []section
	notes    []string
}

// Paths are the files that the patch names, sources and targets of moves, in
// order and each once. Nothing else is read or written for it.
func (p Patch) Paths() []string {
	var paths []string
	seen := map[string]bool{}
	for _, s := range p.sections {
		for _, name := range []string{s.path, s.move} {
			if name != "" && !seen[name] {
				seen[name] = true
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// section is one file's part of the patch.
type section struct {
	kind Kind
	path string
	// move is where an updated file goes, "" to stay.
	move string
	// line is where the header stands in the patch text, 0 for an operation that
	// has none.
	line int
	// body is the whole content of an added file.
	body []fileLine
	// whole says that body replaces what the updated file holds.
	whole bool
	hunks []hunk
}

// hunk is a run of lines that are kept, removed and added in one place.
type hunk struct {
	line    int // in the patch text
	anchors []string
	// start is the line number of a unified diff's header, 0 for none. It only
	// decides between places that match equally.
	start int
	lines []change
	atEnd bool
}

// change is one line of a hunk.
type change struct {
	op   byte // ' ', '-' or '+'
	text string
	// loose is an empty line without a prefix: a blank line of the file, or
	// only air between the parts of the patch.
	loose bool
	// bare is a line without any prefix.
	bare bool
	no   int // in the patch text
}

// old are the lines that the file must hold.
func (h hunk) old() []string { return h.pick('+') }

// fresh are the lines that the file holds afterwards.
func (h hunk) fresh() []string { return h.pick('-') }

func (h hunk) pick(without byte) []string {
	var texts []string
	for _, l := range h.lines {
		if l.op != without {
			texts = append(texts, l.text)
		}
	}
	return texts
}

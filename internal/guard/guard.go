// Package guard is the one path check: every path that a model, an archive, an
// upload or a link names goes through it before it reaches the file system.
//
// It closes three escapes. The spelling of a path is judged by [Clean], which
// never touches the disk. What survives is opened through [os.Root], so that
// neither a link nor a race leads out of the directory. And only regular files
// are opened, so that a FIFO cannot hang the host.
//
// It never rewrites a bad path into a good one: a model that asks for
// "../other/SKILL.md" is told that it may not look there, not that the file does
// not exist (seed 1, "Path containment").
//
// Start at [Clean] and [Root].
package guard

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reasons for which a path is refused. Each text says what to write instead,
// for a reader who may be a model.
var (
	ErrEmpty     = errors.New("the path is empty: name a file, such as references/api.md")
	ErrText      = errors.New("the path holds a control character or is not UTF-8: write the name in plain text")
	ErrShare     = errors.New("network paths are refused: write the path relative to the folder, such as references/api.md")
	ErrDrive     = errors.New("drive letters are refused: write the path relative to the folder, such as references/api.md")
	ErrAbsolute  = errors.New("absolute paths are refused: write the path relative to the folder, such as references/api.md")
	ErrHome      = errors.New(`"~" is refused: write the path relative to the folder, such as references/api.md`)
	ErrParent    = errors.New(`".." is refused, because files outside this folder may not be opened: write the path from the top of the folder`)
	ErrBackslash = errors.New(`"\" is refused: put "/" between folders`)
	ErrEnding    = errors.New("a folder or file name that ends in a dot or a space is refused: write the name without it")
	ErrEscape    = errors.New("a link on this path leads out of the folder and is not followed")
	ErrIrregular = errors.New("this is neither a regular file nor a folder and is not opened")
	ErrFolder    = errors.New("this is a folder: name a file in it")
	ErrNoFolder  = errors.New("this is not a folder")
)

// PathError is a path that was refused, and why. Err is one of the reasons of
// this package.
type PathError struct {
	Path string
	Err  error
}

// Error names the path and says what to do.
func (e *PathError) Error() string { return fmt.Sprintf("path %q: %v", e.Path, e.Err) }

// Unwrap is the reason.
func (e *PathError) Unwrap() error { return e.Err }

// Clean judges the spelling of a path that is meant to lie below some folder,
// and gives it back in its shortest form with "/" between names. "." is the
// folder itself. It fails with a [*PathError] on every spelling that could
// lead elsewhere on any platform, whatever this one makes of it.
func Clean(name string) (string, error) {
	if err := judge(name); err != nil {
		return "", &PathError{Path: name, Err: err}
	}
	return path.Clean(name), nil
}

func judge(name string) error {
	switch {
	case name == "":
		return ErrEmpty
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return ErrText
	case strings.HasPrefix(name, `\\`) || strings.HasPrefix(name, "//"):
		return ErrShare
	case hasDrive(name):
		return ErrDrive
	case name[0] == '/' || name[0] == '\\':
		return ErrAbsolute
	case name[0] == '~':
		return ErrHome
	}
	return judgeNames(name)
}

// judgeNames looks at each name of the path, with both separators, so that ".."
// is called by its own name in either spelling.
func judgeNames(name string) error {
	var ending bool
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch {
		case strings.TrimRight(part, " ") == "..":
			return ErrParent
		case part != "." && (strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ")):
			ending = true
		}
	}
	switch {
	case strings.Contains(name, `\`):
		return ErrBackslash
	case ending:
		return ErrEnding
	}
	return nil
}

func hasDrive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	c := name[0] | 0x20
	return 'a' <= c && c <= 'z'
}

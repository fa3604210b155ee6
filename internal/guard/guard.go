// Package guard is the one path check: every path that a model, an archive, an
// upload or a link names goes through it before it reaches the file system.
//
// It closes four escapes. The spelling of a path is judged by [Clean], which
// never touches the disk (lexical), and what survives must be local by this
// host's own rules too (canonical). It is opened through [os.Root], so that
// neither a link (symbolic) nor a swap between look and use (racing) leads out
// of the directory. Besides, only regular files are opened, so that a FIFO
// cannot hang the host, and none is written in place, so that the other names of
// a hard link keep their bytes.
//
// It never rewrites a bad path into a good one: a model that asks for
// "../other/SKILL.md" is told that it may not look there, not that the file does
// not exist (seed 1, "Path containment"). A hard link inside a folder is an
// ordinary file to every reader, and is read.
//
// Start at [Clean], then [Root], then [Root.WriteFile].
package guard

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
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
	ErrStream    = errors.New(`":" is refused, because some hosts read what follows it as a hidden part of the file: write the name without it`)
	ErrReserved  = errors.New("a name that is a device on some hosts, such as CON, NUL or COM1, is refused: choose another name")
	ErrLong      = errors.New("the path is longer than any host opens: use shorter names")
	ErrEnding    = errors.New("a folder or file name that ends in a dot or a space is refused: write the name without it")
	ErrEscape    = errors.New("a link on this path leads out of the folder and is not followed")
	ErrLoop      = errors.New("the links on this path go in circles")
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
	clean := path.Clean(name)
	if clean[0] == '~' { // written as "./~"
		return "", &PathError{Path: name, Err: ErrHome}
	}
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", &PathError{Path: name, Err: ErrEscape}
	}
	return clean, nil
}

// longest is the longest path, in bytes, that the hosts we know open (PATH_MAX
// of Linux). It bounds how deep a folder can be nested.
const longest = 4096

func judge(name string) error {
	switch {
	case name == "":
		return ErrEmpty
	case len(name) > longest:
		return ErrLong
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
	var worst error
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch {
		case strings.TrimRight(part, " ") == "..":
			return ErrParent
		case part == ".":
		case strings.Contains(part, ":"):
			worst = cmp.Or(worst, ErrStream)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			worst = cmp.Or(worst, ErrEnding)
		case reserved(part):
			worst = cmp.Or(worst, ErrReserved)
		}
	}
	if strings.Contains(name, `\`) {
		return ErrBackslash
	}
	return worst
}

// reserved says whether Windows opens a device by this name, whatever follows
// its first dot.
func reserved(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	digit, serial := strings.CutPrefix(base, "COM")
	if !serial {
		digit, serial = strings.CutPrefix(base, "LPT")
	}
	return serial && utf8.RuneCountInString(digit) == 1 && strings.Contains("0123456789¹²³", digit)
}

func hasDrive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	c := name[0] | 0x20
	return 'a' <= c && c <= 'z'
}

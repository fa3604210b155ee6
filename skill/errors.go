package skill

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/metier-run/metier/internal/config"
)

// The limits that a [LimitError] names: rows of the table of limits.
const (
	LimitManifest = string(config.ManifestSize)
	LimitFiles    = string(config.SkillFiles)
	LimitBytes    = string(config.SkillBytes)
	LimitSkills   = string(config.SkillCount)
)

// LimitError is a ceiling that was passed.
type LimitError struct {
	// Limit is one of the Limit constants.
	Limit string
	Max   int64
	// What is counted, in words.
	What string
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("too many %s: at most %d are allowed (%s): remove some, or raise the limit", e.What, e.Max, e.Limit)
}

// RootError is a root that cannot be read.
type RootError struct {
	Dir string
	// Setting is the root's (see [Root]).
	Setting string
	Err     error
}

// Error names the directory and says what to do.
func (e *RootError) Error() string {
	setting, from := "the setting that names it", ""
	if e.Setting != "" {
		setting, from = e.Setting, e.Setting+": "
	}
	if errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Sprintf("load skills: %sdirectory %q does not exist: create it or correct %s", from, e.Dir, setting)
	}
	return fmt.Sprintf("load skills: %sdirectory %q: %v", from, e.Dir, e.Err)
}

// Unwrap is the cause.
func (e *RootError) Unwrap() error { return e.Err }

// LoadError is a skill that was found and could not be loaded.
type LoadError struct {
	// Dir is the skill's directory.
	Dir string
	// Err is a [*ManifestError], a [*LimitError], a [*ClashError] or a failure of
	// the disk.
	Err error
}

// Error names the directory and the cause.
func (e *LoadError) Error() string { return fmt.Sprintf("load skill %s: %v", e.Dir, e.Err) }

// Unwrap is the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// ClashError is a skill whose name an earlier one has.
type ClashError struct {
	Name string
	// Kept and Dropped are the directories of the two.
	Kept, Dropped string
}

// Error names both places.
func (e *ClashError) Error() string {
	return fmt.Sprintf("the name %q is taken by %s, so %s is left out: rename one of them", e.Name, e.Kept, e.Dropped)
}

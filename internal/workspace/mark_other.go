//go:build !unix || solaris || illumos || aix

package workspace

import (
	"errors"
	"os"
	"time"
)

// errInUse is never given: there are no marks here.
var errInUse = errors.New("in use by another process")

// markDir needs no mark here: the directory's time tells.
func markDir(string) (*os.File, error) { return nil, nil }

// untouched is for how long nothing was made in a directory that counts as
// abandoned. If it is not, the next script makes it again.
const untouched = 7 * 24 * time.Hour

// isAbandoned reports whether nothing was made in a directory for long.
func isAbandoned(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && time.Since(info.ModTime()) > untouched
}

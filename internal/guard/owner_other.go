//go:build !unix

package guard

import "io/fs"

// Owner knows nothing: the system has no such owners.
func Owner(fs.FileInfo) (int, bool) { return 0, false }

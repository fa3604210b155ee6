package seatbelt

import "path"

// sharedTemp is the temporary directory of all users, which every program can
// write.
const sharedTemp = "/private/tmp"

// isUserTemp reports whether a path is the temporary directory of one user, as the
// system makes them, and nothing above it.
func isUserTemp(p string) bool {
	match, err := path.Match("/private/var/folders/*/*/T", p)
	return err == nil && match
}

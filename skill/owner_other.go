//go:build !unix

package skill

// ours is true: the system has no such owners.
func ours(string) bool { return true }

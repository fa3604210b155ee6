//go:build !unix

package guard

// openFlags is empty where opening a file does not wait.
const openFlags = 0

//go:build !linux

package native

// canaryCalls has nothing to try here.
func canaryCalls() {}

// child is never the work of a process here: this backend has no children.
func child(string) func() int { return nil }

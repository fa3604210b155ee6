//go:build !linux && !darwin && !windows

package app

// disk knows nothing here.
func disk(string) (kind string, free int64) { return "", -1 }

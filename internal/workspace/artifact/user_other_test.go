//go:build !linux

package artifact

import (
	"os"
	"testing"
)

func asUser(t *testing.T, _ *rig, f func()) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("root reads everything here")
	}
	f()
}

func onFullDisk(string) int { return 0 }

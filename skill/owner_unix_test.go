//go:build unix

package skill

import (
	"path/filepath"
	"testing"
)

func TestOwns(t *testing.T) {
	for _, tt := range []struct {
		owner, user int
		sudo        string
		want        bool
	}{
		{1000, 1000, "", true},
		{1001, 1000, "", false},
		{0, 1000, "", false},
		{1000, 0, "", false},
		{1000, 0, "1000", true},
		{1001, 0, "1000", false},
		{1001, 1000, "1001", false}, // not root: the variable is anybody's
	} {
		if got := owns(tt.owner, tt.user, tt.sudo); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if dir := t.TempDir(); !ours(dir) || !ours(filepath.Join(dir, "new")) {
		t.Error("a directory of one's own, or a new one, is taken for another user's")
	}
}

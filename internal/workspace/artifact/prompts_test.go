package artifact

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPrompts pins what a model reads about files that are not kept.
func TestPrompts(t *testing.T) {
	all := []string{
		isLink, isShared, isMoving, isGone, isLocked, isFailing,
		tooLarge(40<<20, 32<<20), tooMany(64), noRoom(256 << 20), tooDeep(32), overfull(65536), unknowable(65536),
		reason(&guard.PathError{Path: "a", Err: guard.ErrText}), reason(&fs.PathError{Op: "open", Path: "/host", Err: fs.ErrPermission}),
		reason(&fs.PathError{Op: "open", Path: "/host", Err: fs.ErrNotExist}), reason(errors.New("/host")),
	}
	got := strings.Join(all, "\n") + "\n"
	golden := filepath.Join("testdata", "reasons.txt")
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Error(diff)
	}
}

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/store"
)

// TestRealDisk: a disk that is full, or becomes read-only, under an open database.
func TestRealDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("this user may not mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := place{filepath.Join(dir, "metier.db"), &clock{}}
	db, err := store.Open(t.Context(), p.options(t))
	if err != nil {
		t.Fatal(err)
	}
	l := create(t, db, "s1")
	at := mustAppend(t, l, take(t, l), added("", "n1", "x"))

	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), at, added("n1", "n2", strings.Repeat("y", 200_000)))
	if err == nil {
		t.Fatal("an append to a full disk succeeded")
	}
	clean(t, err, "disk")
	if got := len(read(t, l, 0)); got != 2 {
		t.Errorf("%d events after a full disk, want 2", got)
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, at, added("n1", "n2", strings.Repeat("y", 200_000)))
	if got, err := db.Pragma(t.Context(), "integrity_check"); got != "ok" || err != nil {
		t.Errorf("integrity: %s, %v", got, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), p.options(t))
	clean(t, err, "read-only")
}

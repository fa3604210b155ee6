package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// reads is how often a test reads or writes at most while a link changes under
// its hands.
const reads = 20_000

// flip renames links over a name, in turn, until it is stopped. A rename has no
// moment in which the name is missing.
func flip(t *testing.T, at string, targets ...string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			next := at + ".next"
			if err := errors.Join(os.Symlink(targets[i%len(targets)], next), os.Rename(next, at)); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	return func() { close(done); wg.Wait() }
}

// TestFlippingLink: a link that leads inside when it is looked at and outside
// when it is opened never gives the bytes outside, as the last name of a path
// and as a folder on it.
func TestFlippingLink(t *testing.T) {
	tests := []struct {
		name, link, read, inside, outside string
	}{
		{"file", "flip", "flip", "references/api.md", "../outside/secret.txt"},
		{"folder", "flip", "flip/secret.txt", "references", "../outside"},
		{"deep folder", "references/flip", "references/flip/secret.txt", "deep", "../../outside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			for _, d := range []string{"references", "references/deep"} {
				check(t, os.WriteFile(filepath.Join(dir, d, "secret.txt"), []byte("api"), 0o644))
			}
			check(t, os.Symlink(tt.inside, filepath.Join(dir, tt.link)))
			r := open(t, dir)
			stop := flip(t, filepath.Join(dir, tt.link), tt.outside, tt.inside)
			defer stop()
			var got, refused int
			for range reads {
				text, err := read(r, tt.read)
				switch {
				case strings.Contains(text, canary):
					t.Fatal("the file outside was read")
				case err == nil && text == "api":
					got++
				case errors.Is(err, ErrEscape):
					refused++
				case err == nil:
					t.Fatalf("read %q", text)
				case !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "too many levels"):
					t.Fatalf("neither read nor refused: %v", err)
				}
				if got > 100 && refused > 100 {
					break
				}
			}
			if got == 0 || refused == 0 {
				t.Errorf("the link was not seen both ways in %d reads", reads)
			}
			t.Logf("read inside %d times, refused %d times", got, refused)
		})
	}
}

// TestFlippingLinkIsNotWrittenThrough: the same for writing.
func TestFlippingLinkIsNotWrittenThrough(t *testing.T) {
	dir := tree(t)
	secret := filepath.Join(filepath.Dir(dir), "outside", "secret.txt")
	check(t, os.Symlink("references/deep", filepath.Join(dir, "flip")))
	r := open(t, dir)
	stop := flip(t, filepath.Join(dir, "flip"), "../outside", "references/deep")
	defer stop()
	wrote := 0
	for range reads / 40 {
		if r.WriteFile("flip/secret.txt", []byte("api"), 0o644) == nil {
			wrote++
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != canary {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "references/deep/secret.txt")); wrote > 0 && (err != nil || string(text) != "api") {
		t.Errorf("%d writes succeeded, and the file inside is %q, %v", wrote, text, err)
	}
}

// TestWalkOfAFlippingFolder: a folder that becomes a link out while it is walked
// is not entered.
func TestWalkOfAFlippingFolder(t *testing.T) {
	dir := tree(t)
	sub := filepath.Join(dir, "sub")
	check(t, os.Mkdir(sub, 0o755))
	check(t, os.WriteFile(filepath.Join(sub, "secret.txt"), []byte("api"), 0o644))
	r := open(t, dir)
	skip := func(name string) bool { return name != "sub" }
	for e, err := range r.Walk(t.Context(), skip) {
		switch {
		case e.Path == "sub" && err == nil:
			check(t, os.Rename(sub, filepath.Join(filepath.Dir(dir), "moved")))
			check(t, os.Symlink("../outside", sub))
		case e.Path == "sub/secret.txt":
			t.Errorf("the walk went outside: %v, %v", e, err)
		}
	}
}

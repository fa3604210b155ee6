//go:build unix

package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

const canary = "the host's own secret"

// secret is a file outside of the workdir, on the same file system.
func secret(t *testing.T) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(p, []byte(canary), 0o600))
	return p
}

// TestHostile: nothing but plain files is kept, nothing blocks, and each refusal
// is told.
func TestHostile(t *testing.T) {
	r := newRig(t, nil)
	before := r.take(t)
	outside, in := secret(t), func(name string) string { return filepath.Join(r.work, name) }
	r.write(t, map[string]string{"honest.txt": "h", "target": "t", "sub/x": "x"})
	check(t, os.Symlink(outside, in("link")))
	check(t, os.Symlink("target", in("inner")))
	check(t, os.Symlink(".", in("self")))
	check(t, os.Symlink("..", in("sub/up")))
	check(t, os.Symlink("nowhere", in("dangling")))
	check(t, os.Link(outside, in("hard")))
	check(t, syscall.Mkfifo(in("fifo"), 0o666))
	unix, err := net.Listen("unix", in("sock"))
	check(t, err)
	defer unix.Close()
	check(t, os.WriteFile(in("sparse"), nil, 0o600))
	check(t, os.Truncate(in("sparse"), 1<<40))
	link, irregular := isLink, guard.ErrIrregular.Error()
	want := map[string]string{
		"link": link, "inner": link, "self": link, "sub/up": link, "dangling": link,
		"hard": isShared, "fifo": irregular, "sock": irregular, "sparse": tooLarge(1<<40, 32<<20),
	}
	if runtime.GOOS == "linux" && os.Getuid() == 0 {
		check(t, syscall.Mknod(in("null"), syscall.S_IFCHR|0o666, 1<<8|5)) // /dev/zero
		want["null"] = irregular
	}
	c := r.capture(t, before)
	if got := paths(c); got != "honest.txt target sub/x" {
		t.Errorf("kept %s", got)
	}
	if diff := cmp.Diff(want, reasons(c)); diff != "" {
		t.Error(diff)
	}
	// What was there before is not told again.
	if c := r.capture(t, r.take(t)); len(c.Skipped) != 0 || c.RunID != "" {
		t.Errorf("%+v", c)
	}
}

// TestNames: a name that some host reads as a path is skipped, and no name breaks
// a line.
func TestNames(t *testing.T) {
	r := newRig(t, nil)
	before := r.take(t)
	long := strings.Repeat("n", 251) + ".txt"
	kept := []string{"a b.txt", "...txt", "..x", "-rf", "$(id)", "`x`", "é", "*", long, "\u202etxt.exe"}
	refused := []string{"new\nline", "esc\x1b[2J", `back\slash`, "bad\xff", "end.", "end ", "a:b", "con.txt", "...", "~root"}
	for _, name := range append(kept, refused...) {
		check(t, os.WriteFile(filepath.Join(r.work, name), []byte(name), 0o600))
	}
	check(t, os.Mkdir(filepath.Join(r.work, "dir\n"), 0o700))
	for _, name := range []string{"below", "beside"} {
		check(t, os.WriteFile(filepath.Join(r.work, "dir\n", name), nil, 0o600))
	}
	before.scope = Scope{}
	c := r.capture(t, before)
	if len(c.Files) != len(kept) || len(c.Skipped) != len(refused)+1 {
		t.Errorf("%d files; skipped %q", len(c.Files), c.Skipped)
	}
	for _, f := range c.Files {
		if got := r.text(t, c.RunID, f.Path); got != f.Path {
			t.Errorf("%q holds %q", f.Path, got)
		}
	}
	for _, s := range c.Skipped {
		if strings.ContainsFunc(s.Path, func(c rune) bool { return c < ' ' || c == 0xfffd || c == 0x202e }) || strings.Contains(s.Reason, r.work) {
			t.Errorf("%q: %q", s.Path, s.Reason)
		}
	}
	if got := reasons(c)[`new\nline`]; got != guard.ErrText.Error() {
		t.Errorf("%q in %q", got, c.Skipped)
	}
}

// TestBounds: depth and number are bounded, what is at the top comes first, and
// the cut is told.
func TestBounds(t *testing.T) {
	r := newRig(t, nil)
	scope := Scope{Entries: 20, Depth: 2}
	before, err := Take(t.Context(), r.work, scope)
	check(t, err)
	r.write(t, map[string]string{"report": "r", "a/b/c": "kept", "a/b/d/e": "deep"})
	c := r.capture(t, before)
	if diff := cmp.Diff(map[string]string{"a/b/d": tooDeep(2)}, reasons(c)); paths(c) != "report a/b/c" || diff != "" {
		t.Errorf("%+v", c)
	}
	for i := range 30 {
		r.write(t, map[string]string{fmt.Sprintf("a/many/%02d", i): ""})
	}
	c = r.capture(t, before)
	if reasons(c)["."] != overfull(20) || !strings.HasPrefix(paths(c), "report a/b/c a/many/") {
		t.Errorf("%+v", c)
	}
	full, err := Take(t.Context(), r.work, scope)
	check(t, err)
	r.write(t, map[string]string{"new": "n"})
	if c := r.capture(t, full); c.RunID != "" || reasons(c)["."] != unknowable(20) {
		t.Errorf("%+v", c)
	}
}

// TestLockedFolder: what the host's user may not read is told and stops nothing.
func TestLockedFolder(t *testing.T) {
	r := newRig(t, nil)
	r.write(t, map[string]string{"before/x": ""})
	check(t, os.Chmod(filepath.Join(r.work, "before"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(r.work, "before"), 0o700) })
	asUser(t, r, func() {
		before := r.take(t)
		r.write(t, map[string]string{"ok": "1", "locked/x": "", "file": ""})
		check(t, os.Chmod(filepath.Join(r.work, "locked"), 0))
		check(t, os.Chmod(filepath.Join(r.work, "file"), 0))
		c := r.capture(t, before)
		if diff := cmp.Diff(map[string]string{"locked": isLocked, "file": isLocked}, reasons(c)); paths(c) != "ok" || diff != "" {
			t.Errorf("%+v", c)
		}
		check(t, os.Chmod(filepath.Join(r.work, "locked"), 0o700))
	})
}

// TestMany: ten thousand files cost what their number costs.
func TestMany(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactCount: 4096})
	before := r.take(t)
	const files = 10_000
	for i := range files {
		r.write(t, map[string]string{fmt.Sprintf("d%02d/%04d", i/100, i): "x"})
	}
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	c := r.capture(t, before)
	after := r.take(t)
	runtime.ReadMemStats(&to)
	if len(c.Files) != 4096 || len(c.Skipped)+c.Unlisted != files-4096 || len(after.seen) != files {
		t.Errorf("%d files, %d and %d skipped", len(c.Files), len(c.Skipped), c.Unlisted)
	}
	if got := to.TotalAlloc - from.TotalAlloc; got > 256<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
	if c := r.capture(t, after); c.RunID != "" || len(c.Skipped) != 0 {
		t.Errorf("%d files are new", len(c.Files))
	}
}

// TestRace: whatever the workdir does meanwhile, what is kept is a file of the
// workdir, whole, and never the host's.
func TestRace(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.ArtifactTotal: 1 << 20})
	before := r.take(t)
	outside := secret(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() { churn(ctx, r.work, outside, i) })
	}
	var kept, moving int
	for range 20_000 { // both are seen within some hundred
		if kept > 100 && moving > 100 {
			break
		}
		c, err := r.Capture(ctx, "me", r.work, before)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Skipped {
			if s.Reason == isMoving || s.Reason == isGone {
				moving++
			}
		}
		for _, f := range c.Files {
			kept++
			got, err := os.ReadFile(filepath.Join(r.Dir(c.RunID), f.Path))
			check(t, err)
			if int64(len(got)) != f.Bytes || bytes.Contains(got, []byte(canary)) || len(bytes.Trim(got, "ab")) > 0 {
				t.Fatalf("%s: %d bytes, said %d: %.40q", f.Path, len(got), f.Bytes, got)
			}
		}
	}
	cancel()
	wg.Wait()
	if kept == 0 || moving == 0 {
		t.Errorf("%d files were kept and %d moved: the test shows nothing", kept, moving)
	}
	if r.pending != 0 || r.used > 1<<20 {
		t.Errorf("%d bytes promised, %d used", r.pending, r.used)
	}
}

// churn puts everything that a launch could make in the place of one file and of
// its folder, over and over.
func churn(ctx context.Context, work, outside string, who int) {
	dir := filepath.Join(work, fmt.Sprintf("dir%d", who%2))
	at, side := filepath.Join(dir, "file"), filepath.Join(work, fmt.Sprintf(".side%d", who))
	for i := 0; ctx.Err() == nil; i++ {
		_ = os.RemoveAll(side)
		switch i % 6 {
		case 0, 1:
			_ = os.Mkdir(dir, 0o700)
			_ = os.WriteFile(side, bytes.Repeat([]byte{'a' + byte(i%2)}, 1000+i%7), 0o600)
			_ = os.Rename(side, at)
		case 2:
			if f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0); err == nil {
				_, _ = f.WriteString("aaaa")
				_ = f.Close()
			}
		case 3:
			_ = os.Symlink(outside, side)
			_ = os.Rename(side, at)
		case 4:
			_ = syscall.Mkfifo(side, 0o600)
			_ = os.Rename(side, at)
		case 5:
			_ = os.RemoveAll(dir)
			_ = os.Symlink(filepath.Dir(outside), dir)
			_ = os.Remove(dir)
		}
	}
}

// TestGrowing: a source that changes between the look and the copy is not kept,
// and nothing of it stays.
func TestGrowing(t *testing.T) {
	tests := map[string]func(at string) error{
		"grows":   func(at string) error { return os.WriteFile(at, []byte("longer than it was"), 0o600) },
		"shrinks": func(at string) error { return os.Truncate(at, 1) },
		"replaced": func(at string) error {
			return errors.Join(os.WriteFile(at+"2", []byte("first"), 0o600), os.Rename(at+"2", at))
		},
		"link":   func(at string) error { return errors.Join(os.Rename(at, at+"2"), os.Symlink("a2", at)) },
		"shared": func(at string) error { return os.Link(at, at+"2") },
		"gone":   os.Remove,
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			before := r.take(t)
			r.write(t, map[string]string{"a": "first"})
			r.options.NewID = func() string { check(t, change(filepath.Join(r.work, "a"))); return "00000000000000aa" }
			c := r.capture(t, before)
			want := map[string]string{"a": isMoving}
			if name == "gone" {
				want["a"] = isGone
			}
			if name == "link" { // the file itself, under another name: it is what was seen
				if paths(c) != "a" || r.text(t, c.RunID, "a") != "first" {
					t.Errorf("%+v", c)
				}
				return
			}
			if diff := cmp.Diff(want, reasons(c)); c.RunID != "" || diff != "" || r.there(t) != "" || r.pending != 0 {
				t.Errorf("%+v; there is %q, %d promised", c, r.there(t), r.pending)
			}
		})
	}
}

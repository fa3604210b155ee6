package file

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/workspace"
)

// TestPatchAnswers pins what a model reads that patches files of its workspace.
func TestPatchAnswers(t *testing.T) {
	b := newRig(t, config.FileSize, 4096, config.PatchFiles, 3)
	b.put("src/main.py", "def f():\n    return 1\n")
	b.put("src/old.txt", "x\n")
	b.put("large.txt", strings.Repeat("x\n", 3000))
	b.put("crlf.txt", "a\r\nb\r\n")
	b.put("utf16.txt", utf16le("ä\r\nb\r\n"))
	var s story
	tell := func(title string, lines ...string) { s.tell(title, b.patch(lines...)) }
	tell("three files", "*** Add File: a/b/new.txt", "+hello", "*** Update File: src/main.py", "@@ def f():", "-    return 1", "+    return 2", "*** Delete File: src/old.txt")
	tell("a move", "*** Update File: src/main.py", "*** Move to: lib/main.py", " def f():", "-    return 2", "+    return 3")
	tell("nothing", "*** Update File: lib/main.py", " def f():")
	tell("CRLF", "*** Update File: crlf.txt", " a", "-b", "+c", "+d")
	tell("UTF-16", "*** Update File: utf16.txt", "-ä", "+ö")
	tell("a miss", "*** Update File: lib/main.py", "-    return 4", "+    return 5")
	tell("a missing file", "*** Update File: src/main.py", "-x", "+y")
	tell("a file that is there", "*** Add File: lib/main.py", "+x")
	tell("a folder", "*** Update File: lib", "-x", "+y")
	tell("too large", "*** Update File: large.txt", "-x", "+y")
	tell("outside", "*** Add File: ../x", "+x")
	tell("a file as a folder", "*** Add File: crlf.txt/x", "+x")
	tell("too many", "*** Add File: 1", "+x", "*** Add File: 2", "+x", "*** Add File: 3", "+x", "*** Add File: 4", "+x")
	s.tell("no patch", b.raw(PatchName, `{}`))
	s.tell("not readable", b.raw(PatchName, `12`))
	s.tell("twice", b.raw(PatchName, `{"patch":"x","patch":"y"}`))
	golden(t, "patch.txt", s.String())
	b.holds("lib/main.py", "def f():\n    return 3\n")
	b.holds("src/main.py", "(none)")
	b.holds("crlf.txt", "a\r\nc\r\nd\r\n")
	b.holds("utf16.txt", utf16le("ö\r\nb\r\n"))
}

// TestPatchFromTheShellsFolder: the paths of a patch are those of where the shell is.
func TestPatchFromTheShellsFolder(t *testing.T) {
	b := newRig(t)
	b.put("src/a.txt", "x\n")
	b.cd("src")
	r := b.patch("*** Update File: a.txt", "-x", "+y", "*** Add File: d/b.txt", "+z")
	b.want(r, true, "updated a.txt", "added d/b.txt")
	b.holds("src/a.txt", "y\n")
	b.holds("src/d/b.txt", "z\n")
	b.want(b.patch("*** Update File: src/a.txt", "-y", "+z"), false, "Did you mean a.txt?")
}

// TestPatchAboveTheShellsFolder: a path with ".." is as good as another as long as it
// stays inside the workspace.
func TestPatchAboveTheShellsFolder(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "x\n")
	b.put("src/deep/b.txt", "x\n")
	b.cd("src/deep")
	if r := b.patch("*** Update File: ../../a.txt", "-x", "+y", "*** Add File: ../c.txt", "+c", "*** Update File: b.txt", "*** Move to: ../../b.txt", "-x", "+z"); !r.OK {
		t.Fatal(r.Text)
	}
	b.holds("a.txt", "y\n")
	b.holds("src/c.txt", "c\n")
	b.holds("b.txt", "z\n")
	for _, name := range []string{"../../../a.txt", "/etc/passwd", "~/a.txt", "../../..", b.path("a.txt")} {
		if r := b.patch("*** Update File: "+name, "-y", "+broken"); r.OK || !strings.HasPrefix(r.Text, nothing) {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
	b.holds("a.txt", "y\n")
}

// TestApplyPatch: a shell that holds the lock applies the patch that it was sent.
func TestApplyPatch(t *testing.T) {
	b := newRig(t)
	unlock, err := b.w.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r, err := b.set.ApplyPatch(t.Context(), "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n")
	if err != nil || !r.OK || !r.Workspace {
		t.Fatalf("%+v, %v", r, err)
	}
	b.holds("a", "x\n")
	r, err = b.set.ApplyPatch(t.Context(), "*** Begin Patch\n")
	if err != nil || r.OK || !strings.HasPrefix(r.Text, nothing) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestPatchIsTakenBack: what cannot be written whole is not written at all (B1 12.13).
func TestPatchIsTakenBack(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "x\n")
	b.put("b.txt", "x\n")
	name := strings.Repeat("n", 300) // longer than any file system takes
	r := b.patch("*** Update File: a.txt", "-x", "+y", "*** Delete File: b.txt", "*** Add File: "+name, "+x")
	if r.OK || !strings.HasPrefix(r.Text, nothing) {
		t.Errorf("%+v", r)
	}
	b.holds("a.txt", "x\n")
	b.holds("b.txt", "x\n")
	if len(b.kept) > 0 {
		t.Errorf("kept: %s", b.kept)
	}
}

// TestTwoNamesOfOneFile: a patch that changes a file and a link to it does not lose
// one of the changes.
func TestTwoNamesOfOneFile(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "one\ntwo\n")
	if err := os.Symlink("a.txt", b.path("link.txt")); err != nil {
		t.Skip(err)
	}
	r := b.patch("*** Update File: a.txt", "-one", "+1", "*** Update File: link.txt", "-two", "+2")
	if got := b.read("a.txt"); r.OK && got != "1\n2\n" || !r.OK && got != "one\ntwo\n" {
		t.Errorf("%q: %s", got, r.Text)
	}
}

// TestStopped: a call whose time has ended changes nothing and says so.
func TestStopped(t *testing.T) {
	b := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := func() error {
		_, err := b.set.visit(PatchName, func(v visit) (r journal.Result) {
			r = v.patch(ctx, "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch")
			if r.OK || !strings.HasPrefix(r.Text, nothing) {
				t.Errorf("%+v", r)
			}
			r = v.write(ctx, `{"path":"a","content":"x"}`)
			if r.OK || !strings.HasPrefix(r.Text, nothing+wasStopped) {
				t.Errorf("%+v", r)
			}
			return r
		})
		return err
	}()
	if err != nil {
		t.Fatal(err)
	}
	b.holds("a", "(none)")
	unlock, err := b.w.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := b.set.Invoke(ctx, llm.Call{Name: WriteName}, b.env); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that waits for the workspace: %v", err)
	}
}

// TestLostFilesAreToldAndForgotten: a patch that could not be taken back says which
// files are not as they were, and what the model knew of them does not count any more.
func TestLostFilesAreToldAndForgotten(t *testing.T) {
	b := newRig(t)
	b.put("src/a.txt", "x\n")
	b.cd("src")
	b.call(ReadName, "path", "a.txt")
	_, err := b.set.visit(PatchName, func(v visit) journal.Result {
		r := v.unpatched(&files{visit: v, current: "src"}, &patch.UndoneError{Path: "b.txt", Err: os.ErrPermission, Lost: []string{"a.txt"}})
		if r.OK || strings.HasPrefix(r.Text, "Nothing was changed") || !strings.Contains(r.Text, "a.txt") {
			t.Errorf("%+v", r)
		}
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.w.Seen.Know("src/a.txt", []byte("x\n")); got != workspace.Unread {
		t.Errorf("%d", got)
	}
}

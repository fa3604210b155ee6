package file

import (
	"os"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/journal"
)

// TestWhereAnswers pins what a model reads whose shell is not at the top of the
// workspace, or that names a file from the top of a host.
func TestWhereAnswers(t *testing.T) {
	b := newRig(t)
	b.put("app/lib/x.py", "x = 1\n")
	b.put("src/main.py", "y = 1\n")
	b.put("main.py", "z = 1\n")
	var s story
	tell := func(title string, r journal.Result) { s.tell(title, r) }
	b.cd("app")
	tell("after cd app", b.call(WriteName, "path", "new.py", "content", "x\n"))
	tell("after cd app, in app", b.call(WriteName, "path", "app/two words.py", "content", "x\n"))
	tell("once more", b.call(WriteName, "path", "app/more.py", "content", "x\n"))
	b.put("app/there.py", "x\n")
	if err := os.RemoveAll(b.path("app/app")); err != nil {
		t.Fatal(err)
	}
	tell("one that is there", b.call(WriteName, "path", "app/there.py", "content", "y\n"))
	tell("another folder", b.call(WriteName, "path", "lib/y.py", "content", "x\n"))
	tell("a patch", b.patch("*** Add File: p.txt", "+x", "*** Update File: lib/x.py", "-x = 1", "+x = 2"))
	tell("a patch that adds nothing", b.patch("*** Update File: lib/x.py", "-x = 2", "+x = 3"))
	b.cd("app/lib")
	tell("a patch, from above", b.patch("*** Add File: app/lib/z.py", "+x"))
	tell("an edit that makes it", b.call(EditName, "path", "lib/made.py", "old_string", "", "new_string", "x\n"))
	tell("a patch that moves it", b.patch("*** Update File: x.py", "*** Move to: lib/x.py", "-x = 3", "+x = 4"))
	b.cd(".")
	tell("at the top", b.call(WriteName, "path", "top/new.py", "content", "x\n"))
	create := func(path string) {
		tell("create "+path, b.call("str_replace_editor", "command", "create", "path", path, "file_text", "x\n"))
	}
	create("/repo/main.py")
	create("/repo/src/main.py")
	create("/repo/src/fresh.py")
	create("/fresh.py")
	create("~root/fresh.py")
	create(`C:\repo\src\fresh.py`)
	create("/repo/package/fresh.py")
	create("/home/user/project/package/fresh.py")
	create("/mnt/data/package/fresh.py")
	create(`C:\Users\me\project\package\fresh.py`)
	create("~me/project/package/fresh.py")
	create("/home/fresh.py")
	create("/repo/package/src")
	create("/notes:")
	create("/..")
	create("../main.py")
	tell("write", b.call(WriteName, "path", "/repo/src/fresh.py", "content", "x\n"))
	tell("read what is there", b.call(ReadName, "path", "/repo/src/main.py"))
	tell("read what has another folder", b.call(ReadName, "path", "/repo/other/main.py"))
	tell("read what is not there", b.call(ReadName, "path", "/repo/zebra.md"))
	tell("edit", b.call(EditName, "path", "/repo/src/main.py", "old_string", "y", "new_string", "z"))
	tell("patch", b.patch("*** Update File: /repo/src/main.py", "-y = 1", "+y = 2"))
	golden(t, "where.txt", strings.ReplaceAll(s.String(), b.w.Work(), "WORK"))
	b.holds("main.py", "z = 1\n")
	b.holds("src/main.py", "y = 1\n")
}

// TestAbsoluteInside: a path from the top of this host that leads into the workspace is
// taken, and in a patch told in the form that is.
func TestAbsoluteInside(t *testing.T) {
	b := newRig(t)
	b.want(b.call("str_replace_editor", "command", "create", "path", b.path("src/a.py"), "file_text", "x\n"), true, "Created src/a.py: 1 line.")
	b.want(b.patch("*** Update File: "+b.path("src/a.py"), "-x", "+y"), false, "such as src/a.py")
	b.want(b.patch("*** Add File: "+b.path("new/b.py"), "+x"), false, "such as new/b.py")
	b.holds("src/a.py", "x\n")
}

// TestLongPath: a path that no host opens is refused in few words, and without a look at
// each of its folders: that would take minutes.
func TestLongPath(t *testing.T) {
	b := newRig(t)
	long := "/" + strings.Repeat("a/", 300_000) + "b.py"
	for _, r := range []journal.Result{
		b.call(ReadName, "path", long),
		b.call(WriteName, "path", long, "content", "x\n"),
		b.call(EditName, "path", long, "old_string", "x", "new_string", "y"),
		b.patch("*** Add File: "+long, "+x"),
		b.patch("*** Update File: "+long[1:], "-x", "+y"),
	} {
		b.want(r, false, "longer than any host opens")
		if len(r.Text) > 1000 {
			t.Errorf("the answer has %d bytes: %.300s", len(r.Text), r.Text)
		}
	}
}

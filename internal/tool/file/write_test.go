package file

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
)

// TestOffer pins what is declared, in its order (B1 3).
func TestOffer(t *testing.T) {
	b := newRig(t)
	var s strings.Builder
	for _, d := range b.set.Offer(journal.Path{}).Declared {
		if !d.Parameters.IsValid() {
			t.Errorf("%s: parameters are not JSON", d.Name)
		}
		fmt.Fprintf(&s, "%s\n%s\n%s\n\n", d.Name, d.Description, d.Parameters)
	}
	golden(t, "offer.txt", s.String())
	for name, want := range map[string]journal.Replay{ReadName: journal.Again, "Read": journal.Again, PatchName: journal.Never, WriteName: journal.Never, EditName: journal.Never, "": journal.Never} {
		if got := b.set.Replay(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !b.set.Ordered("str_replace") || b.set.Ordered("shell") {
		t.Error("the order of calls")
	}
	r, err := b.set.Invoke(t.Context(), llm.Call{Name: "view_image"}, tool.Env{})
	if err != nil || r.OK || !strings.HasPrefix(r.Text, "Error: no tool is called") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMeans: the names of B1 4.1, in any case, and none of 4.2.
func TestMeans(t *testing.T) {
	for want, names := range map[string]string{
		PatchName: "apply_patch apply-patch applypatch apply_patch_tool",
		ReadName:  "read_file read readfile read_text_file view_file cat_file get_file",
		EditName:  "edit_file edit editfile str_replace str_replace_editor str_replace_based_edit_tool replace_in_file apply_edit string_replace",
		WriteName: "write_file write writefile create_file new_file put_file",
		"":        "view view_image open open_image display show show_image read_image look look_at see screenshot render preview image inspect_image shell skills_read",
	} {
		for name := range strings.FieldsSeq(names) {
			for _, spelled := range []string{name, strings.ToUpper(name), "functions." + name} {
				if got := Means(spelled); got != want {
					t.Errorf("%s means %q, want %q", spelled, got, want)
				}
			}
		}
	}
}

// TestWriteAnswers pins what a model reads that writes files.
func TestWriteAnswers(t *testing.T) {
	b := newRig(t, config.FileSize, 4096)
	long := numberedLines(40)
	b.put("old.py", "a = 1\nb = 2\n")
	b.put("short.py", "a = 1\n")
	b.put("crlf.txt", "a\r\n")
	b.put("picture.png", "\x00")
	b.put("empty.txt", "")
	b.put("long.txt", long)
	b.put("large.txt", strings.Repeat("x", 5000))
	if err := os.MkdirAll(b.path("dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", b.path("dangling")); err != nil {
		t.Fatal(err)
	}
	var s story
	for _, c := range []struct{ title, arguments string }{
		{"a new file", `{"path":"src/deep/new.py","content":"x = 1\n"}`},
		{"the same again", `{"path":"src/deep/new.py","content":"x = 1\n"}`},
		{"empty", `{"path":"nothing.txt","content":""}`},
		{"several lines", `{"path":"three.txt","content":"1\n2\n3"}`},
		{"one that exists", `{"path":"old.py","content":"a = 1\nb = 3\n"}`},
		{"one that goes on", `{"path":"short.py","content":"a = 1\nb = 3\n"}`},
		{"one that ends before", `{"path":"old.py","content":"a = 1\n"}`},
		{"other line ends", `{"path":"crlf.txt","content":"a\n"}`},
		{"in the place of a picture", `{"path":"picture.png","content":"a\n"}`},
		{"one that is empty", `{"path":"empty.txt","content":"a\n"}`},
		{"overwrite, unread", `{"path":"old.py","content":"a = 1\n","overwrite":true}`},
		{"overwrite, known", `{"path":"old.py","content":"a = 2\n","overwrite":"yes"}`},
		{"overwrite with little changed, unread", object_("path", "long.txt", "content", strings.Replace(long, "line 20\n", "line twenty\n", 1), "overwrite", true)},
		{"a folder", `{"path":"dir","content":"x"}`},
		{"a folder by its name", `{"path":"new/","content":"x"}`},
		{"a link that leads nowhere", `{"path":"dangling","content":"x"}`},
		{"below a file", `{"path":"old.py/x","content":"x"}`},
		{"one that is too large", `{"path":"large.txt","content":"x"}`},
		{"too much", object_("path", "much.txt", "content", strings.Repeat("x", 5000))},
		{"JSON", `{"path":"data.json","content":{"a":[1,2.50],"b":"<é>"}}`},
		{"escaped line breaks", `{"path":"one.py","content":"a = 1\\nb = 2\\nc = 3\\n"}`},
		{"half a character", `{"path":"half.txt","content":"\ud83d"}`},
		{"no content", `{"path":"x.txt"}`},
		{"no path", `{"content":"x"}`},
		{"two paths", `{"path":["a","b"],"content":"x"}`},
		{"cut off", `{"path":"x.txt","content":"x`},
		{"two contents", `{"path":"x.txt","content":"x","content":"y"}`},
		{"several", `[{"path":"first.txt","content":"x"},{"path":"second.txt","content":"y"}]`},
		{"outside", `{"path":"../x","content":"x"}`},
	} {
		s.tell(c.title, b.raw(WriteName, c.arguments))
	}
	golden(t, "write.txt", s.String())
	b.holds("data.json", "{\n  \"a\": [\n    1,\n    2.50\n  ],\n  \"b\": \"<é>\"\n}\n")
	b.holds("src/deep/new.py", "x = 1\n")
	b.holds("nothing.txt", "")
	b.holds("old.py", "a = 2\n")
	b.holds("crlf.txt", "a\r\n")
	b.holds("empty.txt", "a\n")
	for _, name := range []string{"much.txt", "x.txt", "half.txt", "second.txt", "gone"} {
		b.holds(name, "(none)")
	}
}

// TestWriteSyntax: the verdict stands in place of the advice, and never in place of a
// note (B1 11.7).
func TestWriteSyntax(t *testing.T) {
	b := newRig(t)
	b.syntax = "SYNTAX"
	b.cd("src")
	b.put("src/x", "")
	b.cd("src")
	r := b.call(WriteName, "path", "a.py", "content", "x")
	b.want(r, true, "Created a.py (src/a.py from the top of the workspace): 1 line.\nSYNTAX")
	if strings.Contains(r.Text, holdsSent) {
		t.Error(r.Text)
	}
	b.want(b.call(EditName, "path", "a.py", "old_string", "x", "new_string", "y"), true, "\nSYNTAX")
	b.want(b.patch("*** Update File: a.py", "-y", "+z"), true, "\nSYNTAX")
	b.want(b.call(WriteName, "path", "a.py", "content", "z"), true, "holds exactly this already")
	if got := strings.Join(b.parsed, " "); got != "src/a.py=a.py src/a.py=a.py src/a.py=a.py" {
		t.Errorf("checked: %s", got)
	}
}

// TestPublishOnlyOwnOutput: each mutation gives its own file away, and what changes
// nothing gives nothing (B1 11.10, 20.3).
func TestPublishOnlyOwnOutput(t *testing.T) {
	b := newRig(t)
	b.put("other.txt", "x\n")
	b.put("gone.txt", "x\n")
	check := func(what, want string) {
		t.Helper()
		if got := strings.Join(b.kept, " "); got != want {
			t.Errorf("%s: kept %q, want %q", what, got, want)
		}
		b.kept = nil
	}
	b.call(WriteName, "path", "a.txt", "content", "one\n")
	check("create", "a.txt")
	b.call(WriteName, "path", "a.txt", "content", "one\n")
	b.call(WriteName, "path", "a.txt", "content", "two\n")
	b.call(ReadName, "path", "a.txt")
	b.call(EditName, "path", "a.txt", "old_string", "nowhere", "new_string", "x")
	b.patch("*** Update File: a.txt", " one")
	b.patch("*** Update File: a.txt", "-nowhere", "+x")
	check("reads, refusals and what changes nothing", "")
	b.call(EditName, "path", "a.txt", "old_string", "one", "new_string", "three")
	check("edit", "a.txt")
	b.patch("*** Add File: b.txt", "+x", "*** Update File: a.txt", "*** Move to: d/c.txt", "-three", "+four", "*** Delete File: gone.txt")
	check("patch", "b.txt d/c.txt")
}

// TestLimitsDoNotLoseTheWrite: what cannot be kept is written all the same, and what is
// kept is told (B1 20.3).
func TestLimitsDoNotLoseTheWrite(t *testing.T) {
	b := newRig(t)
	b.set.keep = func(_ context.Context, paths []string) (string, []journal.File) {
		return "not kept: too large", []journal.File{{Name: paths[0]}}
	}
	r := b.call(WriteName, "path", "a.txt", "content", "one\n")
	b.want(r, true, "Created a.txt", "\nnot kept: too large")
	if len(r.Files) != 1 || r.Files[0].Name != "a.txt" {
		t.Errorf("%+v", r.Files)
	}
	b.holds("a.txt", "one\n")
}

// TestRetainedCopyIndependent: a file is on the disk whole when a copy of it is asked
// for, and a later change makes a new file, so that the copy's bytes stay (B1 20.3).
func TestRetainedCopyIndependent(t *testing.T) {
	b := newRig(t)
	b.set.keep = func(_ context.Context, paths []string) (string, []journal.File) {
		copied := b.path("copy-of-" + paths[0])
		_ = os.Remove(copied)
		return "", func() []journal.File {
			if err := os.Link(b.path(paths[0]), copied); err != nil { // even as a hard link
				t.Error(err)
			}
			return nil
		}()
	}
	b.call(WriteName, "path", "a.txt", "content", "one\n")
	b.set.keep = func(context.Context, []string) (string, []journal.File) { return "", nil }
	b.call(EditName, "path", "a.txt", "old_string", "one", "new_string", "two")
	b.patch("*** Update File: a.txt", "-two", "+three")
	b.call(WriteName, "path", "a.txt", "content", "four\n", "overwrite", true)
	b.holds("a.txt", "four\n")
	b.holds("copy-of-a.txt", "one\n")
}

// TestModes: a replaced file keeps its mode, and a new one is everybody's to read.
func TestModes(t *testing.T) {
	b := newRig(t)
	b.put("run.sh", "one\n")
	if err := os.Chmod(b.path("run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.call(EditName, "path", "run.sh", "old_string", "one", "new_string", "two")
	b.patch("*** Update File: run.sh", "*** Move to: bin/run.sh", "-two", "+three")
	b.call(WriteName, "path", "bin/run.sh", "content", "four\n", "overwrite", true)
	b.call(WriteName, "path", "new.sh", "content", "x\n")
	for name, want := range map[string]os.FileMode{"bin/run.sh": 0o750, "new.sh": 0o644} {
		if info, err := os.Stat(b.path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	b.holds("bin/run.sh", "four\n")
}

// TestWorkspaceIsBounded: what there is no room for is not written (DESIGN 5.8).
func TestWorkspaceIsBounded(t *testing.T) {
	const mib = 1 << 20
	b := newRig(t, config.WorkspaceBytes, mib)
	b.put("node_modules/big", strings.Repeat("x", mib-100))
	b.put("a.txt", "one\n")
	many := strings.Repeat("y", 200)
	b.want(b.call(WriteName, "path", "b.txt", "content", many), false, "no room for 200 more")
	b.want(b.call(WriteName, "path", "a.txt", "content", many, "overwrite", true), false, "no room for 196 more")
	b.want(b.call(EditName, "path", "a.txt", "old_string", "one", "new_string", many), false, "no room")
	b.want(b.patch("*** Add File: b.txt", "+"+many), false, "no room")
	b.holds("b.txt", "(none)")
	b.holds("a.txt", "one\n")
	b.want(b.call(EditName, "path", "a.txt", "old_string", "one", "new_string", "1"), true)
	b.want(b.patch("*** Delete File: node_modules/big", "*** Add File: b.txt", "+"+many), true)
}

//go:build unix

package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

const secret = "a secret of the host\n"

// outside is a folder beside the workspace, with a file in it.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func link(t *testing.T, target, at string) {
	t.Helper()
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}

// everyTool calls all tools on a path, in every way in which they write it.
func (b *rig) everyTool(path string) []journal.Result {
	return []journal.Result{
		b.call(ReadName, "path", path),
		b.call(WriteName, "path", path, "content", "mine\n"),
		b.call(WriteName, "path", path, "content", "mine\n", "overwrite", true),
		b.call(EditName, "path", path, "old_string", "secret", "new_string", "mine"),
		b.call(EditName, "path", path, "old_string", "", "new_string", "mine"),
		b.patch("*** Update File: "+path, "-"+strings.TrimSpace(secret), "+mine"),
		b.patch("*** Update File: "+path, "*** Move to: taken.txt", " "+strings.TrimSpace(secret)),
		b.patch("*** Add File: "+path, "+mine"),
		b.patch("*** Add File: own.txt", "+mine", "*** Update File: own.txt", "*** Move to: "+path, " mine"),
	}
}

// TestLinksOut: no tool reads or writes what a link leads to outside.
func TestLinksOut(t *testing.T) {
	b, dir := newRig(t), outside(t)
	link(t, filepath.Join(dir, "secret.txt"), b.path("file"))
	link(t, dir, b.path("folder"))
	up, err := filepath.Rel(b.w.Work(), dir)
	if err != nil {
		t.Fatal(err)
	}
	link(t, up, b.path("relative"))
	for _, path := range []string{"file", "folder/secret.txt", "relative/secret.txt", "folder/new.txt", "folder/deep/new.txt", "folder"} {
		for i, r := range b.everyTool(path) {
			if r.OK || strings.Contains(r.Text, strings.TrimSpace(secret)) && i < 5 {
				t.Errorf("%s, call %d: %s", path, i, r.Text)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there are now %v, %v", entries, err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "secret.txt")); string(data) != secret {
		t.Errorf("outside: %q", data)
	}
	b.holds("taken.txt", "(none)")
	// What lies behind a link out is not offered either.
	if r := b.call(ReadName, "path", "secret.txt"); strings.Contains(r.Text, "folder/secret") {
		t.Errorf("%s", r.Text)
	}
}

// TestLinksInside: a link that stays inside is the file that it leads to, and stays one.
func TestLinksInside(t *testing.T) {
	b := newRig(t)
	b.put("d/a.txt", "x\n")
	link(t, "d/a.txt", b.path("link"))
	b.want(b.call(ReadName, "path", "link"), true, "1 | x")
	b.want(b.patch("*** Update File: link", "-x", "+y"), true)
	b.want(b.call(EditName, "path", "link", "old_string", "y", "new_string", "z"), true)
	b.holds("d/a.txt", "z\n")
	if info, err := os.Lstat(b.path("link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestFIFO: nothing waits for the other end of a pipe, or takes it for a file.
func TestFIFO(t *testing.T) {
	b := newRig(t)
	if err := syscall.Mkfifo(b.path("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	for i, r := range b.everyTool("pipe") {
		if r.OK {
			t.Errorf("call %d: %s", i, r.Text)
		}
	}
	if info, err := os.Lstat(b.path("pipe")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSwappedFolder: a folder that becomes a link out between a look and a write leads
// nobody out.
func TestSwappedFolder(t *testing.T) {
	b, dir := newRig(t), outside(t)
	b.set = New(Options{Workspace: b.w}) // what is there when a file was written is not sure here
	b.put("d/secret.txt", "inside\n")
	link(t, dir, b.path("out"))
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(b.path("d"), b.path("aside"))
			_ = os.Rename(b.path("out"), b.path("d"))
			_ = os.Rename(b.path("d"), b.path("out"))
			_ = os.Rename(b.path("aside"), b.path("d"))
		}
	})
	// A patch may end half done here, and then says so: what it says is not judged.
	call := func(name string, arguments ...any) journal.Result {
		r, err := b.set.Invoke(t.Context(), llm.Call{ID: "1", Name: name, Arguments: object_(arguments...)}, b.env)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	for i := range 40 {
		for _, r := range []journal.Result{
			call(ReadName, "path", "d/secret.txt", "offset", 1),
			call(WriteName, "path", fmt.Sprintf("d/new-%d.txt", i), "content", "mine\n"),
			call(WriteName, "path", "d/secret.txt", "content", fmt.Sprintf("inside %d\n", i), "overwrite", true),
			call(EditName, "path", "d/secret.txt", "old_string", "host", "new_string", "guest"),
			call(PatchName, "patch", fmt.Sprintf("*** Begin Patch\n*** Add File: d/more-%d.txt\n+mine\n*** End Patch", i)),
		} {
			if strings.Contains(r.Text, strings.TrimSpace(secret)) {
				t.Fatalf("read outside: %s", r.Text)
			}
		}
	}
	close(stop)
	swapping.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there are now %v, %v", entries, err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "secret.txt")); string(data) != secret {
		t.Errorf("outside: %q", data)
	}
}

// TestGrowingFile: a file that grows while it is read is read up to its limit or
// refused.
func TestGrowingFile(t *testing.T) {
	b := newRig(t, config.FileSize, 4096)
	f, err := os.Create(b.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop := make(chan struct{})
	var growing sync.WaitGroup
	growing.Go(func() {
		line := []byte(strings.Repeat("x", 99) + "\n")
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 60 {
				_, _ = f.Write(line)
			}
			_ = f.Truncate(0)
			_, _ = f.Seek(0, 0)
		}
	})
	for range 100 {
		if r := b.call(ReadName, "path", "log", "offset", 1); len(r.Text) > 4096+50*8+1000 {
			t.Fatalf("%d bytes", len(r.Text))
		}
	}
	close(stop)
	growing.Wait()
}

// TestChangedMeanwhile: what something else has written since it was read is not
// written over.
func TestChangedMeanwhile(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "theirs\n")
	_, err := b.set.visit(EditName, func(v visit) journal.Result {
		if err := v.swap("a.txt", held{data: []byte("mine\n"), mode: 0o644}, []byte("new\n")); err == nil {
			t.Error("written over")
		}
		return journal.Result{}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.holds("a.txt", "theirs\n")
	_, err = b.set.visit(WriteName, func(v visit) journal.Result {
		r := v.create(t.Context(), "a.txt", []byte("new\n"))
		if r.OK || !strings.HasPrefix(r.Text, nothing) {
			t.Errorf("%+v", r)
		}
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	b.holds("a.txt", "theirs\n")
}

// TestTwoSets: two sets on one workspace never lose a change to each other (B1 8.10).
func TestTwoSets(t *testing.T) {
	b := newRig(t)
	b.put("list.txt", "start\n")
	sets := []*Set{New(Options{Workspace: b.w}), New(Options{Workspace: b.w})}
	const each = 15
	var group sync.WaitGroup
	for i, s := range sets {
		for j := range each {
			group.Go(func() {
				name := fmt.Sprintf("%d-%d", i, j)
				for _, c := range []llm.Call{
					{Name: PatchName, Arguments: object_("patch", "*** Begin Patch\n*** Update File: list.txt\n start\n+"+name+"\n*** Add File: "+name+".txt\n+x\n*** End Patch")},
					{Name: EditName, Arguments: object_("path", name+".txt", "old", "x", "new", "y")},
					{Name: ReadName, Arguments: object_("path", "list.txt")},
				} {
					if r, err := s.Invoke(context.Background(), c, tool.Env{}); err != nil || !r.OK {
						t.Errorf("%s: %v %s", c.Name, err, r.Text)
					}
				}
			})
		}
	}
	// One name, many who make it: one of them does.
	var mu sync.Mutex
	made := 0
	for i := range 8 {
		group.Go(func() {
			r, err := sets[i%2].Invoke(context.Background(), llm.Call{Name: WriteName, Arguments: object_("path", "one.txt", "content", fmt.Sprint(i))}, tool.Env{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && r.OK {
				made++
			}
		})
	}
	group.Wait()
	if lines := workspace.Lines([]byte(b.read("list.txt"))); lines != 1+2*each {
		t.Errorf("%d lines, want %d", lines, 1+2*each)
	}
	if made != 1 {
		t.Errorf("one file was made %d times", made)
	}
}

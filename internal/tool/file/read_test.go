package file

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// TestReadAnswers pins what a model reads that reads files.
func TestReadAnswers(t *testing.T) {
	b := newRig(t, config.FileLines, 4, config.FilePage, 1024, config.FileSize, 4096)
	b.put("src/main.py", "import os\n\ndef f():\n\treturn 1\n")
	b.put("src/long.txt", numberedLines(11))
	b.put("src/wide.txt", "short\n"+strings.Repeat("é", 700)+"\nend\n")
	b.put("empty.txt", "")
	b.put("crlf.txt", "a\r\nb\r\n")
	b.put("mixed.txt", "a\r\nb\nc\n")
	b.put("utf16.txt", utf16le("ä\r\nb\r\n"))
	b.put("latin.txt", "caf\xe9\nx\n")
	b.put("picture.png", "\x89PNG\x00\x01")
	b.put("large.bin", strings.Repeat("x", 5000))
	b.put("open.txt", "no end")
	b.put("README.md", "# x\n")
	b.put("bad\nname.txt", "x\n")
	var s story
	for _, c := range []struct{ title, arguments string }{
		{"a file", `{"path":"src/main.py"}`},
		{"the same again", `{"path":"src/main.py"}`},
		{"again, from the first line", `{"path":"src/main.py","offset":1}`},
		{"a page", `{"path":"src/long.txt"}`},
		{"the next page", `{"path":"src/long.txt","offset":5}`},
		{"the last page", `{"path":"src/long.txt","offset":9}`},
		{"all pages seen", `{"path":"src/long.txt"}`},
		{"more lines than a page", `{"path":"src/long.txt","offset":2,"limit":9}`},
		{"past the end", `{"path":"src/long.txt","offset":40}`},
		{"a line that is too long for a page", `{"path":"src/wide.txt"}`},
		{"that line", `{"path":"src/wide.txt","offset":2}`},
		{"an empty file", `{"path":"empty.txt"}`},
		{"CRLF", `{"path":"crlf.txt"}`},
		{"mixed endings", `{"path":"mixed.txt"}`},
		{"UTF-16", `{"path":"utf16.txt"}`},
		{"not UTF-8", `{"path":"latin.txt"}`},
		{"a picture", `{"path":"picture.png"}`},
		{"too large", `{"path":"large.bin"}`},
		{"no line end", `{"path":"open.txt"}`},
		{"a folder", `{"path":"src"}`},
		{"the top", `{"path":"."}`},
		{"a file of another folder", `{"path":"main.py"}`},
		{"another case", `{"path":"readme.MD"}`},
		{"misspelt", `{"path":"src/mian.py"}`},
		{"no such folder", `{"path":"lib/deep/zzzzzzzz"}`},
		{"a file as a folder", `{"path":"README.md/x"}`},
		{"outside", `{"path":"../../etc/passwd"}`},
		{"absolute", `{"path":"/etc/passwd"}`},
		{"no path", `{}`},
		{"no JSON", `{"path":"a`},
		{"bad offset", `{"path":"src/main.py","offset":"ten"}`},
		{"bad range", `{"path":"src/main.py","view_range":[9,2]}`},
		{"twice", `{"path":"src/main.py","path":"README.md"}`},
		{"several", `[{"path":"README.md","offset":1},{"path":"src/main.py"}]`},
	} {
		s.tell(c.title, b.raw(ReadName, c.arguments))
	}
	golden(t, "read.txt", s.String())
}

// TestReadNumbersWithAPipe, and windows and offsets (B1 20.3, 11.3).
func TestReadNumbersWithAPipe(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", numberedLines(12))
	b.want(b.call(ReadName, "path", "a.txt", "offset", 9, "limit", 2), true, "a.txt, line 9 to 10 of 12:\n 9 | line 9\n10 | line 10\n[2 more lines.", "offset=11")
}

// TestReadUnchangedNotice: a complete file is not shown twice, a changed one is shown
// again, and whoever wants it again gets it (B1 11.4, 20.3).
func TestReadUnchangedNotice(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "one\ntwo\n")
	b.want(b.call(ReadName, "path", "a.txt"), true, "1 | one\n2 | two")
	again := b.call(ReadName, "path", "./a.txt")
	b.want(again, true, "has not changed", "offset=1")
	if strings.Contains(again.Text, "two") {
		t.Errorf("shown again: %s", again.Text)
	}
	b.want(b.call(ReadName, "path", "a.txt", "offset", 1), true, "1 | one\n2 | two")
	b.put("a.txt", "one\nthree\n")
	b.want(b.call(ReadName, "path", "a.txt"), true, "2 | three")
	// A call that is done again after a crash: what it showed may not have arrived.
	b.env = tool.Env{Attempt: 2}
	b.want(b.call(ReadName, "path", "a.txt"), true, "2 | three")
	b.env = tool.Env{}
	b.call(WriteName, "path", "b.txt", "content", "mine\n")
	b.want(b.call(ReadName, "path", "b.txt"), true, "has not changed")
}

// TestReadCreditsWhatWasShown: only lines that were shown count as seen (B1 11.5, 11.6).
func TestReadCreditsWhatWasShown(t *testing.T) {
	b := newRig(t, config.FilePage, 1024)
	text := strings.Repeat(strings.Repeat("x", 90)+"\n", 30)
	b.put("a.txt", text)
	b.env = tool.Env{Room: 1200}
	r := b.call(ReadName, "path", "a.txt")
	if len(r.Text) > 1200+smallestPage || !strings.Contains(r.Text, "line 1 to 10 of 30") {
		t.Errorf("%d bytes: %s", len(r.Text), r.Text)
	}
	if !b.w.Seen.Knows("a.txt", []byte(text), 1, 10) || b.w.Seen.Knows("a.txt", []byte(text), 11, 11) {
		t.Error("what was shown is not what counts as seen")
	}
	b.put("wide.txt", strings.Repeat("y", 3000)+"\n")
	b.call(ReadName, "path", "wide.txt")
	if got := b.w.Seen.Know("wide.txt", []byte(b.read("wide.txt"))); got != workspace.Unread {
		t.Errorf("a line shown in part counts as seen: %d", got)
	}
	utf := utf16le("a\nĊ\nb\n")
	b.put("utf16.txt", utf)
	b.call(ReadName, "path", "utf16.txt")
	if got := b.w.Seen.Know("utf16.txt", []byte(utf)); got != workspace.Fresh {
		t.Errorf("UTF-16: %d", got)
	}
}

// TestReadFromTheShellsFolder: paths are those of where the shell is (B1 11.1).
func TestReadFromTheShellsFolder(t *testing.T) {
	b := newRig(t)
	b.put("src/a.txt", "x\n")
	b.put("b.txt", "y\n")
	b.cd("src")
	b.want(b.call(ReadName, "path", "a.txt"), true, "a.txt, line 1 to 1 of 1:")
	b.want(b.call(ReadName, "path", "../b.txt"), true, "../b.txt, line 1 to 1 of 1:")
	b.want(b.call(ReadName, "path", "b.txt"), false, "Did you mean ../b.txt?")
	b.want(b.call(ReadName, "path", b.path("b.txt"), "offset", "1"), true, "1 | y")
}

// TestNearestName: the same name in another folder is surer than one in another case, and
// that than one that is misspelt (B1 11.3).
func TestNearestName(t *testing.T) {
	b := newRig(t)
	for _, name := range []string{"a/Main.py", "a/mains.py", "b/main.py", "node_modules/x/utils.js", "c/util.js", "d/Notes.txt", "d/note.txt"} {
		b.put(name, "x\n")
	}
	for name, want := range map[string]string{"main.py": "b/main.py", "x/main.py": "b/main.py", "MAIN.PY": "a/Main.py", "utils.js": "c/util.js", "notes.txt": "d/Notes.txt", "/home/me/main.py": "b/main.py"} {
		b.want(b.call(ReadName, "path", name), false, "Did you mean "+want+"?")
	}
	if r := b.call(ReadName, "path", "something-else.rs"); strings.Contains(r.Text, "Did you mean") {
		t.Error(r.Text)
	}
}

// TestLostWorkspace: what had to be made again is told (B1 8.3).
func TestLostWorkspace(t *testing.T) {
	b := newRig(t)
	if err := os.RemoveAll(b.w.Work()); err != nil {
		t.Fatal(err)
	}
	b.want(b.call(WriteName, "path", "a.txt", "content", "x"), true, "Created a.txt", "earlier files are gone")
	b.want(b.call(WriteName, "path", "b.txt", "content", "x"), true)
	b.holds("b.txt", "x")
}

// TestPagesAreTheFile: whoever follows the offsets sees every line once, and no page is
// larger than it may be.
func TestPagesAreTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.StringMatching(`[a-zé]{0,60}`), 1, 40).Draw(t, "lines")
		budget := rapid.IntRange(90, 400).Draw(t, "budget")
		n := int64(rapid.IntRange(1, 50).Draw(t, "limit"))
		text := strings.Join(all, "\n") + "\n"
		var got []string
		for first := 1; first <= len(all); {
			p := paginate(text, first, len(all), n, budget)
			if p.last < first || len(p.text) > budget+1 || int64(p.last-first) >= n {
				t.Fatalf("line %d: %+v", first, p)
			}
			for l := range strings.Lines(p.text) {
				_, text, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " | ")
				got = append(got, text)
			}
			if p.clipped > 0 {
				whole := all[p.clipped-1]
				shown := got[len(got)-1]
				if !strings.HasPrefix(whole, shown) || len(whole)-len(shown) != p.hidden || len(shown) != p.shown {
					t.Fatalf("line %d of %d bytes: %+v", p.clipped, len(whole), p)
				}
				got[len(got)-1] = whole
			}
			first = p.last + 1
		}
		if strings.Join(got, "\n") != strings.Join(all, "\n") {
			t.Fatalf("%q\nis not\n%q", got, all)
		}
	})
}

package file

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/workspace"
)

// TestEditAnswers pins what a model reads that calls edit_file.
func TestEditAnswers(t *testing.T) {
	b := newRig(t)
	b.put("a.py", "import os\n\ndef f():\n\tx = 1\n\treturn x\n\ndef g():\n\tx = 1\n\treturn x\n")
	b.put("b.py", "only_here = True\n")
	b.put("quotes.md", "He said “yes” – and “no”.\nIt’s done.\n")
	b.put("umlaut.txt", "Käse 😀\n")
	b.put("latin.txt", "caf\xe9\nx\n")
	b.put("picture.png", "\x00")
	b.put("empty.txt", "")
	var s story
	for _, c := range []struct{ title, arguments string }{
		{"once", `{"path":"a.py","old_string":"import os\n","new_string":"import sys\n"}`},
		{"deletes", `{"path":"a.py","old_string":"import sys\n\n","new_string":""}`},
		{"several places", `{"path":"a.py","old_string":"\tx = 1\n","new_string":"\tx = 2\n"}`},
		{"all, not seen", `{"path":"a.py","old_string":"x = 1","new_string":"x = 2","replace_all":true}`},
		{"the same strings", `{"path":"a.py","old_string":"x","new_string":"x"}`},
		{"indentation", `{"path":"a.py","old_string":"def f():\n    x = 1\n    return x","new_string":"pass"}`},
		{"white space behind", `{"path":"a.py","old_string":"def g():  \n\tx = 1","new_string":"pass"}`},
		{"one line is there", `{"path":"a.py","old_string":"def g(a):\n\tdo()\n\treturn x\n1\n2\n3\n4\n5","new_string":"pass"}`},
		{"almost", `{"path":"a.py","old_string":"\tretrun x","new_string":"pass"}`},
		{"nothing alike", `{"path":"a.py","old_string":"zebra crossing ahead","new_string":"x"}`},
		{"another file", `{"path":"a.py","old_string":"only_here = True\n","new_string":"x"}`},
		{"quotes", `{"path":"quotes.md","old_string":"said \"yes\" - and","new_string":"said \"yes\" - or 'so' and"}`},
		{"escapes", `{"path":"umlaut.txt","old_string":"K\\u00e4se \\ud83d\\ude00","new_string":"K\\u00e4se"}`},
		{"numbers", `{"path":"a.py","old_string":"4 | def g():\n5 | \tx = 1\n","new_string":"4 | def g():\n5 | \tx = 3\n"}`},
		{"not UTF-8", `{"path":"latin.txt","old_string":"x","new_string":"y"}`},
		{"not UTF-8, and not ASCII", `{"path":"latin.txt","old_string":"y","new_string":"é"}`},
		{"a picture", `{"path":"picture.png","old_string":"x","new_string":"y"}`},
		{"a new file", `{"path":"new.py","old_string":"","new_string":"x = 1\n"}`},
		{"an empty file", `{"path":"empty.txt","old_string":"","new_string":"x\n"}`},
		{"an empty text in a file that is not", `{"path":"b.py","old_string":"","new_string":"x"}`},
		{"missing file", `{"path":"c.py","old_string":"x","new_string":"y"}`},
		{"no old", `{"path":"b.py","new_string":"y"}`},
		{"no new", `{"path":"b.py","old_string":"y"}`},
		{"no path", `{"old_string":"y","new_string":"x"}`},
		{"no JSON", `<edit>`},
		{"view", `{"command":"view","path":"b.py","view_range":[1,-1]}`},
		{"create", `{"command":"create","path":"made.py","file_text":"x = 1\n"}`},
		{"str_replace", `{"command":"str_replace","path":"made.py","old_str":"1","new_str":"2"}`},
		{"insert", `{"command":"insert","path":"made.py","insert_line":1,"new_str":"2"}`},
		{"several", `[{"path":"made.py","old_str":"2","new_str":"3"},{"path":"made.py","old_str":"3","new_str":"4"}]`},
	} {
		s.tell(c.title, b.raw(EditName, c.arguments))
	}
	golden(t, "edit.txt", s.String())
	b.holds("a.py", "def f():\n\tx = 1\n\treturn x\n\ndef g():\n\tx = 3\n\treturn x\n")
	b.holds("quotes.md", "He said “yes” – or 'so' and “no”.\nIt’s done.\n")
	b.holds("umlaut.txt", "Käse\n")
	b.holds("latin.txt", "caf\xe9\ny\n")
	b.holds("made.py", "x = 3\n")
	b.holds("new.py", "x = 1\n")
}

// TestEditReplaceAll: every line must have been seen (B1 11.8, 20.3).
func TestEditReplaceAll(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "x\ny\nx\nx x\n")
	all := func(old, fresh string) bool {
		return b.call(EditName, "path", "a.txt", "old_string", old, "new_string", fresh, "all", "1").OK
	}
	b.call(ReadName, "path", "a.txt", "offset", 1, "limit", 3)
	if all("x", "z") {
		t.Error("replaced with a line unseen")
	}
	b.call(ReadName, "path", "a.txt", "offset", 4)
	if !all("x", "z") {
		t.Error("refused though all was seen")
	}
	b.holds("a.txt", "z\ny\nz\nz z\n")
	if !all("z", "w") {
		t.Error("what it has changed itself counts as unseen")
	}
	b.put("a.txt", "w\nw\n")
	if all("w", "v") {
		t.Error("a file that has changed since counts as seen")
	}
}

// TestEditKnowsOnlyWhatItSent: an edit of a line that was not seen is no reason to hold
// the file back from a read.
func TestEditKnowsOnlyWhatItSent(t *testing.T) {
	b := newRig(t)
	b.put("a.txt", "left middle right\n")
	b.want(b.call(EditName, "path", "a.txt", "old_string", "middle", "new_string", "centre"), true)
	b.want(b.call(ReadName, "path", "a.txt"), true, "1 | left centre right")
}

// TestEditKeepsTheFilesWays: encodings, marks and line breaks (B1 11.9).
func TestEditKeepsTheFilesWays(t *testing.T) {
	b := newRig(t)
	tests := []struct{ name, before, old, fresh, after string }{
		{"CRLF", "a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny", "a\r\nx\r\ny\r\nc\r\n"},
		{"CRLF sent", "a\nb\nc\n", "a\r\nb", "a\r\nx", "a\nx\nc\n"},
		{"mixed", "a\r\nb\nc\r\nd", "a\nb\nc\n", "a\nb\nx\nc\n", "a\r\nb\nx\nc\r\nd"},
		{"mark", "\ufeffa\nb\n", "a", "x", "\ufeffx\nb\n"},
		{"UTF-16", utf16le("ä\r\nb\r\n"), "ä\n", "ö\nü\n", utf16le("ö\r\nü\r\nb\r\n")},
		{"UTF-16 big", string(patch.Encode("a😀\n", patch.Big)), "😀", "é", string(patch.Encode("aé\n", patch.Big))},
		{"one quote kept", "a “b” c\n", `a "b"`, `x "b"`, "x “b” c\n"},
		{"one quote put", "say “b” and ‘c’\n", `say "b"`, `say "b" "d"`, "say “b” “d” and ‘c’\n"},
		{"low quotes", "sag „ja“ und\n", `sag "ja" und`, `sag "ja" und "nein"`, "sag „ja“ und „nein“\n"},
		{"an apostrophe", "it’s so\n", "it's so", "it's 'so'", "it’s ‘so’\n"},
		{"plain quotes too", "a “b” \"c\"\n", `a "b" "c"`, `a "b" "c" "d"`, "a “b” \"c\" \"d\"\n"},
		{"dashes", "a – b\n", "a - b", "a - c - d", "a – c – d\n"},
		{"a quote that is changed", "a “b” c\n", "“b”", `"b"`, "a \"b\" c\n"},
		{"no-break space", "10\u00a0km\n", "10 km", "11 km", "11\u00a0km\n"},
		{"no line break at the end", "a\nb", "b", "c", "a\nc"},
		{"lone CR", "a\rb\r\n", "a\rb", "a\rc", "a\rc\r\n"},
	}
	for _, tt := range tests {
		b.put("f.txt", tt.before)
		r := b.call(EditName, "path", "f.txt", "old_string", tt.old, "new_string", tt.fresh)
		if got := b.read("f.txt"); !r.OK || got != tt.after {
			t.Errorf("%s: %q, want %q: %s", tt.name, got, tt.after, r.Text)
		}
	}
	bad := "\xff\xfea\x00\x00\xd8"
	b.put("f.txt", bad)
	b.want(b.call(EditName, "path", "f.txt", "old_string", "a", "new_string", "b"), false)
	b.holds("f.txt", bad)
}

// TestEditOnlyNamedBytes: an edit is the text before, the new one and the text after,
// whatever the file's line breaks and encoding (B1 20.3).
func TestEditOnlyNamedBytes(t *testing.T) {
	b := newRig(t)
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", "\r\n", "“", "\"", "é", "1 | ", " ", "\t", "\xff", "😀"}), 0, 8)
		before, after := strings.Join(piece.Draw(t, "before"), ""), strings.Join(piece.Draw(t, "after"), "")
		fresh := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "x", "\n"}), 0, 5).Draw(t, "new"), "")
		const mark = "@old\nmark@"
		style := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "style")
		b.put("f.txt", before+strings.ReplaceAll(mark, "\n", style)+after)
		if fresh == mark {
			return
		}
		r := b.call(EditName, "path", "f.txt", "old_string", mark, "new_string", fresh)
		want := before + strings.ReplaceAll(fresh, "\n", style) + after
		if got := b.read("f.txt"); !r.OK || got != want {
			t.Fatalf("%q, want %q: %s", got, want, r.Text)
		}
	})
}

// FuzzEdit: an edit that is refused changes nothing, and one that is made leaves what
// is around the place as it was.
func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\n", "a\nb", "c")
	f.Add("“x”", `"x"`, `"y"`)
	f.Add("1 | a\n", "1 | a", "1 | b")
	f.Add("\xff\xfea\x00", "a", "b")
	f.Fuzz(func(t *testing.T, text, old, fresh string) {
		c := decode([]byte(text))
		for _, r := range ladder(old, fresh) {
			last, count, breaks := 0, 0, newBreaks(c.text)
			n, places := r.find(c.text)
			for p := range places {
				count++
				if p[0] < last || p[1] < p[0] || p[1] > len(c.text) {
					t.Fatalf("%q in %q: %v", old, text, p)
				}
				last = p[1]
				if got := c.text[p[0]:p[1]]; r.note == "" && unix(got) != unix(old) {
					t.Fatalf("%q was found as %q", old, got)
				}
				_ = r.restyled(breaks, p)
			}
			if count != n {
				t.Fatalf("%q in %q: %d places, counted %d", old, text, count, n)
			}
		}
	})
}

// TestUnnumbered: numbers go only where every line has one and they count up.
func TestUnnumbered(t *testing.T) {
	for text, want := range map[string]string{
		"1 | a\n2 | b":     "a\nb",
		" 9 | a\n10 | b\n": "a\nb\n",
		"3\ta\n4\t\tb":     "a\n\tb",
		"5 |\n6 | x":       "\nx",
		"7: a\n8: b":       "a\nb",
	} {
		if got, ok := unnumbered(text); !ok || got != want {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "a", "1 | a\nb", "1 | a\n3 | b", "12", "99999999999999999999999 | a"} {
		if got, ok := unnumbered(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestLearned: what was known of a file is carried over an edit (B1 11.6).
func TestLearned(t *testing.T) {
	b := newRig(t)
	know := func(want workspace.Knowledge) {
		t.Helper()
		if got := b.w.Seen.Know("a.txt", []byte(b.read("a.txt"))); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	text := numberedLines(20)
	b.put("a.txt", text)
	b.patch("*** Update File: a.txt", " line 9", "-line 10", "+line ten", " line 11")
	know(workspace.Partial)
	if now := []byte(b.read("a.txt")); !b.w.Seen.Knows("a.txt", now, 10, 10) || b.w.Seen.Knows("a.txt", now, 1, 1) {
		t.Error("what was written is not what counts as seen")
	}
	b.put("a.txt", text)
	b.call(ReadName, "path", "a.txt", "limit", 12)
	b.patch("*** Update File: a.txt", "-line 10", "+line ten", "+line ten and a half")
	if now := []byte(b.read("a.txt")); !b.w.Seen.Knows("a.txt", now, 1, 11) || b.w.Seen.Knows("a.txt", now, 14, 14) {
		t.Error("what was read before the change is forgotten, or what was not counts")
	}
	b.call(ReadName, "path", "a.txt", "offset", 1)
	b.patch("*** Update File: a.txt", "-line 1", "+LINE 1", "@@", "-line 20", "+LINE 20")
	know(workspace.Fresh)
	b.patch("*** Update File: a.txt", "*** Move to: b.txt", "-LINE 1", "+line 1")
	b.want(b.call(ReadName, "path", "b.txt"), true, "has not changed")
	b.put("a.txt", text)
	know(workspace.Unread)
}

// TestCommon: lines that two contents share are counted as someone would who compares
// them line by line.
func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", "\n", "\r\n"}), 0, 9).Draw(t, name), "")
		}
		before, after := draw("before"), draw("after")
		a, b := lines_(before), lines_(after)
		head, tail := 0, 0
		for head < len(a) && head < len(b) && a[head] == b[head] {
			head++
		}
		for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
			tail++
		}
		if h, l := common(before, after); h != head || l != tail {
			t.Fatalf("%q, %q: %d, %d, want %d, %d", before, after, h, l, head, tail)
		}
	})
}

func lines_(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// TestManyPlaces: a text that stands everywhere costs no more than the file is long.
func TestManyPlaces(t *testing.T) {
	b := newRig(t)
	text := strings.Repeat("x", 1<<20)
	b.put("a.txt", text+"\n")
	b.want(b.call(EditName, "path", "a.txt", "old", "x", "new", "y\n"), false, "stands 1048576 times")
	b.w.Seen.Whole("a.txt", []byte(text+"\n"))
	b.want(b.call(EditName, "path", "a.txt", "old", "x", "new", "y\n", "all", true), true, "1048564 more places")
	b.want(b.call(EditName, "path", "a.txt", "old", "y", "new", strings.Repeat("z", 1000), "all", true), false, "more than the 8388608 bytes")
	b.want(b.call(EditName, "path", "a.txt", "old", strings.Repeat("y\n ", 100000), "new", "z"), false, "is not in a.txt")
}

// TestWrongFileNamed: a text that is in another file is looked for there, and where two
// have it none is named (B1 20.3).
func TestWrongFileNamed(t *testing.T) {
	b := newRig(t)
	b.put("a.py", "x = 1\n")
	b.put("lib/b.py", "def wanted():\r\n    pass\r\n")
	missed := func() string {
		return b.call(EditName, "path", "a.py", "old", "def wanted():\n    pass\n", "new", "y").Text
	}
	if got := missed(); !strings.Contains(got, "It is in lib/b.py") {
		t.Error(got)
	}
	b.put("lib/c.py", "def wanted():\n    pass\n")
	if got := missed(); strings.Contains(got, "lib/") {
		t.Error(got)
	}
}

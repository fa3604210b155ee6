package patch

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
)

// TestGrammar: what each fact of B1 12 says of a patch that is read and resolved.
func TestGrammar(t *testing.T) {
	type set = map[string]string
	up := func(lines ...string) string { return env("*** Update File: f\n" + strings.Join(lines, "\n")) }
	tests := []struct {
		name        string // begins with the number of the fact
		files, want set    // a nil want is a refusal
		patch       string
	}{
		{"12.1 fences and air", set{"f": "a\n"}, set{"f": "b\n"}, "\n\n```\n*** Begin Patch\n\n*** Update File: f\n-a\n+b\n\n*** End Patch\n```\n\n"},
		{"12.1 a marker behind a space is a line of the file", set{"f": "a\n*** End Patch\nb\n"}, set{"f": "a\n*** End Patch\nc\n"}, up(" a", " *** End Patch", "-b", "+c")},
		{"12.1 two envelopes are one patch", set{"f": "a\n"}, set{"f": "c\n"}, up("-a", "+b") + "\n" + up("-b", "+c")},
		{"12.2 add, update, move, delete", set{"f": "a\n", "g": "b\n"}, set{"n": "x\n\ny\n", "h/f": "c\n"}, env("*** Add File: n", "+x", "+", "+y", "*** Update File: f", "*** Move to: h/f", "-a", "+c", "*** Delete File: g")},
		{"12.2 an empty file", set{}, set{"__init__.py": ""}, env("*** Add File: __init__.py")},
		{"12.2 a file of one empty line", set{}, set{"n": "\n"}, env("*** Add File: n", "+")},
		{"12.2 a line that begins with + or stars", set{}, set{"n": "+a\n*** b\n-c\n"}, env("*** Add File: n", "++a", "+*** b", "+-c")},
		{"12.2 an unknown line with stars", set{"f": "a\n"}, nil, up("-a", "*** Sure", "+b")},
		{"12.2 a rename alone", set{"f": "a"}, set{"g": "a"}, env("*** Update File: f", "*** Move to: g")},
		{"12.3 operations", set{"f": "a\n", "g": "b\n"}, set{"f": "c\n", "n": "x\n"}, `{"operations":[{"type":"update","path":"f","diff":"@@\n-a\n+c\n"},{"type":"add_file","path":"n","text":"x"},{"type":"delete","path":"g"}]}`},
		{"12.3 one operation in a call", set{"f": "a\n"}, set{"g/f": "c\n"}, `{"type":"apply_patch_call","call_id":"c","operation":{"type":"update_file","path":"f","diff":"-a\n+c","move_to":"g/f"}}`},
		{"12.3 whole content keeps the file's way", set{"f": Marked.mark() + "a\r\nb\r\n"}, set{"f": Marked.mark() + "x\r\ny\r\nz\r\n"}, `{"type":"update_file","path":"f","content":"x\ny\nz"}`},
		{"12.3 a diff as lines", set{"f": "a\n"}, set{"f": "b\n"}, `{"type":"update_file","path":"f","diff":["@@","-a","+b"]}`},
		{"12.3 the envelope as a diff", set{"f": "a\n"}, set{"f": "b\n"}, `{"type":"update_file","path":"f","diff":"*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch"}`},
		{"12.4 a path is cleaned", set{"d/f": "a\n"}, set{"d/f": "b\n"}, env("*** Update File: ./d//f", "-a", "+b")},
		{"12.4 rooted", set{"f": "a\n"}, nil, env("*** Delete File: /f")},
		{"12.4 drive", set{"f": "a\n"}, nil, env("*** Delete File: C:/f")},
		{"12.4 share", set{"f": "a\n"}, nil, env(`*** Delete File: \\host\share\f`)},
		{"12.4 above", set{"f": "a\n"}, nil, env("*** Update File: f", "*** Move to: d/../../f")},
		{"12.5 the end and the style of a new file", set{}, set{"n": "a\r\nb\r\n"}, strings.ReplaceAll(env("*** Add File: n", "+a", "+b"), "\n", "\r\n")},
		{"12.5 no end in an operation", set{}, set{"n": "a\nb\n"}, `{"type":"create_file","path":"n","content":"a\nb"}`},
		{"12.5 add of a file that exists", set{"f": "a\n"}, nil, env("*** Add File: f", "+b")},
		{"12.6 stacked headers", set{"f": "class A\n def r\n  x\nclass B\n def r\n  x\n"}, set{"f": "class A\n def r\n  x\nclass B\n def r\n  y\n"}, up("@@ class B", "@@  def r", "-  x", "+  y")},
		{"12.6 an empty line is a blank kept one", set{"f": "a\n\nb\n"}, set{"f": "a\n\nc\n"}, up(" a", "", "-b", "+c")},
		{"12.6 a hunk behind the first", set{"f": "a\nb\n"}, nil, up("-a", "*** End of File", "-b")},
		{"12.6 an empty hunk", set{"f": "a\n"}, nil, up("-a", "@@")},
		{"12.7 forward from the last hunk", set{"f": "k\nx\nk\nx\n"}, set{"f": "k\ny\nk\nz\n"}, up("@@ k", "-x", "+y", "@@", "-x", "+z")},
		{"12.7 trimmed", set{"f": "a\n   k\nx\n"}, set{"f": "a\n   k\ny\n"}, up("@@ k", "-x", "+y")},
		{"12.7 behind already", set{"f": "k\na\nb\n"}, set{"f": "k\nA\nB\n"}, up("@@ k", "-a", "+A", "@@ k", "-b", "+B")},
		{"12.7 behind already and ahead as well", set{"f": "k\na\nb\nz\nk\nb\n"}, set{"f": "k\nA\nB\nz\nk\nb\n"}, up("@@ k", "-a", "+A", "@@ k", "-b", "+B")},
		{"12.7 a missing one is passed over", set{"f": "a\nb\n"}, set{"f": "a\nc\n"}, up("@@ nowhere", "-b", "+c")},
		{"12.8 the strictest match first", set{"f": "x \nx\n"}, set{"f": "x \ny\n"}, up("-x", "+y")},
		{"12.8 white space at the end", set{"f": "a \t\n"}, set{"f": "b\n"}, up("-a", "+b")},
		{"12.8 white space around", set{"f": "if a:\n\t\tb\n"}, set{"f": "if a:\n"}, up(" if a:", "-b")},
		{"12.8 the four separators", set{"f": "a\x1c\n"}, set{"f": "b\n"}, up("-a", "+b")},
		{"12.8 the end first", set{"f": "a\nb\na\n"}, set{"f": "a\nb\nc\n"}, up("-a", "+c", "*** End of File")},
		{"12.8 not at the end", set{"f": "a\nb\n"}, set{"f": "c\nb\n"}, up("-a", "+c", "*** End of File")},
		{"12.8 nothing alike is taken", set{"f": "return value\n"}, nil, up("-return values", "+x")},
		{"12.9 the first line is the anchor", set{"f": "k\nx\nb\nk\nx\n"}, set{"f": "k\ny\nb\nk\nx\n"}, up("@@ k", " k", "-x", "+y")},
		{"12.10 the first of several", set{"f": "a\nb\na\n"}, set{"f": "c\nb\na\n"}, up("-a", "+c")},
		{"12.11 overlap", set{"f": "a\nb\nc\n"}, nil, up(" a", "-b", "@@", "-b", " c")},
		{"12.11 kept lines may be shared", set{"f": "a\nb\nc\n"}, set{"f": "A\nb\nC\n"}, up("-a", "+A", " b", "@@", " b", "-c", "+C")},
		{"12.11 wrong order", set{"f": "a\nb\n"}, nil, up("-b", "+B", "@@", "-a", "+A")},
		{"12.11 past the end", set{"f": "a\n"}, nil, up(" a", " b", "-c")},
		{"12.12 numbers are not stripped", set{"f": "a\n"}, nil, up("-1 | a", "+b")},
		{"12.13 later sections see earlier ones", set{"f": "a\n"}, set{"g": "c\n"}, env("*** Update File: f", "*** Move to: g", "-a", "+b", "*** Update File: g", "-b", "+c")},
		{"12.13 a delete and an add are a rewrite", set{"f": "a\n"}, set{"f": "b\n"}, env("*** Delete File: f", "*** Add File: f", "+b")},
		{"12.13 a move to its own path", set{"f": "a\n"}, set{"f": "b\n"}, env("*** Update File: f", "*** Move to: ./f", "-a", "+b")},
		{"12.13 all or nothing", set{"f": "a\n"}, nil, env("*** Update File: f", "-a", "+b", "*** Delete File: g")},
		{"12.13 a swap", set{"f": "a\n", "g": "b\n"}, set{"f": "b\n", "g": "a\n"}, env("*** Update File: f", "*** Move to: t", "*** Update File: g", "*** Move to: f", "*** Update File: t", "*** Move to: g")},
		{"12.13 made and taken away", set{}, set{}, env("*** Add File: n", "+x", "*** Delete File: n")},
		{"12.13 a file becomes a folder", set{"f": "a\n"}, set{"f/g": "b\n"}, env("*** Delete File: f", "*** Add File: f/g", "+b")},
		{"half a pair of UTF-16", set{"f": "\xff\xfea\x00\x00\xd8"}, nil, up("+x", "*** End of File")},
		{"escaped line breaks and another escape", set{"f": "a\n"}, nil, `*** Begin Patch\n*** Update File: f\n-a\n+b = '\t'\n*** End Patch`},
		{"an empty file is filled", set{"f": ""}, set{"f": "a\nb\n"}, up("+a", "+b")},
		{"a file is emptied", set{"f": "a\nb\n"}, set{"f": ""}, up("-a", "-b")},
		{"lines at the end", set{"f": "a\n"}, set{"f": "a\nb\n"}, up("+b", "*** End of File")},
		{"a number decides between places", set{"f": "a\nb\na\n"}, set{"f": "a\nb\nc\n"}, up("@@ -3,1 +3,1 @@", "-a", "+c")},
		{"new lines of a wrongly indented hunk", set{"f": "if a:\n    if b:\n        c\n"}, set{"f": "if a:\n    if b:\n        d\n        if e:\n            f\n"}, up(" if b:", "-    c", "+    d", "+    if e:", "+        f")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, c, err := run(tt.files, tt.patch)
			want := tt.want
			if want == nil {
				want = tt.files
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Errorf("it is not refused: %s", outcome(c, err))
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("files: %s\n%s", diff, outcome(c, err))
			}
		})
	}
}

// TestStyles: the line ends, the mark and the encoding of a file stay (B1 11.9).
func TestStyles(t *testing.T) {
	le := func(s string) string { return string(text{enc: Little}.encode(splitLines(s))) }
	be := func(s string) string { return string(text{enc: Big}.encode(splitLines(s))) }
	change := []string{" b", "-c", "+C1", "+C2", " d"}
	tests := []struct{ name, before, after string }{
		{"LF", "a\nb\nc\nd\n", "a\nb\nC1\nC2\nd\n"},
		{"CRLF", "a\r\nb\r\nc\r\nd\r\n", "a\r\nb\r\nC1\r\nC2\r\nd\r\n"},
		{"mixed", "a\r\nb\nc\r\nd\n", "a\r\nb\nC1\r\nC2\r\nd\n"},
		{"no end", "b\nc\nd", "b\nC1\nC2\nd"},
		{"UTF-8 mark", Marked.mark() + "b\nc\nd\n", Marked.mark() + "b\nC1\nC2\nd\n"},
		{"UTF-16 little", le("b\r\nc\r\nd \U0001f600"), le("b\r\nC1\r\nC2\r\nd \U0001f600")},
		{"UTF-16 big", be("\u00e9\nb\nc\nd\n"), be("\u00e9\nb\nC1\nC2\nd\n")},
		{"Latin-1 and binary", "\xe9\x00\xff\nb\nc\nd\n\xfe\r", "\xe9\x00\xff\nb\nC1\nC2\nd\n\xfe\r"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines := change
			if strings.Contains(tt.name, "little") {
				lines = change[:4] // its last line differs
			}
			got, c, err := run(map[string]string{"f": tt.before}, env("*** Update File: f\n"+strings.Join(lines, "\n")))
			if diff := cmp.Diff(tt.after, got["f"]); diff != "" || err != nil {
				t.Errorf("%s\n%s", diff, outcome(c, err))
			}
		})
	}
	// A line that takes the place of another ends as that one did.
	if got, _, err := run(map[string]string{"f": "a\r\nb\nc\r\n"}, env("*** Update File: f\n-a\n-b\n+A\n+B")); got["f"] != "A\r\nB\nc\r\n" {
		t.Errorf("%q, %v", got["f"], err)
	}
	// The last line of a file without an end may change and have others below.
	for patch, want := range map[string]string{
		"-a\n-b\n+A\n+B":               "A\nB",
		"-b\n+B":                       "a\nB",
		" b\n+c":                       "a\nb\nc",
		"-b":                           "a",
		"+c\n*** End of File":          "a\nb\nc",
		"-b\n+B\n\\ No newline at end": "",
	} {
		got, _, err := run(map[string]string{"f": "a\nb"}, env("*** Update File: f\n"+patch))
		if want == "" && err == nil || want != "" && got["f"] != want {
			t.Errorf("%q: %q, %v", patch, got["f"], err)
		}
	}
}

// TestModes: a rename and a rewrite keep a file's mode, a new file has the usual
// one.
func TestModes(t *testing.T) {
	d := newDisk(map[string]string{"run.sh": "a\n", "b": "b\n"})
	d.files["run.sh"] = File{Data: []byte("a\n"), Mode: 0o755}
	d.files["b"] = File{Data: []byte("b\n"), Mode: 0o600}
	p, err := Parse(env("*** Update File: run.sh", "*** Move to: bin/run.sh", "-a", "+c", "*** Delete File: b", "*** Add File: b", "+d", "*** Add File: n", "+x"), guard.Clean, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := apply(d, p); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"bin/run.sh": 0o755, "b": 0o600, "n": 0o644} {
		if got := d.files[name].Mode; got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
}

// TestChanges: what a caller learns of each file, also where sections compose.
func TestChanges(t *testing.T) {
	files := map[string]string{"a": "1\n", "b": "2\n", "c": "3\n", "d": "4\n", "e": "5\n"}
	patch := env("*** Update File: a", "-1", "+one", "*** Update File: a", "*** Move to: n/a", " one", "+more",
		"*** Delete File: b", "*** Add File: new", "+x", "+y", "*** Update File: c", " 3",
		"*** Delete File: d", "*** Add File: d", "+four", "+five", "*** Update File: e", "-  5", "+  6")
	_, c, err := run(files, patch)
	if err != nil {
		t.Fatal(err)
	}
	f := func(s string) File {
		if s == "" {
			return File{}
		}
		return File{Data: []byte(s), Mode: 0o644}
	}
	want := []FileChange{
		{Path: "n/a", From: "a", Kind: Update, Before: f("1\n"), After: f("one\nmore\n"), Added: 2, Deleted: 1},
		{Path: "b", Kind: Delete, Before: f("2\n"), Deleted: 1},
		{Path: "new", Kind: Add, After: f("x\ny\n"), Added: 2},
		{Path: "c", Kind: Update, Before: f("3\n"), After: f("3\n")},
		{Path: "d", Kind: Update, Before: f("4\n"), After: f("four\nfive\n"), Added: 2, Deleted: 1},
		{Path: "e", Kind: Update, Before: f("5\n"), After: f("6\n"), Added: 1, Deleted: 1, Fuzz: 100},
	}
	if diff := cmp.Diff(want, c.Files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "d", "e", "n/a", "new"}, c.Paths()); diff != "" {
		t.Error(diff)
	}
	if len(c.Notes) != 1 {
		t.Errorf("notes: %q", c.Notes)
	}
}

// TestFuzz: what each rung costs (B1 12.8).
func TestFuzz(t *testing.T) {
	for patch, want := range map[string]int{
		"-a": 0, "-b": 1, "-c": 100, "-a\n*** End of File": 10000, "@@ b\n-    c": 1, "@@  c\n-d": 1, "-c\n*** End of File": 10100,
	} {
		_, c, err := run(map[string]string{"f": "a\nb \n    c\nd\n"}, env("*** Update File: f\n"+patch))
		if err != nil {
			t.Errorf("%q: %v", patch, err)
			continue
		}
		if got := c.Files[0].Fuzz; got != want {
			t.Errorf("%q costs %d, want %d", patch, got, want)
		}
	}
}

// TestOperations: the form of a Responses call (B1 12.3).
func TestOperations(t *testing.T) {
	tests := []struct {
		op    string
		files map[string]string
		want  map[string]string // nil: refused
	}{
		{`{"type":"update_file","path":"f","diff":"@@ k\n-a\n+b\n"}`, map[string]string{"f": "k\na\n"}, map[string]string{"f": "k\nb\n"}},
		{`{"type":"update_file","path":"f","diff":"-a\n+b\n*** End of File\n"}`, map[string]string{"f": "a\na\n"}, map[string]string{"f": "a\nb\n"}},
		{`{"type":"update_file","path":"f","move_to":"g"}`, map[string]string{"f": "a\n"}, map[string]string{"g": "a\n"}},
		{`{"type":"create_file","path":"f","diff":"+a\n+\n+b\n"}`, nil, map[string]string{"f": "a\n\nb\n"}},
		{`{"type":"create_file","path":"f","diff":""}`, nil, map[string]string{"f": ""}},
		{`{"type":"delete_file","path":"f"}`, map[string]string{"f": "a\n"}, map[string]string{}},
		{`{"type":"update_file","path":"f"}`, map[string]string{"f": "a\n"}, nil},
		{`{"type":"update_file","path":"../f","diff":"-a"}`, map[string]string{"f": "a\n"}, nil},
		{`{"type":"delete_file","path":"f","diff":"-a"}`, map[string]string{"f": "a\n"}, nil},
		{`{"type":"create_file","path":"f","move_to":"g","diff":"+a"}`, nil, nil},
	}
	for _, tt := range tests {
		d := newDisk(tt.files)
		p, err := Parse(tt.op, guard.Clean, Limits{})
		if err == nil {
			_, _, err = apply(d, p)
		}
		if (err != nil) != (tt.want == nil) {
			t.Errorf("%s: %v", tt.op, err)
		}
		if diff := cmp.Diff(tt.want, d.texts()); tt.want != nil && diff != "" {
			t.Errorf("%s: %s", tt.op, diff)
		}
	}
}

// TestReasons: a caller finds out what a refusal is about.
func TestReasons(t *testing.T) {
	files := map[string]string{"f": "a\n"}
	for patch, want := range map[string]error{
		env("*** Add File: f", "+x"):  fs.ErrExist,
		env("*** Delete File: g"):     fs.ErrNotExist,
		env("*** Delete File: ../g"):  guard.ErrParent,
		env("*** Delete File: /g"):    guard.ErrAbsolute,
		env("*** Delete File: a\\b"):  guard.ErrBackslash,
		env("*** Delete File: a", ""): fs.ErrNotExist,
	} {
		if _, _, err := run(files, patch); !errors.Is(err, want) {
			t.Errorf("%q: %v is not %v", patch, err, want)
		}
	}
	_, _, err := run(files, env("*** Update File: f", "@@", "-b"))
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Faults[0].Path != "f" || e.Faults[0].Line != 3 {
		t.Errorf("%#v", err)
	}
}

// TestViewErrors: what is wrong with the host's files is not the model's mistake.
func TestViewErrors(t *testing.T) {
	p, err := Parse(env("*** Delete File: f"), guard.Clean, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Resolve(context.Background(), broken{}, Limits{})
	if _, ok := errors.AsType[*Error](err); ok || !errors.Is(err, errDisk) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Resolve(ctx, newDisk(nil), Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// broken is a view that cannot read.
type broken struct{}

func (broken) Read(string) (File, error) { return File{}, errDisk }
func (broken) Near(string) string        { return "" }

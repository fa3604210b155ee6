package skill

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const canary = "canary: these bytes lie outside the skill"

func one(t testing.TB, files map[string]string) Skill {
	t.Helper()
	s := load(t, Options{Roots: []Root{{Dir: write(t, files)}}})
	if len(s.Skills()) != 1 {
		t.Fatalf("skills %v, errors %v", names(s), s.Errors())
	}
	return s.Skills()[0]
}

func TestFiles(t *testing.T) {
	k := one(t, map[string]string{
		"pdf/SKILL.md":            manifest("pdf"),
		"pdf/scripts/run":         "x",
		"pdf/python/tool.PY":      "x",
		"pdf/references/a.txt":    "x",
		"pdf/reference/b.bin":     "\x00",
		"pdf/docs/guide.md":       "x",
		"pdf/assets/t.md":         "x",
		"pdf/logo.png":            "\x89PNG\xff",
		"pdf/LICENSE.txt":         "x",
		"pdf/SKILL.md.bak/x.json": "{}",
		"pdf/deep/SKILL.md":       "x",
		"pdf/.git/config":         "token",
		"pdf/node_modules/n/i.js": "x",
		"pdf/linked.md":           "-> docs/guide.md",
		"pdf/folder":              "-> docs",
		"pdf/out":                 "-> ../..",
		"pdf/sneaky":              "-> .git/config",
		"pdf/sneaky2":             "-> .git",
		"pdf/bad ":                "x",
	})
	got := map[string]Kind{}
	for _, f := range k.Files {
		got[f.Path] = f.Kind
		if f.Text == (f.Path == "logo.png" || f.Path == "reference/b.bin") {
			t.Errorf("%s: text is %v", f.Path, f.Text)
		}
	}
	want := map[string]Kind{
		"SKILL.md": KindManifest, "scripts/run": KindScript, "python/tool.PY": KindScript,
		"references/a.txt": KindReference, "reference/b.bin": KindReference, "docs/guide.md": KindReference,
		"assets/t.md": KindAsset, "logo.png": KindAsset, "LICENSE.txt": KindOther, "SKILL.md.bak/x.json": KindOther,
		"deep/SKILL.md": KindReference, "linked.md": KindReference,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var warnings []string
	for _, w := range k.Warnings {
		warnings = append(warnings, w.String())
	}
	if diff := cmp.Diff([]string{
		`file "bad " is left out: a folder or file name that ends in a dot or a space is refused: write the name without it`,
		`file "out" is left out: a link on this path leads out of the folder and is not followed`,
		`file "sneaky" is left out: it is a link to what is not part of the skill`,
		`file "sneaky2" is left out: it is a link to what is not part of the skill`,
	}, warnings); diff != "" {
		t.Error(diff)
	}
	if k.BodyBytes != int64(len("Do pdf.")) || k.Modified.IsZero() || time.Since(k.Modified) < 0 || k.Bytes != sum(k.Files)-int64(len("x")) {
		t.Errorf("body %d, modified %v, bytes %d", k.BodyBytes, k.Modified, k.Bytes)
	}
}

func sum(files []File) (n int64) {
	for _, f := range files {
		n += f.Bytes
	}
	return n
}

func TestRead(t *testing.T) {
	k := one(t, map[string]string{
		"outside.md":          canary,
		"pdf/SKILL.md":        manifest("pdf"),
		"pdf/docs/guide.md":   "héllo wörld",
		"pdf/empty.md":        "",
		"pdf/logo.png":        "\x89PNG",
		"pdf/linked.md":       "-> docs/guide.md",
		"pdf/folder":          "-> docs",
		"pdf/round":           "-> round2",
		"pdf/round2":          "-> round",
		"pdf/out.md":          "-> ../outside.md",
		"pdf/.git/config":     "token",
		"pdf/sneaky":          "-> .git/config",
		"other/README.md":     "no skill",
		"pdf/docs/sub/one.md": "x",
	})
	tests := []struct {
		path          string
		offset, limit int64
		want          Page
		err           error
	}{
		{"docs/guide.md", 0, 0, Page{Path: "docs/guide.md", Text: "héllo wörld", Next: 13, Total: 13}, nil},
		{"./docs//guide.md", 0, 3, Page{Path: "docs/guide.md", Text: "hé", Next: 3, Total: 13}, nil},
		{"docs/guide.md", 0, 2, Page{Path: "docs/guide.md", Text: "h", Next: 1, Total: 13}, nil},
		{"docs/guide.md", 1, 1, Page{Path: "docs/guide.md", Text: "é", Offset: 1, Next: 3, Total: 13}, nil},
		{"docs/guide.md", 2, 2, Page{Path: "docs/guide.md", Text: "l", Offset: 3, Next: 4, Total: 13}, nil},
		{"docs/guide.md", 13, 5, Page{Path: "docs/guide.md", Offset: 13, Next: 13, Total: 13}, nil},
		{"linked.md", 0, 1, Page{Path: "docs/guide.md", Text: "h", Next: 1, Total: 13}, nil},
		{"folder/guide.md", 0, 1, Page{Path: "docs/guide.md", Text: "h", Next: 1, Total: 13}, nil},
		{"empty.md", 0, 10, Page{Path: "empty.md"}, nil},
		{"logo.png", 0, 10, Page{Path: "logo.png", Binary: true, Total: 4}, nil},
		{"docs/guide.md", 14, 1, Page{}, ErrOffset},
		{"docs/guide.md", -1, 1, Page{}, ErrOffset},
		{"docs", 0, 1, Page{}, ErrFolder},
		{"folder", 0, 1, Page{}, ErrFolder},
		{"folder/sub", 0, 1, Page{}, ErrFolder},
		{".", 0, 1, Page{}, ErrFolder},
		{"gone.md", 0, 1, Page{}, ErrNoFile},
		{"skill.md", 0, 1, Page{}, ErrNoFile},
		{"round", 0, 1, Page{}, ErrNoFile},
		{"out.md", 0, 1, Page{}, ErrNoFile},
		{".git/config", 0, 1, Page{}, ErrNoFile},
		{"sneaky", 0, 1, Page{}, ErrNoFile},
		{"../outside.md", 0, 1, Page{}, ErrPath},
		{"docs/../SKILL.md", 0, 1, Page{}, ErrPath},
		{"/etc/passwd", 0, 1, Page{}, ErrPath},
		{"~/x", 0, 1, Page{}, ErrPath},
		{"", 0, 1, Page{}, ErrPath},
	}
	for _, tt := range tests {
		got, err := k.Read(t.Context(), tt.path, tt.offset, tt.limit)
		if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
			t.Errorf("Read(%q, %d, %d): %v\n%s", tt.path, tt.offset, tt.limit, err, diff)
		}
		if e, ok := errors.AsType[*ReadError](err); ok != (tt.err != nil) || ok && (e.Skill != "pdf" || strings.Contains(e.Error(), k.Dir())) {
			t.Errorf("Read(%q): error %v", tt.path, err)
		}
	}
	if got := len(k.Folder("folder/")); got != 2 {
		t.Errorf("Folder of a link to a folder has %d files", got)
	}
}

// TestPagesOfUsualSize: the pages that a model gets, of a file in a script of
// three bytes a character, which no page size fits.
func TestPagesOfUsualSize(t *testing.T) {
	const page = 48 << 10
	text := "x" + strings.Repeat("数", 2*page/3) + "\n"
	k := one(t, map[string]string{"pdf/SKILL.md": manifest("pdf"), "pdf/long.md": text})
	var all strings.Builder
	var sizes []int64
	for p := (Page{Next: 0, Total: 1}); p.More(); {
		var err error
		p, err = k.Read(t.Context(), "long.md", p.Next, page)
		if err != nil || !utf8.ValidString(p.Text) || int64(len(p.Text)) != p.Next-p.Offset {
			t.Fatalf("%v, a page from %d to %d of %d bytes", err, p.Offset, p.Next, len(p.Text))
		}
		all.WriteString(p.Text)
		sizes = append(sizes, p.Next-p.Offset)
	}
	if diff := cmp.Diff([]int64{page - 2, page, 4}, sizes); diff != "" || all.String() != text {
		t.Errorf("pages: %s", diff)
	}
}

func TestReadOfAChangedFolder(t *testing.T) {
	k := one(t, map[string]string{"outside.md": canary, "pdf/SKILL.md": manifest("pdf"), "pdf/a.md": "a", "pdf/b.md": "b", "pdf/c.md": "c"})
	in := func(name string) string { return filepath.Join(k.Dir(), name) }
	for _, name := range []string{"a.md", "b.md"} {
		if err := os.Remove(in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside.md", in("b.md")); err != nil {
		t.Skip(err)
	}
	if _, err := k.Read(t.Context(), "a.md", 0, 0); !errors.Is(err, ErrNoFile) {
		t.Errorf("a file that is gone: %v", err)
	}
	if p, err := k.Read(t.Context(), "b.md", 0, 0); !errors.Is(err, ErrPath) {
		t.Errorf("a file that became a link out: %+v, %v", p, err)
	}
	if err := os.WriteFile(in("c.md"), []byte("c\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := k.Read(t.Context(), "c.md", 0, 0); err != nil || !p.Binary || p.Text != "" {
		t.Errorf("a file that became binary: %+v, %v", p, err)
	}
	if err := os.WriteFile(in("SKILL.md"), []byte("# gone"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Body(t.Context()); err == nil {
		t.Error("Body of a manifest without front matter")
	}
}

func TestBody(t *testing.T) {
	text := strings.Replace(manifest("pdf"), "---\n\nDo pdf.\n", "---\r\n \n\n  Do pdf.\n---\nmore\n\n", 1)
	k := one(t, map[string]string{"pdf/docs/SKILL.md": text, "pdf/SKILL.md": "-> docs/SKILL.md"})
	body, err := k.Body(t.Context())
	if want := "  Do pdf.\n---\nmore"; err != nil || body != want || k.BodyBytes != int64(len(want)) {
		t.Errorf("body %q of %d bytes, %v", body, k.BodyBytes, err)
	}
	if _, err := (Skill{Manifest: Manifest{Name: "x"}}).Body(t.Context()); err == nil {
		t.Error("a skill that was not loaded has a body")
	}
}

func TestIsText(t *testing.T) {
	tests := []struct {
		text        string
		whole, want bool
	}{
		{"", true, true},
		{"héé€😀", true, true},
		{"a\x00", true, false},
		{"a\xff", true, false},
		{"a\xe2\x82", true, false},
		{"a\xe2\x82", false, true}, // the rest of € may follow
		{"a\xf0\x9f\x98", false, true},
		{"\xe2", false, true},
		{"a\xff", false, false},
		{"a\x80\x80\x80\x80", false, false},
		{"\xe2\x82a", false, false},
		{"a\x00", false, false},
	}
	for _, tt := range tests {
		if got := isText([]byte(tt.text), tt.whole); got != tt.want {
			t.Errorf("isText(%q, %v) = %v", tt.text, tt.whole, got)
		}
	}
}

// FuzzPages: pages put together are the file, and none splits a character.
func FuzzPages(f *testing.F) {
	f.Add("héllo wörld 😀", int64(1))
	f.Add("\u20ac\u20ac\u20ac", int64(2))
	f.Add("a\xffb\xe2\x82", int64(3))
	f.Add("\x80\x80\x80\x80\x80\x80", int64(1))
	f.Fuzz(func(t *testing.T, text string, limit int64) {
		if limit < 1 || strings.Contains(text, "\x00") || len(text) > 1<<12 {
			return
		}
		var all, raw strings.Builder
		for at := int64(0); at < int64(len(text)); {
			p := Page{Offset: at, Total: int64(len(text))}
			if err := p.fill(strings.NewReader(text), min(limit, p.Total-at)); err != nil {
				t.Fatal(err)
			}
			if p.Next <= at || p.Next-at > max(limit, utf8.UTFMax) && p.Offset == at {
				t.Fatalf("page %+v of %q with limit %d", p, text, limit)
			}
			if utf8.ValidString(text) && p.Text != text[p.Offset:p.Next] {
				t.Fatalf("page %+v is not %q", p, text[p.Offset:p.Next])
			}
			all.WriteString(p.Text)
			raw.WriteString(text[p.Offset:p.Next])
			at = p.Next
		}
		if utf8.ValidString(text) && all.String() != text {
			t.Errorf("pages of %d bytes make %q of %q", limit, all.String(), text)
		}
	})
}

package validate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/skill"
)

// codes are severity, field, code and place of each finding.
func codes(r Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		s := string(f.Severity) + " " + f.Field + " " + f.Code
		if f.File != "" {
			s += " " + f.File
		}
		if f.Line > 0 {
			s += fmt.Sprintf(":%d:%d", f.Line, f.Column)
		}
		out = append(out, s)
	}
	return out
}

const fine = "---\nname: pdf\ndescription: Fill in PDF forms. Use when the user has a form.\n---\nBody\n"

func TestLoaderVerdict(t *testing.T) {
	tests := []struct {
		test, dir string
		files     map[string]string
		want      []string
		name      string
	}{
		{"valid", "pdf", map[string]string{"SKILL.md": fine}, []string{}, "pdf"},
		{"mended", "Odd", map[string]string{"SKILL.md": "---\nname: PDF Tool\ndescription: d\nmetadata: x\n---\n"}, []string{
			"warning metadata metadata-not-strings SKILL.md:4:11", "warning name name-normalised SKILL.md:2:7", "warning name name-differs SKILL.md:2:7",
		}, "pdf-tool"},
		{"no description", "pdf", map[string]string{"SKILL.md": "---\nname: pdf\n---\n"}, []string{"error (manifest) manifest-invalid SKILL.md:1:0"}, ""},
		{"no front matter", "pdf", map[string]string{"SKILL.md": "x"}, []string{"error (manifest) manifest-invalid SKILL.md:1:0"}, ""},
		{"lower case", "pdf", map[string]string{"skill.md": fine}, []string{"error (manifest) manifest-name skill.md"}, ""},
		{"nothing", "pdf", map[string]string{"a/SKILL.md": fine}, []string{"error (manifest) manifest-missing"}, ""},
		{"unknown keys and lists pass", "pdf", map[string]string{"SKILL.md": "---\nname: pdf\ndescription: d\nmodel: x\nallowed-tools: [A]\n---\n"}, []string{}, "pdf"},
	}
	for _, tt := range tests {
		r := Check(t.Context(), folder(t, tt.dir, tt.files), Metier)
		if diff := cmp.Diff(tt.want, codes(r)); diff != "" {
			t.Errorf("%s: %s\n%v", tt.test, diff, r.Findings)
		}
		if r.Name != tt.name {
			t.Errorf("%s: name %q, want %q", tt.test, r.Name, tt.name)
		}
	}
}

func TestVendors(t *testing.T) {
	head := func(lines ...string) map[string]string { return map[string]string{"SKILL.md": manifestOf(lines...)} }
	tests := []struct {
		test, dir string
		files     map[string]string
		want      map[Target][]string
	}{
		{"unknown key", "pdf", head("name: pdf", "description: d", "zeta: 1", "model: x"), map[Target][]string{
			OpenAI:    {"error (front matter) field-unexpected SKILL.md:4:1"},
			Anthropic: {"error (front matter) field-unexpected SKILL.md:4:1"},
		}},
		{"reserved word", "my-claude-tool", head("name: my-claude-tool", "description: d"), map[Target][]string{
			Anthropic: {"error name name-reserved SKILL.md:2:7"},
		}},
		{"tags", "pdf", head("name: pdf", "description: Use <foo> when 1 < 2 and 3 > 2"), map[Target][]string{
			Anthropic: {"error description xml-tag SKILL.md:3:14"},
		}},
		{"less and more", "pdf", head("name: pdf", "description: if a <b and c> d"), map[Target][]string{
			Anthropic: {"error description xml-tag SKILL.md:3:14"},
		}},
		{"comparison", "pdf", head("name: pdf", "description: if 1 < 2, 3 > 2"), nil},
		{"unicode name", "навык", head("name: навык", "description: d"), map[Target][]string{
			Anthropic: {"error name name-characters SKILL.md:2:7"},
		}},
		{"folder differs", "other", head("name: pdf", "description: d"), map[Target][]string{
			OpenAI:    {"error name name-differs SKILL.md:2:7"},
			Anthropic: {"error name name-differs SKILL.md:2:7"},
			WellKnown: {"error name name-differs SKILL.md:2:7"},
		}},
		{"flow style is YAML", "pdf", head("name: pdf", "description: d", "allowed-tools: [A, B]"), nil},
		{"lower-case manifest", "pdf", map[string]string{"skill.md": fine}, map[Target][]string{
			Anthropic: {"error (manifest) manifest-name skill.md"},
			WellKnown: {"error (manifest) manifest-name skill.md"},
		}},
		{"a second manifest", "pdf", map[string]string{"SKILL.md": fine, "sub/skill.MD": "x"}, map[Target][]string{
			OpenAI: {"error (files) manifest-count"},
		}},
		{"long", "pdf", head("name: pdf", "description: "+strings.Repeat("x", 1025), "compatibility: "+strings.Repeat("x", 501)), map[Target][]string{
			OpenAI:    {"error description too-long SKILL.md:3:14", "error compatibility too-long SKILL.md:4:16"},
			Anthropic: {"error description too-long SKILL.md:3:14", "error compatibility too-long SKILL.md:4:16"},
			WellKnown: {"error description too-long SKILL.md:3:14", "error compatibility too-long SKILL.md:4:16"},
		}},
		{"all name rules", "x", head("name: -A--"+strings.Repeat("b", 64), "description: ''"), map[Target][]string{
			OpenAI: {
				"error name name-too-long SKILL.md:2:7", "error name name-not-lowercase SKILL.md:2:7", "error name name-edge-hyphen SKILL.md:2:7",
				"error name name-double-hyphen SKILL.md:2:7", "error name name-differs SKILL.md:2:7", "error description field-empty SKILL.md:3:14",
			},
			Anthropic: {
				"error name name-too-long SKILL.md:2:7", "error name name-characters SKILL.md:2:7", "error name name-edge-hyphen SKILL.md:2:7",
				"error name name-double-hyphen SKILL.md:2:7", "error name name-differs SKILL.md:2:7", "error description field-empty SKILL.md:3:14",
			},
			WellKnown: {
				"error name name-too-long SKILL.md:2:7", "error name name-not-lowercase SKILL.md:2:7", "error name name-edge-hyphen SKILL.md:2:7",
				"error name name-double-hyphen SKILL.md:2:7", "error name name-differs SKILL.md:2:7", "error description field-empty SKILL.md:3:14",
			},
		}},
	}
	for _, tt := range tests {
		dir := folder(t, tt.dir, tt.files)
		for _, target := range []Target{OpenAI, Anthropic, WellKnown} {
			want := append([]string{}, tt.want[target]...)
			if diff := cmp.Diff(want, codes(Check(t.Context(), dir, target))); diff != "" {
				t.Errorf("%s, %s: %s", tt.test, target, diff)
			}
		}
	}
}

// TestVendorTexts are the texts that tools look for (skills-apis 2.2).
func TestVendorTexts(t *testing.T) {
	dir := folder(t, "a", map[string]string{"SKILL.md": manifestOf("name: b", "description: d", "x: 1")})
	got := strings.Join(messages(Check(t.Context(), dir, Anthropic).Findings), "\n")
	for _, want := range []string{
		"Unexpected key(s) in SKILL.md frontmatter: x", "The folder name 'a' must match the skill name 'b' in SKILL.md.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

// sparse makes a file of a size that takes no room.
func sparse(t *testing.T, dir, name string, size int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	check(t, err)
	check(t, f.Truncate(size))
	check(t, f.Close())
}

func TestVendorSizes(t *testing.T) {
	many := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	for i := range 500 {
		sparse(t, many, fmt.Sprintf("f%03d", i), 0)
	}
	big := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	sparse(t, big, "big", 25*mib+1)
	edge := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	sparse(t, edge, "a", 25*mib)
	sparse(t, edge, "b", 5*mib-int64(len(fine)))
	over := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	sparse(t, over, "a", 25*mib)
	sparse(t, over, "b", 5*mib-int64(len(fine))+1)
	tests := []struct {
		test, dir string
		target    Target
		want      []string
	}{
		{"501 files", many, OpenAI, []string{"error (files) too-many-files"}},
		{"501 files", many, Anthropic, []string{}},
		{"501 files", many, WellKnown, []string{}},
		{"a big file", big, OpenAI, []string{"error (files) file-too-large big"}},
		{"30 MB", edge, OpenAI, []string{}},
		{"30 MB", edge, Anthropic, []string{}},
		{"30 MB and a byte", over, Anthropic, []string{"error (files) skill-too-large"}},
		{"30 MB and a byte", over, WellKnown, []string{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, codes(Check(t.Context(), tt.dir, tt.target))); diff != "" {
			t.Errorf("%s, %s: %s", tt.test, tt.target, diff)
		}
	}
	small := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	root, err := guard.OpenRoot(small)
	check(t, err)
	defer root.Close()
	for most, want := range map[int64]int{10: 1, 1000: 0} {
		c := checker{root: root, target: OpenAI}
		c.archive(t.Context(), bounds{who: "X", archive: most}, []item{{path: "SKILL.md", size: int64(len(fine))}})
		if len(c.findings) != want {
			t.Errorf("a zip of at most %d bytes: %v", most, c.findings)
		}
	}
	c := checker{root: nil, target: OpenAI}
	c.sizes(bounds{who: "X", total: 1, file: 1, files: 1}, []item{{path: "a", size: 2}, {path: "b", size: 1}})
	if len(c.findings) != 3 {
		t.Errorf("got %v", c.findings)
	}
}

func TestLinksInFolder(t *testing.T) {
	dir := folder(t, "pdf", map[string]string{"SKILL.md": fine, "references/a.md": "a"})
	if err := os.Symlink("references", filepath.Join(dir, "refs")); err != nil {
		t.Skipf("this host makes no symbolic links: %v", err)
	}
	check(t, os.Symlink(filepath.Join(t.TempDir()), filepath.Join(dir, "out")))
	check(t, os.Symlink("references/a.md", filepath.Join(dir, "alias.md")))
	if diff := cmp.Diff([]string{"warning (files) file-left-out"}, codes(Check(t.Context(), dir, Metier))); diff != "" {
		t.Error(diff)
	}
	r := Check(t.Context(), dir, OpenAI)
	want := []string{"error (files) file-left-out out", "error (files) file-left-out refs"}
	if diff := cmp.Diff(want, codes(r)); diff != "" {
		t.Errorf("%s\n%v", diff, r.Findings)
	}
	if strings.Contains(r.Findings[0].Message, filepath.Dir(dir)) {
		t.Errorf("the message tells where the link leads: %s", r.Findings[0].Message)
	}
	check(t, os.Remove(filepath.Join(dir, "SKILL.md")))
	check(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "SKILL.md"), []byte(fine), 0o644))
	check(t, os.Symlink("../SKILL.md", filepath.Join(dir, "SKILL.md")))
	for _, target := range Targets() {
		if r := Check(t.Context(), dir, target); r.Valid() || r.Findings[0].Code != CodeUnreadable {
			t.Errorf("%s: a manifest outside of the folder: %v", target, r.Findings)
		}
	}
}

func TestCheckAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "all")
	write(t, dir, map[string]string{"pdf/SKILL.md": fine, "more/pdf/SKILL.md": fine, "bad/SKILL.md": "x", "notes/a.md": "x"})
	var got []string
	for _, r := range CheckAll(t.Context(), dir, Metier) {
		got = append(got, fmt.Sprintf("%s %v %v", strings.TrimPrefix(filepath.ToSlash(r.Path), filepath.ToSlash(dir)+"/"), r.Valid(), codes(r)))
	}
	want := []string{
		"bad false [error (manifest) manifest-invalid SKILL.md:1:0]",
		"more/pdf false [error name name-clash]",
		"pdf true []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, r := range CheckAll(t.Context(), filepath.Join(dir, "notes"), Metier) {
		if r.Findings[0].Code != CodeNoManifest {
			t.Errorf("a folder without skills: %v", r.Findings)
		}
	}
	for _, target := range []Target{OpenAI, Anthropic} {
		for _, r := range CheckAll(t.Context(), filepath.Join(dir, "more"), target) {
			if !r.Valid() {
				t.Errorf("%s: %v", target, r.Findings)
			}
		}
	}
	if r := CheckAll(t.Context(), dir, Spec); len(r) != 1 || r[0].Findings[0].Message != "Missing required file: SKILL.md" {
		t.Errorf("spec: %v", r)
	}
	got = nil
	for _, r := range CheckAll(t.Context(), dir, Spec, OpenAI) {
		got = append(got, fmt.Sprintf("%s %s %v", strings.TrimPrefix(filepath.ToSlash(r.Path), filepath.ToSlash(dir)+"/"), r.Target, r.Valid()))
	}
	want = []string{"bad spec false", "bad openai false", "more/pdf spec true", "more/pdf openai true", "pdf spec true", "pdf openai true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := CheckAll(t.Context(), filepath.Join(dir, "gone"), Metier); len(r) != 1 || r[0].Findings[0].Code != CodePath {
		t.Errorf("missing: %v", r)
	}
}

func TestCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	dir := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	for _, target := range Targets() {
		if r := Check(ctx, dir, target); r.Valid() {
			t.Errorf("%s: a check that was broken off says valid", target)
		}
	}
}

func TestFindingString(t *testing.T) {
	for want, f := range map[string]Finding{
		"m":                   {Message: "m"},
		"line 3: m":           {Message: "m", Line: 3},
		"line 3, column 2: m": {Message: "m", Line: 3, Column: 2},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCorpus runs over a folder of published skills: 18 load, and two have a
// warning each.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("METIER_CORPUS")
	if dir == "" {
		t.Skip("METIER_CORPUS names no folder of skills")
	}
	reports := CheckAll(t.Context(), dir, Metier)
	var warnings []string
	for _, r := range reports {
		if !r.Valid() {
			t.Errorf("%s: %v", r.Path, r.Of(Error))
		}
		for _, w := range r.Of(Warning) {
			warnings = append(warnings, w.Code)
		}
	}
	if len(reports) != 18 {
		t.Errorf("%d skills, want 18", len(reports))
	}
	if diff := cmp.Diff([]string{skill.WarnDescriptionLong, skill.WarnNameDiffers}, warnings); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: no text brings the reader down, the strict reading takes nothing
// that the plain one refuses, and places lie inside of the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{fine, "---\n---", "---\na: [b\n---\n", "---\na: &x 1\nb: *x\n---\n", "---\r\nname: x\r\n---\r\n[a](b.md)", "\ufeff---\n", "---\n? [a]\n: b\n---", "---\na: !!str b\n---\n```\n[x](y)\n```"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, p := parse(data, true)
		plain, q := parse(data, false)
		if p == nil && q != nil {
			t.Errorf("strict reads what plain refuses: %v", q)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, x := range []*problem{p, q} {
			if x != nil && (x.line < 1 || x.line > lines+1) {
				t.Errorf("line %d of %d: %s", x.line, lines, x.message)
			}
		}
		if p == nil && h.body > len(data) || q == nil && plain.bodyLine > lines+1 {
			t.Errorf("the body begins at %d of %d, line %d of %d", h.body, len(data), plain.bodyLine, lines)
		}
		_, _ = plain.properties() // must not panic
		for _, l := range links(string(data)) {
			if l.line >= lines || l.column < 1 || l.target == "" {
				t.Errorf("link %+v", l)
			}
		}
	})
}

package skill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write makes files below a new directory: a path to its content. A content
// that starts with "-> " is a link.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(target, at); err != nil {
				t.Skipf("this host makes no symbolic links: %v", err)
			}
			continue
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func manifest(name string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: About %s.\n---\n\nDo %s.\n", name, name, name)
}

func load(t testing.TB, o Options) *Snapshot {
	t.Helper()
	s, err := Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Snapshot) []string {
	var out []string
	for _, k := range s.Skills() {
		out = append(out, k.Name)
	}
	return out
}

func failures(s *Snapshot, dir string) []string {
	var out []string
	for _, e := range s.Errors() {
		out = append(out, strings.ReplaceAll(e.Error(), dir+string(filepath.Separator), ""))
	}
	return out
}

func TestLoadScans(t *testing.T) {
	dir := write(t, map[string]string{
		"zebra/SKILL.md":              manifest("zebra"),
		"a/SKILL.md":                  manifest("a"),
		"a/inner/SKILL.md":            manifest("inner"), // belongs to a
		"skills/two/SKILL.md":         manifest("two"),
		"x/y/three/SKILL.md":          manifest("three"),
		"x/y/z/four/SKILL.md":         manifest("four"), // too deep
		"lower/skill.md":              manifest("lower"),
		".git/hooks/SKILL.md":         manifest("hooks"),
		"node_modules/n/SKILL.md":     manifest("n"),
		"bad/SKILL.md":                "# no front matter\n",
		"worse/SKILL.md":              "---\nname: worse\ndescription: a: b # c\n---\n",
		"folder/SKILL.md/not-a-skill": "x",
		"README.md":                   "not a skill",
	})
	s := load(t, Options{Roots: []Root{{Dir: dir}}})
	if diff := cmp.Diff([]string{"a", "three", "two", "zebra"}, names(s)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`load skill bad: read SKILL.md: line 1: there is no front matter: make "---" the first line, then "name: ..." and "description: ...", then another "---"`,
		`load skill worse: read SKILL.md: line 3, column 15: the front matter is not valid YAML (mapping values are not allowed in this context): put the value of "description" in double quotes, because it holds ": "`,
	}
	if diff := cmp.Diff(want, failures(s, dir)); diff != "" {
		t.Error(diff)
	}
	k, ok := s.Find("  A ")
	if !ok || k.Origin != Discovered || k.Dir() != filepath.Join(dir, "a") || len(k.Files) != 2 {
		t.Errorf("Find: %v %+v", ok, k)
	}
	if _, ok := s.Find("inner"); ok {
		t.Error("a SKILL.md inside a skill became a skill")
	}
}

func TestLoadDepth(t *testing.T) {
	dir := write(t, map[string]string{"one/SKILL.md": manifest("one"), "x/two/SKILL.md": manifest("two")})
	if diff := cmp.Diff([]string{"one"}, names(load(t, Options{Roots: []Root{{Dir: dir}}, MaxDepth: 1}))); diff != "" {
		t.Error(diff)
	}
	s := load(t, Options{Roots: []Root{{Dir: filepath.Join(dir, "one")}}})
	if diff := cmp.Diff([]string{"one"}, names(s)); diff != "" {
		t.Error("a root that is a skill itself:", diff)
	}
}

func TestLoadPrecedence(t *testing.T) {
	dir := write(t, map[string]string{
		"first/pdf/SKILL.md":        manifest("pdf"),
		"first/deep/pdf/SKILL.md":   manifest("pdf"),
		"second/pdf/SKILL.md":       manifest("pdf"),
		"second/own/SKILL.md":       manifest("own"),
		"second/another-1/SKILL.md": "---\nname: another-1\ndescription: x\n---\n",
	})
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	s := load(t, Options{Roots: []Root{{Dir: first, Origin: Installed}, {Dir: second}, {Dir: first}}})
	if diff := cmp.Diff([]string{"another-1", "own", "pdf"}, names(s)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`load skill first/deep/pdf: the name "pdf" is taken by first/pdf, so first/deep/pdf is left out: rename one of them`,
		`load skill second/pdf: the name "pdf" is taken by first/pdf, so second/pdf is left out: rename one of them`,
		`load skill first/deep/pdf: the name "pdf" is taken by first/pdf, so first/deep/pdf is left out: rename one of them`,
	}
	if diff := cmp.Diff(want, failures(s, dir)); diff != "" {
		t.Error(diff)
	}
	if _, ok := errors.AsType[*ClashError](s.Errors()[0]); !ok {
		t.Error("no ClashError")
	}
	k, _ := s.Find("pdf")
	if k.Origin != Installed || k.Dir() != filepath.Join(first, "pdf") {
		t.Errorf("the later root won: %s", k.Dir())
	}
}

func TestLoadRoots(t *testing.T) {
	dir := write(t, map[string]string{"a/SKILL.md": manifest("a"), "file": "x"})
	gone := filepath.Join(dir, "gone")
	_, err := Load(t.Context(), Options{Roots: []Root{{Dir: dir}, {Dir: gone}}})
	if e, ok := errors.AsType[*RootError](err); !ok || e.Dir != gone || !strings.Contains(err.Error(), "create it or correct the setting that names it") {
		t.Errorf("a missing root: %v", err)
	}
	if _, err := Load(t.Context(), Options{Roots: []Root{{Dir: filepath.Join(dir, "file")}}}); err == nil {
		t.Error("a file as root is no error")
	}
	if s := load(t, Options{Roots: []Root{{Dir: gone, Optional: true}, {Dir: dir}}}); len(s.Skills()) != 1 {
		t.Errorf("an optional root that is missing: %v", names(s))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, Options{Roots: []Root{{Dir: dir}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestLoadLinks(t *testing.T) {
	dir := write(t, map[string]string{
		"out/far/SKILL.md": manifest("far"),
		"root/near":        "-> ../out/far", // elsewhere, and named otherwise
		"root/up":          "-> ..",         // holds the root
		"root/disk":        "-> /",
		"root/deep/up":     "-> ../../..",
		"root/more":        "-> ../out/more",
		"out/more/back":    "-> ../..",
		"root/self":        "-> .",
		"root/gone":        "-> nothing",
		"root/b/SKILL.md":  manifest("b"),
		"root/a":           "-> b", // before b in order, yet b keeps its folder
		"root/file":        "-> b/SKILL.md",
	})
	s := load(t, Options{Roots: []Root{{Dir: filepath.Join(dir, "root")}}})
	if diff := cmp.Diff([]string{"b", "near"}, names(s)); diff != "" {
		t.Error(diff)
	}
	got := strings.Join(failures(s, dir), "\n")
	if strings.Contains(got, "root/self") {
		t.Errorf("a link to the root itself, which is passed over, is a failure: %s", got)
	}
	for _, want := range []string{
		`load skill root/a: it is the folder of the skill "b", which is loaded already: remove the link`,
		"load skill root/up: the link leads to ",
		`load skill root/disk: the link leads to "/", which holds the skills directory itself: link to the folder of a skill instead`,
		"load skill root/deep/up: the link leads to ",
		"load skill root/more/back: the link leads to ",
		"load skill root/gone: the link leads to nothing that can be read",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestLoadCeilings(t *testing.T) {
	dir := write(t, map[string]string{
		"big/SKILL.md": manifest("big"), "big/a.txt": strings.Repeat("x", 300), "big/b.txt": "x",
		"small/SKILL.md": manifest("small"),
	})
	tests := []struct {
		o          Options
		limit, bad string
	}{
		{Options{MaxManifest: int64(len(manifest("small")) - 5)}, LimitManifest, "small"},
		{Options{MaxFiles: 2}, LimitFiles, "big"},
		{Options{MaxBytes: 301}, LimitBytes, "big"},
	}
	for _, tt := range tests {
		tt.o.Roots = []Root{{Dir: dir}}
		s := load(t, tt.o)
		e, ok := errors.AsType[*LimitError](s.Errors()[0])
		if !ok || e.Limit != tt.limit || !strings.HasSuffix(s.Errors()[0].Dir, tt.bad) {
			t.Errorf("%s: %v", tt.limit, s.Errors())
		}
		if len(s.Skills()) != 1 {
			t.Errorf("%s took another skill down: %v", tt.limit, names(s))
		}
	}
	if s := load(t, Options{Roots: []Root{{Dir: write(t, map[string]string{"a/SKILL.md": manifest("a"), "a/x/y/z/f": "x"})}}, MaxFiles: 2}); len(s.Errors()) != 1 || !strings.Contains(s.Errors()[0].Error(), "too many folders") {
		t.Errorf("too many folders: %v", s.Errors())
	}
	if s := load(t, Options{Roots: []Root{{Dir: write(t, map[string]string{"a/SKILL.md": manifest("a"), "a/x ": "x", "a/y.": "y"})}}, MaxFiles: 2}); len(s.Errors()) != 1 || !strings.Contains(s.Errors()[0].Error(), "too many files") {
		t.Errorf("too many files that are left out: %v", s.Errors())
	}
	_, err := Load(t.Context(), Options{Roots: []Root{{Dir: dir}}, MaxSkills: 1})
	if e, ok := errors.AsType[*LimitError](err); !ok || e.Limit != LimitSkills {
		t.Errorf("too many skills: %v", err)
	}
	if s := load(t, Options{Roots: []Root{{Dir: dir}}, MaxSkills: 2, MaxFiles: 3, MaxBytes: 1000}); len(s.Skills()) != 2 {
		t.Errorf("exactly at the ceilings: %v %v", names(s), s.Errors())
	}
}

// TestManifestSize: the ceiling counts bytes, whatever they spell, and is the
// table's when none is given.
func TestManifestSize(t *testing.T) {
	const limit = 4 << 20
	for _, over := range []int{0, 1} {
		text := manifest("a")
		text += strings.Repeat("é", (limit-len(text))/2)
		text += strings.Repeat(".", limit-len(text)+over)
		s := load(t, Options{Roots: []Root{{Dir: write(t, map[string]string{"a/SKILL.md": text})}}})
		if len(s.Errors()) != over || len(s.Skills()) != 1-over {
			t.Fatalf("%d bytes over: %v, %v", over, names(s), s.Errors())
		}
		if over == 1 && !strings.Contains(s.Errors()[0].Error(), "too many bytes in SKILL.md: at most 4194304 are allowed (skills-manifest)") {
			t.Error(s.Errors())
		}
	}
}

func TestDigest(t *testing.T) {
	files := map[string]string{"a/SKILL.md": manifest("a"), "a/x": "1", "b/SKILL.md": manifest("b")}
	digest := func(change func(map[string]string)) string {
		copied := map[string]string{}
		for k, v := range files {
			copied[k] = v
		}
		change(copied)
		return load(t, Options{Roots: []Root{{Dir: write(t, copied)}}}).Digest()
	}
	base := digest(func(map[string]string) {})
	if again := digest(func(map[string]string) {}); again != base || len(base) != 64 {
		t.Errorf("the same files elsewhere: %s and %s", base, again)
	}
	for name, change := range map[string]func(map[string]string){
		"content": func(m map[string]string) { m["a/x"] = "2" },
		"path":    func(m map[string]string) { delete(m, "a/x"); m["a/y"] = "1" },
		"owner":   func(m map[string]string) { delete(m, "a/x"); m["b/x"] = "1" },
		"name":    func(m map[string]string) { delete(m, "b/SKILL.md"); m["c/SKILL.md"] = manifest("b") },
		"gone":    func(m map[string]string) { delete(m, "b/SKILL.md") },
	} {
		if digest(change) == base {
			t.Errorf("a change of %s does not change the digest", name)
		}
	}
}

func TestSnapshotIsNotChangedByItsReaders(t *testing.T) {
	s := load(t, Options{Roots: []Root{{Dir: write(t, map[string]string{"a/SKILL.md": manifest("a")})}}})
	s.Skills()[0] = Skill{}
	if names(s)[0] != "a" {
		t.Error("a reader changed the snapshot")
	}
}

func TestDefaultRoots(t *testing.T) {
	dir := write(t, map[string]string{
		".agents/skills/outside/SKILL.md":          manifest("outside"),
		"repo/.git/HEAD":                           "x",
		"repo/.agents/skills/top/SKILL.md":         manifest("top"),
		"repo/a/b/.agents/skills/close/SKILL.md":   manifest("close"),
		"repo/a/.agents/skills":                    "a file",
		"plain/.agents/skills/own/SKILL.md":        manifest("own"),
		"plain/deeper/.agents/skills/own/SKILL.md": manifest("own"),
	})
	tests := []struct {
		from string
		want []string
	}{
		{"repo/a/b", []string{"repo/a/b/.agents/skills", "repo/.agents/skills"}},
		{"repo", []string{"repo/.agents/skills"}},
		{"repo/new/er", []string{"repo/new/er/.agents/skills", "repo/new/.agents/skills", "repo/.agents/skills"}}, // may come
		{"plain/deeper", []string{"plain/deeper/.agents/skills"}},
	}
	for _, tt := range tests {
		roots, err := DefaultRoots(filepath.Join(dir, tt.from))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range roots {
			rel, _ := filepath.Rel(dir, r.Dir)
			got = append(got, filepath.ToSlash(rel))
			if r.Origin != Discovered || !r.Optional {
				t.Errorf("root %+v", r)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.from, diff)
		}
	}
}

// TestGitRootEndsBelowForeign: what lies in another user's directory is nobody's
// repository, even if one of ours is above it.
func TestGitRootEndsBelowForeign(t *testing.T) {
	dir := write(t, map[string]string{".git/HEAD": "x", "theirs/.git/HEAD": "x", "theirs/mine/x": "x", "mine/a/x": "x"})
	theirs := filepath.Join(dir, "theirs")
	ours := func(at string) bool { return at != theirs }
	for from, want := range map[string]string{
		filepath.Join(theirs, "mine"):   filepath.Join(theirs, "mine"),
		theirs:                          theirs,
		filepath.Join(dir, "mine", "a"): dir,
	} {
		if got := gitRoot(from, ours); got != want {
			t.Errorf("from %s: %s, want %s", from, got, want)
		}
	}
	if got := gitRoot(theirs, func(string) bool { return false }); got != theirs {
		t.Errorf("nothing is ours: %s", got)
	}
}

func TestExamplesAreWithoutFault(t *testing.T) {
	s := load(t, Options{Roots: []Root{{Dir: "../examples/skills"}}})
	if diff := cmp.Diff([]string{"incident-report", "release-notes", "unit-pricing"}, names(s)); diff != "" {
		t.Error(diff)
	}
	for _, k := range s.Skills() {
		if len(k.Warnings) > 0 || len(k.Extra) > 0 || k.Declared != k.Name || !strings.Contains(k.Description, "Use when") {
			t.Errorf("%s: %v %v", k.Name, k.Warnings, k.Extra)
		}
	}
	if len(s.Errors()) > 0 {
		t.Error(s.Errors())
	}
}

// TestCorpus loads a collection of published skills, if there is one.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("METIER_CORPUS")
	if dir == "" {
		t.Skip("METIER_CORPUS names no directory of published skills")
	}
	s := load(t, Options{Roots: []Root{{Dir: dir}}})
	var warnings []string
	for _, k := range s.Skills() {
		for _, w := range k.Warnings {
			warnings = append(warnings, k.Name+": "+w.Code)
		}
	}
	if diff := cmp.Diff([]string{"claude-api: " + WarnDescriptionLong, "template: " + WarnNameDiffers}, warnings); diff != "" {
		t.Error(diff)
	}
	if len(s.Skills()) != 18 || len(s.Errors()) > 0 {
		t.Errorf("%d skills, errors %v", len(s.Skills()), s.Errors())
	}
}

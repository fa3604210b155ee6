package disclosure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/skill"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s differs; run the test with -update if that is meant\n%s", file, diff)
	}
}

// fixtures are four skills: a name to its description and body.
func fixtures(t testing.TB) []skill.Skill {
	return skills(t, map[string][2]string{
		"brew-log":    {"Keep a brewing log and compute gravity and bitterness. Use when the user brews beer or asks for a batch sheet.", "# Brewing\n\nWrite the batch number first.\n"},
		"choir-plan":  {"Plan rehearsals of a choir. Use when the user mentions a choir, a concert programme or a rehearsal.", "# Choir\n\nWarm up for 12 minutes.\n"},
		"kiln-chart":  {"Draw firing charts for a kiln. Use when the user fires clay or glass.", "# Kiln\n\nNever open it above 90 degrees.\n"},
		"tide-tables": {"Read tide tables. Use when the user asks when it is high or low water.", "# Tides\n\nAdd an hour in summer.\n"},
	})
}

func skills(t testing.TB, texts map[string][2]string) []skill.Skill {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		at := filepath.Join(dir, name)
		for file, content := range map[string]string{
			"SKILL.md":          "---\nname: " + name + "\ndescription: " + text[0] + "\n---\n\n" + text[1],
			"references/api.md": strings.Repeat("x", 1500),
			"logo.png":          "\x00",
		} {
			if name != "kiln-chart" && file != "SKILL.md" {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(at, file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil || len(s.Errors()) > 0 {
		t.Fatal(err, s.Errors())
	}
	return s.Skills()
}

func render(t testing.TB, p Plan) string {
	t.Helper()
	text, err := p.Render(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBlocks(t *testing.T) {
	four := fixtures(t)
	long := skills(t, map[string][2]string{
		"a-long":   {"Long. Use when it is long.", strings.Repeat("A line of the body.\n", 200)},
		"b-longer": {"Longer. Use when it is longer.", strings.Repeat("A line of the body.\n", 300)},
		"c-short":  {"Short. Use when it is short.", "Short body."},
	})
	tests := []struct {
		file                 string
		selected, advertised []skill.Skill
		o                    Options
	}{
		{"deferred.txt", four[:2], four, Options{Tools: true}},
		{"selected.txt", four, nil, Options{Tools: true, Context: 8192}},
		{"catalog.txt", nil, four, Options{Tools: true}},
		{"inline.txt", four[2:3], four, Options{Tools: true, Inline: true}},
		{"scripts.txt", four[:2], four, Options{Tools: true, Scripts: true}},
		{"no-tools.txt", four[:2], four, Options{}},
		{"no-tools-cut.txt", long, four, Options{Context: 2048}},
		{"inline-deferred.txt", long, nil, Options{Tools: true, Inline: true, Context: 2048}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) { golden(t, tt.file, render(t, NewPlan(tt.selected, tt.advertised, tt.o))) })
	}
}

// TestFiles pins the block about files, for every set of tools that a request can
// declare.
func TestFiles(t *testing.T) {
	golden(t, "files.txt", WorkingWithFiles(FileTools{Read: true, Patch: true, Write: true, Shell: true}))
	golden(t, "files-no-patch.txt", WorkingWithFiles(FileTools{Read: true, Write: true, Shell: true}))
	golden(t, "files-read.txt", WorkingWithFiles(FileTools{Read: true}))
	if got := WorkingWithFiles(FileTools{Shell: true}); got != "" {
		t.Errorf("without file tools: %q", got)
	}
}

// TestScriptsNeedTools: a model without tools is told of none.
func TestScriptsNeedTools(t *testing.T) {
	four := fixtures(t)
	plain, scripts := NewPlan(four, nil, Options{}), NewPlan(four, nil, Options{Scripts: true})
	if a, b := render(t, plain), render(t, scripts); a != b {
		t.Errorf("a model without tools reads %q", b)
	}
}

func TestNothingToTell(t *testing.T) {
	for _, p := range []Plan{NewPlan(nil, nil, Options{Tools: true}), NewPlan(nil, fixtures(t), Options{})} {
		if text := render(t, p); text != "" || !p.Empty() {
			t.Errorf("got %q", text)
		}
	}
}

// TestOwnProseIsShort: what this package says itself, in a block of four
// selected skills, stays short without the lines of the skills.
func TestOwnProseIsShort(t *testing.T) {
	own := opening + heading + selectedHeading + rules + moreRules
	if n := Tokens(int64(len(own))); n > 285 {
		t.Errorf("the prose has about %d tokens", n)
	}
	if n := Tokens(int64(len(runRule))); n > 16 {
		t.Errorf("the rule for scripts has about %d tokens", n)
	}
}

// TestCorpus holds the block of four published skills against the seed's
// measurement.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("METIER_CORPUS")
	if dir == "" {
		t.Skip("METIER_CORPUS names no directory of published skills")
	}
	s, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil {
		t.Fatal(err)
	}
	var four []skill.Skill
	for _, name := range []string{"pptx", "pdf", "internal-comms", "doc-coauthoring"} {
		k, ok := s.Find(name)
		if !ok {
			t.Fatal("no skill", name)
		}
		four = append(four, k)
	}
	block := render(t, NewPlan(four, nil, Options{Tools: true}))
	descriptions := 0
	for _, k := range four {
		descriptions += len(k.Description)
	}
	n := Tokens(int64(len(block)))
	t.Logf("block %d tokens, descriptions %d", n, Tokens(int64(descriptions)))
	if n >= 900 {
		t.Errorf("the block has about %d tokens", n)
	}
}

func TestTokens(t *testing.T) {
	for n, want := range map[int64]int{0: 0, 1: 1, 4: 1, 5: 2, 8: 2} {
		if got := Tokens(n); got != want {
			t.Errorf("Tokens(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestBudgets(t *testing.T) {
	tests := []struct{ context, metadata, inline, body int }{
		{0, 2000, 16000, 12000},
		{1000, 1024, 1024, 768},
		{100_000, 2000, 25_000, 18_750},
		{1_000_000, 10_000, 48_000, 36_000},
	}
	for _, tt := range tests {
		got := []int{metadataBudget(tt.context), inlineBudget(tt.context), bodyRoom(inlineBudget(tt.context))}
		if diff := cmp.Diff([]int{tt.metadata, tt.inline, tt.body}, got); diff != "" {
			t.Errorf("context %d: %s", tt.context, diff)
		}
	}
	if bodyRoom(100) != 512 {
		t.Error("a body gets less than 512 tokens")
	}
}

func TestTrim(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"one two three", 12, "one two..."},
		{"one two three", 10, "one two..."},
		{"one two three", 9, "one..."},
		{"éé éé éé", 7, "éé..."},
		{"unbreakable", 8, "unbre..."},
		{"ab", 1, "..."},
	}
	for _, tt := range tests {
		if got := Trim(tt.in, tt.n); got != tt.want {
			t.Errorf("Trim(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
	whole := strings.Repeat("word ", 204) + "four"
	if Trim(whole, descriptionCap) != whole || utf8.RuneCountInString(whole) != 1024 {
		t.Error("1024 characters are cut")
	}
}

// many makes skills that were not loaded: enough for plans without bodies.
func many(n, description int) []skill.Skill {
	var out []skill.Skill
	for i := range n {
		out = append(out, skill.Skill{Manifest: skill.Manifest{
			Name: fmt.Sprintf("s-%03d", i), Description: strings.TrimSpace(strings.Repeat("about ", description/6)),
		}, BodyBytes: 4000})
	}
	return out
}

func TestCatalogShortensBeforeItOmits(t *testing.T) {
	tests := []struct {
		n, description, context, listed, length int
	}{
		{10, 600, 0, 10, 600},    // 2000 tokens hold ten whole ones
		{13, 900, 0, 13, 512},    // the next step of the ladder
		{30, 900, 0, 30, 160},    // the last step
		{60, 900, 0, 35, 160},    // and then entries go
		{97, 12, 100_000, 96, 1}, // never more than 96
	}
	for _, tt := range tests {
		p := NewPlan(nil, many(tt.n, tt.description), Options{Tools: true, Context: tt.context})
		if len(p.Listed) != tt.listed || p.Omitted != tt.n-tt.listed {
			t.Errorf("%d of %d: listed %d, omitted %d", tt.n, tt.description, len(p.Listed), p.Omitted)
		}
		if got := len(p.Listed[0].Description); tt.length > 1 && (got > tt.length || got < tt.length*3/4) {
			t.Errorf("%d of %d: descriptions of %d, want about %d", tt.n, tt.description, got, tt.length)
		}
		if p.Tokens > metadataBudget(tt.context) {
			t.Errorf("%d of %d: %d tokens", tt.n, tt.description, p.Tokens)
		}
	}
}

func TestSelectedAreNeverDropped(t *testing.T) {
	p := NewPlan(many(200, 900), many(220, 900), Options{Tools: true})
	if len(p.Deferred) != 200 || len(p.Listed) != 0 || p.Omitted != 20 {
		t.Errorf("deferred %d, listed %d, omitted %d", len(p.Deferred), len(p.Listed), p.Omitted)
	}
	if text := render(t, p); !strings.Contains(text, "(20 more: call skills_list)") {
		t.Error("what was left out is not said")
	}
}

// TestBlockIsAFunctionOfTheSet: order, repetition and the case of names that
// are selected and advertised do not change a byte.
func TestBlockIsAFunctionOfTheSet(t *testing.T) {
	four := fixtures(t)
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(four), 1, 4, func(s skill.Skill) string { return s.Name })
		selected, advertised := some.Draw(rt, "selected"), some.Draw(rt, "advertised")
		o := Options{Tools: rapid.Bool().Draw(rt, "tools"), Inline: rapid.Bool().Draw(rt, "inline"), Context: rapid.IntRange(0, 9000).Draw(rt, "context")}
		want, err := NewPlan(selected, advertised, o).Render(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		again := rapid.Permutation(append(slices.Clone(selected), selected[0])).Draw(rt, "selected again")
		more := rapid.Permutation(append(slices.Clone(advertised), selected...)).Draw(rt, "advertised again")
		got, err := NewPlan(again, more, o).Render(ctx)
		if err != nil || got != want {
			rt.Fatalf("the block changed: %v\n%s", err, cmp.Diff(want, got))
		}
		for _, s := range four {
			if strings.Contains(got, s.Dir()) {
				rt.Fatal("the block tells a path of the host")
			}
		}
	})
}

func TestFileIndex(t *testing.T) {
	var s skill.Skill
	s.Files = append(s.Files, skill.File{Path: "SKILL.md", Kind: skill.KindManifest, Text: true})
	if FileIndex(s) != "" {
		t.Error("a lone manifest has an index")
	}
	for i := range 42 {
		s.Files = append(s.Files, skill.File{Path: fmt.Sprintf("f%02d", i), Bytes: int64(i) << 15, Text: i > 0})
	}
	got := FileIndex(s)
	if strings.Count(got, "\n- ") != 40 || strings.Contains(got, "SKILL.md") {
		t.Error(got)
	}
	for _, want := range []string{"- f00 [binary] (0 bytes)\n", "- f01 (32.0 KiB)\n", "- f39 (1.2 MiB)\n", "(2 more: "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestBodyThatCannotBeRead(t *testing.T) {
	if _, err := NewPlan(many(1, 60), nil, Options{}).Render(t.Context()); err == nil {
		t.Error("no error")
	}
}

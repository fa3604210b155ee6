package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

func TestParseList(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []skill
	}{
		"as the tool writes":  {office, []skill{{"release-notes", "Writes release notes from a list of changes, grouped for readers."}, {"meeting-minutes", "Turns a transcript into minutes with decisions and owners."}, {"commit-messages", "Writes the message of a commit: subject line, body, trailers."}}},
		"on one line":         {"Skills:\n- tea: Brews tea.\n- ice: Makes ice.\n", []skill{{"tea", "Brews tea."}, {"ice", "Makes ice."}}},
		"other letters":       {"1 skill is reachable:\n\nthé-vert\n  Infuse le thé.\n", []skill{{"thé-vert", "Infuse le thé."}}},
		"carriage returns":    {"tea\r\n  Brews tea.\r\n", []skill{{"tea", "Brews tea."}}},
		"without description": {"tea\n\nice\n", nil},
		"nothing":             {"No skill is reachable.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, parseList(tt.text), cmp.AllowUnexported(skill{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func read(arguments, result string) page {
	return parsePage(exchange{call: llm.Call{Name: toolRead, Arguments: arguments}, result: result})
}

func TestParsePage(t *testing.T) {
	for name, tt := range map[string]struct {
		arguments, result string
		want              page
	}{
		"whole":         {`{}`, "Skill: tea\nFile: SKILL.md\n\nWarm it.\n", page{skill: "tea", path: "SKILL.md", text: "Warm it.\n"}},
		"first page":    {`{}`, "Skill: tea\nFile: a.md\nBytes 0-10 of 30\n\nWarm it.\n\n[go on at 10]\n", page{skill: "tea", path: "a.md", next: 10, more: true, text: "Warm it."}},
		"last page":     {`{}`, "Skill: tea\nFile: a.md\nBytes 10-30 of 30\n\nPour.\n\n[sic]", page{skill: "tea", path: "a.md", from: 10, next: 30, text: "Pour.\n\n[sic]"}},
		"without head":  {`{"skill":"tea","path":"a.md","offset":3}`, "Warm it.", page{skill: "tea", path: "a.md", from: 3, text: "Warm it."}},
		"index":         {`{}`, "Skill: tea\nFile: SKILL.md\n\nWarm it.\n\nBundled files:\n- a.md (1.2 KB)\n- b.png [binary] (3 KiB)\n\nScripts: none.", page{skill: "tea", path: "SKILL.md", text: "Warm it.", files: []string{"a.md"}}},
		"manifest":      {`{}`, "Skill: tea\nFile: SKILL.md\n\n---\nname: tea\n---\n\nWarm it.\n\n---\n\nPour.", page{skill: "tea", path: "SKILL.md", text: "Warm it.\n\n---\n\nPour."}},
		"open manifest": {`{}`, "Skill: tea\nFile: SKILL.md\n\n---\nname: tea\n", page{skill: "tea", path: "SKILL.md", text: "---\nname: tea\n"}},
		"bare index":    {`{}`, "Skill: tea\nFile: SKILL.md\n\nWarm it.\n\na.md (12 bytes)", page{skill: "tea", path: "SKILL.md", text: "Warm it.", files: []string{"a.md"}}},
		"no real index": {`{}`, "Skill: tea\nFile: SKILL.md\n\n- steep (3 minutes)\n", page{skill: "tea", path: "SKILL.md", text: "- steep (3 minutes)\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, read(tt.arguments, tt.result), cmp.AllowUnexported(page{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for _, same := range [][]string{
		{"note", "notes"},
		{"plan", "planning", "planned", "plans"},
		{"write", "writes", "writing", "writer"},
		{"summary", "summaries"},
		{"class", "classes"},
		{"commit", "commits", "committed"},
		{"Größe", "größe"},
	} {
		want := words(same[0])
		for _, w := range same[1:] {
			if d := cmp.Diff(want, words(w)); d != "" {
				t.Errorf("%s and %s differ: %s", same[0], w, d)
			}
		}
	}
	if got := words("How do I use the a?"); len(got) != 0 {
		t.Errorf("common words count: %v", got)
	}
}

func TestParagraphs(t *testing.T) {
	got := paragraphs("# T\n\n## A\n\none\ntwo\n\n```\nx\n\ny\n```\n\n# End\n")
	want := [][]string{{"## A", "", "one", "two"}, {"```", "x", "", "y", "```"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestQuotesVerbatim holds that what is quoted stands in the file, line for line,
// and is short.
func TestQuotesVerbatim(t *testing.T) {
	var text strings.Builder
	for range 30 {
		text.WriteString("  plain line,  with   spaces\n")
	}
	text.WriteString("the kettle is here\n")
	for range 30 {
		text.WriteString("plain line\n")
	}
	p := bestPassage([]page{{skill: "tea", path: mainFile, text: text.String()}}, words("kettle"))
	if len(p.lines) != quoted || !strings.Contains(text.String(), strings.Join(p.lines, "\n")) || !strings.Contains(strings.Join(p.lines, "\n"), "kettle") {
		t.Errorf("got %q", p.lines)
	}
}

func TestFirstOfEquals(t *testing.T) {
	p := bestPassage([]page{{text: "A kettle.\n\nA kettle, too."}, {text: "A kettle again."}}, words("kettle"))
	if len(p.lines) != 1 || p.lines[0] != "A kettle." {
		t.Errorf("got %q", p.lines)
	}
}

// TestHeadingsWeigh holds that a heading decides between paragraphs that fit alike.
func TestHeadingsWeigh(t *testing.T) {
	p := bestPassage([]page{{text: "A kettle is mentioned.\n\n## Kettle\n\nDescale it."}}, words("kettle"))
	if len(p.lines) == 0 || p.lines[0] != "## Kettle" {
		t.Errorf("got %q", p.lines)
	}
}

// TestReferenceMustFitBetter holds that a file is read only when it promises more
// than what is there already.
func TestReferenceMustFitBetter(t *testing.T) {
	text := "Boil water first. For green\nleaves of spring see green.md. Pour slowly.\n\nFor a samovar see run.py.\n\nSpring water boils sooner.\n"
	pages := []page{{skill: "tea", path: mainFile, text: text, files: []string{"green.md", "run.py", "unnamed.md"}}}
	for question, want := range map[string]string{
		"leaves of spring":     "green.md",
		"boil the water first": "", // the sentence beside it leads nowhere
		"spring water":         "", // another paragraph fits better
		"samovar":              "", // a program is not read
		"unnamed":              "", // the text does not lead there
		"nothing of it":        "",
	} {
		if got, _ := reference(pages, words(question)); got != want {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
}

func FuzzResults(f *testing.F) {
	f.Add(office, notesBody, "release notes")
	f.Add("- a: b", "Skill: x\nFile: y\nBytes 1-2 of 3\n\nz\n\n[w]", "b")
	f.Add("", "x.md (1 B)\n", "x")
	f.Fuzz(func(t *testing.T, list, result, question string) {
		for _, s := range parseList(list) {
			if s.id == "" || s.description == "" || strings.ContainsAny(s.id, " \n\t") {
				t.Fatalf("skill %+v", s)
			}
		}
		p := read(`{"skill":"s","path":"SKILL.md"}`, result)
		if p.more && p.next <= p.from {
			t.Fatalf("page goes on backwards: %+v", p)
		}
		asked := words(question)
		quote := bestPassage([]page{p}, asked)
		plain := strings.ReplaceAll(result, "\r\n", "\n")
		if len(quote.lines) > quoted || !strings.Contains(plain, strings.Join(quote.lines, "\n")) {
			t.Fatalf("quote %q is not in %q", quote.lines, plain)
		}
		reference([]page{p}, asked)
		parsePrompt([]llm.Message{llm.TextMessage(llm.System, list+`<skill name="x">`+result+`</skill>`)})
	})
}

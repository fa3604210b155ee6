package skill

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func linkTexts(links []Link) []string {
	var out []string
	for _, l := range links {
		text := fmt.Sprintf("%d:%d %s %s", l.Line, l.Column, l.Kind, l.Path)
		switch {
		case errors.Is(l.Err, ErrPath):
			text += " refused"
		case errors.Is(l.Err, ErrNoFile):
			text += " missing"
		case l.Err != nil:
			text += " " + l.Err.Error()
		}
		out = append(out, text)
	}
	return out
}

func TestLinks(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"See [forms](references/forms.md).", []string{"1:13 link references/forms.md"}},
		{"[a](a.md#top) [b](b.md?x=1 \"title\") ![c](<my file.png>)", []string{"1:5 link a.md", "1:19 link b.md", "1:42 link my file.png"}},
		{"[a](my%20file.md) [b](a_(1).md)", []string{"1:5 link my file.md", "1:23 link a_(1).md"}},
		{"[ref]: docs/a.md 'title'", []string{"1:8 link docs/a.md"}},
		{"[a](https://x.test/a.md) [b](mailto:a@b.test) [c](#part) [d](//x.test) [e]() [f](<x>)", []string{"1:82 link x"}},
		{"[up](../other/SKILL.md) [abs](/etc/passwd) [drive](C:\\x)", []string{"1:6 link ../other/SKILL.md", "1:31 link /etc/passwd", "1:52 link C:\\x"}},
		{"Read references/style.md.", []string{"1:6 text references/style.md"}},
		{"Read references/style.md, then (assets/a.png) or *scripts/x.py*!", []string{"1:6 text references/style.md", "1:33 text assets/a.png", "1:51 text scripts/x.py"}},
		{"Run `scripts/extract.py <file.pdf>`; or ``python ./scripts/b.py a.pdf``.", []string{"1:6 code scripts/extract.py", "1:50 code scripts/b.py"}},
		{"é 数 `references/é.md`", []string{"1:6 code references/é.md"}},
		{"x\n\n```sh\npython scripts/a.py --out=assets/b.txt\n```\nscripts/c.py", []string{"4:8 code scripts/a.py", "4:27 code assets/b.txt", "6:1 text scripts/c.py"}},
		{"````\n```\n[a](b.md) scripts/a.py\n```\n````\n[c](d.md)", []string{"3:11 code scripts/a.py", "6:5 link d.md"}},
		{"~~~\n[a](b.md)\n~~~~\r\n[c](d.md)\r\n", []string{"4:5 link d.md"}},
		{"`references/<topic>.md` references/*.md scripts/{a,b}.py references/...", nil},
		{"`src/main.go`, `application/json`, and/or, out/result.csv, package.json", nil},
		{"put scripts/tools and references/ there; my/scripts/x.py", nil},
		{"[a](" + strings.Repeat("(", 31) + "b" + strings.Repeat(")", 32) + " [c](" + strings.Repeat("(", 32) + "d" + strings.Repeat(")", 33), []string{"1:5 link " + strings.Repeat("(", 31) + "b" + strings.Repeat(")", 31)}},
		{"an `open span and [a](b.md", nil},
		{"a] b ] (c.md) [d](e.md)", []string{"1:19 link e.md"}},
		{"", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, linkTexts(Links(tt.text))); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

func TestSkillLinks(t *testing.T) {
	body := strings.Join([]string{
		"", "# PDF", "",
		"See [the forms](references/forms.md#x), [gone](references/gone.md) and [docs](docs).",
		"Run `python core/run.py in.pdf`, `core/lost.py` or scripts/none.sh.",
		"Not ours: `src/main.go`, ~/skills/pdf/core/run.py, /core/run.py.",
		"[up](../x/SKILL.md) [home](~/x) [linked](alias/guide.md) [itself](SKILL.md)",
	}, "\n")
	k := one(t, map[string]string{
		"pdf/SKILL.md":            "---\nname: pdf\ndescription: d\n---\n" + body,
		"pdf/references/forms.md": "x", "pdf/docs/guide.md": "x", "pdf/core/run.py": "x", "pdf/alias": "-> docs",
	})
	links, err := k.Links(t.Context())
	want := []string{
		"8:17 link references/forms.md", "8:48 link references/gone.md missing", "8:79 link docs",
		"9:13 code core/run.py", "9:35 code core/lost.py missing", "9:52 text scripts/none.sh missing",
		"11:6 link ../x/SKILL.md refused", "11:28 link ~/x refused", "11:42 link alias/guide.md", "11:67 link SKILL.md",
	}
	if diff := cmp.Diff(want, linkTexts(links)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	k = one(t, map[string]string{"x/SKILL.md": "---\nname: x\ndescription: d\n---"})
	if links, err := k.Links(t.Context()); err != nil || links != nil {
		t.Errorf("a skill without a body: %v, %v", links, err)
	}
}

// TestCorpusLinks: nothing that published manifests say is taken for a path of
// the skill but paths into the usual folders. (A collection may come without the
// bundled files, so that whether they are there is not judged.)
func TestCorpusLinks(t *testing.T) {
	dir := os.Getenv("METIER_CORPUS")
	if dir == "" {
		t.Skip("METIER_CORPUS names no directory of published skills")
	}
	found := 0
	for _, k := range load(t, Options{Roots: []Root{{Dir: dir}}}).Skills() {
		links, err := k.Links(t.Context())
		check(t, err)
		for _, l := range links {
			found++
			first, _, _ := strings.Cut(l.Path, "/")
			if l.Err != nil && !slices.Contains([]string{"scripts", "references", "reference", "assets"}, first) {
				t.Errorf("%s line %d: %s (%s)", k.Name, l.Line, l.Path, l.Kind)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d paths were found", found)
	}
}

// TestLinksEnd: one endless line costs no more than many short ones.
func TestLinksEnd(t *testing.T) {
	for _, piece := range []string{"[a](b) ", "](", "`scripts/a.b` ", "a/b ", "[", "(", "` ``"} {
		text := strings.Repeat(piece, 1<<21/len(piece))
		began := time.Now()
		Links(text)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q took %v", piece, took)
		}
	}
}

func FuzzLinks(f *testing.F) {
	f.Add("See [a](b.md#c), `scripts/x.py <y>` and references/z.md.\n```\nx\n```")
	f.Add("[a]: <b c> \"d\"\n![x](y(z).png)\n[](\n``` a ` b")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		for _, l := range Links(text) {
			if l.Path == "" || l.Kind == "" || l.Line < 1 || l.Line > lines || l.Column < 1 || l.Err != nil {
				t.Errorf("%+v of %q", l, text)
			}
		}
	})
}

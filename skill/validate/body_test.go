package validate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBody(t *testing.T) {
	files := map[string]string{"references/forms.md": "x", "scripts/run.py": "x", "with space.md": "x", "assets/a.png": "\x00"}
	tests := []struct {
		test, body string
		want       []string
	}{
		{"fine", "See [forms](references/forms.md#a), ![a](assets/a.png \"title\"), [dir](references/), [s](<./scripts/run.py>), [e](with%20space.md).", nil},
		{"not files", "[a](https://x.org/a) [b](#top) [c](mailto:a@b) [d](//x/y) <https://x> [e](references/*.md) [g](references/...)", nil},
		{"dead", "x\n\nIt is in [forms](references/form.md).", []string{"advice (body) link-dead SKILL.md:7:18"}},
		{"code", "Run `scripts/gone.py <file.pdf>` or `scripts/run.py --all`; `other/gone.py` may be the user's.", []string{"advice (body) link-dead SKILL.md:5:6"}},
		{"a full stop is not part of the path", "Read references/gone.md.", nil},
		{"definition", "[x]: references/gone.md\n[^1]: a/note", []string{"advice (body) link-dead SKILL.md:5:6"}},
		{"fenced", "```\n[x](gone.md)\n`scripts/gone.py`\n```\n~~~ sh\n[x](gone.md)\n~~~\n[y](gone.md)", []string{"advice (body) link-dead SKILL.md:12:5"}},
		{"in code", "Write `[x](gone.md)` and é`ü` [y](gone.md)", []string{"advice (body) link-dead SKILL.md:5:35"}},
		{"outside", "[a](../other/SKILL.md) [b](/etc/passwd) [c](C:/x) [d](~/x) [e](a\\b)", []string{
			"advice (body) link-outside SKILL.md:5:5", "advice (body) link-outside SKILL.md:5:28", "advice (body) link-outside SKILL.md:5:45",
			"advice (body) link-outside SKILL.md:5:55", "advice (body) link-outside SKILL.md:5:64",
		}},
		{"500 lines", strings.Repeat("x\n", 499) + "x", nil},
		{"501 lines", strings.Repeat("x\n", 500) + "x", []string{"advice (body) body-long SKILL.md:5:0"}},
		{"5000 tokens", strings.Repeat("x", 20000), nil},
		{"more", strings.Repeat("x", 20001), []string{"advice (body) body-long SKILL.md:5:0"}},
	}
	for _, tt := range tests {
		files["SKILL.md"] = "---\nname: pdf\ndescription: d\n---\n" + tt.body + "\n"
		dir := folder(t, "pdf", files)
		for _, target := range Targets() {
			r := Check(t.Context(), dir, target)
			if diff := cmp.Diff(append([]string{}, tt.want...), codes(r)); diff != "" {
				t.Errorf("%s, %s: %s\n%v", tt.test, target, diff, r.Findings)
			}
			if !r.Valid() {
				t.Errorf("%s, %s: advice makes the skill invalid", tt.test, target)
			}
		}
	}
}

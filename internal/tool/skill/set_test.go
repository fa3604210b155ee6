package skill

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const canary = "canary: these bytes lie in a skill that is not reachable"

// library makes skills of all shapes. "secret" is loaded too, but tests do not
// hand it to a set.
func library(t testing.TB) []skill.Skill {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"kiln/SKILL.md":            "---\nname: kiln\ndescription: Draw firing charts. Use when the user fires clay.\ncompatibility: Requires python3\n---\n\n# Kiln\n\nNever open it above 90 degrees.\n",
		"kiln/references/cones.md": "cone 6 is 1222 degrees\n",
		"kiln/references/long.md":  strings.Repeat("é", 200),
		"kiln/assets/logo.png":     "\x00\x01",
		"kiln/empty.txt":           "",
		"kiln/kiln/same.md":        "in a folder of the skill's own name\n",
		"tide/SKILL.md":            "---\nname: tide\ndescription: Read tide tables. Use when the user asks for high water.\n---\nAdd an hour in summer.\n",
		"secret/SKILL.md":          "---\nname: secret\ndescription: Not yours.\n---\n" + canary,
		"secret/x.md":              canary,
	}
	files["salt-glaze/SKILL.md"] = "---\nname: salt-glaze\ndescription: Glaze with salt.\n---\nOpen the damper first.\n"
	files["salt-glaze/two words.md"] = "a name with a space\n"
	files["salt-glaze/100%25.md"] = "a name with a percent sign\n"
	files["salt-glaze/Notes.MD"] = "a name in two cases\n"
	files["salt-glaze/b.md"] = "the second\n"
	for i := range 33 {
		files[fmt.Sprintf("many/f%02d.txt", i)] = "x"
	}
	files["many/SKILL.md"] = "---\nname: many\ndescription: Many files.\n---\nx\n"
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil || len(s.Errors()) > 0 {
		t.Fatal(err, s.Errors())
	}
	return s.Skills()
}

// pick is the named skills of the library, in that order.
func pick(t testing.TB, names ...string) []skill.Skill {
	var out []skill.Skill
	all := library(t)
	for _, name := range names {
		for _, k := range all {
			if k.Name == name {
				out = append(out, k)
			}
		}
	}
	return out
}

func invoke(t testing.TB, s *Set, name, arguments string) journal.Result {
	t.Helper()
	r, err := s.Invoke(t.Context(), llm.Call{ID: "1", Name: name, Arguments: arguments}, tool.Env{})
	if err != nil {
		t.Fatalf("%s(%s): %v", name, arguments, err)
	}
	if r.OK == strings.HasPrefix(r.Text, "Error: ") || r.Text == "" {
		t.Errorf("%s(%s): OK is %v for %q", name, arguments, r.OK, r.Text)
	}
	return r
}

func TestOffer(t *testing.T) {
	s := New(Options{Skills: pick(t, "tide")})
	var b strings.Builder
	for _, d := range s.Offer(journal.Path{}).Declared {
		if !d.Parameters.IsValid(jsontext.AllowDuplicateNames(false)) {
			t.Errorf("%s: parameters are not JSON", d.Name)
		}
		fmt.Fprintf(&b, "%s\n%s\n%s\n\n", d.Name, d.Description, d.Parameters)
	}
	golden(t, "offer.txt", strings.TrimSpace(b.String()))
	if n := len(New(Options{}).Offer(journal.Path{}).Declared); n != 0 {
		t.Errorf("a set without skills offers %d tools", n)
	}
	if s.Replay(ReadName) != journal.Again || s.Replay(ListName) != journal.Again {
		t.Error("a read may not be run again")
	}
}

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

// TestAnswers pins what a model reads, mistakes included.
func TestAnswers(t *testing.T) {
	s := New(Options{Skills: pick(t, "tide", "kiln"), PageBytes: 150})
	calls := []struct{ name, arguments string }{
		{ListName, ""},
		{ListName, "not JSON at all"},
		{ReadName, `{"skill":"kiln","path":"SKILL.md"}`},
		{ReadName, `{"skill":"kiln","path":"references/long.md","offset":150}`},
		{ReadName, `{"skill":"kiln","path":"references/long.md","offset":301}`},
		{ReadName, `{"skill":"kiln","path":"references/long.md","offset":400}`},
		{ReadName, `{"skill":"kiln","path":"references/long.md","offset":401}`},
		{ReadName, `{"skill":"kiln","path":"references/cones.md"}`},
		{ReadName, `{"skill":"kiln","path":"assets/logo.png"}`},
		{ReadName, `{"skill":"kiln","path":"empty.txt"}`},
		{ReadName, `{"skill":"kiln","path":"references/"}`},
		{ReadName, `{"skill":"tide"}`},
		{ReadName, `{"skill":"tide","path":"x.md"}`},
		{ReadName, `{"skill":"kiln","path":"skill.MD"}`},
		{ReadName, `{"skill":"kiln","path":"cones.md"}`},
		{ReadName, `{"skill":"kiln","path":"../secret/SKILL.md"}`},
		{ReadName, `{"skill":"kiln","path":"/etc/passwd"}`},
		{ReadName, `{"skill":"secret","path":"SKILL.md"}`},
		{ReadName, `{"path":"SKILL.md"}`},
		{ReadName, `{"skill":"kiln","offset":"soon"}`},
		{ReadName, `{"skill":`},
		{ReadName, `["kiln"]`},
	}
	var b strings.Builder
	for _, c := range calls {
		r := invoke(t, s, c.name, c.arguments)
		fmt.Fprintf(&b, ">>> %s(%s) ok=%v skill=%q detail=%q\n%s\n\n", c.name, c.arguments, r.OK, r.Skill, r.Detail, r.Text)
	}
	golden(t, "answers.txt", strings.TrimSpace(b.String()))
}

// TestOffsetsOutOfRange: numbers that no file has are no fault of the host.
func TestOffsetsOutOfRange(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln")})
	for _, offset := range []string{"1e300", `"99999999999999999999999"`, "9223372036854775807", `"inf"`} {
		if got := invoke(t, s, ReadName, `{"skill":"kiln","offset":`+offset+`}`).Text; !strings.Contains(got, "9223372036854775807") {
			t.Errorf("offset %s: %s", offset, got)
		}
	}
	if got := invoke(t, s, ReadName, `{"skill":"kiln","offset":"nan"}`); got.OK {
		t.Error(got.Text)
	}
}

// TestPagesMakeTheFile follows the calls that the pages name.
func TestPagesMakeTheFile(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln"), PageBytes: 31})
	var text strings.Builder
	for next, calls := `{"skill":"kiln","path":"references/long.md"}`, 0; next != ""; calls++ {
		r := invoke(t, s, ReadName, next)
		_, body, _ := strings.Cut(r.Text, "\n\n")
		body, call, more := strings.Cut(body, "\n\n[Truncated. Continue with skills_read(")
		text.WriteString(body)
		next = ""
		if more {
			call = strings.TrimSuffix(call, ").]")
			next = "{" + strings.NewReplacer("skill=", `"skill":`, "path=", `"path":`, "offset=", `"offset":`).Replace(call) + "}"
		}
		if calls > 20 {
			t.Fatal("the pages do not end")
		}
	}
	if text.String() != strings.Repeat("é", 200) {
		t.Errorf("the pages make %q", text.String())
	}
}

func TestListNamesThirtyFiles(t *testing.T) {
	got := invoke(t, New(Options{Skills: pick(t, "many")}), ListName, "{}").Text
	if !strings.Contains(got, "files: SKILL.md, f00.txt, ") || !strings.HasSuffix(got, "f29.txt and 3 more") {
		t.Error(got)
	}
	if got := invoke(t, New(Options{}), ListName, "{}").Text; got != listNone {
		t.Error(got)
	}
}

func TestUnknownTool(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln")})
	env := tool.Env{Offer: s.Offer(journal.Path{}), Caller: []string{"get_weather", "a_tool"}}
	tests := []struct {
		name string
		env  tool.Env
		want string
	}{
		{"Kiln", env, `Error: no tool is called "Kiln", so nothing ran. That is a skill, and it is available: read it with skills_read(skill="kiln", path="SKILL.md").`},
		{"functions.kiln", env, `Error: no tool is called "functions.kiln", so nothing ran. That is a skill, and it is available: read it with skills_read(skill="kiln", path="SKILL.md").`},
		{"fly", env, `Error: no tool is called "fly", so nothing ran. The tools are: a_tool, get_weather, skills_list, skills_read. Call one of them, or answer without.`},
		{"secret", env, `Error: no tool is called "secret", so nothing ran. The tools are: a_tool, get_weather, skills_list, skills_read. Call one of them, or answer without.`},
		{"skills_run", env, `Error: no tool is called "skills_run", so nothing ran. Scripts are disabled here: read the script with skills_read and carry out its steps yourself, or say what it would do. The tools are: a_tool, get_weather, skills_list, skills_read. Call one of them, or answer without.`},
		{"", tool.Env{}, `Error: no tool is called "", so nothing ran. There are no tools here: answer without.`},
	}
	for _, tt := range tests {
		got, err := s.Invoke(t.Context(), llm.Call{Name: tt.name}, tt.env)
		if err != nil || got.Text != tt.want || got.OK {
			t.Errorf("%q: %v\ngot  %s\nwant %s", tt.name, err, got.Text, tt.want)
		}
	}
}

func TestHostFaultsAreErrors(t *testing.T) {
	kiln := pick(t, "kiln")
	s := New(Options{Skills: kiln})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call := llm.Call{Name: ReadName, Arguments: `{"skill":"kiln","path":"references/cones.md"}`}
	if _, err := s.Invoke(ctx, call, tool.Env{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	file := filepath.Join(kiln[0].Dir(), "references", "cones.md")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(file); err == nil {
		f.Close() // root may read everything
	} else if r, err := s.Invoke(t.Context(), call, tool.Env{}); err == nil || strings.Contains(err.Error(), kiln[0].Dir()) {
		t.Errorf("a file without permission: %+v, %v", r, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, s, call.Name, call.Arguments); r.OK || !strings.Contains(r.Text, "is gone now") {
		t.Errorf("a file that is gone: %s", r.Text)
	}
	if runtime.GOOS != "windows" {
		unloaded := New(Options{Skills: []skill.Skill{{Manifest: skill.Manifest{Name: "kiln"}, Files: []skill.File{{Path: "references/cones.md", Text: true}}}}})
		if _, err := unloaded.Invoke(t.Context(), call, tool.Env{}); err == nil {
			t.Error("a skill without a folder is no error")
		}
	}
}

// FuzzRead: whatever a model writes, it gets a result, the result says whether
// it failed, and no other skill is read.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"skill":"kiln","path":"../secret/x.md"}`, `{"skill":"secret"}`, `"{\"skill\":\"kiln\"}"`, `{"skill":"kiln","offset":"1e9"}`,
		`{"skill":"kiln","path":"kiln/../../secret/x.md"}`, `[]`, `""`, "null", "{", "\xff", `{"skill":"kiln","path":"references\\..\\..\\secret\\x.md"}`,
		`{"skill":"kiln","path":"kiln/kiln/kiln"}`, `{"skill":"kiln/../secret","path":"x.md"}`,
		`{"path":"%2e%2e/secret/x.md","skill":["kiln",["tide"]]}`, `{"path":"file://../secret/x.md"}`, `'\\'`, `{'a':'\'`, "```",
	} {
		f.Add(ReadName, seed)
	}
	for _, sh := range shapes() {
		f.Add("read skill", sh.arguments)
		f.Add(ListName, sh.arguments)
	}
	f.Add("kiln", "")
	f.Add("\x00", "x")
	s := New(Options{Skills: pick(f, "kiln", "tide", "salt-glaze"), PageBytes: 64})
	f.Fuzz(func(t *testing.T, name, arguments string) {
		r, err := s.Invoke(t.Context(), llm.Call{Name: name, Arguments: arguments}, tool.Env{})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.Invoke(t.Context(), llm.Call{Name: name, Arguments: arguments}, tool.Env{}); err != nil || !same(again, r) {
			t.Errorf("%q was answered in two ways: %v\n%s\n%s", arguments, err, r.Text, again.Text)
		}
		if r.Text == "" || r.OK == strings.HasPrefix(r.Text, "Error: ") {
			t.Errorf("OK is %v for %q", r.OK, r.Text)
		}
		if strings.Contains(r.Text, canary) {
			t.Errorf("%q read a skill that is not reachable", arguments)
		}
	})
}

func same(a, b journal.Result) bool { return cmp.Equal(a, b) }

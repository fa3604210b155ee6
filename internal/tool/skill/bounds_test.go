package skill

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

// crowd makes many skills, each with a description of the full length.
func crowd(t testing.TB, n int) []skill.Skill {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		name := fmt.Sprintf("trade-%03d", i)
		write(t, filepath.Join(dir, name, "SKILL.md"), "---\nname: "+name+"\ndescription: "+strings.Repeat("x", 1000)+"\n---\nbody\n")
	}
	return load(t, dir)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, dir string) []skill.Skill {
	t.Helper()
	s, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil || len(s.Errors()) > 0 {
		t.Fatal(err, s.Errors())
	}
	return s.Skills()
}

func inRoom(t *testing.T, s *Set, name, arguments string, room int) journal.Result {
	t.Helper()
	r, err := s.Invoke(t.Context(), llm.Call{Name: name, Arguments: arguments}, tool.Env{Room: room})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var nextList = regexp.MustCompile(`\n\n\[(\d+) more\. Continue with skills_list\(offset=(\d+)\)\.\]$`)

// TestListOfManyIsBounded: no list is longer than a page or than the room that there
// is, and its footers lead through all skills.
func TestListOfManyIsBounded(t *testing.T) {
	s := New(Options{Skills: crowd(t, 500)})
	page := int(config.Values{}.Get(config.PageSize))
	for _, tt := range []struct{ room, most, pages int }{
		{0, page, 11}, {8000, 8000, 72}, {1 << 30, page, 11}, {10, smallestPage + 200, 500},
	} {
		var seen []string
		pages := 0
		for next := "0"; next != ""; pages++ {
			r := inRoom(t, s, ListName, `{"offset":`+next+`}`, tt.room)
			if !r.OK || len(r.Text) > tt.most {
				t.Fatalf("room %d, offset %s: %d bytes, OK %v", tt.room, next, len(r.Text), r.OK)
			}
			for line := range strings.Lines(r.Text) {
				if strings.HasPrefix(line, "trade-") {
					seen = append(seen, strings.TrimSpace(line))
				}
			}
			next = ""
			if m := nextList.FindStringSubmatch(r.Text); m != nil {
				next = m[2]
				if more, err := strconv.Atoi(m[1]); err != nil || more != 500-len(seen) {
					t.Fatalf("room %d: %s more after %d", tt.room, m[1], len(seen))
				}
			}
		}
		if len(seen) != 500 || !slices.IsSorted(seen) || pages != tt.pages {
			t.Errorf("room %d: %d skills on %d pages", tt.room, len(seen), pages)
		}
	}
}

// TestListOffset: where the list begins may be written in several ways, and
// noise is no reason not to list.
func TestListOffset(t *testing.T) {
	s := New(Options{Skills: crowd(t, 60)})
	want := invoke(t, s, ListName, `{"offset":50}`)
	if !strings.HasPrefix(want.Text, "60 skills, here 51 to 60:\n\ntrade-050\n  xxx") || nextList.MatchString(want.Text) {
		t.Error(want.Text)
	}
	for _, arguments := range []string{`{"page":50}`, `{"start":"50"}`, `{"Offset":50.0}`, `{"arguments":{"offset":50}}`, `"{\"cursor\":50}"`, "```json\n{'offset': 50,}\n```"} {
		if got := invoke(t, s, ListName, arguments); !same(got, want) {
			t.Errorf("%s: %s", arguments, got.Text)
		}
	}
	first := invoke(t, s, ListName, "")
	if !strings.HasPrefix(first.Text, "60 skills, here 1 to ") {
		t.Error(first.Text[:80])
	}
	for _, arguments := range []string{"{}", `{"offset":null}`, `{"offset":-1}`, `{"offset":"soon"}`, `{"skill":"trade-050"}`, "[50]", "what is there?"} {
		if got := invoke(t, s, ListName, arguments); !same(got, first) {
			t.Errorf("%s: %.80s", arguments, got.Text)
		}
	}
}

// TestReadKeepsToTheRoom: a page and what stands around it fit the room, down to
// a page of 1 KiB, and the footers lead through the file.
func TestReadKeepsToTheRoom(t *testing.T) {
	dir, name := t.TempDir(), strings.Repeat("long-folder/", 12)+"text.md"
	write(t, filepath.Join(dir, "scroll", "SKILL.md"), "---\nname: scroll\ndescription: Long texts.\n---\nbody\n")
	text := strings.Repeat("0123456789abcde\n", 10000)
	write(t, filepath.Join(dir, "scroll", filepath.FromSlash(name)), text)
	s := New(Options{Skills: load(t, dir)})
	const footer = "\n\n[Truncated. Continue with skills_read("
	for _, tt := range []struct{ room, least, most int }{
		{0, 49152, 49152}, {1 << 30, 49152, 49152}, {49152, 48000, 49000}, {20000, 19000, 19999}, {5000, 4000, 4800}, {1024, 1024, 1024}, {1, 1024, 1024},
	} {
		r := inRoom(t, s, ReadName, fmt.Sprintf(`{"skill":"scroll","path":%q}`, name), tt.room)
		_, body, _ := strings.Cut(r.Text, "\n\n")
		body, call, more := strings.Cut(body, footer)
		if !more || len(body) < tt.least || len(body) > tt.most || !strings.HasPrefix(text, body) {
			t.Errorf("room %d: a page of %d bytes, more %v", tt.room, len(body), more)
		}
		if !strings.HasSuffix(call, fmt.Sprintf("offset=%d).]", len(body))) {
			t.Errorf("room %d: %s", tt.room, call)
		}
		if tt.room >= 5000 && len(r.Text) > tt.room {
			t.Errorf("room %d: %d bytes in all", tt.room, len(r.Text))
		}
	}
}

// TestIndexKeepsToTheRoom: an index that does not fit is named instead.
func TestIndexKeepsToTheRoom(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scroll", "SKILL.md"), "---\nname: scroll\ndescription: Long texts.\n---\n"+strings.Repeat("0123456789abcde\n", 60))
	for i := range 45 {
		write(t, filepath.Join(dir, "scroll", fmt.Sprintf("%s%02d.md", strings.Repeat("f", 40), i)), "x")
	}
	s := New(Options{Skills: load(t, dir)})
	if got := invoke(t, s, ReadName, `{"skill":"scroll"}`).Text; !strings.Contains(got, "\n\nBundled files (open one with skills_read):\n- ffff") {
		t.Error(got)
	}
	got := inRoom(t, s, ReadName, `{"skill":"scroll"}`, 2000).Text
	if !strings.HasSuffix(got, "cde\n\n"+`[Bundled files: skills_read(skill="scroll", path=".") lists them.]`) || len(got) > 2000 {
		t.Error(got)
	}
	// The listing that it names is bounded and leads through all files.
	listed, pages := 0, 0
	for from := 0; from >= 0; pages++ {
		r := inRoom(t, s, ReadName, fmt.Sprintf(`{"skill":"scroll","path":".","offset":%d}`, from), 2000)
		if !r.OK || len(r.Text) > 2000 || r.Detail != "." {
			t.Fatalf("from %d: %d bytes, %s", from, len(r.Text), r.Text)
		}
		listed += strings.Count(r.Text, "\n- ")
		_, call, more := strings.Cut(r.Text, ` more. Continue with skills_read(skill="scroll", path=".", offset=`)
		from = -1
		if more {
			n, err := strconv.Atoi(strings.TrimSuffix(call, ").]"))
			if err != nil || n != listed {
				t.Fatalf("%v, %d, %s", err, listed, call)
			}
			from = n
		}
	}
	if listed != 46 || pages != 2 {
		t.Errorf("%d files on %d pages", listed, pages)
	}
}

// TestFailures pins every sentence that says what went wrong.
func TestFailures(t *testing.T) {
	few := New(Options{Skills: pick(t, "kiln", "tide")})
	many := New(Options{Skills: crowd(t, 45)})
	forty := New(Options{Skills: crowd(t, 40)})
	none := New(Options{})
	gone := pick(t, "kiln")
	if err := os.Remove(filepath.Join(gone[0].Dir(), "references", "cones.md")); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range []struct {
		set             *Set
		name, arguments string
	}{
		{few, ReadName, `{"skill":`},
		{few, ReadName, `{}`},
		{none, ReadName, `{}`},
		{few, ReadName, `{"skill":"sextant"}`},
		{few, ReadName, `{"skill":"tides"}`},
		{many, ReadName, `{"skill":"trade-99"}`},
		{many, ReadName, `{"skill":"sextant"}`},
		{forty, ReadName, `{"skill":"sextant"}`},
		{few, ReadName, `{"skill":"kiln","path":"references/kones.md"}`},
		{few, ReadName, `{"skill":"kiln","path":"docs/cones.txt"}`},
		{few, ReadName, `{"skill":"kiln","path":"scripts/fire.py"}`},
		{few, ReadName, `{"skill":"tide","path":"scripts/fire.py"}`},
		{few, ReadName, `{"skill":"kiln","path":"references/long.md","offset":"page 2"}`},
		{few, ReadName, `{"skill":"kiln","path":"references/long.md","offset":4000}`},
		{few, ReadName, `{"skill":"kiln","path":"references","offset":4000}`},
		{few, ReadName, `{"skill":"kiln","path":"../tide/SKILL.md"}`},
		{few, ReadName, `{"skill":"kiln","path":"/etc/passwd"}`},
		{few, ReadName, `{"skill":"kiln","path":"~/.ssh/id_rsa"}`},
		{few, ReadName, `{"skill":"kiln","path":"C:\\Users"}`},
		{few, ReadName, `{"skill":"kiln","path":"\\\\host\\share"}`},
		{few, ReadName, `{"skill":"kiln","path":["nothing.md","references/cones.md"]}`},
		{New(Options{Skills: gone}), ReadName, `{"skill":"kiln","path":"references/cones.md"}`},
		{few, ListName, `{"offset":2}`},
		{few, "kiln", `{}`},
	} {
		r := invoke(t, c.set, c.name, c.arguments)
		if r.OK {
			t.Errorf("%s(%s) is OK", c.name, c.arguments)
		}
		fmt.Fprintf(&b, ">>> %s(%s)\n%s\n\n", c.name, c.arguments, r.Text)
	}
	golden(t, "failures.txt", strings.TrimSpace(b.String()))
}

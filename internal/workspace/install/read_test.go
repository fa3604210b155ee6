package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// FuzzRead: whatever the line, what is left of it is a line of the shell that
// asks for nothing, and differs from it only where an install stood.
func FuzzRead(f *testing.F) {
	for _, s := range settings() {
		for _, line := range s.lines {
			if len(line) < 1000 {
				f.Add(line, uint8(0))
				f.Add(line, uint8(5))
				f.Add(line, uint8(8))
			}
		}
	}
	f.Fuzz(func(t *testing.T, line string, bits uint8) {
		o := Options{Allowed: bits&1 == 0, Network: bits&2 != 0, Manifest: manifest}
		if bits&8 != 0 {
			o.Program = func(name string) bool { return len(name)%2 == 0 }
		}
		if bits&4 != 0 {
			o.Provided = func(Kind, string) bool { return true }
		}
		sound(t, line, o)
	})
}

func sound(t *testing.T, line string, o Options) {
	t.Helper()
	r := Read(line, o)
	if r.Refusal != "" {
		if len(r.Requests) > 0 || r.Line(nil) != line || r.Only {
			t.Errorf("%q: refused and still read: %+v", line, r)
		}
		return
	}
	_, wrong := parse(line)
	for _, results := range [][]bool{nil, slices.Repeat([]bool{true}, len(r.Requests)), slices.Repeat([]bool{true, false}, len(r.Requests))} {
		left := r.Line(results)
		if len(r.Requests) == 0 && left != line && o.Program == nil {
			t.Errorf("%q: became %q", line, left)
		}
		if _, now := parse(left); wrong == "" && now != "" {
			t.Errorf("%q: %q does not parse: %s", line, left, now)
		}
		if again := Read(left, o); len(again.Requests) > 0 || again.Refusal != "" {
			t.Errorf("%q: %q still asks: %+v", line, left, again)
		}
		outside(t, line, left, r, results)
	}
	for _, q := range r.Requests {
		for _, s := range q.Specs {
			if text := s.Text(q.Kind); strings.HasPrefix(text, "-") || strings.Contains(text, "://") || strings.ContainsAny(text, "\n\x00\\$`") {
				t.Errorf("%q: asks for %q", line, text)
			}
		}
	}
}

// outside checks the bytes between the edits, which an independent walk over
// them finds again in the line that is left.
func outside(t *testing.T, line, left string, r Reading, results []bool) {
	t.Helper()
	edits := slices.Clone(r.script.edits)
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	at, rest := 0, left
	for _, e := range edits {
		if e.from < at {
			continue
		}
		var found bool
		if rest, found = strings.CutPrefix(rest, line[at:e.from]); !found {
			t.Fatalf("%q: %q lost %q", line, left, line[at:e.from])
		}
		text, end := e.render(line, results)
		if rest, found = strings.CutPrefix(rest, text); !found {
			t.Fatalf("%q: %q has not %q", line, left, text)
		}
		for strings.HasPrefix(rest, " \\\n") && !strings.HasPrefix(line[end:], " \\\n") {
			rest = rest[3:]
		}
		at = end
	}
	if len(edits) > 0 && !strings.HasSuffix(left, line[at:]) || strings.Count(line, "\n") != strings.Count(left, "\n") && !nests(edits) {
		t.Fatalf("%q: became %q", line, left)
	}
}

func nests(edits []edit) bool {
	return slices.ContainsFunc(edits, func(e edit) bool { return e.inner != nil })
}

// made is a line that a test makes, with what must be left of it.
type made struct {
	line, done string
	names      []string
}

// lines makes lines of the shell's grammar with installs in all places that are
// read.
func lines(depth int) *rapid.Generator[made] {
	return rapid.Custom(func(t *rapid.T) made {
		kinds := 3
		if depth > 0 {
			kinds = 12
		}
		sub := func() made { return lines(depth-1).Draw(t, "sub") }
		two := func(format string) made {
			a, b := sub(), sub()
			return made{fmt.Sprintf(format, a.line, b.line), fmt.Sprintf(format, a.done, b.done), append(a.names, b.names...)}
		}
		one := func(format string) made {
			a := sub()
			return made{fmt.Sprintf(format, a.line), fmt.Sprintf(format, a.done), a.names}
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			name := rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "name")
			form := rapid.SampledFrom([]string{"pip install %s", "python3 -m pip install -q '%s'", "npm i %s", "sudo pip install \"%s\"", "env A=b pip  install\t%s"}).Draw(t, "form")
			tail := rapid.SampledFrom([]string{"", " > log", " 2>&1", " >/dev/null 2>&1"}).Draw(t, "tail")
			return made{fmt.Sprintf(form, name) + tail, "true" + tail, []string{name}}
		case 1, 2:
			text := rapid.SampledFrom([]string{"echo 'pip install x'", "X=1 python y.py", "grep \"npm i x\" f", "cat <<E\npip install x\nE\n:", "ls # pip install x\n:"}).Draw(t, "plain")
			return made{text, text, nil}
		case 3:
			return two("%s\n%s")
		case 4:
			return two("{ %s\n} && { %s\n}")
		case 5:
			return two("{ %s\n} || ( %s\n)")
		case 6:
			return two("if %s\nthen %s\nfi")
		case 7:
			return one("for i in 1 2; do %s\ndone")
		case 8:
			return one("f() { %s\n}")
		case 9:
			return one("echo \"$( %s\n)\" $(( 1 + 2 ))")
		case 10:
			return one("case x in a) %s\n;; esac")
		default:
			return one("echo y | { %s\n} | tee log")
		}
	})
}

// TestGrammar: every install of a line is found, in order, and nothing else of
// the line changes.
func TestGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := lines(3).Draw(t, "line")
		r := Read(m.line, Options{Allowed: true})
		if r.Refusal != "" {
			t.Fatalf("%q: %s", m.line, r.Refusal)
		}
		var names []string
		for _, q := range r.Requests {
			names = append(names, q.Specs[0].Name)
		}
		if !slices.Equal(names, m.names) {
			t.Fatalf("%q: found %q, want %q", m.line, names, m.names)
		}
		if left := r.Line(slices.Repeat([]bool{true}, len(names))); left != m.done {
			t.Fatalf("%q: left %q, want %q", m.line, left, m.done)
		}
	})
}

// TestHostile: no line takes the process down, whatever it repeats. The stack of
// the parser is the danger, and the repetition goes to where a line is not parsed
// any more.
func TestHostile(t *testing.T) {
	for _, piece := range []string{
		"(", "((", "$(", "$((", "{ ", "[[ ( ", "[[ ! ", "a[", "if ", "while ", "`", "\"$(", "${a:-", "! ", "time ", "a && ", "a | ", "<(",
		"bash -c '", "eval \"", "cat <<E\n",
	} {
		for _, size := range []int{1000, 1 << 15} {
			line := strings.Repeat(piece, size/len(piece)+1)
			Read(line+"\npip install x", Options{Allowed: true})
			if size == 1000 {
				sound(t, "pip install "+line, Options{Allowed: true})
				sound(t, "eval '"+line+"\npip install x'", Options{Allowed: true})
			}
		}
	}
	for _, depth := range []int{50, 1 << 16} {
		r := Read("pip install x; "+strings.Repeat("(", depth)+"true"+strings.Repeat(")", depth), Options{Allowed: true})
		if refused := r.Refusal != ""; refused != (depth > 50) {
			t.Errorf("%d levels: %q", depth, r.Refusal)
		}
	}
}

// TestLong: the time for a line grows with its length and not with its square,
// which for these would be minutes.
func TestLong(t *testing.T) {
	const size = 200 << 10
	for _, piece := range []string{
		"xargs ", "xargs pip ", "xargs su ", "sudo ", "pip ", "pip install x;", "pip install x | ", "bash -c ", "find pip ", "npx ", "PIP_X=1 ",
		"export PIP_INDEX_URL=1;", "python -m ", "pip install x>=1", "-r ", "\\\n", "a=b ", "cd x;", "pip install -r r;",
	} {
		start := time.Now()
		r := Read("pip install x;"+strings.Repeat(piece, size/len(piece)), Options{Allowed: true, Most: size})
		r.Line(nil)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%d bytes of %q took %v", size, piece, took)
		} else if testing.Verbose() {
			t.Logf("%d bytes of %q took %v", size, piece, took)
		}
	}
}

// TestRefusedPipe pins seed 1's own bug: an install that is refused or failed
// must not hide behind the status of a tail.
func TestRefusedPipe(t *testing.T) {
	refused := Read("pip install -i https://example.test x | tail -5", Options{Allowed: true})
	if refused.Refusal == "" || len(refused.Requests) > 0 {
		t.Errorf("not refused: %+v", refused)
	}
	for line, want := range map[string]string{
		"pip install x | tail -5 && python y.py":        "false && python y.py",
		"pip install x 2>&1 | tee log && python y.py":   "false 2>&1 && python y.py",
		"yes | pip install x | tail -1 && python y.py":  "yes | false && python y.py",
		"pip install x | pip install y | cat; echo":     "false; echo",
		"pip install x |& grep -v warning && echo done": "false && echo done",
	} {
		if left := Read(line, Options{Allowed: true}).Line([]bool{false}); left != want {
			t.Errorf("%q: left %q, want %q", line, left, want)
		}
	}
}

// TestOrder: the second of two installs fails alone, in the place of its own
// (B1 13.10).
func TestOrder(t *testing.T) {
	r := Read("pip install a && npm i b; pip install c", Options{Allowed: true})
	if left := r.Line([]bool{true, false}); left != "true && false; false" {
		t.Error(left)
	}
}

// TestLooks: however many programs a line runs and however deep, the workspace is asked
// for a bounded number.
func TestLooks(t *testing.T) {
	asked := 0
	o := Options{Allowed: true, Program: func(name string) bool {
		if strings.Contains(name, "/") {
			asked++
		}
		return name == "x"
	}}
	r := Read("cd "+strings.Repeat("a/", 2000)+"; "+strings.Repeat("npx x;", 1000), o)
	if asked != mostLooks || strings.Contains(r.Line(nil), "npx") {
		t.Errorf("%d looks, %q", asked, r.Refusal)
	}
}

// TestNotFiles: what a refusal is about, the options decide; the workspace is not
// asked for files that no install names.
func TestNotFiles(t *testing.T) {
	asked := 0
	o := Options{Allowed: true, Manifest: func(string) ([]byte, error) { asked++; return nil, bytes.ErrTooLarge }}
	Read("pip install x; npm i y; cat requirements.txt package.json; npm test", o)
	if asked != 0 {
		t.Errorf("%d files were asked for", asked)
	}
}

// TestNames: names are compared as their registry does (B1 13.15, 13.16).
func TestNames(t *testing.T) {
	for _, name := range []string{"ruamel.yaml", "Ruamel_YAML", "ruamel--yaml", "RUAMEL-._yaml"} {
		if normal(name) != "ruamel-yaml" {
			t.Errorf("%q is %q", name, normal(name))
		}
	}
	var seen []string
	o := Options{Provided: func(k Kind, name string) bool { seen = append(seen, string(k)+" "+name); return true }}
	Read("pip install Ruamel_YAML; npm i JSONStream", o)
	if !slices.Equal(seen, []string{"pip ruamel-yaml", "npm JSONStream"}) {
		t.Errorf("%q", seen)
	}
}

// FuzzRequirement: what is accepted is one requirement and nothing that pip would
// take for an option, a place or a second one.
func FuzzRequirement(f *testing.F) {
	for _, s := range []string{"x", "x==1", "x[a]>=1,<2 ; python_version < '3'", "x @ https://example.test", "-e .", "x\n-r y", "x;'\\'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problem := requirement(text)
		if problem != "" {
			return
		}
		again, problem := requirement(s.Text(Pip))
		if problem != "" || again.Text(Pip) != s.Text(Pip) {
			t.Errorf("%q is %q and then %q, %s", text, s.Text(Pip), again.Text(Pip), problem)
		}
		if strings.ContainsAny(s.Text(Pip), "\n\r\x00@/\\#") || s.Text(Pip)[0] == '-' {
			t.Errorf("%q is %q", text, s.Text(Pip))
		}
	})
}

// FuzzSpec is the same for npm.
func FuzzSpec(f *testing.F) {
	for _, s := range []string{"x", "@a/b@^1", "x@latest", "x@>=1 <2 || 3", "x@npm:y", "a/b", "file:x", "x@1 - 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problem := npmSpec(text)
		if problem != "" {
			return
		}
		again, problem := npmSpec(s.Text(Npm))
		if problem != "" || again.Text(Npm) != s.Text(Npm) {
			t.Errorf("%q is %q and then %q, %s", text, s.Text(Npm), again.Text(Npm), problem)
		}
		if strings.ContainsAny(s.Version, "/:@") || strings.HasPrefix(s.Text(Npm), "-") || strings.Count(s.Name, "/") > strings.Count(s.Name, "@") {
			t.Errorf("%q is %q", text, s.Text(Npm))
		}
	})
}

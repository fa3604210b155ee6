package skill

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace/install"
)

// TestPackagesIn: the shapes in which packages are asked for (B1 3.1).
func TestPackagesIn(t *testing.T) {
	for in, want := range map[string]string{
		`"numpy"`: "numpy", `"numpy, pandas;lxml"`: "numpy|pandas|lxml", `"numpy pandas"`: "numpy|pandas", `"numpy>=1,<2, pandas == 2.0"`: "numpy>=1,<2|pandas==2.0",
		`"numpy >= 1.0"`: "numpy>=1.0", `["numpy"," lxml ",null,""]`: "numpy|lxml", `"[\"a\",\"b\"]"`: "a|b", `"@x/y@1;z"`: "@x/y@1|z", `"a\nb"`: "a|b",
		`""`: "", `null`: "", `[]`: "", `" ,; "`: "", `">=1"`: ">=1", `{"numpy":"1"}`: `{"numpy":"1"}`, `7`: "7", `[7]`: "7", `"uvicorn[standard]"`: "uvicorn[standard]",
		`["numpy>=1,<2; python_version < '3.12'"]`: "numpy>=1,<2; python_version < '3.12'",
	} {
		c, err := parseRun(`{"skill":"a","path":"b.py","args":["x"],"packages":` + in + `}`)
		if got := strings.Join(c.packages, "|"); err != nil || got != want || c.path != "b.py" || len(c.args) != 1 {
			t.Errorf("%s: %q, want %q: %v", in, got, want, err)
		}
	}
	for _, in := range []string{
		`{"arguments":{"skill":"a","path":"b.py","packages":"x"}}`, `{"skill":"a","args":{"path":"b.py","packages":["x"]}}`,
		`{"skill":"a","path":"b.py","dependencies":["x"]}`, `[{"skill":"a","path":"b.py","Packages":"x"}]`,
	} {
		if c, err := parseRun(in); err != nil || !slices.Equal(c.packages, []string{"x"}) {
			t.Errorf("%s: %q, %v", in, c.packages, err)
		}
	}
}

// TestInstallLine: whatever is asked for is one word of the line that is judged.
func TestInstallLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		packages := rapid.SliceOfN(rapid.StringMatching(`[ -~\n]{1,12}`), 1, 3).Draw(t, "packages")
		words, err := splitWords(installLine(install.Pip, packages))
		if err != nil || !slices.Equal(words, append([]string{"pip", "install"}, packages...)) {
			t.Fatalf("%q: %q, %v", packages, words, err)
		}
	})
}

// TestPackagesArgument pins what is said of packages that a call asks for, and what was
// asked of the host.
func TestPackagesArgument(t *testing.T) {
	var text strings.Builder
	for _, tt := range []struct {
		name, path, packages string
		set                  func(s *shop)
		ran                  bool
		asked                []string
	}{
		{name: "names", packages: `"yaml, lxml==5.3.0"`, ran: true, asked: []string{"pip: yaml, lxml==5.3.0"}},
		{name: "already there", packages: `["yaml"]`, set: func(s *shop) { s.packs.have["yaml"] = true }, ran: true},
		{name: "of node", path: "scripts/draw.mjs", packages: `["left-pad@1.3.0"]`, ran: true, asked: []string{"npm: left-pad@1.3.0"}},
		{name: "not to be had", packages: `["yaml"]`, set: func(s *shop) { s.packs.fail["yaml"] = "No registry that this host uses has it" }, asked: []string{"pip: yaml"}},
		{name: "an option", packages: `["--index-url=http://evil.example/"]`},
		{name: "a file", packages: `["-r", "requirements.txt"]`},
		{name: "an address", packages: `["git+https://u:p@example.org/x"]`},
		{name: "a path", packages: `["./lib"]`},
		{name: "a command", packages: `["yaml; rm -rf x"]`},
		{name: "a question", packages: `["--help"]`},
		{name: "a harmless option alone", packages: `["-q"]`},
		{name: "a substitution", packages: `["$(id)"]`},
		{name: "an object", packages: `{"yaml":"1"}`},
		{name: "not on the list", packages: `["lxml"]`, set: func(s *shop) { s.packs.may.Packages = []string{"yaml"} }},
		{name: "too many", packages: `["a","b","c"]`, set: func(s *shop) { s.packs.may.Most = 2 }},
		{name: "installs are off", packages: `["yaml"]`, set: func(s *shop) { s.packs.may.Allowed = false }, ran: true},
		{name: "no installer", packages: `["yaml"]`, set: func(s *shop) { s.place.Packages = nil }, ran: true},
		{name: "no workspace", packages: `["yaml"]`, set: func(s *shop) { s.scripts.Place = nil }, ran: true},
		{name: "without recovery", packages: `["yaml"]`, set: func(s *shop) { s.place.NoRecovery = true }, ran: true, asked: []string{"pip: yaml"}},
	} {
		s := newShop(t, nil)
		if tt.set != nil {
			tt.set(&s)
		}
		path := tt.path
		if path == "" {
			path = "scripts/fire.py"
		}
		r := invoke(t, s.Set, RunName, `{"skill":"kiln","path":"`+path+`","packages":`+tt.packages+`}`)
		if r.OK != tt.ran || (s.runner.count == 1) != tt.ran {
			t.Errorf("%s: ran %d times: %s", tt.name, s.runner.count, r.Text)
		}
		if diff := cmp.Diff(tt.asked, s.packs.asked); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		fmt.Fprintf(&text, ">>> %s\n%s\n\n", tt.name, r.Text)
	}
	golden(t, "packages.txt", strings.TrimSpace(text.String()))
	s := newShop(t, nil)
	s.packs.fail["yaml"] = "the host's"
	if _, err := s.Invoke(t.Context(), callOf(`{"skill":"kiln","path":"scripts/fire.py","packages":"yaml"}`), envOf()); err == nil {
		t.Error("a fault of the host is none")
	}
}

// TestLists: what a skill lists is installed once a conversation, and nothing else that
// stands in its files (B1 15.4).
func TestLists(t *testing.T) {
	const hostile = "--index-url http://evil.example/\n-e .\npandas==2.1 --hash=sha256:00\ngit+https://u:secret@example.org/x\nhttps://example.org/x.whl\n./lib\n../../etc/passwd\nx @ file:///etc\n$(id)\n-r other.txt\n'; touch x\nyaml # a comment\n"
	var long strings.Builder
	for i := range 20 {
		fmt.Fprintf(&long, "p%d\n", i)
	}
	var text strings.Builder
	for _, tt := range []struct {
		name, path string
		files      map[string]string
		set        func(s *shop)
		asked      []string
	}{
		{name: "both places", files: map[string]string{"requirements.txt": "\ufeff# for all\r\nPyYAML>=6,<7 ; python_version > \"3.8\"\r\n\r\nuvicorn[standard]\r\n", "scripts/requirements.txt": "lxml\n"}, asked: []string{`pip: PyYAML>=6,<7 ; python_version > "3.8", uvicorn[standard]`, "pip: lxml"}},
		{name: "a continued line", files: map[string]string{"requirements.txt": "yaml \\\n  >=6\n"}, asked: []string{"pip: yaml>=6"}},
		{name: "hostile lines", files: map[string]string{"requirements.txt": hostile}, asked: []string{"pip: yaml"}},
		{name: "a long list", files: map[string]string{"requirements.txt": long.String()}, asked: []string{"pip: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15"}},
		{name: "nothing in it", files: map[string]string{"requirements.txt": "# nothing\n"}},
		{name: "there already", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.packs.have["yaml"] = true }},
		{name: "not to be had", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.packs.fail["yaml"] = "No registry answers" }, asked: []string{"pip: yaml"}},
		{name: "not on the list", files: map[string]string{"requirements.txt": "yaml\nlxml\n"}, set: func(s *shop) { s.packs.may.Packages = []string{"lxml"} }, asked: []string{"pip: lxml"}},
		{name: "of node", path: "scripts/draw.mjs", files: map[string]string{"requirements.txt": "yaml\n", "package.json": `{"dependencies":{"chalk":"^5"},"devDependencies":{"mocha":"1"}}`}, asked: []string{"npm: chalk@^5"}},
		{name: "of node, hostile", path: "scripts/draw.mjs", files: map[string]string{"package.json": `{"dependencies":{"chalk":"github:evil/chalk"}}`}},
		{name: "of node, broken", path: "scripts/draw.mjs", files: map[string]string{"scripts/package.json": `{`}},
		{name: "of node, only a type", path: "scripts/draw.mjs", files: map[string]string{"package.json": `{"type":"module"}`}},
		{name: "of a shell", path: "scripts/cool down.sh", files: map[string]string{"requirements.txt": "yaml\n", "package.json": `{"dependencies":{"chalk":"5"}}`}, asked: []string{"pip: yaml", "npm: chalk@5"}},
		{name: "installs are off", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.packs.may.Allowed = false }},
		{name: "no installer", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.place.Packages = nil }},
		{name: "without recovery", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.place.NoRecovery = true }},
		{name: "no workspace", files: map[string]string{"requirements.txt": "yaml\n"}, set: func(s *shop) { s.scripts.Place = nil }},
	} {
		s := newShop(t, func(o *Options, _ *Place) {
			dir := filepath.Dir(o.Skills[0].Dir())
			for name, content := range tt.files {
				write(t, filepath.Join(dir, "kiln", filepath.FromSlash(name)), content)
			}
			o.Skills = load(t, dir)
		})
		if tt.set != nil {
			tt.set(&s)
		}
		path := tt.path
		if path == "" {
			path = "scripts/fire.py"
		}
		call := `{"skill":"kiln","path":"` + path + `"}`
		r := invoke(t, s.Set, RunName, call)
		if !r.OK || s.runner.count != 1 {
			t.Errorf("%s: %s", tt.name, r.Text)
		}
		fmt.Fprintf(&text, ">>> %s\n%s\n\n", tt.name, r.Text)
		// Again, and from a set of another request of the same conversation.
		again := New(Options{Skills: s.skills, Runner: s.runner, Scripts: s.scripts})
		if r := invoke(t, again, RunName, call); !r.OK || strings.Contains(r.Text, "of the skill") {
			t.Errorf("%s, again: %s", tt.name, r.Text)
		}
		if diff := cmp.Diff(tt.asked, s.packs.asked); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	golden(t, "lists.txt", strings.TrimSpace(text.String()))
}

// missingModule is the output of a script that does not find a module.
func missingModule(name string) sandbox.Result {
	return said(1, "", "Traceback (most recent call last):\n  File \"kiln/scripts/fire.py\", line 1, in <module>\n    import "+name+"\nModuleNotFoundError: No module named '"+name+"'\n")
}

// plays has the runner play a script that goes from one result to the next.
func (s shop) plays(results ...sandbox.Result) {
	next := 0
	s.runner.do = func(sandbox.Launch) {
		s.runner.result = results[min(next, len(results)-1)]
		next++
	}
}

// TestAutoInstall: what a script misses is installed and the script run again, as often
// as is allowed (B1 15.4), and what came of it is told.
func TestAutoInstall(t *testing.T) {
	done := said(0, "done\n", "")
	late := missingModule("yaml")
	late.Ended = sandbox.TimedOut
	node := said(1, "", "Error: Cannot find module 'chalk'\nRequire stack:\n- $SKILL/scripts/draw.mjs\n")
	many := func() (results []sandbox.Result) {
		for i := range 9 {
			results = append(results, missingModule(fmt.Sprintf("m%d", i)))
		}
		return results
	}
	var text strings.Builder
	for _, tt := range []struct {
		name    string
		results []sandbox.Result
		set     func(s *shop)
		ok      bool
		runs    int
		asked   []string
	}{
		{name: "one", results: []sandbox.Result{missingModule("yaml"), done}, ok: true, runs: 2, asked: []string{"pip: PyYAML"}},
		{name: "two", results: []sandbox.Result{missingModule("yaml"), missingModule("lxml"), done}, ok: true, runs: 3, asked: []string{"pip: PyYAML", "pip: lxml"}},
		{name: "of node", results: []sandbox.Result{node, done}, ok: true, runs: 2, asked: []string{"npm: chalk"}},
		{name: "then another failure", results: []sandbox.Result{missingModule("yaml"), said(2, "", "usage\n")}, runs: 2, asked: []string{"pip: PyYAML"}},
		{name: "it does not help", results: []sandbox.Result{missingModule("yaml")}, runs: 2, asked: []string{"pip: PyYAML"}},
		{name: "more than are allowed", results: many(), runs: 6, asked: []string{"pip: m0", "pip: m1", "pip: m2", "pip: m3", "pip: m4"}},
		{name: "not to be had", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.packs.fail["PyYAML"] = "No registry that this host uses has it" }, runs: 1, asked: []string{"pip: PyYAML"}},
		{name: "not to be had now", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.packs.fail["PyYAML"], s.packs.again = "The registry did not answer", true }, runs: 1, asked: []string{"pip: PyYAML"}},
		{name: "not on the list", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.packs.may.Packages = []string{"lxml"} }, runs: 1},
		{name: "on the list", results: []sandbox.Result{missingModule("yaml"), done}, set: func(s *shop) { s.packs.may.Packages = []string{"pyyaml"} }, ok: true, runs: 2, asked: []string{"pip: PyYAML"}},
		{name: "the host has it", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) {
			s.packs.may.Provided = func(_ install.Kind, name string) bool { return name == "pyyaml" }
		}, runs: 1},
		{name: "a part of the skill", results: []sandbox.Result{missingModule("glaze")}, runs: 1},
		{name: "a part of Python", results: []sandbox.Result{missingModule("tomllib")}, runs: 1},
		{name: "the deadline", results: []sandbox.Result{late}, runs: 1},
		{name: "a success that says so", results: []sandbox.Result{said(0, "ModuleNotFoundError: No module named 'yaml'\n", "")}, ok: true, runs: 1},
		{name: "installs are off", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.packs.may.Allowed = false }, runs: 1},
		{name: "no installer", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.place.Packages = nil }, runs: 1},
		{name: "without recovery", results: []sandbox.Result{missingModule("yaml")}, set: func(s *shop) { s.place.NoRecovery = true }, runs: 1},
	} {
		s := newShop(t, nil)
		if tt.set != nil {
			tt.set(&s)
		}
		s.plays(tt.results...)
		r := invoke(t, s.Set, RunName, runFire)
		if r.OK != tt.ok || s.runner.count != tt.runs {
			t.Errorf("%s: ran %d times: %s", tt.name, s.runner.count, r.Text)
		}
		if diff := cmp.Diff(tt.asked, s.packs.asked); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		fmt.Fprintf(&text, ">>> %s ok=%t\n%s\n\n", tt.name, r.OK, r.Text)
	}
	golden(t, "auto_install.txt", strings.TrimSpace(text.String()))
}

// TestAutoInstallRemembers: what could not be had is not asked for again, unless the next
// try may end otherwise.
func TestAutoInstallRemembers(t *testing.T) {
	for again, want := range map[bool]int{false: 1, true: 2} {
		s := newShop(t, nil)
		s.packs.fail["PyYAML"], s.packs.again = "No registry that this host uses has it", again
		for range 2 {
			s.plays(missingModule("yaml"))
			invoke(t, s.Set, RunName, runFire)
		}
		if len(s.packs.asked) != want {
			t.Errorf("again %t: asked for %q", again, s.packs.asked)
		}
	}
}

// TestAutoInstallTime: the second run has what the first one and the install left of the
// time, and there is none when they left nothing.
func TestAutoInstallTime(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{59 * time.Second: time.Second, 60 * time.Second: 0, time.Hour: 0} {
		s := newShop(t, nil)
		clock := time.Unix(1, 0)
		s.now = func() time.Time { return clock }
		s.packs.use = func(install.Request) { clock = clock.Add(took) }
		s.plays(missingModule("yaml"), said(0, "", ""))
		r := invoke(t, s.Set, RunName, runFire)
		switch {
		case want > 0 && (!r.OK || s.runner.count != 2 || s.runner.last.Deadline != want):
			t.Errorf("%v: %d runs, the last with %v", took, s.runner.count, s.runner.last.Deadline)
		case want == 0 && (r.OK || s.runner.count != 1 || !strings.Contains(r.Text, "Call skills_run again with the same arguments.")):
			t.Errorf("%v: %d runs: %s", took, s.runner.count, r.Text)
		}
	}
}

package diagnose

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

// seeds are the outputs of real programs.
func seeds(f *testing.F) {
	for _, group := range []string{"python", "node", "shells", "compilers"} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", group+".txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
}

// tame reports whether a sentence is fit for a model: no control characters, and of a
// bounded length.
func tame(text string, most int) bool {
	return utf8.ValidString(text) && !strings.ContainsAny(text, "\x00\x1b\r\x07\u202e\u200b\u2028") && len(text) <= most
}

// FuzzRead: whatever an output is, all sentences about it are tame, and names that go
// on to installers and probes have the shape of names.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Add("ModuleNotFoundError: No module named 'a\x1b[31mb'\nbash: \x1b]0;x\x07y: command not found")
	on := Facts{Installs: true, Python: "3.8", Files: slices.Values([]string{"a.py", "b/c.py"}), Program: func(string) bool { return true }}
	f.Fuzz(func(t *testing.T, output string) {
		for _, o := range []Facts{{}, on} {
			if text := Read(output, o).Coach(); !tame(text, 2000) || strings.Contains(text, "\n") {
				t.Errorf("%q", text)
			}
		}
		if m, ok := Missing(output); ok && m.Distribution != "" && !pipName.MatchString(m.Distribution) && !npmName.MatchString(m.Distribution) {
			t.Errorf("%+v", m)
		}
		if h, ok := Repair(output, workspace); ok && (!tame(h.Sentence(), 4000) || h.Line < 1) {
			t.Errorf("%+v", h)
		}
		if m, ok := lastMiss(output); ok {
			if p, ok := m.Probe(output, workspace, probeTime); ok && (len(p.Args) > 5+mostRoots || slices.ContainsFunc(p.Args, func(a string) bool { return strings.IndexByte(a, 0) >= 0 })) {
				t.Errorf("%q", p.Args)
			}
		}
	})
}

func FuzzReadProbe(f *testing.F) {
	f.Add("metier-probe 1\nwhat class X\nnear a b\nhas a b c\nmore 3\n")
	f.Fuzz(func(t *testing.T, output string) {
		for _, form := range []Form{Attribute, Keyword, SubPath} {
			if text := ReadProbe(Miss{Form: form, Name: "x"}, output); !tame(text, 200+(mostNames+mostNear+2)*(longestName*4+2)) || strings.Contains(text, "\n") {
				t.Errorf("%q", text)
			}
		}
	})
}

func FuzzPaths(f *testing.F) {
	f.Add("File \"/srv/m/ws/s-1/work/src/a.py\", line 3\n/srv/m/ws/s-1/state/run-12.sh: line 43: x\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := bench().Rewrite(text)
		if !strings.Contains(text, "/srv/m") && !strings.Contains(text, "/tmp/m-77") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if len(got) > 3*len(text)+10 {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	})
}

// FuzzLine: no line makes the readers of lines fail, and what is redirected into is a
// clean path.
func FuzzLine(f *testing.F) {
	for _, line := range []string{"cat > a.py <<'E'\nx\nE\n", "set -e; cd a && grep x b | tee -a c", "if [ -f a ]; then diff a b; fi > out", "A=1 git -C x diff >&2"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, r := range Redirects(line) {
			if r.Path == "" || strings.IndexByte(r.Path, 0) >= 0 {
				t.Errorf("%q", r.Path)
			}
		}
		if name, ok := Benign(line, 1, ""); ok && BenignMeaning(name) == "" {
			t.Errorf("%q", name)
		}
	})
}

func FuzzRewrites(f *testing.F) {
	f.Add(text(numberedLines(40)), text(numberedLines(41)))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		if note := Rewrites([]Rewrite{{"a\x1b", before, after}}, 1<<20); !tame(note, 4000) {
			t.Errorf("%q", note)
		}
	})
}

package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
)

// broken is the end of a script by its own fault, in its third line.
func broken(in string) sandbox.Result {
	return said(1, "", "Traceback (most recent call last):\n  File \""+in+"\", line 3, in <module>\n    print(total / count)\n          ~~~~~~^~~~~~~\nZeroDivisionError: division by zero\n")
}

const fireText = "total = 6\ncount = 0\nprint(total / count)\n"

// newForge is a shop whose script fails as its text says.
func newForge(t *testing.T, change func(*Options, *Place)) shop {
	t.Helper()
	s := newShop(t, func(o *Options, p *Place) {
		dir := filepath.Dir(o.Skills[0].Dir())
		write(t, filepath.Join(dir, "kiln", "scripts", "fire.py"), fireText)
		o.Skills = load(t, dir)
		if change != nil {
			change(o, p)
		}
	})
	s.plays(broken(filepath.Join(s.dir, "kiln", "scripts", "fire.py")))
	return s
}

func (s shop) repairs() string { return filepath.Join(s.w.Work(), workspace.Repairs) }

// TestRepair pins what a model is told of a script that fails by its own fault, and what
// it is given (B1 15.8).
func TestRepair(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of one system in the golden file")
	}
	s := newForge(t, nil)
	var text strings.Builder
	show := func(name, got string) {
		fmt.Fprintf(&text, ">>> %s\n%s\n\n", name, strings.ReplaceAll(got, s.dir, "/SKILLS"))
	}
	call := `{"skill":"kiln","path":"scripts/fire.py","args":["--note","it's \"hot\"","$HOME"]}`
	first := invoke(t, s.Set, RunName, call)
	show("the first failure", first.Text)
	if first.OK || len(first.Files) != 0 {
		t.Errorf("%+v", first)
	}
	copied, made := filepath.Join(s.repairs(), "kiln", "scripts", "fire.py"), filepath.Join(s.repairs(), ".run", "kiln", "scripts", "fire.py")
	if got := readFile(t, copied); got != fireText {
		t.Errorf("the copy is %q", got)
	}
	show("the launcher", readFile(t, made))
	if !s.w.Seen.Knows(workspace.Repairs+"/kiln/scripts/fire.py", []byte(fireText), 1, 3) {
		t.Error("the lines that were shown do not count as seen")
	}
	if again := invoke(t, s.Set, RunName, call); again.Text != first.Text {
		t.Errorf("again: %s", again.Text)
	}
	write(t, filepath.Join(s.w.Work(), "a b", "x"), "x")
	s.cd(t, filepath.Join(s.w.Work(), "a b"))
	show("from another directory", invoke(t, s.Set, RunName, call).Text)
	write(t, copied, "print('corrected')\n")
	write(t, made, "print('changed as well')\n")
	show("with a changed copy", invoke(t, s.Set, RunName, call).Text)
	if readFile(t, copied) != "print('corrected')\n" || readFile(t, made) != "print('changed as well')\n" {
		t.Error("the model's own copy was written over")
	}
	golden(t, "repair.txt", strings.TrimSpace(text.String()))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestNoRepair: there is no copy where the script is not to blame, as far as can be
// told, or where a model could do nothing with it.
func TestNoRepair(t *testing.T) {
	frame := func(s shop) string {
		return "Traceback (most recent call last):\n  File \"" + filepath.Join(s.dir, "kiln", "scripts", "fire.py") + "\", line 3, in <module>\n"
	}
	for name, set := range map[string]func(s *shop){
		"no tools for files": func(s *shop) { s.place.Files = false },
		"without recovery":   func(s *shop) { s.place.NoRecovery = true },
		"no workspace":       func(s *shop) { s.scripts.Place = nil },
		"the end is in another file": func(s *shop) {
			s.plays(said(1, "", frame(*s)+"  File \""+filepath.Join(s.dir, "kiln", "lib", "glaze", "mix.py")+"\", line 1, in mix\nValueError: no\n"))
		},
		"the end is in a library": func(s *shop) {
			s.plays(said(1, "", frame(*s)+"  File \"/usr/lib/python3.11/csv.py\", line 1, in mix\nValueError: no\n"))
		},
		"a part of the skill": func(s *shop) { s.plays(said(1, "", frame(*s)+"ModuleNotFoundError: No module named 'glaze'\n")) },
		"a file is missing": func(s *shop) {
			s.plays(said(1, "", frame(*s)+"FileNotFoundError: [Errno 2] No such file or directory: 'in.csv'\n"))
		},
		"no traceback":  func(s *shop) { s.plays(said(2, "", "usage: fire.py\n")) },
		"a success":     func(s *shop) { s.plays(said(0, "", frame(*s)+"ValueError: no\n")) },
		"the deadline":  func(s *shop) { r := broken("kiln/scripts/fire.py"); r.Ended = sandbox.TimedOut; s.plays(r) },
		"another skill": func(s *shop) { s.plays(broken("tide/scripts/fire.py")) },
	} {
		s := newForge(t, nil)
		set(&s)
		r := invoke(t, s.Set, RunName, runFire)
		if _, err := os.Lstat(s.repairs()); err == nil || strings.Contains(r.Text, workspace.Repairs) {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
	s := newForge(t, func(o *Options, _ *Place) {
		o.Scripts.Kinds = map[string]interpreter.Kind{".py": interpreter.Bash}
	})
	if r := invoke(t, s.Set, RunName, runFire); strings.Contains(r.Text, workspace.Repairs) {
		t.Errorf("what Python does not run: %s", r.Text)
	}
}

// TestRepairThroughLinks: nothing is written outside of the workspace, whatever the
// model has put in the way.
func TestRepairThroughLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no links")
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "victim"), "untouched")
	for name, lay := range map[string]func(repairs string) error{
		"the folder of all copies": func(repairs string) error { return os.Symlink(outside, repairs) },
		"the folder of the skill": func(repairs string) error {
			return errors.Join(os.Mkdir(repairs, 0o755), os.Symlink(outside, filepath.Join(repairs, "kiln")))
		},
		"the copy": func(repairs string) error {
			return errors.Join(os.MkdirAll(filepath.Join(repairs, "kiln", "scripts"), 0o755), os.Symlink(filepath.Join(outside, "victim"), filepath.Join(repairs, "kiln", "scripts", "fire.py")))
		},
		"a link that leads nowhere": func(repairs string) error {
			return errors.Join(os.MkdirAll(filepath.Join(repairs, "kiln", "scripts"), 0o755), os.Symlink(filepath.Join(outside, "new"), filepath.Join(repairs, "kiln", "scripts", "fire.py")))
		},
		"the launchers": func(repairs string) error {
			return errors.Join(os.Mkdir(repairs, 0o755), os.Symlink(outside, filepath.Join(repairs, ".run")))
		},
		"a folder in place of the copy": func(repairs string) error {
			return os.MkdirAll(filepath.Join(repairs, "kiln", "scripts", "fire.py"), 0o755)
		},
		"a file in place of a folder": func(repairs string) error { return os.WriteFile(repairs, nil, 0o600) },
	} {
		for _, early := range []bool{true, false} { // before the script, or by it
			s := newForge(t, nil)
			put := func(sandbox.Launch) {
				if err := lay(s.repairs()); err != nil && !errors.Is(err, os.ErrExist) {
					t.Fatal(err)
				}
			}
			if early {
				put(sandbox.Launch{})
			} else {
				fails := s.runner.do
				s.runner.do = func(l sandbox.Launch) { put(l); fails(l) }
			}
			r := invoke(t, s.Set, RunName, runFire)
			if r.OK || strings.Contains(r.Text, workspace.Repairs+"/") || strings.Contains(r.Text, "untouched") {
				t.Errorf("%s: %s", name, r.Text)
			}
			entries, err := os.ReadDir(outside)
			if err != nil || len(entries) != 1 || readFile(t, filepath.Join(outside, "victim")) != "untouched" {
				t.Fatalf("%s: %v, %v", name, entries, err)
			}
		}
	}
}

// TestWorkspaceHints pins what is said where the files are those of the conversation.
func TestWorkspaceHints(t *testing.T) {
	var text strings.Builder
	for _, tt := range []struct{ name, dir, args, stderr string }{
		{"a file of the skill", ".", `["assets/form.json"]`, "FileNotFoundError: [Errno 2] No such file or directory: 'assets/form.json'\n"},
		{"a missing file", ".", `["in.csv"]`, "FileNotFoundError: [Errno 2] No such file or directory: 'in.csv'\n"},
		{"a missing file, elsewhere", "sub", `["in.csv"]`, "FileNotFoundError: [Errno 2] No such file or directory: 'in.csv'\n"},
		{"a JSON file", "sub", `["spec.json"]`, "json.decoder.JSONDecodeError: Expecting value: line 2 column 1\n"},
		{"a JSON file, by its whole path", "sub", `["$WORK/sub/spec.json"]`, "json.decoder.JSONDecodeError: Expecting value: line 2 column 1\n"},
		{"a JSON file that leads out", "sub", `["link.json"]`, "json.decoder.JSONDecodeError: Expecting value: line 2 column 1\n"},
	} {
		s := newShop(t, nil)
		write(t, filepath.Join(s.w.Work(), "sub", "spec.json"), "{\"a\":\n}\n")
		if err := os.Symlink("/etc/passwd", filepath.Join(s.w.Work(), "sub", "link.json")); err != nil {
			t.Fatal(err)
		}
		s.cd(t, filepath.Join(s.w.Work(), tt.dir))
		s.plays(said(1, "", tt.stderr))
		args := strings.ReplaceAll(tt.args, "$WORK", s.w.Work())
		r := invoke(t, s.Set, RunName, `{"skill":"kiln","path":"scripts/fire.py","args":`+args+`}`)
		fmt.Fprintf(&text, ">>> %s\n%s\n\n", tt.name, strings.ReplaceAll(r.Text, s.w.Work(), "/WORK"))
	}
	golden(t, "workspace_hints.txt", strings.TrimSpace(text.String()))
}

//go:build unix

package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/sandbox"
)

// forge is a line that leaves a file of its own as the state of its command: %F is
// its path.
func forge(line string) string {
	return "F=" + `$(sed -n "s/^) >|'\(.*\)' 2>.*/\1/p" "$0")` + "\n" + strings.ReplaceAll(line, "%F", `"$F"`) + "\nexec true"
}

func left(state string) string {
	return forge("printf '%s' " + bash.Quote(state+"\n"+dirMark) + " >%F; pwd >>%F; printf '%s' " + bash.Quote(endMark) + " >>%F")
}

// TestHostileState: whatever a command leaves as its state, nothing of it is run, and
// the next commands run as ever (B1 9.6).
func TestHostileState(t *testing.T) {
	cases := map[string]struct {
		line  string
		reset bool
	}{
		"exit":         {left("exit 3"), true},
		"sleep":        {left("exec sleep 1000"), true},
		"loop":         {left("while :; do :; done"), true},
		"expansion":    {left(`export A="$(touch pwned)"`), true},
		"backtick":     {left("export A=\"`touch pwned`\""), true},
		"second line":  {left("export A='1'; touch pwned"), true},
		"name":         {left("export A$(touch pwned)='1'"), true},
		"quote":        {left("export A='1"), true},
		"array":        {left(`declare -ax A=([$(touch pwned)]="1")`), true},
		"function":     {left("cd() { touch pwned; }"), true},
		"path":         {left("export PATH=''"), false},
		"readonly":     {left("export BASHOPTS='x'\nexport UID='7'\nexport LINENO='7'"), false},
		"preload":      {left("export LD_PRELOAD='/nope'"), false},
		"quoted":       {left(`export A=''"'"'; touch pwned; '`), false},
		"directory":    {forge("printf '" + `\n%s/etc\n%s` + "' " + bash.Quote(dirMark) + " " + bash.Quote(endMark) + " >%F"), false},
		"no directory": {forge("printf '" + `export A=1\n%s` + "' " + bash.Quote(endMark) + " >%F"), true},
		"torn":         {forge("printf 'export A=1' >%F"), false},
		"empty":        {forge(": >%F"), false},
		"large":        {forge("dd if=/dev/zero of=%F bs=1024 count=200 2>/dev/null"), true},
		"link":         {forge("ln -s /etc/passwd %F"), true},
		"pipe":         {forge("mkfifo %F"), true},
		"folder":       {forge("mkdir -p %F/a/b"), true},
		"both":         {forge("mkfifo %F %F.reset"), true},
		"cwd link":     {"ln -sf /etc/passwd ../state/shell/cwd; exec true", false},
		"cwd pipe":     {"rm -f ../state/shell/cwd; mkfifo ../state/shell/cwd", false},
		"cwd folder":   {"rm -f ../state/shell/cwd; mkdir -p ../state/shell/cwd/x", false},
		"cwd text":     {"printf '../../../etc' >../state/shell/cwd; exec true", false},
		"mode":         {"chmod 0 ../state/shell .; exec true", false},
	}
	each(t, common(), func(t *testing.T, r *rig) {
		for name, c := range cases {
			r.vars = []variable{{name: "KEPT", value: "1"}}
			out := r.run(Command{Line: c.line})
			if out.Reset != c.reset || !out.OK() || out.Dir != "." {
				t.Errorf("%s: reset %t, dir %s, exit %d: %s", name, out.Reset, out.Dir, out.Exit, out.Stderr.Text())
			}
			out = r.run(Command{Line: "mkdir sub && cd sub && export NEXT=2"})
			if !out.OK() || out.Reset || out.Dir != "sub" || !r.remembers("NEXT", "2") {
				t.Errorf("%s: the next command: %+v %s", name, out, out.Stderr.Text())
			}
			check(t, os.Remove(r.path("sub")))
			check(t, r.writeDir(r.w.Work()))
			for _, dir := range []string{r.w.Work(), r.w.Saved()} {
				if _, err := os.Lstat(filepath.Join(dir, "pwned")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: the state of a command was run", name)
				}
			}
		}
	})
}

// TestMendFollowsNoLink: what is no folder of the workspace keeps its mode.
func TestMendFollowsNoLink(t *testing.T) {
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, &played{}, limits(t, nil))
	other := t.TempDir()
	check(t, os.Chmod(other, 0o500))
	check(t, os.Remove(r.w.Work()))
	check(t, os.Symlink(other, r.w.Work()))
	if _, err := r.Run(t.Context(), Command{Line: "true"}); err == nil {
		t.Error("a command runs elsewhere")
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	check(t, os.Remove(r.w.Work()))
	check(t, os.Mkdir(r.w.Work(), 0))
	check(t, os.Chmod(r.w.Saved(), 0))
	r.run(Command{Line: "true"})
	for _, dir := range []string{r.w.Work(), r.w.Saved()} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}

// TestConfined: it all works where it is confined, and a command cannot write what is
// this host's own.
func TestConfined(t *testing.T) {
	l := open(t, sandbox.DefaultPolicy())
	if err := l.Problem(); err != nil {
		t.Skip(err)
	}
	for name, p := range common() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p, l, limits(t, nil))
			out := r.run(Command{Line: "mkdir -p a/b; cd a/b; export X='1\n2'; umask 777; trap 'cd /' EXIT"})
			if !out.OK() || out.Dir != "a/b" || out.Reset {
				t.Fatalf("%+v %s", out, out.Stderr.Text())
			}
			r.want("pwd; echo \"$X\"; (echo x >../../../state/x) 2>/dev/null || echo no; (echo >>\"$0\") 2>/dev/null || echo no", r.path("a/b")+"\n1\n2\nno\nno\n")
			r.want("cd ../..", "")
			r.want("chmod 0 ../state/shell .", "")
			r.want("pwd", r.w.Work()+"\n") // unmended, no command could enter it
			out = r.run(Command{Line: "cd ../tmp && pwd && kill -KILL $$"})
			if out.Exit != 137 || out.Stdout.Text() != r.w.Temp()+"\n" {
				t.Errorf("%+v", out)
			}
			job, err := r.Background(t.Context(), Command{Line: "echo begun; pwd; exit 3"})
			check(t, err)
			r.ended.Wait()
			if text, err := os.ReadFile(job.Log); err != nil || !strings.HasPrefix(string(text), "begun\n") || !strings.Contains(string(text), "exit 3") {
				t.Errorf("%s %v", text, err)
			}
			r.want("tail -n 1 "+job.Shown+" | cut -c 1-20", "[job-1 ended: exit 3\n")
		})
	}
}

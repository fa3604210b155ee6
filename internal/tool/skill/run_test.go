package skill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
)

const runFire = `{"skill":"kiln","path":"scripts/fire.py","args":["--cone","6"]}`

// TestRunOffer: the tool is there if scripts are allowed, also on a host that refuses
// them, and a call of it is never run again.
func TestRunOffer(t *testing.T) {
	refusing := newBench(t, nil)
	refusing.runner.refusal = errors.New("no confinement")
	var texts []string
	for _, s := range []*Set{newBench(t, nil).Set, refusing.Set} {
		var b strings.Builder
		for _, d := range s.Offer(journal.Path{}).Declared {
			fmt.Fprintf(&b, "%s\n%s\n%s\n\n", d.Name, d.Description, d.Parameters)
		}
		texts = append(texts, strings.TrimSpace(b.String()))
	}
	golden(t, "run_offer.txt", texts[0])
	if texts[1] != texts[0] {
		t.Error("a host that refuses offers something else")
	}
	if n := len(New(Options{Runner: &fakeRunner{}}).Offer(journal.Path{}).Declared); n != 0 {
		t.Errorf("a set without skills offers %d tools", n)
	}
	for name, want := range map[string]journal.Replay{RunName: journal.Never, "run_script": journal.Never, ReadName: journal.Again, ListName: journal.Again, "fly": journal.Again} {
		if got := refusing.Replay(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestRunNames: names that other hosts taught models run scripts too, but only where
// scripts may run, and they are no names of a caller's skill tools.
func TestRunNames(t *testing.T) {
	b := newBench(t, nil)
	off := New(Options{Skills: workshop(t)})
	for i, name := range []string{"skills_run", "skill_run", "run_skill", "run-script", "execute_script", "functions.skills_run", "Skills.Run", "run_skill_script", "ExecuteSkill"} {
		if r := invoke(t, b.Set, name, runFire); !r.OK || b.runner.count != i+1 {
			t.Errorf("%s: %s", name, r.Text)
		}
		if Means(name) != "" {
			t.Errorf("%s is taken for %s", name, Means(name))
		}
		if r := invoke(t, off, name, runFire); r.OK || !strings.Contains(r.Text, "Scripts are disabled here") {
			t.Errorf("%s without a runner: %s", name, r.Text)
		}
	}
	if r := invoke(t, b.Set, "kiln", "{}"); !strings.HasSuffix(r.Text, `path="SKILL.md"). Its scripts run with skills_run.`) {
		t.Error(r.Text)
	}
	if r := invoke(t, b.Set, "chest", "{}"); strings.Contains(r.Text, "skills_run") {
		t.Error(r.Text)
	}
}

// TestLaunch: what is launched, word for word.
func TestLaunch(t *testing.T) {
	poison := []string{
		"AWS_SECRET_ACCESS_KEY=s1", "GITHUB_TOKEN=s2", "METIER_DB=s3", "PYTHONSTARTUP=s4", "LD_PRELOAD=s5", "BASH_ENV=s6", "NODE_OPTIONS=s7",
		"NODE_PATH=s8", "PYTHONPATH=s9", "HTTP_PROXY=s10", "LC_MESSAGES=s11", "LANGUAGE=s12", "HOME=/root/s13", "PATH=/s14", "SSH_AUTH_SOCK=s15",
		"lang=s16", "LANG=s17", "LANG=de_DE.UTF-8", "LC_ALL=", "TZ=Europe/Berlin\ns18", "=s19", "s20",
	}
	b := newBench(t, func(o *Options) { o.Scripts.Environ = poison })
	var mode os.FileMode
	b.runner.do = func(l sandbox.Launch) {
		info, err := os.Stat(l.Dir)
		if err != nil {
			t.Error(err)
			return
		}
		mode = info.Mode().Perm()
		if temp, err := os.Stat(filepath.Join(l.Dir, tempName)); err != nil || !temp.IsDir() {
			t.Errorf("no folder for temporary files: %v", err)
		}
	}
	invoke(t, b.Set, RunName, runFire)
	got := b.runner.last
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	kiln := filepath.Join(b.dir, "kiln")
	scratch := got.Dir
	if filepath.Dir(scratch) != b.scratch || mode != 0o700 {
		t.Errorf("working directory %s of mode %v", scratch, mode)
	}
	want := sandbox.Launch{
		Purpose: sandbox.Script, Argv: []string{filepath.Join(b.programs, "python3.11"), filepath.Join(kiln, "scripts", "fire.py"), "--cone", "6"},
		Dir: scratch, Write: []string{scratch}, Read: []string{kiln}, Hide: []string{b.dir},
		Env: []string{
			"PATH=" + b.programs + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch, "PWD=" + scratch,
			"TMPDIR=" + scratch + "/.tmp", "TEMP=" + scratch + "/.tmp", "TMP=" + scratch + "/.tmp",
			"PYTHONPATH=" + kiln + ":" + kiln + "/scripts", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "LANG=de_DE.UTF-8",
		},
		Deadline: config.Values{}.Duration(config.ScriptTime), Output: config.Values{}.Get(config.ScriptOutput),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.empty(t)

	plain := newBench(t, nil)
	invoke(t, plain.Set, RunName, `{"skill":"tide","path":"tide.js"}`)
	if env := plain.runner.last.Env; !slices.Contains(env, "LANG=C.UTF-8") || !slices.Contains(env, "PYTHONPATH="+filepath.Join(plain.dir, "tide")) {
		t.Errorf("%q", env)
	}
	if got := plain.runner.last.Argv[0]; got != filepath.Join(plain.programs, "node") {
		t.Error(got)
	}
}

// TestHidden: a reachable skill that lies outside of the roots is hidden too, and a
// root that holds nothing else than the skill itself is not.
func TestHidden(t *testing.T) {
	elsewhere := workshop(t)
	b := newBench(t, func(o *Options) {
		o.Skills = append(o.Skills[1:2], elsewhere[2])
		o.Scripts.Hide = append(o.Scripts.Hide, filepath.Join(o.Scripts.Hide[0], "kiln"), "/no/such/directory", "/")
	})
	invoke(t, b.Set, RunName, runFire)
	real, err := filepath.EvalSymlinks(elsewhere[2].Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{b.dir, real}, b.runner.last.Hide); diff != "" {
		t.Error(diff)
	}
	alone := newBench(t, func(o *Options) { o.Skills, o.Scripts.Hide = o.Skills[1:2], []string{o.Skills[1].Dir()} })
	invoke(t, alone.Set, RunName, runFire)
	if hide := alone.runner.last.Hide; len(hide) != 0 {
		t.Errorf("%q would hide the skill from its script", hide)
	}
}

// TestRelativeRoots: roots that are named from the working directory are hidden and
// shown by their whole paths.
func TestRelativeRoots(t *testing.T) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(workshop(t)[0].Dir())))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	root := entries[0].Name()
	b := newBench(t, func(o *Options) { o.Skills, o.Scripts.Hide = load(t, root), []string{root} })
	if r := invoke(t, b.Set, RunName, runFire); !r.OK {
		t.Fatal(r.Text)
	}
	if l := b.runner.last; l.Check() != nil || !slices.Equal(l.Hide, []string{filepath.Join(dir, root)}) || l.Read[0] != filepath.Join(dir, root, "kiln") {
		t.Errorf("hide %q, read %q: %v", l.Hide, l.Read, l.Check())
	}
}

// TestPrefixes: what the interpreters need is shown, and their directories are on
// PATH; the packages of an environment are found.
func TestPrefixes(t *testing.T) {
	b := newBench(t, func(o *Options) {
		root := filepath.Dir(o.Scripts.Scratch)
		for name, text := range map[string]string{
			"env/pyvenv.cfg": "home = " + o.Scripts.Interpreters.Path + "\n", "env/lib/python3.11/site-packages/x.py": "", "n/v20.1.0/bin/node": "\x7fELF",
		} {
			write(t, filepath.Join(root, name), text)
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "env/bin"), 0o755), os.Chmod(filepath.Join(root, "n/v20.1.0/bin/node"), 0o755),
			os.Symlink(filepath.Join(o.Scripts.Interpreters.Path, "python3.11"), filepath.Join(root, "env/bin/python3"))); err != nil {
			t.Fatal(err)
		}
		o.Scripts.Interpreters.Path = root + "/n/v20.1.0/bin:" + root + "/env/bin:" + o.Scripts.Interpreters.Path
	})
	root := filepath.Dir(b.scratch)
	invoke(t, b.Set, RunName, runFire)
	l := b.runner.last
	if diff := cmp.Diff([]string{b.dir + "/kiln", root + "/env", root + "/n/v20.1.0"}, l.Read); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"PATH=" + root + "/env/bin:" + root + "/n/v20.1.0/bin:" + b.programs + ":/usr/local/bin:/usr/bin:/bin",
		"PYTHONPATH=" + b.dir + "/kiln:" + b.dir + "/kiln/scripts:" + root + "/env/lib/python3.11/site-packages",
	} {
		if !slices.Contains(l.Env, want) {
			t.Errorf("no %s in %q", want, l.Env)
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestRunMistakes pins every sentence about a script that is not launched.
func TestRunMistakes(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Scripts.Limits = limit(t, config.ScriptArgs, 1024) })
	refusing := newBench(t, nil)
	refusing.runner.refusal = &sandbox.Refusal{Policy: sandbox.DefaultPolicy(), Why: []string{"native cannot make a user namespace; sysctl -w kernel.unprivileged_userns_clone=1 allows it"}}
	failing := newBench(t, nil)
	failing.runner.err = fmt.Errorf("launch: %w", &sandbox.Unavailable{Backend: "native", Step: "make a cgroup", Err: errors.New("no space")})
	busy := newBench(t, nil)
	busy.runner.err = fmt.Errorf("launch script: %w", sandbox.ErrBusy)
	bare := newBench(t, func(o *Options) { o.Scripts.Interpreters.Path = "/no/such/directory" })
	only := newBench(t, func(o *Options) { o.Scripts.Kinds = map[string]interpreter.Kind{".sh": interpreter.Bash} })
	gone := newBench(t, nil)
	if err := os.Remove(filepath.Join(gone.dir, "kiln", "scripts", "fire.py")); err != nil {
		t.Fatal(err)
	}
	long := `{"skill":"kiln","path":"scripts/fire.py","args":["` + strings.Repeat("x", 1024) + `"]}`
	var text strings.Builder
	for _, c := range []struct {
		b         bench
		arguments string
	}{
		{b, `{"skill":`},
		{b, `{"path":"x"}`},
		{b, `{"skill":"kilm","path":"scripts/fire.py"}`},
		{b, `{"skill":"kiln"}`},
		{b, `{"skill":"chest"}`},
		{b, `{"skill":"kiln","path":"SKILL.md"}`},
		{b, `{"skill":"kiln","path":"references/cones.md"}`},
		{b, `{"skill":"chest","path":"notes.md"}`},
		{b, `{"skill":"kiln","path":"scripts/fir.py"}`},
		{b, `{"skill":"kiln","path":"fire"}`},
		{b, `{"skill":"kiln","path":"scripts/analyse.py"}`},
		{b, `{"skill":"chest","path":"scripts/analyse.py"}`},
		{b, `{"skill":"kiln","path":"scripts"}`},
		{b, `{"skill":"kiln","path":"scripts/legacy.rb"}`},
		{b, `{"skill":"kiln","path":"scripts/packed.py"}`},
		{b, `{"skill":"kiln","path":"scripts/fire.py --cone 6 --note 'a b'"}`},
		{b, `{"skill":"kiln","path":"python3 scripts/fire.py --out \"a\\\"b\"","args":["--last"]}`},
		{b, `{"skill":"kiln","path":"kiln/scripts/fire.py ../x"}`},
		{b, `{"skill":"kiln/scripts/fire.py --cone 6"}`},
		{b, `{"skill":"kiln","path":"../tide/tide.js"}`},
		{b, `{"skill":"kiln","path":"/etc/passwd"}`},
		{b, `{"skill":"kiln","path":"~/x.py"}`},
		{b, `{"skill":"kiln","path":"scripts/fire.py","args":"[6]"}`},
		{b, `{"skill":"kiln","path":"scripts/fire.py","args":{"cone":6}}`},
		{b, `{"skill":"kiln","path":"scripts/fire.py","args":"it's"}`},
		{b, `{"skill":"kiln","path":"scripts/fire.py","args":["\u0000"]}`},
		{b, long},
		{refusing, runFire},
		{failing, runFire},
		{busy, runFire},
		{bare, runFire},
		{only, runFire},
		{gone, runFire},
	} {
		before := c.b.runner.count
		r := invoke(t, c.b.Set, RunName, c.arguments)
		if r.OK || c.b.runner.count != before && c.b.runner.err == nil {
			t.Errorf("%s is OK or was launched: %s", c.arguments, r.Text)
		}
		fmt.Fprintf(&text, ">>> %.120s skill=%q detail=%q\n%s\n\n", c.arguments, r.Skill, r.Detail, r.Text)
		c.b.empty(t)
	}
	golden(t, "run_mistakes.txt", strings.TrimSpace(text.String()))
}

func limit(t testing.TB, name config.Name, n int64) config.Values {
	t.Helper()
	v, err := config.Values{}.Set(name, n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestNotASkillsFile: what is a link to somewhere else by now is not launched.
func TestNotASkillsFile(t *testing.T) {
	for _, replace := range []string{"scripts/fire.py", "scripts"} {
		b := newBench(t, nil)
		outside := t.TempDir()
		write(t, filepath.Join(outside, "fire.py"), "print('outside')\n")
		at := filepath.Join(b.dir, "kiln", filepath.FromSlash(replace))
		target := outside
		if replace != "scripts" {
			target = filepath.Join(outside, "fire.py")
		}
		if err := errors.Join(os.RemoveAll(at), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
		if r := invoke(t, b.Set, RunName, runFire); r.OK || b.runner.count != 0 {
			t.Errorf("%s: %s", replace, r.Text)
		}
	}
}

// TestFileHasChanged: a file that is another kind of file by now is not launched, and
// nothing waits for it.
func TestFileHasChanged(t *testing.T) {
	for name, change := range map[string]func(at string) error{
		"binary":              func(at string) error { return os.WriteFile(at, []byte("\x00\x01"), 0o644) },
		"a link in the skill": func(at string) error { return errors.Join(os.Remove(at), os.Symlink("helpers/it.py", at)) },
		"a folder":            func(at string) error { return errors.Join(os.Remove(at), os.Mkdir(at, 0o755)) },
	} {
		b := newBench(t, nil)
		if err := change(filepath.Join(b.dir, "kiln", "scripts", "fire.py")); err != nil {
			t.Fatal(err)
		}
		if r := invoke(t, b.Set, RunName, runFire); r.OK || b.runner.count != 0 {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestRunHostFaults: a failure of the host is an error, and clears up.
func TestRunHostFaults(t *testing.T) {
	b := newBench(t, nil)
	call := llm.Call{Name: RunName, Arguments: runFire}
	b.runner.err = errors.New("the disk is full")
	if r, err := b.Invoke(t.Context(), call, tool.Env{}); err == nil || !strings.HasPrefix(err.Error(), "skills_run kiln/scripts/fire.py: the disk is full") {
		t.Errorf("%+v, %v", r, err)
	}
	b.empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.runner.err, b.runner.result = nil, sandbox.Result{Ended: sandbox.Cancelled}
	b.runner.do = func(sandbox.Launch) { cancel() }
	if r, err := b.Invoke(ctx, call, tool.Env{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
	b.empty(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	blocked := newBench(t, func(o *Options) { o.Scripts.Scratch = filepath.Join(file, "below") })
	if r, err := blocked.Invoke(t.Context(), call, tool.Env{}); err == nil {
		t.Errorf("a scratch that cannot be made: %+v", r)
	}
}

// TestRunKeepsFiles: what a script leaves is kept and linked, before the directory
// goes.
func TestRunKeepsFiles(t *testing.T) {
	var text strings.Builder
	for _, tt := range []struct {
		name, url string
		files     map[string]string
		ended     sandbox.Result
	}{
		{"links", "/api/code/artifacts", map[string]string{"chart.png": "x", "out/a [1] (é)?.csv": "x,y", ".hidden": "x", ".tmp/left": "x", "__pycache__/m.pyc": "x"}, said(0, "drawn\n", "")},
		{"links of a failure", "http://host:1/x/", map[string]string{"half.png": "x"}, said(1, "", "stopped half way\n")},
		{"paths", "", map[string]string{"chart.png": "x"}, said(0, "", "")},
		{"skipped", "/a", map[string]string{"big": strings.Repeat("x", 2000), "link": "-> /etc/passwd", "ok.txt": "x"}, said(0, "", "")},
		{"nothing", "/a", nil, said(0, "ok", "")},
	} {
		files := store(t)
		b := newBench(t, func(o *Options) {
			o.Scripts.Artifacts, o.Scripts.Owner, o.Scripts.FilesURL = files, "tenant/key", tt.url
		})
		b.runner.result = tt.ended
		b.runner.do = func(l sandbox.Launch) {
			for name, content := range tt.files {
				if target, link := strings.CutPrefix(content, "-> "); link {
					if err := os.Symlink(target, filepath.Join(l.Dir, name)); err != nil {
						t.Error(err)
					}
					continue
				}
				write(t, filepath.Join(l.Dir, filepath.FromSlash(name)), content)
			}
		}
		r := invoke(t, b.Set, RunName, runFire)
		fmt.Fprintf(&text, ">>> %s ok=%v\n%s\n\n", tt.name, r.OK, strings.ReplaceAll(r.Text, files.Dir("00112233445566aa"), "/STORE"))
		b.empty(t)
	}
	golden(t, "run_files.txt", strings.TrimSpace(text.String()))
}

// TestGuidance: after the last page of instructions whose skill has scripts, and only
// where they can run.
func TestGuidance(t *testing.T) {
	b := newBench(t, nil)
	golden(t, "run_guidance.txt", invoke(t, b.Set, ReadName, `{"skill":"kiln"}`).Text)
	const label = "[Metier: how to run scripts here."
	if got := invoke(t, b.Set, ReadName, `{"skill":"tide"}`).Text; !strings.Contains(got, `{"skill": "tide", "path": "tide.js", "args": []}`) {
		t.Error(got)
	}
	refusing := newBench(t, nil)
	refusing.runner.refusal = errors.New("no confinement")
	paged := newBench(t, func(o *Options) { o.PageBytes = 20 })
	for name, got := range map[string]journal.Result{
		"a skill without scripts":    invoke(t, b.Set, ReadName, `{"skill":"chest"}`),
		"another file":               invoke(t, b.Set, ReadName, `{"skill":"kiln","path":"references/cones.md"}`),
		"a page that is not last":    invoke(t, paged.Set, ReadName, `{"skill":"kiln"}`),
		"a host that refuses":        invoke(t, refusing.Set, ReadName, `{"skill":"kiln"}`),
		"scripts are not allowed":    invoke(t, New(Options{Skills: workshop(t)}), ReadName, `{"skill":"kiln"}`),
		"no extension of it may run": invoke(t, newBench(t, func(o *Options) { o.Scripts.Kinds = map[string]interpreter.Kind{".sh": interpreter.Bash} }).Set, ReadName, `{"skill":"tide"}`),
	} {
		if strings.Contains(got.Text, label) || !got.OK {
			t.Errorf("%s: %s", name, got.Text)
		}
	}
	if got := invoke(t, paged.Set, ReadName, `{"skill":"kiln","offset":100}`); !strings.Contains(got.Text, label) {
		t.Errorf("the last page: %s", got.Text)
	}
}

// TestSkillBehindALink: the directory is launched under its real name.
func TestSkillBehindALink(t *testing.T) {
	real := workshop(t)
	dir := t.TempDir()
	if err := os.Symlink(real[1].Dir(), filepath.Join(dir, "kiln")); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *Options) { o.Skills, o.Scripts.Hide = load(t, dir), []string{dir} })
	if r := invoke(t, b.Set, RunName, runFire); !r.OK {
		t.Fatal(r.Text)
	}
	want, err := filepath.EvalSymlinks(real[1].Dir())
	if err != nil {
		t.Fatal(err)
	}
	if l := b.runner.last; l.Read[0] != want || l.Check() != nil {
		t.Errorf("%q: %v", l.Read, l.Check())
	}
}

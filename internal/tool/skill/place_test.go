package skill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/install"
)

// fakePackages installs whatever is not listed as failing.
type fakePackages struct {
	may   install.Options
	fail  map[string]string // names, and why
	again bool
	have  map[string]bool
	asked []string // every package that was to be installed, one string a request
	// use, if set, is told of each request that succeeds.
	use func(install.Request)
}

func packagesOn() *fakePackages {
	return &fakePackages{may: install.Options{Allowed: true, Most: 16}, fail: map[string]string{}, have: map[string]bool{}}
}

func (p *fakePackages) Options(context.Context) install.Options { return p.may }

func (p *fakePackages) Perform(_ context.Context, r install.Request) ([]install.Outcome, bool, error) {
	var names, wanted, already []string
	for _, s := range r.Needs() {
		if p.have[s.Name] {
			already = append(already, s.Name+" 1.0")
			continue
		}
		wanted = append(wanted, s.Text(r.Kind))
		names = append(names, s.Name+" 1.0")
		if why := p.fail[s.Name]; why == "the host's" {
			return nil, false, errors.New("the disk is full")
		} else if why != "" {
			p.asked = append(p.asked, string(r.Kind)+": "+strings.Join(wanted, ", "))
			return []install.Outcome{{Kind: r.Kind, State: install.Failed, Names: wanted, Reason: why}}, false, nil
		}
	}
	var outcomes []install.Outcome
	if len(already) > 0 {
		outcomes = append(outcomes, install.Outcome{Kind: r.Kind, State: install.Already, Names: already})
	}
	if len(wanted) == 0 {
		return outcomes, true, nil
	}
	p.asked = append(p.asked, string(r.Kind)+": "+strings.Join(wanted, ", "))
	for _, s := range r.Needs() {
		p.have[s.Name] = true
	}
	if p.use != nil {
		p.use(r)
	}
	return append(outcomes, install.Outcome{Kind: r.Kind, State: install.Installed, Names: names}), true, nil
}

func (p *fakePackages) Has(_ interpreter.Kind, name string) bool { return p.have[name] }

func (p *fakePackages) Failed(_ interpreter.Kind, name string) (string, bool, bool) {
	why, failed := p.fail[name]
	return why, p.again, failed && len(p.asked) > 0
}

// keeper keeps what is new below the work folder, as the conversation's does.
type keeper struct {
	dir   string
	store *artifact.Store
}

func (k keeper) Before(ctx context.Context) (artifact.Snapshot, error) {
	return artifact.Take(ctx, k.dir, artifact.Scope{Ignore: append(artifact.DefaultIgnore(), "/"+workspace.Repairs+"/"), Entries: 1000, Depth: 16})
}

func (k keeper) Keep(ctx context.Context, before artifact.Snapshot) (string, []journal.File) {
	kept, err := k.store.Capture(ctx, "owner", k.dir, before)
	if err != nil {
		return err.Error(), nil
	}
	var names []string
	var files []journal.File
	for _, f := range kept.Files {
		names = append(names, f.Path)
		files = append(files, journal.File{Name: f.Path, Bytes: f.Bytes})
	}
	if len(names) == 0 {
		return "", nil
	}
	return "Kept: " + strings.Join(names, ", "), files
}

// shop is a bench whose scripts run in a workspace.
type shop struct {
	bench
	w     *workspace.Workspace
	place *Place
	packs *fakePackages
}

func newShop(t testing.TB, change func(*Options, *Place)) shop {
	t.Helper()
	s := shop{packs: packagesOn()}
	s.bench = newBench(t, func(o *Options) {
		area, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.w, err = workspace.New(workspace.Options{Area: area, Interpreters: o.Scripts.Interpreters, Hide: o.Scripts.Hide, Limits: o.Scripts.Limits})
		if err != nil {
			t.Fatal(err)
		}
		s.place = &Place{Workspace: s.w, Applied: NewApplied(), Packages: s.packs, Files: true, Artifacts: keeper{s.w.Work(), store(t)}}
		if change != nil {
			change(o, s.place)
		}
		o.Scripts.Place = func(context.Context) (Place, error) { return *s.place, nil }
	})
	t.Cleanup(func() {
		if err := s.w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cd leaves word of where the shell is.
func (s shop) cd(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.w.Saved(), "cwd"), []byte(dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func variable(env []string, name string) string {
	for _, e := range env {
		if value, is := strings.CutPrefix(e, name+"="); is {
			return value
		}
	}
	return ""
}

func countOf(env []string, name string) int {
	n := 0
	for _, e := range env {
		if strings.HasPrefix(e, name+"=") {
			n++
		}
	}
	return n
}

// TestWorkspaceLaunch: a script runs where the shell is, with what the shell has (B1
// 15.3), while nobody else works there.
func TestWorkspaceLaunch(t *testing.T) {
	s := newShop(t, nil)
	work := s.w.Work()
	write(t, filepath.Join(work, "sub", "in.csv"), "a\n")
	s.cd(t, filepath.Join(work, "sub"))
	s.w.Use(workspace.Packages{Kind: interpreter.Python, Dir: "/sets/p", Imports: []string{"/sets/p/lib"}, Bin: []string{"/sets/p/bin"}})
	s.w.Use(workspace.Packages{Kind: interpreter.Node, Dir: "/sets/n", Imports: []string{"/sets/n/node_modules"}, Bin: []string{"/sets/n/bin"}})
	s.runner.do = func(l sandbox.Launch) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if unlock, err := s.w.Lock(ctx); err == nil {
			unlock()
			t.Error("somebody else may work in the workspace while the script runs")
		}
		write(t, filepath.Join(l.Dir, "out.csv"), "x")
		write(t, filepath.Join(work, workspace.Repairs, "x.py"), "x")
	}
	r := invoke(t, s.Set, RunName, runFire)
	if !r.OK || !r.Workspace || !strings.HasSuffix(r.Text, "Kept: sub/out.csv") || len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
	l, kiln := s.runner.last, filepath.Join(s.dir, "kiln")
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if l.Purpose != sandbox.Script || l.Dir != filepath.Join(work, "sub") || l.Deadline != (config.Values{}).Duration(config.ScriptTime) || l.Output != (config.Values{}).Get(config.ScriptOutput) {
		t.Errorf("%s in %s for %v, %d bytes", l.Purpose, l.Dir, l.Deadline, l.Output)
	}
	if diff := cmp.Diff([]string{filepath.Join(s.programs, "python3.11"), filepath.Join(kiln, "scripts", "fire.py"), "--cone", "6"}, l.Argv); diff != "" {
		t.Error(diff)
	}
	join := func(dirs ...string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	for name, want := range map[string]string{
		"PWD": filepath.Join(work, "sub"), "HOME": work, "TMPDIR": s.w.Temp(), "TEMP": s.w.Temp(), "TMP": s.w.Temp(),
		"PYTHONPATH": join(kiln, filepath.Join(kiln, "scripts"), filepath.Join(work, ".local", "python"), "/sets/p/lib"),
		"NODE_PATH":  join(kiln, filepath.Join(kiln, "scripts"), "/sets/n/node_modules"),
	} {
		if got := variable(l.Env, name); got != want || countOf(l.Env, name) != 1 {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if path := variable(l.Env, "PATH"); !strings.HasPrefix(path, join("/sets/p/bin", "/sets/n/bin", filepath.Join(work, ".local", "bin"))) || variable(l.Env, "PYTHONNOUSERSITE") != "" {
		t.Error(l.Env)
	}
	for _, dir := range []string{kiln, "/sets/p", "/sets/n", s.w.State()} {
		if !slices.Contains(l.Read, dir) {
			t.Errorf("%s is not shown", dir)
		}
	}
	if !slices.Contains(l.Hide, s.dir) || !slices.Contains(l.Write, work) || slices.Contains(l.Write, s.w.State()) {
		t.Errorf("hide %q, write %q", l.Hide, l.Write)
	}
	s.empty(t)
}

// TestWorkspaceHides: what a script may not see, the workspace does not show it either.
func TestWorkspaceHides(t *testing.T) {
	elsewhere := workshop(t)
	s := newShop(t, func(o *Options, _ *Place) { o.Skills = append(o.Skills[1:2], elsewhere[2]) })
	invoke(t, s.Set, RunName, runFire)
	real, err := filepath.EvalSymlinks(elsewhere[2].Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{s.dir, real}, s.runner.last.Hide); diff != "" {
		t.Error(diff)
	}
}

// TestWorkspaceOffer: the model is told where scripts begin.
func TestWorkspaceOffer(t *testing.T) {
	d := newShop(t, nil).Offer(journal.Path{}).Declared
	if text := d[len(d)-1].Description; !strings.HasSuffix(text, runsInWorkspace) || strings.Contains(text, "empty working directory") {
		t.Error(text)
	}
}

// TestWorkspacePlace: where the shell is counts only if a script can begin there.
func TestWorkspacePlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no links")
	}
	s := newShop(t, nil)
	work := s.w.Work()
	write(t, filepath.Join(work, "real", "x"), "x")
	if err := errors.Join(os.Symlink("real", filepath.Join(work, "inside")), os.Symlink("/", filepath.Join(work, "outside"))); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"inside": "real", "outside": ".", "outside/etc": ".", "gone": ".", "../state": ".", "real": "real"} {
		s.cd(t, work+"/"+dir)
		invoke(t, s.Set, RunName, runFire)
		if got := s.runner.last.Dir; got != filepath.Join(work, want) {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

// TestOwnInterpreter: a Python that the conversation unpacked runs the scripts, as it
// runs the commands.
func TestOwnInterpreter(t *testing.T) {
	s := newShop(t, nil)
	own := filepath.Join(s.w.Work(), ".local", "bin", "python3")
	write(t, own, "\x7fELF")
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	invoke(t, s.Set, RunName, runFire)
	if got := s.runner.last.Argv[0]; got != own {
		t.Error(got)
	}
	s.runner.network = sandbox.NetworkOpen
	invoke(t, s.Set, RunName, runFire)
	if got := s.runner.last.Argv[0]; got != filepath.Join(s.programs, "python3.11") {
		t.Errorf("with a network that commands do not have: %s", got)
	}
}

// TestModuleFinder: Node is led to the packages of the conversation when it has any, and
// one that is too old for that runs the script all the same.
func TestModuleFinder(t *testing.T) {
	const call = `{"skill":"kiln","path":"scripts/draw.mjs","args":["x"]}`
	s := newShop(t, nil)
	plain := []string{filepath.Join(s.programs, "node"), filepath.Join(s.dir, "kiln", "scripts", "draw.mjs"), "x"}
	invoke(t, s.Set, RunName, call)
	if diff := cmp.Diff(plain, s.runner.last.Argv); diff != "" {
		t.Error(diff)
	}
	s.w.Use(workspace.Packages{Kind: interpreter.Node, Dir: "/sets/n", Imports: []string{"/sets/n/node_modules"}})
	invoke(t, s.Set, RunName, call)
	if argv := s.runner.last.Argv; len(argv) != 5 || argv[1] != "--import" || !strings.HasPrefix(argv[2], "data:text/javascript,") || !slices.Equal(append(argv[:1:1], argv[3:]...), plain) {
		t.Errorf("%q", argv)
	}
	old := said(9, "", plain[0]+": bad option: --import\n")
	s.plays(old, said(0, "drawn\n", ""))
	if r := invoke(t, s.Set, RunName, call); !r.OK || !slices.Equal(s.runner.last.Argv, plain) || s.runner.count != 4 {
		t.Errorf("%d runs: %s", s.runner.count, r.Text)
	}
	invoke(t, s.Set, RunName, runFire)
	if slices.Contains(s.runner.last.Argv, "--import") {
		t.Errorf("Python: %q", s.runner.last.Argv)
	}
}

// TestApart: what the model has put into the workspace is no part of a script that
// reaches more than the model's commands do (DESIGN 5.4).
func TestApart(t *testing.T) {
	for _, tt := range []struct {
		script, command               sandbox.NetworkMode
		scriptDomains, commandDomains []string
		apart                         bool
	}{
		{script: sandbox.NetworkDenied, command: sandbox.NetworkDenied},
		{script: sandbox.NetworkDenied, command: sandbox.NetworkOpen},
		{script: sandbox.NetworkOpen, command: sandbox.NetworkOpen},
		{script: sandbox.NetworkOpen, command: sandbox.NetworkDenied, apart: true},
		{script: sandbox.NetworkOpen, command: sandbox.NetworkProxied, commandDomains: []string{"a"}, apart: true},
		{script: sandbox.NetworkProxied, command: sandbox.NetworkDenied, scriptDomains: []string{"a"}, apart: true},
		{script: sandbox.NetworkProxied, command: sandbox.NetworkProxied, scriptDomains: []string{"a"}, commandDomains: []string{"b", "a"}},
		{script: sandbox.NetworkProxied, command: sandbox.NetworkProxied, scriptDomains: []string{"a", "c"}, commandDomains: []string{"a"}, apart: true},
		{script: sandbox.NetworkProxied, command: sandbox.NetworkOpen, scriptDomains: []string{"a"}},
	} {
		s := newShop(t, func(_ *Options, p *Place) { p.Network, p.Domains = tt.command, tt.commandDomains })
		s.runner.network, s.runner.domains = tt.script, tt.scriptDomains
		s.w.Use(workspace.Packages{Kind: interpreter.Node, Dir: "/sets/n", Imports: []string{"/sets/n/node_modules"}, Bin: []string{"/sets/n/bin"}})
		invoke(t, s.Set, RunName, runFire)
		env := s.runner.last.Env
		for _, name := range []string{"PATH", "PYTHONPATH"} {
			if got := strings.Contains(variable(env, name), s.w.Work()); got == tt.apart {
				t.Errorf("%+v: %s=%s", tt, name, variable(env, name))
			}
		}
		if got := variable(env, "PYTHONNOUSERSITE") == "1"; got != tt.apart {
			t.Errorf("%+v: the user's modules count: %t", tt, !got)
		}
		for name, dir := range map[string]string{"PATH": "/sets/n/bin", "NODE_PATH": "/sets/n/node_modules"} {
			if got := strings.Contains(variable(env, name), dir); got == tt.apart {
				t.Errorf("%+v: packages of the conversation: %t: %q", tt, got, env)
			}
		}
	}
}

// TestAttached: the name of a file of the user is one argument (B1 4.7).
func TestAttached(t *testing.T) {
	s := newShop(t, func(_ *Options, p *Place) {
		p.Attached = []string{"my report (1).csv", "it's.csv", "[draft] a.csv", "plain.csv"}
	})
	for args, want := range map[string]string{
		`"my report (1).csv"`: "my report (1).csv", `"it's.csv"`: "it's.csv", `"[draft] a.csv"`: "[draft] a.csv", `" plain.csv "`: "plain.csv",
		`"--in my report (1).csv"`: "--in|my|report|(1).csv", `["it's.csv","x"]`: "it's.csv|x",
	} {
		for _, call := range []string{`{"skill":"kiln","path":"scripts/fire.py","args":` + args + `}`, `["kiln","scripts/fire.py",` + args + `]`} {
			s.runner.last = sandbox.Launch{}
			r := invoke(t, s.Set, RunName, call)
			if got := strings.TrimPrefix(s.args(), "kiln/scripts/fire.py|"); got != want {
				t.Errorf("%s: %q, want %q: %s", call, got, want, r.Text)
			}
		}
	}
	if r := invoke(t, newBench(t, nil).Set, RunName, `{"skill":"kiln","path":"scripts/fire.py","args":"it's.csv"}`); r.OK {
		t.Error("a file that nobody attached")
	}
}

// TestPlaceFails: a workspace that cannot be made is the host's fault; one that was lost
// is told.
func TestPlaceFails(t *testing.T) {
	s := newShop(t, func(_ *Options, p *Place) { p.Notes = func() []string { return []string{"Note: told once."} } })
	if err := os.RemoveAll(s.w.Work()); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, s.Set, RunName, runFire); !r.OK || !strings.HasPrefix(r.Text, workLost+"\nNote: told once.\nkiln/scripts/fire.py: exit 0") {
		t.Error(r.Text)
	}
	s.scripts.Place = func(context.Context) (Place, error) { return Place{}, errors.New("no room") }
	if _, err := s.Invoke(t.Context(), callOf(runFire), envOf()); err == nil || !strings.Contains(err.Error(), "skills_run: no room") {
		t.Error(err)
	}
}

// TestWorkspacePaths: no path of this host is told.
func TestWorkspacePaths(t *testing.T) {
	s := newShop(t, nil)
	write(t, filepath.Join(s.w.Work(), "sub", "x"), "x")
	s.cd(t, filepath.Join(s.w.Work(), "sub"))
	s.w.Use(workspace.Packages{Kind: interpreter.Python, Dir: "/sets/p", Imports: []string{"/sets/p/lib"}})
	s.runner.do = func(l sandbox.Launch) {
		s.runner.result = said(0, strings.Join([]string{l.Dir + "/x", s.w.Work() + "/y", s.w.Temp() + "/z", s.dir + "/kiln/scripts/fire.py", "/sets/p/lib/q.py"}, " ")+"\n", "")
	}
	if r := invoke(t, s.Set, RunName, runFire); !strings.Contains(r.Text, "\nx ../y $TMPDIR/z kiln/scripts/fire.py <python packages>/lib/q.py\n") {
		t.Error(r.Text)
	}
}

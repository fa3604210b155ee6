//go:build unix

package code

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
	"github.com/metier-run/metier/skill"
)

// watched is a launcher that confines nothing and remembers what it launched.
type watched struct {
	*launch.Launcher

	mu   sync.Mutex
	seen []sandbox.Launch
}

func (w *watched) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	w.mu.Lock()
	w.seen = append(w.seen, l)
	w.mu.Unlock()
	return w.Launcher.Start(ctx, l)
}

func (w *watched) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	job, err := w.Start(ctx, l)
	if err != nil {
		return sandbox.Result{}, err
	}
	return job.Wait(), nil
}

// last is the last launch of a purpose.
func (w *watched) last(p sandbox.Purpose) sandbox.Launch {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range slices.Backward(w.seen) {
		if l.Purpose == p {
			return l
		}
	}
	return sandbox.Launch{}
}

// scriptsRunner is the launcher as scripts see it.
type scriptsRunner struct{ *watched }

func (scriptsRunner) Network() (sandbox.NetworkMode, []string) { return sandbox.NetworkOpen, nil }

func (scriptsRunner) Refusal() error { return nil }

// madePackages makes a set of modules that say their names.
type madePackages struct {
	dir string

	mu       sync.Mutex
	requests []packages.Request
}

func (p *madePackages) Install(_ context.Context, r packages.Request) (packages.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	dir, err := os.MkdirTemp(p.dir, "set-")
	if err != nil {
		return packages.Set{}, err
	}
	set := packages.Set{Dir: dir, Python: []string{filepath.Join(dir, "lib")}}
	for _, s := range slices.Concat(r.Have, r.Add) {
		if strings.HasPrefix(s.Name, "no") {
			return packages.Set{}, &packages.Failure{Reason: packages.Refused, Text: "No registry that this host uses has it."}
		}
		set.Names = append(set.Names, packages.Installed{Name: s.Name, Version: "1.0"})
		err = errors.Join(err, os.MkdirAll(set.Python[0], 0o755), os.WriteFile(filepath.Join(set.Python[0], s.Name+".py"), []byte("NAME = '"+s.Name+"'\n"), 0o600))
	}
	return set, err
}

// scene is a conversation with skills, real programs and made packages.
type scene struct {
	t        *testing.T
	c        *Conversation
	tools    tool.Set
	launcher *watched
	packs    *madePackages
	skills   map[string]skill.Skill
	scripts  toolskill.Scripts
}

func newScene(t *testing.T, change func(*Options)) *scene {
	t.Helper()
	return newSceneOf(t, sandbox.Policy{Mode: sandbox.Off}, change)
}

// newSceneOf confines what it launches as a policy says, where this host can.
func newSceneOf(t *testing.T, policy sandbox.Policy, change func(*Options)) *scene {
	t.Helper()
	search := interpreter.Options{Path: os.Getenv("PATH")}
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Bash} {
		if _, err := search.Find(kind); err != nil {
			t.Skip(err)
		}
	}
	l, err := launch.Open(t.Context(), launch.Options{Policy: policy, Scratch: t.TempDir(), Search: os.Getenv("PATH")})
	check(t, err)
	if problem := l.Problem(); problem != nil {
		check(t, l.Close())
		t.Skip(problem)
	}
	program, err := shell.Find("bash", search)
	check(t, err)
	files, err := artifact.Open(artifact.Options{Dir: t.TempDir()})
	check(t, err)
	root := t.TempDir()
	s := &scene{t: t, launcher: &watched{Launcher: l}, packs: &madePackages{dir: t.TempDir()}, skills: map[string]skill.Skill{}}
	o := Options{
		Workspaces: workspace.Options{Area: t.TempDir(), Interpreters: search, Environ: []string{"LANG=C.UTF-8"}, Hide: []string{root}},
		Launcher:   s.launcher, Shell: program, Installer: s.packs, Artifacts: files, FilesURL: "/files",
		Facts: toolshell.Facts{Dialect: "bash", Files: true, Installs: true, Network: sandbox.NetworkOpen},
	}
	if change != nil {
		change(&o)
	}
	for name, text := range map[string]string{
		"kiln/SKILL.md":           "---\nname: kiln\ndescription: Fires.\n---\nx\n",
		"kiln/scripts/copy.py":    "import sys\nopen('out.txt', 'w').write(open('in.txt').read().upper())\n",
		"kiln/scripts/use.py":     "import brought, wanted\nprint(brought.NAME, wanted.NAME)\n",
		"kiln/scripts/no.py":      "import nowhere\n",
		"kiln/scripts/wrong.py":   "import sys, helper\nn = int(sys.argv[1])\nprint(helper.NAME, 6 / (n - n))\n",
		"kiln/scripts/helper.py":  "NAME = 'helper'\n",
		"kiln/scripts/needs.py":   "import listed\nprint(listed.NAME)\n",
		"kiln/requirements.txt":   "listed\n",
		"other/SKILL.md":          "---\nname: other\ndescription: Others.\n---\nx\n",
		"other/scripts/secret.py": "x = 1\n",
	} {
		at := filepath.Join(root, filepath.FromSlash(name))
		check(t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)))
	}
	found, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: root}}})
	check(t, err)
	for _, k := range found.Skills() {
		s.skills[k.Name] = k
	}
	s.c = New(o).Open("owner", nil)
	s.scripts = toolskill.Scripts{Interpreters: search, Hide: []string{root}}
	s.request("kiln")
	t.Cleanup(func() {
		check(t, s.c.Close(context.Background()))
		check(t, l.Close())
	})
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request begins another request of the conversation, that reaches some skills.
func (s *scene) request(names ...string) {
	var reachable []skill.Skill
	for _, n := range names {
		reachable = append(reachable, s.skills[n])
	}
	if len(reachable) == 0 {
		s.tools = s.c.Tools(nil)
		return
	}
	s.tools = s.c.Tools(toolskill.New(toolskill.Options{Skills: reachable, Runner: scriptsRunner{s.launcher}, Scripts: s.c.Scripts(s.scripts, reachable)}))
}

func (s *scene) call(name string, arguments map[string]any) journal.Result {
	s.t.Helper()
	text, err := json.Marshal(arguments)
	check(s.t, err)
	r, err := s.tools.Invoke(s.t.Context(), llm.Call{Name: name, Arguments: string(text)}, tool.Env{})
	check(s.t, err)
	if !r.Workspace {
		s.t.Errorf("%s does not count as work in the workspace: %s", name, r.Text)
	}
	return r
}

func (s *scene) shell(command string) journal.Result {
	s.t.Helper()
	return s.call("shell", map[string]any{"command": command})
}

func (s *scene) run(path string, args ...string) journal.Result {
	s.t.Helper()
	return s.call("skills_run", map[string]any{"skill": "kiln", "path": path, "args": args})
}

// TestScriptsShareTheDirectory: one step's output is the next one's input, whichever
// tool took the step (B1 15.3).
func TestScriptsShareTheDirectory(t *testing.T) {
	s := newScene(t, nil)
	s.shell("mkdir sub && cd sub && echo fire > in.txt")
	r := s.run("scripts/copy.py")
	if !r.OK || len(r.Files) != 1 || r.Files[0].Name != "sub/out.txt" || !strings.Contains(r.Text, "sub/out.txt](/files/") {
		t.Errorf("%s %+v", r.Text, r.Files)
	}
	if r := s.shell("cat out.txt"); !strings.Contains(r.Text, "FIRE") {
		t.Error(r.Text)
	}
	s.c.Attach([]llm.Attachment{sent("in.txt", "text/plain", "of the user")})
	s.shell("cd ..")
	if r := s.run("scripts/copy.py"); !r.OK {
		t.Errorf("a file of the user is not there: %s", r.Text)
	}
}

// TestScriptsShareThePackages: there is one record of what the conversation has, so that
// neither tool loses what the other one installed (B1 15.4).
func TestScriptsShareThePackages(t *testing.T) {
	s := newScene(t, nil)
	if r := s.shell("pip install brought"); !r.OK {
		t.Fatal(r.Text)
	}
	r := s.run("scripts/use.py")
	if !r.OK || !strings.HasPrefix(r.Text, "From requirements.txt of the skill: Installed with pip: listed 1.0.\nThe package for \"wanted\" was missing: installed wanted 1.0 and ran the script again.\nkiln/scripts/use.py: exit 0") || !strings.Contains(r.Text, "brought wanted") {
		t.Error(r.Text)
	}
	if r := s.shell("python3 -c 'import brought, wanted, listed'"); !r.OK {
		t.Error(r.Text)
	}
	if r := s.shell("pip install wanted"); !r.OK || !strings.Contains(r.Text, "Installed already in this session: wanted 1.0.") {
		t.Error(r.Text)
	}
	var asked []string
	for _, r := range s.packs.requests {
		for _, x := range r.Add {
			asked = append(asked, x.Name)
		}
	}
	if diff := cmp.Diff([]string{"brought", "listed", "wanted"}, asked); diff != "" {
		t.Error(diff)
	}
	s.request("kiln") // of the same conversation
	if r := s.run("scripts/needs.py"); !r.OK || strings.Contains(r.Text, "From requirements.txt") || len(s.packs.requests) != 3 {
		t.Errorf("%d installs: %s", len(s.packs.requests), r.Text)
	}
	if r := s.run("scripts/no.py"); r.OK || !strings.Contains(r.Text, "the package nowhere, which could not be installed: No registry that this host uses has it. Do not") {
		t.Error(r.Text)
	}
	if r := s.shell("python3 -c 'import nowhere'"); r.OK || len(s.packs.requests) != 4 {
		t.Errorf("%d installs: the shell does not know what a script has learned: %s", len(s.packs.requests), r.Text)
	}
}

// TestScriptsRepaired: the way from a script that fails to one that runs, as the results
// tell it (B1 15.8).
func TestScriptsRepaired(t *testing.T) { newScene(t, nil).repair() }

// TestScriptsConfined: the same where the operator's default confines all of it; and what
// a command sees of skills is what the request can reach.
func TestScriptsConfined(t *testing.T) {
	s := newSceneOf(t, sandbox.DefaultPolicy(), nil)
	s.repair()
	for name, seen := range map[string]bool{"kiln": true, "other": false} {
		if r := s.shell("cat " + filepath.Join(s.skills[name].Dir(), "SKILL.md")); r.OK != seen {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

func (s *scene) repair() {
	t := s.t
	t.Helper()
	r := s.run("scripts/wrong.py", "3")
	if r.OK || len(r.Files) != 0 {
		t.Fatalf("%s %+v", r.Text, r.Files)
	}
	_, after, _ := strings.Cut(r.Text, "with the shell:\n")
	command, _, _ := strings.Cut(after, "\n")
	if command != "python3 skill-repairs/.run/kiln/scripts/wrong.py 3" {
		t.Fatalf("%q: %s", command, r.Text)
	}
	if r := s.shell(command); r.OK || !strings.Contains(r.Text, "File \"skill-repairs/kiln/scripts/wrong.py\", line 3") {
		t.Errorf("the copy as it is: %s", r.Text)
	}
	patch := "*** Begin Patch\n*** Update File: skill-repairs/kiln/scripts/wrong.py\n@@\n n = int(sys.argv[1])\n-print(helper.NAME, 6 / (n - n))\n+print(helper.NAME, 6 / n)\n*** End Patch\n"
	if r := s.call("apply_patch", map[string]any{"patch": patch}); !r.OK {
		t.Fatal(r.Text)
	}
	if r := s.shell(command); !r.OK || !strings.Contains(r.Text, "helper 2.0") || len(r.Files) != 0 {
		t.Errorf("%s %+v", r.Text, r.Files)
	}
	s.shell("mkdir -p deep/er && cd deep/er")
	if r := s.shell(strings.Replace(command, "skill-repairs", "../../skill-repairs", 1)); !r.OK || !strings.Contains(r.Text, "helper 2.0") {
		t.Error(r.Text)
	}
	if r := s.run("scripts/wrong.py", "3"); r.OK || !strings.Contains(r.Text, "and not your changed copy ../../skill-repairs/kiln/scripts/wrong.py") {
		t.Error(r.Text)
	}
}

// TestCommandsSeeReachableSkills: the skills of the request, and of no other (B1 8.4).
func TestCommandsSeeReachableSkills(t *testing.T) {
	s := newScene(t, nil)
	for _, tt := range []struct{ reach, seen []string }{
		{[]string{"kiln"}, []string{"kiln"}}, {[]string{"kiln", "other"}, []string{"kiln", "other"}}, {[]string{"other"}, []string{"other"}}, {nil, nil},
	} {
		s.request(tt.reach...)
		s.shell("true")
		read := s.launcher.last(sandbox.Shell).Read
		var seen []string
		for _, name := range slices.Sorted(maps.Keys(s.skills)) {
			dir, err := filepath.EvalSymlinks(s.skills[name].Dir())
			check(t, err)
			if slices.ContainsFunc(read, func(r string) bool { return sandbox.Within(r, dir) }) {
				seen = append(seen, name)
			}
		}
		if diff := cmp.Diff(tt.seen, seen); diff != "" {
			t.Errorf("%v: %s", tt.reach, diff)
		}
	}
}

// TestScriptsWithoutRecovery: nothing is done unasked.
func TestScriptsWithoutRecovery(t *testing.T) {
	s := newScene(t, func(o *Options) { o.NoRecovery = true })
	if r := s.run("scripts/needs.py"); r.OK || len(s.packs.requests) != 0 {
		t.Error(r.Text)
	}
	if r := s.run("scripts/wrong.py", "3"); r.OK || strings.Contains(r.Text, workspace.Repairs) {
		t.Error(r.Text)
	}
	if r := s.call("skills_run", map[string]any{"skill": "kiln", "path": "scripts/needs.py", "packages": "listed"}); !r.OK || len(s.packs.requests) != 1 {
		t.Errorf("what is asked for: %s", r.Text)
	}
}

// TestScriptsAfterTheEnd: a conversation that has ended runs nothing.
func TestScriptsAfterTheEnd(t *testing.T) {
	s := newScene(t, nil)
	check(t, s.c.Close(t.Context()))
	if _, err := s.tools.Invoke(t.Context(), llm.Call{Name: "skills_run", Arguments: `{"skill":"kiln","path":"scripts/copy.py"}`}, tool.Env{}); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

package skill

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/skill"
)

// fakeRunner answers launches and remembers the last.
type fakeRunner struct {
	mu     sync.Mutex
	last   sandbox.Launch
	count  int
	result sandbox.Result
	err    error
	// do plays the script.
	do           func(l sandbox.Launch)
	capabilities sandbox.Capabilities
	network      sandbox.NetworkMode
	domains      []string
	refusal      error
}

func (r *fakeRunner) Run(_ context.Context, l sandbox.Launch) (sandbox.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = l
	r.count++
	if r.do != nil {
		r.do(l)
	}
	return r.result, r.err
}

func (r *fakeRunner) Capabilities() sandbox.Capabilities { return r.capabilities }

func (r *fakeRunner) Network() (sandbox.NetworkMode, []string) { return r.network, r.domains }

func (r *fakeRunner) Refusal() error { return r.refusal }

// confined are the capabilities of a backend that holds everything but gaps.
func confined(gaps ...sandbox.Aspect) sandbox.Capabilities {
	c := sandbox.Capabilities{Backend: "native", Tier: sandbox.TierFull}
	for _, a := range sandbox.Aspects() {
		held := true
		for _, g := range gaps {
			held = held && g != a
		}
		c.All = append(c.All, sandbox.Capability{Aspect: a, Held: held})
	}
	return c
}

// said is a result of a script that exits.
func said(exit int, stdout, stderr string) sandbox.Result {
	return sandbox.Result{
		Ended: sandbox.Exited, Exit: exit, Wall: 1230 * time.Millisecond,
		Stdout: sandbox.Output{Head: []byte(stdout), Total: int64(len(stdout))},
		Stderr: sandbox.Output{Head: []byte(stderr), Total: int64(len(stderr))},
	}
}

// workshop makes skills with scripts. "chest" has none that run.
func workshop(t testing.TB) []skill.Skill {
	t.Helper()
	dir := t.TempDir()
	head := func(name string) string {
		return "---\nname: " + name + "\ndescription: Does " + name + ".\n---\n\n# " + name + "\n"
	}
	for name, text := range map[string]string{
		"kiln/SKILL.md":              head("kiln") + "\nRun `cd ~/.agents/kiln/scripts && python3 fire.py --cone 6`.\n",
		"kiln/scripts/fire.py":       "print('fire')\n",
		"kiln/scripts/draw.mjs":      "console.log('draw')\n",
		"kiln/scripts/cool down.sh":  "echo cool\n",
		"kiln/scripts/helpers/it.py": "x = 1\n",
		"kiln/scripts/legacy.rb":     "puts 1\n",
		"kiln/scripts/packed.py":     "\x00\x01",
		"kiln/lib/glaze/mix.py":      "x = 1\n",
		"kiln/references/cones.md":   "cone 6\n",
		"kiln/assets/form.json":      "{\"a\": 1}\n",
		"tide/SKILL.md":              head("tide"),
		"tide/tide.js":               "1\n",
		"chest/SKILL.md":             head("chest"),
		"chest/notes.md":             "x\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return load(t, dir)
}

// bench is a set with scripts, whose launches a fake runner answers.
type bench struct {
	*Set
	runner   *fakeRunner
	programs string // the fixture's root of interpreters
	scratch  string
	dir      string // of the skills
}

func newBench(t testing.TB, change func(*Options)) bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "usr", "bin")
	for _, name := range []string{"python3.11", "node", "bash"} {
		write(t, filepath.Join(bin, name), "\x7fELF")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runner := &fakeRunner{result: said(0, "done\n", ""), capabilities: confined()}
	o := Options{Skills: workshop(t), Runner: runner, Scripts: Scripts{
		Interpreters: interpreter.Options{Path: bin, System: []string{filepath.Join(root, "usr")}},
		Scratch:      filepath.Join(root, "scratch"),
	}}
	dir, err := filepath.EvalSymlinks(filepath.Dir(o.Skills[0].Dir()))
	if err != nil {
		t.Fatal(err)
	}
	o.Scripts.Hide = []string{dir}
	if change != nil {
		change(&o)
	}
	return bench{Set: New(o), runner: runner, programs: bin, scratch: filepath.Join(root, "scratch"), dir: dir}
}

// args are the arguments that the last script got, and how many scripts ran.
func (b bench) args() string {
	if len(b.runner.last.Argv) < 2 {
		return ""
	}
	rel, err := filepath.Rel(b.dir, b.runner.last.Argv[1])
	if err != nil {
		return err.Error()
	}
	return strings.Join(append([]string{filepath.ToSlash(rel)}, b.runner.last.Argv[2:]...), "|")
}

// empty reports whether no working directory is left.
func (b bench) empty(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(b.scratch)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left behind", e.Name())
	}
}

// store is a store for what scripts make, with ids that do not change.
func store(t testing.TB) *artifact.Store {
	t.Helper()
	var limits config.Values
	s, err := artifact.Open(artifact.Options{Dir: t.TempDir(), Limits: limits, NewID: func() string { return "00112233445566aa" }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func callOf(arguments string) llm.Call { return llm.Call{Name: RunName, Arguments: arguments} }

func envOf() tool.Env { return tool.Env{} }

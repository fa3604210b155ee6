package skill

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/install"
)

// Place is the workspace of a conversation, as scripts work in it. Only Workspace and
// Applied are needed.
type Place struct {
	Workspace *workspace.Workspace
	// Applied remembers what lists of packages the conversation has applied.
	Applied *Applied
	// Packages are what the conversation has installed and may install; nil installs
	// nothing.
	Packages Packages
	// Artifacts keeps what scripts make; nil keeps nothing.
	Artifacts Keeper
	// Attached are the names of the user's files in the work folder.
	Attached []string
	// Notes are sentences that are told before the outcome of a script that runs; nil
	// has none.
	Notes func() []string
	// Network and Domains are what the commands of the model reach.
	Network sandbox.NetworkMode
	Domains []string
	// Files says that the model has tools to change files with, and a shell.
	Files bool
	// NoRecovery turns off whatever the host does unasked.
	NoRecovery bool
}

// Packages are those of a conversation, for commands and scripts alike. Who calls them
// holds the lock of the workspace.
type Packages interface {
	// Options say what may be installed. They are good while ctx lasts.
	Options(ctx context.Context) install.Options
	// Perform carries out a request; ok reports that all of it is there. What kept it
	// from that is an outcome; an error is the host's.
	Perform(ctx context.Context, r install.Request) (outcomes []install.Outcome, ok bool, err error)
	// Has reports whether a distribution is installed, also one that came with another.
	Has(kind interpreter.Kind, distribution string) bool
	// Failed is why an install of a distribution failed before; again says that the next
	// try may end otherwise.
	Failed(kind interpreter.Kind, distribution string) (reason string, again, failed bool)
}

// Keeper keeps copies of what a script has made in the workspace.
type Keeper interface {
	// Before looks at the workspace before a script.
	Before(ctx context.Context) (artifact.Snapshot, error)
	// Keep copies what is new or changed since, and tells of it: in words, and as a list.
	Keep(ctx context.Context, before artifact.Snapshot) (string, []journal.File)
}

// Applied remembers lists of packages, each of which a conversation applies once (B1
// 15.4). It is safe for concurrent use.
type Applied struct {
	mu   sync.Mutex
	done map[string]bool
}

// NewApplied is the memory of a conversation in which nothing was applied yet.
func NewApplied() *Applied { return &Applied{done: map[string]bool{}} }

func (a *Applied) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done[key]
}

func (a *Applied) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done[key] = true
}

// place is where scripts run; nil is in a scratch.
func (s *Set) place(ctx context.Context) (*Place, error) {
	if s.scripts.Place == nil {
		return nil, nil
	}
	p, err := s.scripts.Place(ctx)
	if err != nil {
		return nil, err
	}
	if s.apart(p) {
		p.Packages = nil // what the model has had installed is kept from these scripts
	}
	return &p, nil
}

// attached is the file of the user that a line of arguments is the name of, word for
// word: it is one argument then, also with spaces (B1 4.7).
func (p *Place) attached(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if p == nil || line == "" || !slices.Contains(p.Attached, line) {
		return "", false
	}
	return line, true
}

// options say what may be installed.
func (p Place) options(ctx context.Context) install.Options {
	if p.Packages == nil {
		return install.Options{}
	}
	return p.Packages.Options(ctx)
}

// work is one script that runs in a workspace. The lock is held.
type work struct {
	*Set
	script
	place Place
	env   tool.Env
	// notes are told before the outcome.
	notes []string
}

// apart reports whether scripts reach something that the model's own commands do not.
// What the model has put into the workspace or has had installed must not become a
// part of a script then: through it the model would reach that too (DESIGN 5.4).
func (s *Set) apart(p Place) bool {
	mode, domains := s.runner.Network()
	switch {
	case mode == sandbox.NetworkDenied, p.Network == sandbox.NetworkOpen:
		return false
	case mode != p.Network:
		return true
	}
	return slices.ContainsFunc(domains, func(d string) bool { return !slices.Contains(p.Domains, d) })
}

// finder finds interpreters as the shell does: one that the conversation unpacked
// itself goes before the host's (B1 13.17).
func (s *Set) finder(p Place) func(interpreter.Kind) (interpreter.Interpreter, error) {
	apart := s.apart(p)
	return func(kind interpreter.Kind) (interpreter.Interpreter, error) {
		if own, ok := p.Workspace.Own(kind); ok && !apart {
			return own, nil
		}
		return p.Workspace.Interpreter(kind)
	}
}

// site is where the script runs: where the shell is.
func (w *work) site() site {
	root := w.place.Workspace.Work()
	at := site{place: &w.place, root: root, cwd: root}
	// A launch is given no path with a link in it, and what runs in the background may put
	// one there at any time.
	real, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(w.place.Workspace.Current())))
	if err == nil && sandbox.Within(root, real) {
		at.cwd = real
	}
	return at
}

// here is where the script runs, relative to the work folder with "/" between names.
func (a site) here() string {
	rel, err := filepath.Rel(a.root, a.cwd)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(rel)
}

// launch is what runs the script at a place of the workspace.
func (w *work) launch(at site, limit time.Duration) sandbox.Launch {
	read := []string{w.dir}
	for _, i := range w.interpreters() {
		read = append(read, i.Read...)
	}
	l := w.place.Workspace.Launch(sandbox.Script, at.here(), workspace.Extra{Read: read, Imports: w.folders(), Env: []string{"PWD=" + at.cwd}})
	l.Argv, l.Deadline, l.Output = w.argv(), limit, w.scripts.Limits.Get(config.ScriptOutput)
	for _, dir := range w.hidden(w.script) {
		if !slices.Contains(l.Hide, dir) {
			l.Hide = append(l.Hide, dir)
		}
	}
	l.Env = withFirst(l.Env, "NODE_PATH", w.folders())
	if w.apart(w.place) {
		for _, name := range []string{"PATH", "PYTHONPATH", "NODE_PATH"} {
			l.Env = without(l.Env, name, at.root)
			for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
				if set, ok := w.place.Workspace.Packages(kind); ok {
					l.Env = without(l.Env, name, set.Dir)
				}
			}
		}
		l.Env = append(l.Env, "PYTHONNOUSERSITE=1") // HOME is the model's as well
	}
	return l
}

// withFirst is an environment with directories put first in a list of them.
func withFirst(env []string, name string, dirs []string) []string {
	env = slices.Clone(env)
	list := strings.Join(dirs, string(filepath.ListSeparator))
	for i, e := range env {
		if value, is := strings.CutPrefix(e, name+"="); is {
			env[i] = fmt.Sprintf("%s=%s%c%s", name, list, filepath.ListSeparator, value)
			return env
		}
	}
	return append(env, name+"="+list)
}

// without is an environment with what lies below a directory taken out of a list of
// directories.
func without(env []string, name, below string) []string {
	env = slices.Clone(env)
	for i, e := range env {
		value, is := strings.CutPrefix(e, name+"=")
		if !is {
			continue
		}
		dirs := slices.DeleteFunc(filepath.SplitList(value), func(dir string) bool { return sandbox.Within(below, dir) })
		env[i] = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
	}
	return env
}

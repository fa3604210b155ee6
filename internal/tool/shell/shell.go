// Package shell is the tool with which a model runs command lines in its workspace.
//
// It puts together what the rooms of the workspace know: installs are read out of the
// line and performed by the host, the rest is run, and when it fails the host does what
// it can itself, or says the one thing that names the next step (seed 1, "When the
// model gets it wrong, the host recovers instead of reporting"). It starts no process:
// commands go through a session, and what confines them is not its business.
//
// Start at [New], then [Set.Invoke]. All prose is in prompts.go.
package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// Name is the tool's.
const Name = "shell"

// Session runs command lines; [shell.Session] is one.
type Session interface {
	Run(ctx context.Context, c shell.Command) (shell.Outcome, error)
	Background(ctx context.Context, c shell.Command) (shell.Job, error)
	Timeout(asked time.Duration) time.Duration
}

// Installer installs packages; [packages.Store] is one.
type Installer interface {
	Install(ctx context.Context, r packages.Request) (packages.Set, error)
}

// Runner carries out launches that are not commands.
type Runner interface {
	Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error)
}

// Written is a file that a command has written, for a look at its syntax.
type Written struct {
	// Path is relative to the work folder, with "/" between names; Shown is how the
	// model would write it.
	Path, Shown string
	Data        []byte
}

// Options say what a set works with. Workspace, Session, Facts and Capabilities are
// needed.
type Options struct {
	Workspace *workspace.Workspace
	Session   Session
	Facts     Facts
	// Capabilities are those of what confines the commands.
	Capabilities sandbox.Capabilities
	// Refusal says why no command can run on this host; nil when they can.
	Refusal func() error
	// Installer installs packages; nil installs none.
	Installer Installer
	// Runner carries out looks at what a package offers; nil looks at none.
	Runner Runner
	// Patch applies a patch that is written as a command; the lock is held. Nil where
	// there are no file tools.
	Patch func(ctx context.Context, text string) (journal.Result, error)
	// Syntax says whether files that a command wrote parse, in sentences for the model;
	// empty when there is nothing to say. Nil says nothing.
	Syntax func(ctx context.Context, files []Written) string
	// Artifacts keeps the files that commands make; nil keeps none.
	Artifacts Artifacts
	// Read are directories that commands may read beside those of the workspace.
	Read []string
	// NoRecovery turns off whatever the host does unasked, so that its worth can be
	// measured.
	NoRecovery bool
	Logger     *slog.Logger // nil logs nothing
}

// Artifacts keeps copies of what a command has made.
type Artifacts interface {
	// Before looks at the workspace before a command.
	Before(ctx context.Context) (artifact.Snapshot, error)
	// Keep copies what is new or changed since, and tells of it: in words, and as a list.
	Keep(ctx context.Context, before artifact.Snapshot) (string, []journal.File)
}

// Set answers the shell tool for one conversation. It is safe for concurrent use;
// calls wait for each other.
type Set struct {
	o        Options
	limits   config.Values
	attempts *diagnose.Attempts

	mu    sync.Mutex
	specs map[interpreter.Kind][]packages.Spec // what the workspace has asked for
	names map[interpreter.Kind][]packages.Installed
	lost  map[string]string // distributions that could not be installed, and why
}

var _ tool.Set = (*Set)(nil)

// New makes the set of one conversation.
func New(o Options) *Set {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	limits := o.Workspace.Limits()
	return &Set{
		o: o, limits: limits, attempts: diagnose.NewAttempts(limits.Int(config.CodeRepeats)),
		specs: map[interpreter.Kind][]packages.Spec{}, names: map[interpreter.Kind][]packages.Installed{}, lost: map[string]string{},
	}
}

// Means reports whether a name is one that models have for the shell.
func Means(name string) bool {
	switch tool.Key(name) {
	case "shell", "bash", "sh", "terminal", "runcommand", "executecommand", "execcommand", "runshell", "runshellcommand", "runterminalcmd", "localshell":
		return true
	}
	return false
}

// Declaration is the tool as a model is told of it: a function of the facts.
func Declaration(f Facts) llm.Declaration {
	return llm.Declaration{Name: Name, Description: f.description(), Parameters: jsontext.Value(f.parameters())}
}

// Offer declares the tool, always with the same bytes.
func (s *Set) Offer(journal.Path) journal.Offer {
	return journal.Offer{Declared: []llm.Declaration{Declaration(s.o.Facts)}}
}

// Ordered says that commands run in the order of their calls.
func (s *Set) Ordered(string) bool { return true }

// Replay says that no command is run again: what it has done, nobody knows.
func (s *Set) Replay(string) journal.Replay { return journal.Never }

// Invoke runs a command line, with what belongs around it.
func (s *Set) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	a, sentence := parse(c.Arguments)
	if sentence != "" {
		return journal.Result{Text: sentence}, nil
	}
	if s.o.Refusal != nil {
		if err := s.o.Refusal(); err != nil {
			return journal.Result{Text: fmt.Sprintf(refused, err)}, nil
		}
	}
	unlock, err := s.o.Workspace.Lock(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	defer unlock()
	lost, err := s.o.Workspace.Restore()
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	r := &run{Set: s, args: a, line: a.command, env: e}
	if lost {
		r.notes = append(r.notes, noteLost)
	}
	return r.answer(ctx)
}

// run is one call.
type run struct {
	*Set
	args arguments
	line string // the command, with its installs replaced
	env  tool.Env
	// began is where the command starts, relative to the work folder.
	began string
	// notes are what is said before the outcome.
	notes []string
	// failed says that an install failed.
	failed bool
}

// answer goes through the checks of B1 9.2 in their order, and runs what is left.
func (r *run) answer(ctx context.Context) (journal.Result, error) {
	if result, done, err := r.patch(ctx); done || err != nil {
		return result, err
	}
	if sentence := r.refuse(); sentence != "" {
		return journal.Result{Text: sentence, Detail: detail(r.args.command)}, nil
	}
	if sentence := r.place(); sentence != "" {
		return journal.Result{Text: sentence, Detail: detail(r.args.command)}, nil
	}
	if sentence, over, err := r.installs(ctx); err != nil {
		return journal.Result{}, err
	} else if over {
		return journal.Result{Text: sentence, OK: !r.failed, Detail: detail(r.args.command)}, nil
	}
	if r.args.background {
		return r.background(ctx)
	}
	return r.foreground(ctx)
}

// refuse says why a command is not run as it is.
func (r *run) refuse() string {
	line := lookAtLine(r.args.command)
	switch {
	case int64(len(r.args.command)) > r.limits.Get(config.CodeLine):
		return fmt.Sprintf(tooLong, len(r.args.command), r.limits.Get(config.CodeLine))
	case line.patches && r.o.Patch != nil:
		return patchShape
	case line.patches:
		return patchNone
	case line.background && !r.args.background:
		return ampersand
	}
	return ""
}

// place finds where the command runs.
func (r *run) place() string {
	r.began = r.o.Workspace.Current()
	if r.args.workdir == "" {
		return ""
	}
	dir, err := r.o.Workspace.Resolve(r.args.workdir)
	if err != nil {
		return fmt.Sprintf(badWorkdir, r.args.workdir, err)
	}
	root, err := r.o.Workspace.Files()
	if err != nil {
		return fmt.Sprintf(badWorkdir, r.args.workdir, errors.New("it cannot be looked at"))
	}
	defer root.Close()
	if info, err := root.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Sprintf(noWorkdir, r.args.workdir, r.args.workdir)
	}
	r.began = dir
	return ""
}

// command is the line as the session runs it.
func (r *run) command(timeout time.Duration) shell.Command {
	c := shell.Command{Line: r.line, Timeout: timeout, Extra: workspace.Extra{Read: slices.Clone(r.o.Read)}}
	if r.args.workdir != "" {
		c.Workdir = r.began
	}
	if r.env.Progress != nil {
		c.Watch = func(_ sandbox.Stream, p []byte) { r.env.Progress(p) }
	}
	return c
}

// background starts a command that outlives its call (B1 9.10).
func (r *run) background(ctx context.Context) (journal.Result, error) {
	job, err := r.o.Session.Background(ctx, r.command(0))
	if err != nil {
		return r.notStarted(ctx, err)
	}
	text := joined(append(r.notes, fmt.Sprintf(started, job.ID, job.Shown, job.Shown))...)
	return journal.Result{Text: text, OK: !r.failed, Detail: detail(r.args.command)}, nil
}

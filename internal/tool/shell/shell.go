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
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
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
	// Patch applies a patch that is written as a command, with its paths seen from where
	// the shell is; the lock is held. Nil where there are no file tools.
	Patch func(ctx context.Context, text string) (journal.Result, error)
	// Syntax says whether files that a command wrote parse, in sentences for the model;
	// empty when there is nothing to say. Nil says nothing.
	Syntax func(ctx context.Context, files []tool.Written) string
	// Artifacts keeps the files that commands make; nil keeps none.
	Artifacts Artifacts
	// NoRecovery runs lines as they are and shows what they say as it is, so that what
	// the host does beyond that can be measured. Installs that it understands it still
	// performs: nobody else could.
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

	readable []string // directories that commands may read beside those of the workspace

	mu    sync.Mutex
	specs map[interpreter.Kind][]packages.Spec // what the workspace has asked for
	names map[interpreter.Kind][]packages.Installed
	lost  map[string]lost // distributions that could not be installed, by lostKey
	// provided are the packages of this host's Python; nil when they were not looked up.
	provided map[string]bool
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
		specs: map[interpreter.Kind][]packages.Spec{}, names: map[interpreter.Kind][]packages.Installed{}, lost: map[string]lost{},
	}
}

// Means reports whether a name is one that models have for the shell.
func Means(name string) bool {
	switch tool.Key(name) {
	case "shell", "bash", "sh", "zsh", "powershell", "pwsh", "terminal", "console", "localshell", "bashtool", "shelltool", "shellcommand",
		"runcommand", "executecommand", "execcommand", "runshell", "runbash", "executebash", "execbash", "runshellcommand", "executeshellcommand",
		"runterminalcmd", "runterminalcommand", "runinterminal", "containerexec":
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

// Invoke runs a command line, with what belongs around it. Its checks go in the order
// of B1 9.2.
func (s *Set) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	if s.o.Refusal != nil {
		if err := s.o.Refusal(); err != nil {
			return journal.Result{Text: fmt.Sprintf(refused, strings.TrimSuffix(err.Error(), "."))}, nil
		}
	}
	a, sentence := parse(c.Arguments)
	r := &run{Set: s, args: a, line: a.command, env: e}
	switch {
	case sentence != "":
		return journal.Result{Text: sentence, Detail: detail(a.command)}, nil
	case int64(len(a.command)) > s.limits.Get(config.CodeLine):
		return journal.Result{Text: r.tooLong(), Detail: detail(a.command)}, nil
	case a.background && !s.o.Facts.Files:
		return journal.Result{Text: noBackground, Detail: detail(a.command)}, nil
	}
	unlock, err := s.o.Workspace.Lock(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	defer unlock()
	if r.lostFiles, err = s.o.Workspace.Restore(); err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	return r.answer(ctx)
}

// run is one call.
type run struct {
	*Set
	args  arguments
	line  string // the command, with its installs replaced
	shape lineShape
	env   tool.Env
	// was is where the shell is, and began where the command starts: relative to the
	// work folder.
	was, began string
	// notes are what is said before the outcome.
	notes []string
	// lostFiles says that the work folder had to be made again.
	lostFiles bool
	// failed says that an install failed.
	failed bool
}

// answer looks at the line, and runs what is left of it.
func (r *run) answer(ctx context.Context) (journal.Result, error) {
	if !r.o.NoRecovery {
		r.unprompt()
		r.shape = lookAtLine(r.args.command)
	}
	placeless := r.place()
	if r.shape.envelope != "" && r.o.Patch != nil && placeless == "" && r.began == r.was {
		return r.patch(ctx)
	}
	switch {
	case r.shape.background && !r.args.background:
		return r.say(false, r.ampersand()), nil
	case r.shape.patches && r.o.Patch != nil:
		return r.say(false, patchShape), nil
	case r.shape.patches:
		return r.say(false, patchNone), nil
	case placeless != "":
		return r.say(false, placeless), nil
	}
	if result, done, err := r.installs(ctx); done || err != nil {
		return result, err
	}
	if r.args.background {
		return r.background(ctx)
	}
	return r.foreground(ctx)
}

// patch applies the command, which is nothing but a patch (B1 12.15).
func (r *run) patch(ctx context.Context) (journal.Result, error) {
	result, err := r.o.Patch(ctx, r.shape.envelope)
	if err != nil {
		return result, err
	}
	result.Text = joined(append([]string{result.Text}, r.notesFirst()...)...)
	return result, nil
}

func (r *run) tooLong() string {
	text := fmt.Sprintf(tooLong, len(r.args.command), r.limits.Get(config.CodeLine))
	if r.o.Facts.Files {
		return text + " " + tooLongFiles
	}
	return text + " " + tooLongAlone
}

func (r *run) ampersand() string {
	if r.o.Facts.Files {
		return ampersand
	}
	return ampersandAlone
}

// place finds where the command runs. The sentence says why it cannot run there.
func (r *run) place() string {
	r.was = r.o.Workspace.Current()
	r.began = r.was
	if r.args.workdir == "" {
		return ""
	}
	shown := tool.Clip(r.args.workdir)
	dir, err := r.o.Workspace.Resolve(r.args.workdir)
	if err != nil {
		if bad, ok := errors.AsType[*guard.PathError](err); ok {
			err = bad.Err
		}
		return fmt.Sprintf(badWorkdir, shown, err)
	}
	root, err := r.o.Workspace.Files()
	if err != nil {
		return fmt.Sprintf(badWorkdir, shown, errors.New("it cannot be looked at"))
	}
	defer root.Close()
	switch info, err := root.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf(missingWorkdir, shown, bash.Argument(r.o.Workspace.Shown(dir)))
	case err != nil || !info.IsDir():
		return fmt.Sprintf(noWorkdir, shown)
	}
	r.began = dir
	return ""
}

// Package shell runs the command lines of a model in a workspace, each in a confined
// process of its own, so that one continues where the last one stopped.
//
// What goes on between two commands are the directory and the exported variables (seed
// 1, "--code-exec adds four more"; B1 9). A script around the model's text leaves them
// in a file as it ends; this host reads the file as data, keeps what it understands
// and writes it into the script of the next command. So nothing that a command wrote
// is ever run by the host or read as a script. Functions, aliases, options and
// variables that are not exported end with their command, and so does everything when
// a command is killed, replaces its shell (exec), or turns its shell off (set -n):
// then all stays as it was before it.
//
// The package reads no installs out of a line and says nothing about an output: the
// shell tool does, with the rooms beside this one.
//
// Start at [Find], then [New] and [Session.Run].
package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
)

// Starter starts launches. internal/launch.Launcher is one.
type Starter interface {
	Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error)
}

// Options set up a session. Program and Starter are needed.
type Options struct {
	Program Program
	Starter Starter
	Logger  *slog.Logger // nil logs nothing
}

// Session is the shell of one conversation. Whoever calls [Session.Run] or
// [Session.Background] holds the lock of the workspace and has restored it; the other
// methods are safe for concurrent use.
type Session struct {
	w *workspace.Workspace
	o Options

	mu     sync.Mutex
	number int        // of the last script
	vars   []variable // what is exported at the start of the next command
	failed int        // launches in a row that never started

	jobs    int                        // the number of the last one
	running map[int]context.CancelFunc // what ends them, by number
	closed  bool
	ended   sync.WaitGroup // of jobs
}

// New makes the session of a workspace. End it with [Session.Close].
func New(w *workspace.Workspace, o Options) *Session {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Session{w: w, o: o, running: map[int]context.CancelFunc{}}
}

// Dialect is the language of command lines.
func (s *Session) Dialect() Dialect { return s.o.Program.Dialect }

// Timeout is how long a command may run whose call asks for a time; 0 asks for none
// (B1 9.8).
func (s *Session) Timeout(asked time.Duration) time.Duration {
	usual := s.w.Limits().Duration(config.CodeTime)
	if asked <= 0 {
		return usual
	}
	return min(asked, max(usual, s.w.Limits().Duration(config.CodeLongest)))
}

// Command is a command line and how it is run.
type Command struct {
	// Line is the model's text. It may have many lines.
	Line string
	// Workdir is where it runs, relative to the work folder as [workspace.Workspace.Resolve]
	// gives it; "." is the top. Empty is where the session is, and only then does a cd
	// move the session (B1 9.7).
	Workdir string
	// Timeout is what the call asks for; it is taken through [Session.Timeout]. A
	// background command has none.
	Timeout time.Duration
	// Extra is what the launch sees beside what all launches of the workspace do.
	Extra workspace.Extra
	// Watch is told of the output as it comes: see [sandbox.Launch.Watch]. The log of a
	// background command is written beside it.
	Watch func(sandbox.Stream, []byte)
}

// Outcome is how a command went.
type Outcome struct {
	sandbox.Result
	// Ran is where the command began, and Dir where the session is now: relative to
	// the work folder, with "/" between names.
	Ran, Dir string
	// Moved reports that Dir is another than before, and Outside that the command
	// ended in a directory outside of the workspace, which is not remembered.
	Moved, Outside bool
	// Reset reports that no exported variable is remembered any more: they could not
	// be read, are longer than code-exec-state, or could not be set again (B1 9.12).
	Reset bool
	// Script is what the shell's own messages name.
	Script Script
}

// Script is the file that a command was written into, behind Lines lines of this
// host's own (B1 9.5).
type Script struct {
	Path  string
	Lines int
}

// NotStartedError says that nothing of a command ran, through no fault of its own
// (B1 9.14).
type NotStartedError struct {
	// InARow counts the failures since a command last started, this one included.
	InARow int
	Err    error
}

// Error is for logs: it may name paths of this host.
func (e *NotStartedError) Error() string { return "start the shell: " + e.Err.Error() }

// Unwrap is the cause.
func (e *NotStartedError) Unwrap() error { return e.Err }

var errClosed = errors.New("run a command: the conversation has ended")

// Run runs a command to its end. A command that fails is no error. An error is a
// [*NotStartedError]; or says that ctx ended first, that the host is busy for the
// moment ([sandbox.ErrBusy]), or that the line cannot be run.
func (s *Session) Run(ctx context.Context, c Command) (Outcome, error) {
	p, err := s.prepare(c, true)
	if err != nil {
		return Outcome{}, s.notStarted(ctx, err)
	}
	p.launch.Deadline = s.Timeout(c.Timeout)
	p.launch.Output = s.w.Limits().Get(config.CodeOutput)
	p.launch.Watch = c.Watch
	job, err := s.o.Starter.Start(ctx, p.launch)
	if err != nil {
		return Outcome{}, s.notStarted(ctx, err)
	}
	s.started()
	return s.settle(p, job.Wait()), nil
}

func (s *Session) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = 0
}

// notStarted counts a failure that is the host's.
func (s *Session) notStarted(ctx context.Context, err error) error {
	var line *lineError
	switch {
	case errors.As(err, &line), errors.Is(err, errClosed), errors.Is(err, ErrJobs):
		return err
	case ctx.Err() != nil, errors.Is(err, sandbox.ErrBusy):
		return fmt.Errorf("run a command: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	return &NotStartedError{InARow: s.failed, Err: err}
}

// lineError says why a line cannot be run by any shell.
type lineError struct{ text string }

func (e *lineError) Error() string { return "run a command: " + e.text }

// plan is a command that is ready to be started.
type plan struct {
	launch sandbox.Launch
	script Script
	// was is where the session is, ran where the command begins, moves whether its cd
	// counts.
	was, ran string
	moves    bool
	kept     string // the name of the file in which it leaves its state
}

// prepare writes the script of a command. keeps says whether what it leaves is
// remembered.
func (s *Session) prepare(c Command, keeps bool) (plan, error) {
	if strings.IndexByte(c.Line, 0) >= 0 {
		return plan{}, &lineError{"it holds a NUL byte, which no shell reads: leave it out"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return plan{}, errClosed
	}
	if err := s.mend(); err != nil {
		return plan{}, err
	}
	x := c.Extra
	x.Read = append(append([]string(nil), x.Read...), s.o.Program.Read...)
	p := plan{launch: s.w.Launch(sandbox.Shell, ".", x), was: s.w.Current(), moves: c.Workdir == ""}
	p.ran = p.was
	if !p.moves {
		p.ran = c.Workdir
	}
	t := text{dialect: s.Dialect(), work: s.w.Work(), dir: s.path(p.ran), must: !p.moves, line: c.Line, windows: runtime.GOOS == "windows"}
	if keeps {
		p.kept = keptName()
		t.kept = s.saved(p.kept)
	}
	t.exports = settled(s.vars, environment(p.launch.Env))
	script, lines := t.script()
	s.number++
	path, err := s.write(s.number, script)
	if err != nil {
		return plan{}, err
	}
	p.script = Script{Path: path, Lines: lines}
	p.launch.Argv = append(append([]string(nil), s.o.Program.Argv...), path)
	return p, nil
}

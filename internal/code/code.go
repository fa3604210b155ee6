// Package code gives a conversation what code work needs: a workspace, the tools that
// work in it, and the files that its messages bring.
//
// It puts rooms together and does nothing that one of them does: what confines a
// command, reads an install or finds an error is theirs. Nothing is on the disk until a
// tool is called.
//
// Start at [New], then [Service.Open] and [Conversation.Tools].
package code

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/tool/file"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/shell"
	"github.com/metier-run/metier/internal/workspace/syntax"
)

// Launcher starts what the tools run; launch.Launcher is one.
type Launcher interface {
	Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error)
	Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error)
	Capabilities() sandbox.Capabilities
}

// Options say how conversations work.
type Options struct {
	// Workspaces say where workspaces are, and what they find.
	Workspaces workspace.Options
	Launcher   Launcher
	// Shell runs the command lines.
	Shell shell.Program
	// Facts are what the model is told of it.
	Facts toolshell.Facts
	// Refusal says why no command can run on this host although the operator allows
	// them; nil when they can.
	Refusal func() error
	// Installer installs packages; nil installs none.
	Installer toolshell.Installer
	// Artifacts keeps what is made; nil keeps nothing. FilesURL is where it is served;
	// empty names files by their paths on this host.
	Artifacts *artifact.Store
	FilesURL  string
	// NoRecovery makes the host one that does what a call says and no more, so that what
	// it does beyond that can be measured: it takes no other names of tools and
	// arguments, reads no patch that is not as declared, installs and explains nothing
	// unasked, and refuses in one sentence.
	NoRecovery bool
	// Prepare, if set, puts files into the work folder of each conversation before
	// anything works there; Inspect is shown it before it goes: for who judges what was
	// done.
	Prepare func(dir string) error
	Inspect func(dir string)
	Logger  *slog.Logger
}

// Service opens conversations. It is safe for concurrent use.
type Service struct {
	o      Options
	syntax *syntax.Checker
}

// New makes a service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{o: o}
	if !o.NoRecovery {
		s.syntax = syntax.New(syntax.Options{
			Runner: o.Launcher, Interpreters: o.Workspaces.Interpreters, Environ: o.Workspaces.Environ, Limits: o.Workspaces.Limits, Logger: o.Logger,
		})
	}
	return s
}

// FileTools are the tools that conversations declare, as the block about files is told
// of them. taken reports a name that the caller has a tool of.
func (s *Service) FileTools(taken func(name string) bool) disclosure.FileTools {
	files := s.o.Facts.Files
	return disclosure.FileTools{
		Read: files && !taken(file.ReadName), Patch: files && !taken(file.PatchName), Write: files && !taken(file.WriteName), Shell: !taken(toolshell.Name),
	}
}

// Attachments take in the files of a conversation's messages.
func (s *Service) Attachments() *Attachments { return newAttachments(s.o.Workspaces.Limits) }

// Open begins a conversation. owner may fetch what is made in it; files are put into
// its workspace.
func (s *Service) Open(owner string, files *Attachments) *Conversation {
	c := &Conversation{s: s, owner: owner, files: files}
	c.begin()
	return c
}

// Attach puts more files into the conversation, beside what is there, and gives back
// the note that tells a model of them.
func (c *Conversation) Attach(files []llm.Attachment) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = c.s.Attachments()
	}
	if c.room == nil {
		return c.files.Add(files)
	}
	root, err := c.room.workspace.Files()
	if err != nil {
		return c.files.Add(files) // the next call tells
	}
	defer root.Close()
	return c.files.beside(func(name string) bool {
		_, err := root.Stat(name)
		return !errors.Is(err, fs.ErrNotExist)
	}, files)
}

// Attached are the names under which files were taken in, in the order in which they
// came.
func (c *Conversation) Attached() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.Names()
}

// Settle puts the files that were taken in into the workspace now, so that none is held
// in memory until a tool is called. An error is of the host; a file that could not be
// put there is an error, too, and the model is told of it by itself.
func (c *Conversation) Settle() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := 0
	if c.room != nil {
		told = len(c.room.problems)
	}
	r, err := c.opened()
	if err != nil {
		return err
	}
	if len(r.problems) > told {
		return errors.New(r.problems[len(r.problems)-1])
	}
	return nil
}

// ID names the conversation's workspace: it is another one after [Conversation.Reset],
// and no two conversations have the same.
func (c *Conversation) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == "" {
		c.id = rand.Text()
	}
	return c.id
}

// Conversation is one conversation's code work. It is safe for concurrent use.
type Conversation struct {
	s     *Service
	owner string

	mu       sync.Mutex
	files    *Attachments
	room     *room
	readable []string // the folders of the request's skills
	closed   bool
	life     context.Context // of its calls
	end      context.CancelCauseFunc
	id       string // empty until it is asked for
}

// room is what a conversation has once a tool was called.
type room struct {
	workspace *workspace.Workspace
	session   *shell.Session
	file      *file.Set
	shell     *toolshell.Set
	applied   *toolskill.Applied
	readable  []string // the folders of skills that commands see
	problems  []string // files that could not be put there, told once
	staged    int
}

var errClosed = errors.New("the conversation has ended")

// begin begins the time in which calls may come. c.mu is held, or c new.
func (c *Conversation) begin() {
	c.life, c.end = context.WithCancelCause(context.Background())
}

// lived is a context for one call that ends with the conversation, too.
func (c *Conversation) lived(ctx context.Context) (context.Context, func()) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// open makes the workspace with the first call, and puts the files there that came
// since the last one (B1 6.4).
func (c *Conversation) open() (*room, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened()
}

// opened is open with c.mu held.
func (c *Conversation) opened() (*room, error) {
	if c.closed {
		return nil, errClosed
	}
	if c.room == nil {
		w, err := workspace.New(c.s.o.Workspaces)
		if err != nil {
			return nil, err
		}
		if err := c.s.prepare(w); err != nil {
			return nil, errors.Join(err, w.Close(context.Background()))
		}
		c.room = c.furnish(w)
	}
	if err := c.room.stage(c.files); err != nil {
		return nil, err
	}
	return c.room, nil
}

func (s *Service) prepare(w *workspace.Workspace) error {
	if s.o.Prepare == nil {
		return nil
	}
	if err := s.o.Prepare(w.Work()); err != nil {
		return fmt.Errorf("prepare the workspace: %w", err)
	}
	return nil
}

// stage writes the attached files that are not there yet.
func (r *room) stage(files *Attachments) error {
	if files == nil || r.staged == len(files.files) {
		return nil
	}
	root, err := r.workspace.Files()
	if err != nil {
		return err
	}
	defer root.Close()
	r.problems = append(r.problems, files.stage(root, r.staged)...)
	r.staged = len(files.files)
	return nil
}

// furnish makes the tools of a workspace.
func (c *Conversation) furnish(w *workspace.Workspace) *room {
	o := c.s.o
	r := &room{workspace: w, applied: toolskill.NewApplied(), session: shell.New(w, shell.Options{Program: o.Shell, Starter: o.Launcher, Logger: o.Logger})}
	r.file = file.New(file.Options{Workspace: w, Syntax: c.syntaxOf(r), Keep: c.keepPaths(r)})
	so := toolshell.Options{
		Workspace: w, Session: r.session, Facts: o.Facts, Capabilities: o.Launcher.Capabilities(), Refusal: o.Refusal,
		Installer: o.Installer, Runner: o.Launcher, NoRecovery: o.NoRecovery, Logger: o.Logger,
		Syntax: c.syntaxOf(r),
	}
	if o.Facts.Files {
		so.Patch = r.file.ApplyPatch
	}
	if o.Artifacts != nil {
		so.Artifacts = keeper{c, r}
	}
	r.shell = toolshell.New(so)
	return r
}

// Close ends what runs in the conversation, waits for it, and removes its files.
func (c *Conversation) Close(ctx context.Context) error {
	c.mu.Lock()
	r := c.room
	c.room, c.closed = nil, true
	c.end(errClosed)
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	r.session.Close()
	if c.s.o.Inspect != nil {
		c.s.o.Inspect(r.workspace.Work())
	}
	if err := r.workspace.Close(ctx); err != nil {
		return fmt.Errorf("close the conversation: %w", err)
	}
	return nil
}

// Reset begins anew: with an empty workspace, and without files.
func (c *Conversation) Reset(ctx context.Context) error {
	err := c.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.files, c.id = false, nil, ""
	c.begin()
	return err
}

// place is where parsers work.
func (c *Conversation) place(r *room) syntax.Place {
	return syntax.Place{Temp: r.workspace.State(), Hide: c.s.o.Workspaces.Hide}
}

// syntaxOf says whether files that were just written parse; nil without recovery.
func (c *Conversation) syntaxOf(r *room) func(context.Context, []tool.Written) string {
	if c.s.syntax == nil {
		return nil
	}
	return func(ctx context.Context, written []tool.Written) string {
		var files []syntax.File
		paths := map[string]string{}
		for _, w := range written {
			files = append(files, syntax.File{Path: w.Shown, Data: w.Data})
			paths[w.Shown] = w.Path
		}
		return c.check(ctx, r, files, paths)
	}
}

// check tells what parsers say. What it shows of a file, the model has seen.
func (c *Conversation) check(ctx context.Context, r *room, files []syntax.File, paths map[string]string) string {
	verdicts, err := c.s.syntax.Check(ctx, c.place(r), files)
	if err != nil {
		return "" // the call has ended
	}
	for _, v := range verdicts {
		for _, f := range files {
			if f.Path != v.Path {
				continue
			}
			for _, n := range v.Shown {
				r.workspace.Seen.Some(paths[f.Path], f.Data, n, n)
			}
		}
	}
	return syntax.Report(verdicts)
}

// keeper keeps what commands make.
type keeper struct {
	c *Conversation
	r *room
}

// scope is what is looked at.
func (c *Conversation) scope() artifact.Scope {
	limits := c.s.o.Workspaces.Limits
	return artifact.Scope{Ignore: noArtifacts(), Entries: limits.Int(config.ArtifactEntries), Depth: limits.Int(config.ArtifactDepth)}
}

// noArtifacts are the patterns for what is never kept: what is hidden, what package
// managers and interpreters keep, and what they put at the top of a HOME (B1 8.9).
func noArtifacts() []string {
	return append(artifact.DefaultIgnore(), "/Library/", "/AppData/", "/pip/", "/"+workspace.Repairs+"/", "/node_modules")
}

// Before looks at the workspace.
func (k keeper) Before(ctx context.Context) (artifact.Snapshot, error) {
	return artifact.Take(ctx, k.r.workspace.Work(), k.c.scope())
}

// Keep copies what is new or changed since.
func (k keeper) Keep(ctx context.Context, before artifact.Snapshot) (string, []journal.File) {
	return k.c.keep(ctx, k.r, before)
}

func (c *Conversation) keep(ctx context.Context, r *room, before artifact.Snapshot) (string, []journal.File) {
	kept, err := c.s.o.Artifacts.Capture(ctx, c.owner, r.workspace.Work(), before)
	if err != nil {
		c.s.o.Logger.ErrorContext(ctx, "files of a workspace lost", "error", err)
		return tool.FilesLost, nil
	}
	return tool.Kept(kept, c.s.o.FilesURL, c.s.o.Artifacts.Dir(kept.RunID))
}

// keepPaths keeps single files that a file tool has written (B1 11.10).
func (c *Conversation) keepPaths(r *room) func(context.Context, []string) (string, []journal.File) {
	if c.s.o.Artifacts == nil {
		return nil
	}
	return func(ctx context.Context, paths []string) (string, []journal.File) {
		before, err := artifact.Take(ctx, r.workspace.Work(), c.scope())
		if err != nil {
			c.s.o.Logger.ErrorContext(ctx, "files of a workspace lost", "error", err)
			return tool.FilesLost, nil
		}
		return c.keep(ctx, r, before.Without(paths...))
	}
}

// Package file is the set of tools with which a model works on the files of its
// workspace: read_file, apply_patch and write_file, and edit_file, which is answered
// and not declared.
//
// Every file is read and written through the guard, below the work folder, by one
// call at a time. A change is made whole or not at all; what is refused begins with
// the phrase that nothing was changed, and says what to do. The package starts no
// process: what a file's syntax is worth and what becomes of produced files it asks
// of the functions in its [Options].
//
// Start at [New], then [Set.Invoke]. All prose is in prompts.go.
package file

import (
	"context"
	"fmt"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// The names of the tools. EditName is never declared: models that were trained on
// such a tool call it all the same (seed 1; B1 3).
const (
	ReadName  = "read_file"
	PatchName = "apply_patch"
	WriteName = "write_file"
	EditName  = "edit_file"
)

// Options say what a set works on.
type Options struct {
	// Workspace is where the files are. Its limits are those of the set.
	Workspace *workspace.Workspace
	// Syntax says whether files that were just written parse, in sentences for the
	// model; empty when there is nothing to say. Nil says nothing (B1 10.11).
	Syntax func(ctx context.Context, files []tool.Written) string
	// Keep keeps copies of files that were just written, and gives the lines that name
	// them and the files themselves. Paths are relative to the work folder. Nil keeps
	// nothing (B1 11.10).
	Keep func(ctx context.Context, paths []string) (string, []journal.File)
}

// Set answers the file tools. It is safe for concurrent use; calls wait for each
// other.
type Set struct {
	w      *workspace.Workspace
	syntax func(context.Context, []tool.Written) string
	keep   func(context.Context, []string) (string, []journal.File)

	fileSize, workspaceBytes int64
	pageLines, pageBytes     int
	entries                  int
	// otherFiles and otherBytes bound the search for a text in other files.
	otherFiles int
	otherBytes int64
	patchBytes int
	patchFiles int
	patchTotal int
	patchTime  time.Duration
}

var _ tool.Set = (*Set)(nil)

// New makes the set of one conversation.
func New(o Options) *Set {
	l := o.Workspace.Limits()
	s := &Set{
		w: o.Workspace, syntax: o.Syntax, keep: o.Keep,
		fileSize: l.Get(config.FileSize), workspaceBytes: l.Get(config.WorkspaceBytes),
		pageLines: l.Int(config.FileLines), pageBytes: l.Int(config.FilePage),
		entries:    l.Int(config.ArtifactEntries),
		otherFiles: l.Int(config.SeenFiles), otherBytes: l.Get(config.SeenBytes),
		patchBytes: l.Int(config.PatchBytes), patchFiles: l.Int(config.PatchFiles),
		patchTotal: l.Int(config.PatchTotal), patchTime: l.Duration(config.PatchTime),
	}
	if s.syntax == nil {
		s.syntax = func(context.Context, []tool.Written) string { return "" }
	}
	if s.keep == nil {
		s.keep = func(context.Context, []string) (string, []journal.File) { return "", nil }
	}
	return s
}

// Offer declares the tools, always with the same bytes.
func (s *Set) Offer(journal.Path) journal.Offer {
	return journal.Offer{Declared: Declarations(s.w.Limits())}
}

// Ordered says that the calls of a message are answered in their order, each on the
// files that the one before it left.
func (s *Set) Ordered(name string) bool { return Means(name) != "" }

// Replay says that a read may be done again, and nothing else.
func (s *Set) Replay(name string) journal.Replay {
	if Means(name) == ReadName {
		return journal.Again
	}
	return journal.Never
}

// Invoke answers a call by any of the names that [Means] knows.
func (s *Set) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	name := Means(c.Name)
	if name == "" {
		return tool.Unknown(c.Name, e), nil
	}
	unlock, err := s.w.Lock(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", name, err)
	}
	defer unlock()
	return s.visit(name, func(v visit) journal.Result {
		switch name {
		case ReadName:
			return v.read(ctx, c.Arguments, e)
		case PatchName:
			text, err := patchText(c.Arguments)
			if err != nil {
				return failure("", "%s", err)
			}
			return v.patch(ctx, text)
		case WriteName:
			return v.write(ctx, c.Arguments)
		}
		return v.edit(ctx, c.Arguments, e)
	})
}

// ApplyPatch applies a patch as apply_patch does, for a shell that was sent one. The
// caller holds the workspace's lock.
func (s *Set) ApplyPatch(ctx context.Context, text string) (journal.Result, error) {
	return s.visit(PatchName, func(v visit) journal.Result { return v.patch(ctx, text) })
}

// visit is one call's look at the workspace, which is locked meanwhile.
type visit struct {
	*Set
	root *guard.Root
}

// visit opens the workspace for a call, and makes it again if it was lost (B1 8.3).
func (s *Set) visit(name string, do func(visit) journal.Result) (journal.Result, error) {
	lost, err := s.w.Restore()
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", name, err)
	}
	root, err := s.w.Files()
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", name, err)
	}
	defer root.Close()
	r := do(visit{Set: s, root: root})
	r.Workspace = true
	if lost {
		r.Text += "\n\n" + workspaceLost
	}
	return r, nil
}

// failure is the answer to what could not be done, before anything was changed.
func failure(detail, format string, args ...any) journal.Result {
	return journal.Result{Text: nothing + fmt.Sprintf(format, args...), Detail: detail}
}

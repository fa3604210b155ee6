package code

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/tool/file"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
)

// set is what a request of a conversation offers: the tools of its skills, if it has
// any, and those that work in the workspace.
type set struct {
	c      *Conversation
	others tool.Set // may be nil
}

var _ tool.Set = set{}

// Tools are the conversation's tools behind others, which may be nil.
func (c *Conversation) Tools(others tool.Set) tool.Set {
	if others == nil {
		c.mayRead(nil) // a request without skills
	}
	s := set{c: c, others: others}
	if c.s.o.NoRecovery {
		return plain{s}
	}
	return s
}

// Offer declares the others and then ours, always with the same bytes (B1 3).
func (s set) Offer(p journal.Path) journal.Offer {
	var offer journal.Offer
	if s.others != nil {
		offer = s.others.Offer(p)
	}
	declared := slices.Clone(offer.Declared)
	if s.c.s.o.Facts.Files {
		declared = append(declared, file.Declarations(s.c.s.o.Workspaces.Limits)...)
	}
	offer.Declared = append(declared, toolshell.Declaration(s.c.s.o.Facts))
	return offer
}

// ours reports whether a name is one of ours, also under a name that models have for
// it. A name that the others declare is theirs.
func (s set) ours(name string) bool {
	if toolshell.Means(name) {
		return true
	}
	return s.c.s.o.Facts.Files && file.Means(name) != ""
}

// Ordered says that all that works with files goes in the order of the calls.
func (s set) Ordered(name string) bool {
	return s.ours(name) || s.others != nil && s.others.Ordered(name)
}

// Replay is that of the tool.
func (s set) Replay(name string) journal.Replay {
	switch {
	case file.Means(name) == file.ReadName && s.ours(name):
		return journal.Again
	case s.ours(name) || s.others == nil:
		return journal.Never
	}
	return s.others.Replay(name)
}

// Invoke answers a call.
func (s set) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	ctx, done := s.c.lived(ctx)
	defer done()
	if !s.ours(c.Name) {
		if s.others == nil {
			return tool.Unknown(c.Name, e), nil
		}
		result, err := s.others.Invoke(ctx, c, e)
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, errClosed) {
			err = fmt.Errorf("%s: %w", c.Name, cause) // in place of that the call was stopped
		}
		return result, err
	}
	r, err := s.c.enter(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	e, ended := r.previewed(e)
	defer ended()
	var result journal.Result
	if toolshell.Means(c.Name) {
		result, err = r.shell.Invoke(ctx, c, e)
	} else {
		result, err = r.file.Invoke(ctx, c, e)
	}
	if told := s.c.told(r); told != "" && err == nil {
		result.Text = told + "\n" + result.Text
	}
	return result, err
}

// told are the sentences about files that could not be put into the workspace, once.
func (c *Conversation) told(r *room) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(r.problems, "\n")
	r.problems = nil
	return text
}

// Canonical is the tool that a name means, for who shows calls to a person: models have
// many names for one (B1 4.1).
func Canonical(name string) string {
	if toolshell.Means(name) {
		return toolshell.Name
	}
	if means := file.Means(name); means != "" {
		return means
	}
	return name
}

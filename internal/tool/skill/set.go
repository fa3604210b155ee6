// Package skill is the set of tools with which a model uses its skills:
// skills_list, skills_read and, if the operator allows it, skills_run.
//
// A set holds exactly the skills that one request can reach, so that no spelling
// of a name or a path leads to another one (seed 1, "One skill cannot read
// another"). The first two read and never write anything, so that every call may be
// run again. The third never starts a process itself: it says what is to be launched
// to a [Runner], which confines it, and has the files that came of it kept. What a
// model does wrong is answered with a sentence that it can act on; only a failure of
// this host is an error.
//
// Scripts run in a directory that is gone when the call is answered, or, where the
// model has a workspace, in that: see [Place].
//
// Start at [New], then [Scripts]. All prose is in prompts.go.
package skill

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

// The names of the tools. They hold no dot, because some chat templates splice
// a name into their markup as it stands.
const (
	ListName = "skills_list"
	ReadName = "skills_read"
	RunName  = "skills_run"
)

// Options say what a set reaches.
type Options struct {
	// Skills are those that the request can reach, in any order.
	Skills []skill.Skill
	// PageBytes is the size of one page of skills_read; 0 is the default of the
	// limit skills-page.
	PageBytes int
	// Runner runs the scripts of skills; with nil there is no skills_run.
	Runner Runner
	// Scripts say how scripts are run. Without a Runner they mean nothing.
	Scripts Scripts
}

// Set answers skills_list, skills_read and skills_run. It is safe for concurrent
// use.
type Set struct {
	skills  []skill.Skill // sorted by name
	page    int64
	runner  Runner
	scripts Scripts
	now     func() time.Time
}

var _ tool.Set = (*Set)(nil)

// New makes the set of one request.
func New(o Options) *Set {
	s := &Set{skills: slices.Clone(o.Skills), page: int64(o.PageBytes), runner: o.Runner, scripts: o.Scripts, now: time.Now}
	if s.page <= 0 {
		s.page = config.Values{}.Get(config.PageSize)
	}
	slices.SortStableFunc(s.skills, func(a, b skill.Skill) int { return cmp.Compare(a.Name, b.Name) })
	s.skills = slices.CompactFunc(s.skills, func(a, b skill.Skill) bool { return a.Name == b.Name })
	if s.scripts.Kinds == nil {
		s.scripts.Kinds = DefaultKinds()
	}
	s.scripts.Logger = cmp.Or(s.scripts.Logger, slog.New(slog.DiscardHandler))
	return s
}

// Offer declares the tools, always with the same bytes, or nothing when there is no
// skill to read. skills_run is declared also where this host refuses to run anything:
// each call then says what to do instead.
func (s *Set) Offer(journal.Path) journal.Offer {
	if len(s.skills) == 0 {
		return journal.Offer{}
	}
	declared := []llm.Declaration{
		{Name: ListName, Description: listDescription, Parameters: jsontext.Value(listParameters)},
		{Name: ReadName, Description: readDescription, Parameters: jsontext.Value(readParameters)},
	}
	if s.runner != nil {
		declared = append(declared, llm.Declaration{Name: RunName, Description: s.runDescription(), Parameters: jsontext.Value(runParameters)})
	}
	return journal.Offer{Declared: declared}
}

// runDescription says where scripts begin.
func (s *Set) runDescription() string {
	if s.scripts.Place != nil {
		return runDescription + runsInWorkspace
	}
	return runDescription + runsInScratch
}

// Ordered says that scripts run one after the other in the order of their calls: one
// may use what another one left.
func (s *Set) Ordered(name string) bool { return runs(name) }

// Replay says that every call may be run again, also one to a tool that does not
// exist, but for one of a script: what it has done, nobody knows.
func (s *Set) Replay(name string) journal.Replay {
	if runs(name) {
		return journal.Never
	}
	return journal.Again
}

// Invoke answers a call. A name that means neither of the tools gets a sentence
// that says what there is (B1 6.2).
func (s *Set) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	if err := ctx.Err(); err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	switch Means(c.Name) {
	case ListName:
		return s.list(parseListOffset(c.Arguments), s.pageFor(e)), nil
	case ReadName:
		return s.read(ctx, c.Arguments, e)
	}
	if s.runner != nil && runs(c.Name) {
		return s.run(ctx, c.Arguments, e)
	}
	return s.unknown(c.Name, e), nil
}

// pageFor is the size of a page that leaves the model room to answer.
func (s *Set) pageFor(e tool.Env) int64 {
	if e.Room <= 0 {
		return s.page
	}
	return min(s.page, max(int64(e.Room), smallestPage))
}

// smallestPage is what a page still makes sense with.
const smallestPage = 1024

// unknown answers a call to a tool that nobody has.
func (s *Set) unknown(name string, e tool.Env) journal.Result {
	if k, ok := s.find(name); ok {
		r := failure(k.Name, "", isSkill, name, k.Name)
		if s.canRun() && len(s.runnable(k)) > 0 {
			r.Text += scriptsToo
		}
		return r
	}
	return tool.Unknown(name, e)
}

// canRun reports whether a script can run at all.
func (s *Set) canRun() bool { return s.runner != nil && s.runner.Refusal() == nil }

// failure is the answer to a mistake of the model.
func failure(name, detail, format string, args ...any) journal.Result {
	return journal.Result{Text: failed + fmt.Sprintf(format, args...), Skill: name, Detail: detail}
}

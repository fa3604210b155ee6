// Package skill is the set of tools with which a model reads its skills:
// skills_list and skills_read.
//
// A set holds exactly the skills that one request can reach, so that no spelling
// of a name or a path leads to another one (seed 1, "One skill cannot read
// another"). It reads and never writes or runs anything; every call may be run
// again. What a model does wrong is answered with a sentence that it can act
// on; only a failure of this host is an error.
//
// Start at [New]. All prose is in prompts.go.
package skill

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
)

// Options say what a set reaches.
type Options struct {
	// Skills are those that the request can reach, in any order.
	Skills []skill.Skill
	// PageBytes is the size of one page of skills_read; 0 is the default of the
	// limit skills-page.
	PageBytes int
}

// Set answers skills_list and skills_read. It is safe for concurrent use.
type Set struct {
	skills []skill.Skill // sorted by name
	page   int64
}

var _ tool.Set = (*Set)(nil)

// New makes the set of one request.
func New(o Options) *Set {
	s := &Set{skills: slices.Clone(o.Skills), page: int64(o.PageBytes)}
	if s.page <= 0 {
		s.page = config.Values{}.Get(config.PageSize)
	}
	slices.SortStableFunc(s.skills, func(a, b skill.Skill) int { return cmp.Compare(a.Name, b.Name) })
	s.skills = slices.CompactFunc(s.skills, func(a, b skill.Skill) bool { return a.Name == b.Name })
	return s
}

// Offer declares both tools, always with the same bytes, or nothing when there
// is no skill to read.
func (s *Set) Offer(journal.Path) journal.Offer {
	if len(s.skills) == 0 {
		return journal.Offer{}
	}
	return journal.Offer{Declared: []llm.Declaration{
		{Name: ListName, Description: listDescription, Parameters: jsontext.Value(listParameters)},
		{Name: ReadName, Description: readDescription, Parameters: jsontext.Value(readParameters)},
	}}
}

// Replay says that every call may be run again: none changes anything, also
// not one to a tool that does not exist.
func (s *Set) Replay(string) journal.Replay { return journal.Again }

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
		return failure(k.Name, "", isSkill, name, k.Name)
	}
	return tool.Unknown(name, e)
}

// failure is the answer to a mistake of the model.
func failure(name, detail, format string, args ...any) journal.Result {
	return journal.Result{Text: failed + fmt.Sprintf(format, args...), Skill: name, Detail: detail}
}

package turn

import (
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// filter keeps the host's calls, and what follows from them, out of a client's
// stream while it runs.
type filter struct {
	callers []string
	before  llm.Usage // of the rounds before this one
	later   bool      // there are such rounds

	handlers map[int]journal.Handler // by the upstream's index
	dense    map[int]int             // the caller's calls as the client counts them
	host     bool                    // the round has a call of the host
	hidden   llm.Piece
}

func newFilter(callers []string, before llm.Usage, later bool) *filter {
	return &filter{callers: callers, before: before, later: later}
}

// handler says who answers a call of that name. A caller's tool wins its name,
// whatever its case (seed 1, "The skill tools").
func handler(callers []string, name string) journal.Handler {
	for _, c := range callers {
		if strings.EqualFold(c, name) {
			return journal.Caller
		}
	}
	return journal.Host
}

// pass is the piece as the client may see it, and whether anything is left.
// It returns p itself when nothing had to change.
func (f *filter) pass(p *llm.Piece) (*llm.Piece, bool) {
	if p.Choice != 0 || (len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil) {
		return p, p.Text != "" || p.Reasoning != "" || len(p.Raw.Bytes) > 0
	}
	out := p
	if len(p.Calls) > 0 {
		out = f.passCalls(out)
	}
	if p.Usage != nil && f.later && !f.host {
		sum := f.before.Add(*p.Usage)
		out = f.change(out)
		out.Usage = &sum
	}
	if f.host && (p.Finish != "" || p.Usage != nil) {
		// The turn goes on, or its end is not the upstream's to tell.
		out = f.change(out)
		out.Finish, out.Usage = "", nil
	}
	if out == p {
		return p, true
	}
	empty := out.Text == "" && out.Reasoning == "" && len(out.Calls) == 0 && out.Finish == "" && out.Usage == nil
	return out, !empty
}

// change is a copy of p without its wire form, made once a piece.
func (f *filter) change(p *llm.Piece) *llm.Piece {
	if p == &f.hidden {
		return p
	}
	f.hidden = *p
	f.hidden.Raw = llm.Raw{}
	return &f.hidden
}

func (f *filter) passCalls(p *llm.Piece) *llm.Piece {
	changed := false
	for _, d := range p.Calls {
		if f.see(d) == journal.Host {
			f.host, changed = true, true
		} else if f.dense[d.Index] != d.Index {
			changed = true
		}
	}
	if !changed {
		return p
	}
	out := f.change(p)
	out.Calls = nil
	for _, d := range p.Calls {
		if f.handlers[d.Index] == journal.Caller {
			d.Index = f.dense[d.Index]
			out.Calls = append(out.Calls, d)
		}
	}
	return out
}

// see notes who answers the call that a fragment belongs to.
func (f *filter) see(d llm.CallDelta) journal.Handler {
	if h, ok := f.handlers[d.Index]; ok {
		return h
	}
	if f.handlers == nil {
		f.handlers, f.dense = map[int]journal.Handler{}, map[int]int{}
	}
	h := handler(f.callers, d.Name)
	f.handlers[d.Index] = h
	if h == journal.Caller {
		f.dense[d.Index] = len(f.dense)
	}
	return h
}

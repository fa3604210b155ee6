package turn

import (
	"maps"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// crew says who answers a call.
type crew struct {
	callers []string // the names of the caller's tools
	hosts   []string // of the host's that are declared
	alone   bool     // there is no host: whatever is called is the caller's
}

// handler says who answers a call of that name. A caller's tool wins its name,
// whatever its case (seed 1, "The skill tools").
func (c crew) handler(name string) journal.Handler {
	is := func(other string) bool { return strings.EqualFold(other, name) }
	if c.alone || slices.ContainsFunc(c.callers, is) {
		return journal.Caller
	}
	return journal.Host
}

// sure reports whether no tool's name is longer and begins with name: an upstream
// may send a name in pieces, and more of it would change who answers.
func (c crew) sure(name string) bool {
	longer := func(n string) bool { return len(n) > len(name) && strings.EqualFold(n[:len(name)], name) }
	return c.alone || (!slices.ContainsFunc(c.callers, longer) && !slices.ContainsFunc(c.hosts, longer))
}

// filter keeps the host's calls, and what follows from them, out of a client's
// stream while it runs.
type filter struct {
	crew   crew
	before llm.Usage // of the rounds before this one
	later  bool      // there are such rounds

	handlers map[int]journal.Handler // by the upstream's index
	dense    map[int]int             // the caller's calls as the client counts them
	pending  map[int]*pending        // calls whose name is not whole yet
	host     bool                    // the round has a call of the host
	names    map[int]string          // of the host's calls
	hosted   []llm.CallDelta         // of the host's calls in the last piece, each with its whole name
	// What a piece that was changed consists of, and its calls; used again.
	hidden llm.Piece
	calls  []llm.CallDelta
}

// pending is a call before it is known who answers it.
type pending struct {
	name string
	held []llm.CallDelta
}

func newFilter(c crew, before llm.Usage, later bool) *filter {
	return &filter{crew: c, before: before, later: later}
}

// pass is the piece as the client may see it, and whether anything is left.
// It returns p itself when nothing had to change.
func (f *filter) pass(p *llm.Piece) (*llm.Piece, bool) {
	f.hosted = f.hosted[:0]
	if p.Choice != 0 && !f.crew.alone {
		// With tools of the host there is one answer; another could hold its calls.
		return p, false
	}
	ends := p.Finish != "" || p.Reply != nil
	if p.Choice != 0 || (len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil && len(f.pending) == 0) {
		return p, p.Text != "" || p.Reasoning != "" || len(p.Raw.Bytes) > 0
	}
	out := p
	if len(p.Calls) > 0 || (ends && len(f.pending) > 0) {
		out = f.passCalls(out, ends)
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

func (f *filter) passCalls(p *llm.Piece, ends bool) *llm.Piece {
	changed := false
	calls := f.calls[:0]
	for _, d := range p.Calls {
		shown := f.see(d)
		changed = changed || len(shown) != 1 || shown[0].Index != d.Index
		calls = append(calls, shown...)
	}
	if ends && len(f.pending) > 0 {
		changed = true
		for _, i := range slices.Sorted(maps.Keys(f.pending)) {
			calls = append(calls, f.decide(i, f.pending[i])...)
		}
	}
	f.calls = calls
	if !changed {
		return p
	}
	out := f.change(p)
	out.Calls = calls
	return out
}

// see takes a fragment of a call, and is what can be shown then.
func (f *filter) see(d llm.CallDelta) []llm.CallDelta {
	if h, ok := f.handlers[d.Index]; ok {
		return f.shown(h, d)
	}
	w := f.pending[d.Index]
	if w == nil {
		w = &pending{}
	}
	w.name += d.Name
	if d.Arguments == "" && !f.crew.sure(w.name) {
		d.Name, d.Raw = strings.Clone(d.Name), slices.Clone(d.Raw)
		w.held = append(w.held, d)
		if f.pending == nil {
			f.pending = map[int]*pending{}
		}
		f.pending[d.Index] = w
		return nil
	}
	return append(f.decide(d.Index, w), f.shown(f.handlers[d.Index], d)...)
}

// decide says who answers a call, and is what was held back of it, if the caller
// does.
func (f *filter) decide(index int, w *pending) []llm.CallDelta {
	if f.handlers == nil {
		f.handlers, f.dense = map[int]journal.Handler{}, map[int]int{}
	}
	delete(f.pending, index)
	h := f.crew.handler(w.name)
	f.handlers[index] = h
	if h == journal.Caller {
		f.dense[index] = len(f.dense)
	} else {
		f.host = true
		if f.names == nil {
			f.names = map[int]string{}
		}
		f.names[index] = w.name
	}
	return f.shown(h, w.held...)
}

// shown are fragments of one call as the client may see them.
func (f *filter) shown(h journal.Handler, deltas ...llm.CallDelta) []llm.CallDelta {
	if h != journal.Caller {
		for _, d := range deltas {
			d.Name = f.names[d.Index]
			f.hosted = append(f.hosted, d)
		}
		return nil
	}
	for i := range deltas {
		deltas[i].Index = f.dense[deltas[i].Index]
	}
	return deltas
}

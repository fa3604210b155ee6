package rescue

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// Wrap is p with a [Filter] around each stream whose request declares tools.
// Options.Tools and Options.Structured are the request's. What it changes:
//
//   - Text that is held back, or was, comes in pieces without wire form. Other
//     pieces are p's own.
//   - Rescued calls come whole, in one piece before the reason to stop, numbered
//     after p's own; that reason is then [llm.FinishCalls].
//   - In the reply, Message.Calls has them and the parts have no marks. Message.Raw
//     is what the model wrote, for it goes back.
//   - Arguments of p's own calls that are no JSON object are mended in the reply,
//     where [Repair] can.
//
// A reply that was cut off at its length gives only the calls that were whole, and
// keeps its reason. A request whose caller forbids calls is left alone.
func Wrap(p llm.Provider, o Options) llm.Provider {
	return &provider{Provider: p, options: o, marks: newMarkers()}
}

type provider struct {
	llm.Provider
	options Options
	marks   *markers
}

// Unwrap is the provider whose text is read.
func (p *provider) Unwrap() llm.Provider { return p.Provider }

// Stream is the wrapped provider's, with calls for text that is one.
func (p *provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	in := p.Provider.Stream(ctx, r)
	// The host forbids calls only in the answer that it forces, and there it has to
	// see those that are made all the same.
	off := p.options.Off != nil && p.options.Off(r.Model)
	if off || len(r.Tools) == 0 || (r.Options.Choice == llm.ChoiceNone && r.Choice == llm.ChoiceUnset) {
		return in
	}
	o := p.options
	o.Tools, o.Structured = r.Tools, r.Options.Structured
	return func(yield func(llm.Piece, error) bool) {
		s := &stream{options: o, filter: build(o, p.marks), yield: yield}
		for piece, err := range in {
			if err != nil {
				s.fail(piece, err)
				return
			}
			if !s.piece(piece) {
				return
			}
		}
		if held, _ := s.filter.Drop(); held != "" {
			yield(llm.Piece{Text: held}, nil) // the stream broke off without a word
		}
	}
}

// stream follows one reply.
type stream struct {
	options Options
	filter  *Filter
	yield   func(llm.Piece, error) bool

	next     int        // the index after the upstream's own calls
	calls    []llm.Call // rescued, in order
	own      map[int]*written
	finished bool // the filter was ended
	cut      bool // the reply was cut off
	took     bool // text became calls
}

// written is a call of the upstream's own, as far as it has come. Fragments are
// appended, never joined one by one: there may be as many as it has bytes.
type written struct{ name, arguments []byte }

// piece passes one piece on.
func (s *stream) piece(p llm.Piece) bool {
	if p.Choice != 0 {
		return s.yield(p, nil)
	}
	for _, d := range p.Calls {
		s.see(d)
	}
	ends := !s.finished && (p.Finish != "" || p.Reply != nil)
	if p.Text != "" && !s.finished {
		show, calls := s.filter.Push(p.Text)
		s.take(calls)
		if show != p.Text {
			p.Text, p.Raw = show, llm.Raw{}
		}
	}
	if ends && !s.end(&p) {
		return false
	}
	if p.Finish != "" && s.turns(p.Finish) {
		p.Finish, p.Raw = llm.FinishCalls, llm.Raw{}
	}
	if p.Reply != nil {
		reply := s.reply(*p.Reply)
		p.Reply = &reply
	}
	if p.Text == "" && p.Reasoning == "" && len(p.Calls) == 0 && p.Finish == "" && p.Usage == nil && p.Reply == nil && len(p.Raw.Bytes) == 0 {
		return true
	}
	return s.yield(p, nil)
}

func (s *stream) take(calls []llm.Call) {
	s.calls = append(s.calls, calls...)
	s.took = s.took || len(calls) > 0
}

// see notes a fragment of the upstream's own calls.
func (s *stream) see(d llm.CallDelta) {
	w := s.own[d.Index]
	if w == nil {
		if s.own == nil {
			s.own = map[int]*written{}
		}
		w = &written{}
		s.own[d.Index] = w
	}
	w.name = append(w.name, d.Name...)
	w.arguments = append(w.arguments, d.Arguments...)
	s.next = max(s.next, d.Index+1)
}

// turns reports whether a reason to stop is that calls were made, which the
// upstream did not see.
func (s *stream) turns(f llm.Finish) bool {
	return len(s.calls) > 0 && !cutOff(f) && f != llm.FinishCalls
}

// cutOff reports whether the model was stopped rather than done.
func cutOff(f llm.Finish) bool { return f == llm.FinishLength || f == "content_filter" }

// end ends the filter before the piece that ends the reply, and gives out what it
// held.
func (s *stream) end(p *llm.Piece) bool {
	s.finished = true
	s.cut = cutOff(p.Finish) || (p.Reply != nil && cutOff(p.Reply.Finish))
	end := s.filter.Flush
	if s.cut {
		end = s.filter.Drop
	}
	show, calls := end()
	s.take(calls)
	s.unmake()
	if show == "" && len(s.calls) == 0 {
		return true
	}
	extra := llm.Piece{Text: p.Text + show, Reasoning: p.Reasoning, Calls: slices.Clone(p.Calls), More: true}
	p.Text, p.Reasoning, p.Calls, p.Raw = "", "", nil, llm.Raw{}
	for i, c := range s.calls {
		extra.Calls = append(extra.Calls, llm.CallDelta{Index: s.next + i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return s.yield(extra, nil)
}

// unmake takes out the rescued calls that the upstream made itself: some servers
// parse a call and leave its text in the reply as well.
func (s *stream) unmake() {
	if len(s.calls) == 0 || len(s.own) == 0 {
		return
	}
	type same struct{ name, arguments string }
	made := map[same]bool{}
	for _, w := range s.own {
		made[same{string(w.name), canonical(string(w.arguments))}] = true
	}
	s.calls = slices.DeleteFunc(s.calls, func(c llm.Call) bool { return made[same{c.Name, canonical(c.Arguments)}] })
}

func canonical(arguments string) string {
	v := jsontext.Value(arguments)
	if err := v.Canonicalize(); err != nil {
		return arguments
	}
	return string(v)
}

// fail shows what was held before an error.
func (s *stream) fail(p llm.Piece, err error) {
	if held, _ := s.filter.Drop(); held != "" {
		if !s.yield(llm.Piece{Text: held}, nil) {
			return
		}
	}
	s.yield(p, err)
}

// reply is the whole reply with its rescued calls.
func (s *stream) reply(r llm.Reply) llm.Reply {
	m := r.Message
	if s.took {
		m.Parts = withText(m.Parts, s.shown(m.Text()))
	}
	m.Calls = slices.Clone(m.Calls)
	if !cutOff(r.Finish) {
		for i, c := range m.Calls {
			m.Calls[i].Arguments = mended(c.Arguments)
		}
	}
	m.Calls = append(m.Calls, s.calls...)
	if s.turns(r.Finish) {
		r.Finish = llm.FinishCalls
	}
	r.Message = m
	return r
}

// shown is what a filter shows of the reply's whole text, which is what it showed
// of its pieces.
func (s *stream) shown(text string) string {
	o := s.options
	o.NewID = func() string { return "" }
	f := New(o)
	show, _ := f.Push(text)
	end := f.Flush
	if s.cut {
		end = f.Drop
	}
	rest, _ := end()
	show += rest
	if strings.TrimSpace(show) == "" {
		return ""
	}
	return show
}

// withText is parts with another text in the place of their first.
func withText(parts []llm.Part, text string) []llm.Part {
	var out []llm.Part
	for _, p := range parts {
		if p.Kind != llm.Text {
			out = append(out, p)
			continue
		}
		if text != "" {
			out = append(out, llm.Part{Kind: llm.Text, Text: text})
			text = ""
		}
	}
	return out
}

// mended is a call's arguments as a JSON object, or as they were.
func mended(arguments string) string {
	if v := jsontext.Value(arguments); arguments == "" || (v.IsValid() && v.Kind() == '{') {
		return arguments
	}
	if fixed, ok := Repair(arguments); ok {
		return fixed
	}
	return arguments
}

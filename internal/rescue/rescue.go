// Package rescue finds the calls that a model wrote as text because nothing
// between the model and us parsed them, and makes calls of them: between the marks
// of the known model families, and JSON that is the whole reply. It also mends
// arguments that are not quite JSON.
//
// It never takes text away that did not become a call, never changes a byte of
// prose, never looks into reasoning, and makes no call of a tool that is not
// declared. What goes back to the model keeps its bytes.
//
// Start at [Filter], which is pure, and at [Wrap], which puts one around a
// provider.
package rescue

import (
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// Options are what a [Filter] needs.
type Options struct {
	// Tools are the declared tools, whose names alone make a call of a text.
	// [Wrap] takes them from each request.
	Tools []llm.Declaration
	// MaxHeld is how many bytes of text are held back while they may still become
	// a call (the limit rescue-hold). A longer call is shown as text.
	MaxHeld int
	// Structured: the reply is JSON of a form that the caller asked for, so JSON
	// without marks is an answer and no call.
	Structured bool
	// NewID makes ids that no other call has.
	NewID func() string
	// Off leaves the replies of the named model alone; nil leaves none. It is for
	// [Wrap] only.
	Off func(model string) bool
}

// mode is what a filter is doing.
type mode uint8

const (
	// beginning: nothing but white space and reasoning has come; the reply may be
	// a call as a whole.
	beginning mode = iota
	// prose: text is shown, and marks are looked for.
	prose
	// thinking: reasoning is shown up to the mark that ends it.
	thinking
	// marked: an opening mark stands first in what is held.
	marked
	// behind: a call ended; what closes it is left out.
	behind
)

// Filter takes a reply's text as it comes and splits it into what is shown and
// calls. What comes out does not depend on where the text was cut, though when it
// comes does. A Filter is for one reply and not safe for concurrent use.
//
// Its work grows with the reply's length only: a reply that holds back more than
// 256 bytes 32 times for calls that are none has no more calls read from it, and
// text that costs much to read again is read again less often.
type Filter struct {
	parser parser
	max    int
	newID  func() string
	// structured: see Options.
	structured bool

	mode mode
	held strings.Builder
	code code
	// trigger lists the bytes that what is held waits for; empty for any.
	trigger string
	scans   scans
	budget
	// ends is the mark that ends reasoning.
	ends string
	// loose: the last call stood behind a mark that nothing closes, so more calls
	// may follow without one.
	loose bool
}

// New is a filter for one reply. Without tools it shows everything.
func New(o Options) *Filter { return build(o, newMarkers()) }

// build is [New] with marks that many filters read.
func build(o Options, marks *markers) *Filter {
	f := &Filter{max: max(o.MaxHeld, 0), newID: o.NewID, structured: o.Structured}
	f.parser = parser{names: newNames(o.Tools), marks: &markers{}}
	if len(f.parser.names) == 0 {
		f.mode = prose
		return f
	}
	f.parser.marks = marks
	return f
}

// Push takes the next piece of text. show is what can be shown now; it may share
// memory with text. calls are those that are whole.
func (f *Filter) Push(text string) (show string, calls []llm.Call) {
	f.pushed += len(text)
	if f.held.Len() == 0 && f.mode == prose {
		i := f.scan(text)
		if i == len(text) {
			return text, nil
		}
		show, text = text[:i], text[i:]
	}
	f.held.WriteString(text)
	if f.waits(text) {
		return show, nil
	}
	more, calls := f.run(false)
	return join(show, more), calls
}

// Flush ends the reply: what is held is a call, or is shown.
func (f *Filter) Flush() (show string, calls []llm.Call) {
	show, calls = f.catchUp()
	rest, last := f.run(true)
	return join(show, rest), append(calls, last...)
}

// Drop ends a reply that was cut off: what is held is shown, because half a call
// must not be run. calls are those that were whole and are not out yet.
func (f *Filter) Drop() (show string, calls []llm.Call) {
	show, calls = f.catchUp()
	show = join(show, f.held.String())
	f.held.Reset()
	f.mode = prose
	return show, calls
}

// catchUp tries what was put off.
func (f *Filter) catchUp() (show string, calls []llm.Call) {
	if !f.deferred {
		return "", nil
	}
	return f.run(false)
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + b
}

// waits reports whether the new text cannot decide anything, or has to wait for
// more of it.
func (f *Filter) waits(text string) bool {
	switch {
	case f.held.Len() > f.max:
		return false
	case f.held.Len() < f.next:
		f.deferred = true
		return true
	}
	return f.trigger != "" && !f.deferred && !strings.ContainsAny(text, f.trigger)
}

// become turns to another mode.
func (f *Filter) become(m mode) {
	if f.spent() {
		m = prose
	}
	f.mode, f.trigger, f.deep = m, "", false
	f.scans.reset()
}

// run works off what is held, as far as that is possible.
func (f *Filter) run(final bool) (string, []llm.Call) {
	r := &round{Filter: f, text: f.held.String(), final: final}
	for r.text != "" && r.step() {
	}
	if len(r.text) < f.held.Len() {
		f.held.Reset()
		f.held.WriteString(r.text)
	}
	f.later(f.held.Len())
	return r.show.String(), r.calls
}

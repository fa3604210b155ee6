package rescue

import (
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// round is one run over what is held.
type round struct {
	*Filter
	text  string // what is left of it
	final bool
	show  strings.Builder
	calls []llm.Call
}

// step does one thing and reports whether it got on.
func (r *round) step() bool {
	switch r.mode {
	case beginning:
		return r.begin()
	case prose:
		return r.pass()
	case thinking:
		return r.think()
	case marked:
		return r.mark()
	default:
		return r.clear()
	}
}

// cursor reads as much of the text as may be held. One byte more shows that it is
// too much; as nothing looks further, what comes out does not depend on how the
// text was cut.
func (r *round) cursor() *cursor {
	c := &cursor{text: r.text, final: r.final, scans: &r.scans, work: &r.work}
	if len(c.text) > r.max+1 {
		c.text, c.final = c.text[:r.max+1], false
	}
	return c
}

// undecided reports whether more text can decide what a cursor looked for.
func (r *round) undecided(c *cursor) bool {
	return c.fate == more && len(c.text) <= r.max
}

// give shows the next n bytes of prose.
func (r *round) give(n int) {
	r.code.advance(r.text[:n])
	r.tell(n)
}

// tell shows the next n bytes.
func (r *round) tell(n int) {
	r.show.WriteString(r.text[:n])
	r.text = r.text[n:]
}

// longestSpace is how much white space at the beginning of a reply waits for
// what follows it.
const longestSpace = 32

// begin looks at the beginning of a reply.
func (r *round) begin() bool {
	c := r.cursor()
	c.space()
	if c.at > longestSpace {
		r.become(prose)
		return true
	}
	if c.peek() == 0 {
		if r.undecided(c) {
			return false
		}
		r.become(prose)
		return true
	}
	if decided, wait := r.reasons(c.probe()); decided || wait {
		return decided
	}
	probe := c.probe()
	if probe.match(r.parser.marks.open) >= 0 {
		r.become(marked)
		return true
	}
	if r.undecided(probe) {
		return false
	}
	if r.structured {
		r.become(prose)
		return true
	}
	var calls []found
	c = r.try(func(c *cursor) { calls = r.parser.reply(c) })
	if r.undecided(c) {
		r.trigger = c.trigger
		return false
	}
	r.become(prose)
	if c.ok() {
		r.accept(c, calls)
		r.become(behind)
	}
	return true
}

// reasons looks for reasoning. decided: it begins here; wait: it may.
func (r *round) reasons(c *cursor) (decided, wait bool) {
	for _, mark := range r.parser.marks.reasoning {
		probe := c.probe()
		if probe.take(mark[0]) {
			r.reason(probe.at, mark[1])
			return true, false
		}
		wait = wait || r.undecided(probe)
	}
	if c.take("analysis") {
		if b := c.peek(); b >= 'A' && b <= 'Z' {
			r.reason(c.at, lostHeader)
			return true, false
		}
	}
	return false, wait || r.undecided(c)
}

// lostHeader begins a call behind the reasoning of a Harmony reply whose marks
// were lost.
const lostHeader = "assistantcommentary to="

func (r *round) reason(n int, ends string) {
	r.tell(n)
	r.become(thinking)
	r.ends = ends
}

// think shows reasoning up to its end, behind which the reply begins.
func (r *round) think() bool {
	if i := strings.Index(r.text, r.ends); i >= 0 {
		if r.ends != lostHeader {
			i += len(r.ends)
		}
		r.tell(i)
		r.code = code{}
		r.become(beginning)
		return true
	}
	keep := 0
	if !r.final {
		keep = overlap(r.text, r.ends)
	}
	r.tell(len(r.text) - keep)
	return false
}

// overlap is the length of the longest end of s that begins mark.
func overlap(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}

// pass shows prose up to the next mark.
func (r *round) pass() bool {
	r.tell(r.scan(r.text))
	if r.text == "" {
		return false
	}
	c := r.cursor()
	if c.match(r.parser.marks.open) >= 0 {
		r.become(marked)
		return true
	}
	if r.undecided(c) {
		return false
	}
	r.give(1)
	return true
}

// mark reads the calls behind an opening mark.
func (r *round) mark() bool {
	var calls []found
	var k kind
	c := r.try(func(c *cursor) {
		c.space()
		calls, k = r.parser.block(c)
	})
	switch {
	case r.undecided(c):
		r.trigger = c.trigger
		return false
	case c.ok():
		r.accept(c, calls)
		r.become(behind)
		r.loose = k == loose
	case c.reasoning != "":
		r.reason(c.at, c.reasoning)
	case r.restarts():
	default:
		r.give(1)
		r.become(prose)
	}
	return true
}

// restarts shows a mark that ends reasoning; behind it the reply begins anew.
func (r *round) restarts() bool {
	c := r.cursor()
	c.space()
	i := c.match(r.parser.marks.open)
	if i < 0 || r.parser.marks.kinds[i] != restart {
		return false
	}
	r.tell(c.at)
	r.code = code{}
	r.become(beginning)
	return true
}

// clear leaves out what closes a call, and the space around it.
func (r *round) clear() bool {
	c := r.cursor()
	last := r.parser.skipClosers(c)
	if r.undecided(c) {
		return false
	}
	if c.ok() && c.at == len(c.text) {
		// The reply is over; space parts nothing here.
		r.text = ""
		return false
	}
	if c.ok() {
		if decided, wait := r.goesOn(c); decided || wait {
			return decided
		}
	}
	r.text = r.text[last:]
	r.become(prose)
	return true
}

// goesOn looks for another call. decided: it begins here; wait: it may.
func (r *round) goesOn(c *cursor) (decided, wait bool) {
	probe := c.probe()
	if probe.match(r.parser.marks.open) >= 0 {
		r.text = r.text[c.at:]
		r.become(marked)
		return true, false
	}
	if r.undecided(probe) {
		return false, true
	}
	if !r.loose {
		return false, false
	}
	var calls []found
	c = r.try(func(c *cursor) {
		r.parser.skipClosers(c)
		for c.ok() && c.at < len(c.text) && (isSpace(c.text[c.at]) || c.text[c.at] == ',' || c.text[c.at] == ';') {
			c.at++
		}
		calls = r.parser.items(c, item{loose: true, inside: true})
	})
	switch {
	case r.undecided(c):
		return false, true
	case c.ok():
		r.accept(c, calls)
		r.become(behind)
		return true, false
	}
	return false, false
}

// accept makes calls of what a cursor read.
func (r *round) accept(c *cursor, calls []found) {
	r.text = r.text[c.at:]
	for _, f := range calls {
		r.calls = append(r.calls, llm.Call{ID: "call_" + r.newID(), Name: f.tool.name, Arguments: f.arguments, Rescued: true})
	}
}

package rescue

// What a model writes is not ours, and text that may still be a call is read again
// as it grows. These constants bound that work. Those that decide what comes out,
// shortHold and longHolds, look at the text alone, never at how it was cut; the
// others decide only when a reading is tried.
const (
	// shortHold is how many bytes behind a mark most texts need to show that they
	// are no call. Giving such a one up is free: what it cost is at most this.
	shortHold = 256
	// longHolds is how often a reply may hold back more than shortHold bytes and
	// then turn out not to be a call. After that many the filter reads no more
	// calls and shows the rest of the reply, marks and all. Each one can cost
	// MaxHeld bytes of reading for a mark of eleven.
	longHolds = 32
	// eagerWork and eagerWorkPerByte are how much of a reply may be read again at
	// once with each piece: so many bytes, and so many for each byte that came.
	// Beyond it, held text is tried again only when it has grown by one part in
	// laterPart, or the reply ends: calls come later then, but the same ones.
	eagerWork        = 256 << 10
	eagerWorkPerByte = 128
	laterPart        = 8
)

// budget is what a filter has spent on one reply.
type budget struct {
	work   int // bytes read of held text, again and again, and comparisons
	pushed int // bytes that came
	long   int // long holds that were no call
	// next is how much must be held before another attempt.
	next int
	// deferred: text came that nothing was tried with.
	deferred bool
	// deep: shortHold bytes did not decide what is held.
	deep bool
}

// later sets when held text is tried again.
func (b *budget) later(held int) {
	b.deferred, b.next = false, 0
	if held > shortHold && b.work > eagerWork+eagerWorkPerByte*b.pushed {
		b.next = held + held/laterPart
	}
}

// spent reports whether no more calls are read in this reply.
func (b *budget) spent() bool { return b.long >= longHolds }

// try reads what may be a call: shortHold bytes first, so that what these decide
// is known apart from what had to be held for longer.
func (r *round) try(read func(*cursor)) *cursor {
	if n := min(len(r.text), r.max+1); n > shortHold && !r.deep {
		c := r.cursor()
		c.text, c.final = c.text[:shortHold], false
		if read(c); c.fate != more {
			return c
		}
		r.deep = true
	}
	c := r.cursor()
	read(c)
	if !c.ok() && !r.undecided(c) && len(c.text) > shortHold {
		r.long++
		if r.spent() {
			r.parser.marks = &markers{}
		}
	}
	return c
}

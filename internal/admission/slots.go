package admission

import (
	"sync"
	"time"
)

// slots is the table of an upstream's slots: which turn and conversation each
// served last, and how many of our rounds it works on now.
//
// A slot is named only when it is known to be idle as far as our own rounds go:
// the upstream holds back a round for a busy slot that it names, whatever else is
// idle. So while a round runs on a slot that the upstream chose, none is named.
type slots struct {
	rest time.Duration

	mu    sync.Mutex
	all   []*slot
	loose int    // our rounds on slots that nobody named
	count uint64 // our rounds so far
	pause time.Duration
	until time.Time // none is named before
}

type slot struct {
	id           int
	rounds       int // of ours that it works on
	turn         *turn
	conversation string
	last         uint64 // number of its last round; 0 for none
}

// wish is what a round may get.
type wish struct {
	turn         *turn
	conversation string
	// client is the slot that the client named; -1 for none.
	client int
	// open says that one may be named for the round.
	open bool
}

// place is where a round runs.
type place struct {
	slot  *slot // nil: where the upstream likes
	named bool  // by us
	// served: the slot worked on something before. same: on the same turn or
	// conversation. between: other rounds were begun since.
	served, same, between bool
}

// enter gives a round its place on an upstream of n slots.
func (b *slots) enter(n int, w wish) place {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resize(n)
	b.count++
	if w.client >= 0 && w.client < len(b.all) {
		s := b.all[w.client]
		s.rounds++
		s.turn, s.conversation, s.last = w.turn, "", b.count
		return place{slot: s}
	}
	s := b.choose(w)
	if s == nil {
		b.loose++
		return place{}
	}
	p := place{slot: s, named: true, served: s.last > 0, same: s.has(w), between: s.last != b.count-1}
	s.rounds++
	s.turn, s.conversation, s.last = w.turn, w.conversation, b.count
	return p
}

// resize makes the table anew when the upstream was started again with another
// number of slots. While that is not known the table stays.
func (b *slots) resize(n int) {
	if n == 0 || n == len(b.all) {
		return
	}
	b.all = make([]*slot, n)
	for i := range b.all {
		b.all[i] = &slot{id: i}
	}
}

// choose finds an idle slot: the one that the turn or its conversation had, else
// the one that nobody is in the middle of and that was used longest ago. It is nil
// when the upstream had better choose.
func (b *slots) choose(w wish) *slot {
	if !w.open || b.loose > 0 || time.Now().Before(b.until) {
		return nil
	}
	if s := b.of(w); s != nil {
		if !s.idle() {
			return nil
		}
		return s
	}
	var best *slot
	for _, s := range b.all {
		if s.idle() && (best == nil || s.before(best)) {
			best = s
		}
	}
	return best
}

// of is the slot that the turn had, else the one that its conversation had last, an
// idle one before a busy one, and none where another turn is between two rounds.
func (b *slots) of(w wish) *slot {
	var found *slot
	for _, s := range b.all {
		switch {
		case s.turn == w.turn && s.last > 0:
			return s
		case !s.has(w), s.idle() && s.held():
		case found == nil, s.idle() && !found.idle(), s.idle() == found.idle() && s.last > found.last:
			found = s
		}
	}
	return found
}

// has reports whether the slot's last round was of the same turn or conversation.
func (s *slot) has(w wish) bool {
	return s.last > 0 && (s.turn == w.turn || (w.conversation != "" && s.conversation == w.conversation))
}

// idle reports whether none of our rounds that is known to be there runs on it.
func (s *slot) idle() bool { return s.rounds == 0 }

// held reports whether the turn of the slot's last round goes on.
func (s *slot) held() bool { return s.turn != nil && !s.turn.over.Load() }

// before reports whether less is lost on s than on o.
func (s *slot) before(o *slot) bool {
	if s.held() != o.held() {
		return o.held()
	}
	return s.last < o.last
}

// leave ends a round. told says that the upstream counted what it found in the
// slot of the round's prompt, and reused how many tokens that were.
//
// A slot that served before and is found empty was emptied in between: naming it
// did harm. No slot is named for a while then, which is returned, and which doubles
// until a slot was seen to keep something while others worked.
func (b *slots) leave(p place, reused int64, told bool) (pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.slot == nil {
		b.loose--
		return 0
	}
	p.slot.rounds--
	now := time.Now()
	switch {
	case !p.named || !told || now.Before(b.until):
	case reused > 0 && p.same && p.between:
		b.pause = 0
	case reused == 0 && p.served:
		b.pause = max(b.rest, 2*b.pause)
		b.until = now.Add(b.pause)
		return b.pause
	}
	return 0
}

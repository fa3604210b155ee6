package workspace

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/metier-run/metier/internal/config"
)

// Knowledge is what a model knows of a file as it is now (B1 11.6).
type Knowledge int

// The degrees.
const (
	Unread  Knowledge = iota // nothing
	Stale                    // it has seen it, and it has changed since
	Partial                  // some lines of it
	Fresh                    // all of it
)

// Seen remembers what of the files of a workspace a model has seen: what was shown to
// it, and what it wrote. Files are named relative to the work folder. It is safe for
// concurrent use.
type Seen struct {
	most int

	mu    sync.Mutex
	files map[string]*sight
	next  uint64
}

// sight is what was seen of one content of a file.
type sight struct {
	sum   [sha256.Size]byte
	lines []span // sorted, apart from each other
	order uint64
}

// span is the lines from first to last, counted from 1.
type span struct{ first, last int }

func newSeen(limits config.Values) *Seen {
	return &Seen{most: limits.Int(config.SeenKept), files: map[string]*sight{}}
}

func (s *Seen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.files)
}

// Lines is how many lines a text has. The end of a line ends it and begins none.
func Lines(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// Whole notes that the model knows all of a file.
func (s *Seen) Whole(name string, data []byte) { s.Some(name, data, 1, max(1, Lines(data))) }

// Some notes that the model knows the lines from first to last of a file that holds
// data.
func (s *Seen) Some(name string, data []byte, first, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(data)
	at := s.files[name]
	if at == nil || at.sum != sum {
		at = &sight{sum: sum}
		s.files[name] = at
	}
	at.lines = add(at.lines, span{first, last})
	s.next++
	at.order = s.next
	s.bound()
}

// bound forgets the file that was seen the longest ago.
func (s *Seen) bound() {
	if len(s.files) <= s.most {
		return
	}
	oldest, order := "", s.next+1
	for name, at := range s.files {
		if at.order < order {
			oldest, order = name, at.order
		}
	}
	delete(s.files, oldest)
}

// Forget notes that a file is gone.
func (s *Seen) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, name)
}

// Know is what the model knows of a file that holds data now.
func (s *Seen) Know(name string, data []byte) Knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.files[name]
	switch {
	case at == nil:
		return Unread
	case at.sum != sha256.Sum256(data):
		return Stale
	case at.covers(span{1, max(1, Lines(data))}):
		return Fresh
	}
	return Partial
}

// Knows reports whether the model knows the lines from first to last of a file as it
// is now.
func (s *Seen) Knows(name string, data []byte, first, last int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.files[name]
	return at != nil && at.sum == sha256.Sum256(data) && at.covers(span{first, last})
}

func (s *sight) covers(want span) bool {
	return slices.ContainsFunc(s.lines, func(have span) bool { return have.first <= want.first && want.last <= have.last })
}

// add joins a span to others that it touches.
func add(spans []span, more span) []span {
	var out []span
	for _, s := range spans {
		if s.last+1 < more.first || more.last+1 < s.first {
			out = append(out, s)
			continue
		}
		more = span{min(s.first, more.first), max(s.last, more.last)}
	}
	out = append(out, more)
	slices.SortFunc(out, func(a, b span) int { return a.first - b.first })
	return out
}

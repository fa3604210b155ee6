package turn

import (
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/llm"
)

// mostSaid bounds what waits to be told of one call, in bytes: a watcher that is slow
// misses the middle of what a call says, and the call does not wait for it.
const mostSaid = 16 << 10

// sayings are what running calls have said and nobody was told yet. It is safe for
// concurrent use.
type sayings struct {
	more chan struct{} // holds one when there is something

	mu    sync.Mutex
	order []string
	by    map[string]*saying
}

type saying struct {
	call llm.Call
	text []byte
}

func newSayings() *sayings { return &sayings{more: make(chan struct{}, 1), by: map[string]*saying{}} }

func (s *sayings) add(c llm.Call, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.by[c.ID]
	if at == nil {
		at = &saying{call: c}
		s.by[c.ID] = at
		s.order = append(s.order, c.ID)
	}
	at.text = append(at.text, p[:min(len(p), max(0, mostSaid-len(at.text)))]...)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// tell signals what was said since the last time.
func (s *sayings) tell(r *run) error {
	s.mu.Lock()
	order, by := s.order, s.by
	s.order, s.by = nil, map[string]*saying{}
	s.mu.Unlock()
	for _, id := range order {
		sig := Signal{Kind: CallRunning, Round: r.state.round, Call: by[id].call, Text: strings.ToValidUTF8(string(by[id].text), "\ufffd")}
		if err := r.signal(sig); err != nil {
			return err
		}
	}
	return nil
}

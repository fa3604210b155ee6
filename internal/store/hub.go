package store

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/journal"
)

// hub tells followers that a session has new events: at once of appends of this process
// and of those that the database tells of, and after a while of all others.
type hub struct {
	poll   time.Duration
	engine engine
	logger *slog.Logger

	mu     sync.Mutex
	topics map[key]*topic
	stop   context.CancelFunc // of what runs while there are followers; nil while there are none
	group  sync.WaitGroup
}

// topic is what is known of a session that is followed.
type topic struct {
	followers int
	changed   chan struct{} // closed at the next change
	last      int64         // the newest event that was heard of
	gone      bool          // the session was removed
	// recent are the newest events without a gap, up to last, so that a thousand
	// followers need not read each from the database.
	recent []journal.Event
}

// recentEvents is how many events a topic has at hand.
const recentEvents = 64

func newHub(poll time.Duration, e engine, logger *slog.Logger) *hub {
	return &hub{poll: poll, engine: e, logger: logger, topics: map[key]*topic{}}
}

// follower is one who follows a session.
type follower struct {
	hub *hub
	key
}

func (h *hub) join(k key) follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[k]
	if t == nil {
		t = &topic{changed: make(chan struct{})}
		h.topics[k] = t
	}
	t.followers++
	h.start()
	return follower{h, k}
}

func (f follower) leave() {
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[f.key]
	if t.followers--; t.followers == 0 {
		delete(h.topics, f.key)
	}
	if len(h.topics) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// next gives the events after a sequence number that are at hand, the newest that was
// heard of, and what is closed when there are more; nil when the session was removed.
func (f follower) next(after int64) (events []journal.Event, last int64, changed <-chan struct{}) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	t := f.hub.topics[f.key]
	if t.gone {
		return nil, t.last, nil
	}
	if len(t.recent) > 0 {
		if i := after + 1 - t.recent[0].Seq; i >= 0 && i < int64(len(t.recent)) {
			events = t.recent[i:]
		}
	}
	return events, t.last, t.changed
}

// ends tells where the session really ended, after a look for events up to last found none
// behind seq: what was heard of was wrong, or has been removed since.
func (f follower) ends(seq, last int64) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	t := f.hub.topics[f.key]
	if t.last != last {
		return
	}
	if t.last = seq; len(t.recent) > 0 { // stored since
		t.last = max(seq, t.recent[len(t.recent)-1].Seq)
	}
}

// tell is called after events were stored by this process.
func (h *hub) tell(k key, events []journal.Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[k]
	if t == nil {
		return
	}
	last := events[len(events)-1].Seq
	events = events[max(0, len(events)-recentEvents):]
	if n := len(t.recent); n == 0 || t.recent[n-1].Seq != events[0].Seq-1 {
		t.recent = nil // there is a gap
	}
	// Followers hold views of the slice: what they see must not move.
	t.recent = append(t.recent[max(0, len(t.recent)+len(events)-recentEvents):len(t.recent):len(t.recent)], events...)
	t.hear(last)
}

// heard is called when another process may have stored events; with seq 0 nobody knows
// how many.
func (h *hub) heard(k key, seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[k]; t != nil && (seq > t.last || seq == 0) {
		t.recent = nil
		t.hear(seq)
	}
}

// removed is called when a session is not there any more.
func (h *hub) removed(k key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[k]; t != nil && !t.gone {
		t.gone = true
		t.hear(0)
	}
}

func (t *topic) hear(seq int64) {
	t.last = max(t.last, seq)
	close(t.changed)
	t.changed = make(chan struct{})
}

// start begins to listen to other processes. h.mu is held.
func (h *hub) start() {
	if h.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // until nobody follows any more
	h.stop = stop
	h.group.Go(func() { h.engine.listen(ctx, h.heard) })
	h.group.Go(func() { h.look(ctx) })
}

// look asks now and then how far the sessions are that are followed: not every database
// tells, and one that does can lose its connection.
func (h *hub) look(ctx context.Context) {
	tick := time.NewTicker(h.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.lookOnce(ctx); err != nil && ctx.Err() == nil {
			h.logger.WarnContext(ctx, "followers wait for a database that does not answer", "error", h.engine.explain(err))
		}
	}
}

// lookMany is how many sessions one statement asks for.
const lookMany = 256

func (h *hub) lookOnce(ctx context.Context) error {
	followed := h.followed()
	for len(followed) > 0 {
		some := followed[:min(lookMany, len(followed))]
		followed = followed[len(some):]
		if err := h.ask(ctx, slices.Clip(some)); err != nil {
			return err
		}
	}
	return nil
}

func (h *hub) followed() []key {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]key, 0, len(h.topics))
	for k := range h.topics {
		keys = append(keys, k)
	}
	return keys
}

func (h *hub) ask(ctx context.Context, keys []key) error {
	// Statements of few lengths are parsed once each.
	for len(keys)&(len(keys)-1) != 0 {
		keys = append(keys, keys[0])
	}
	var args []any
	for _, k := range keys {
		args = append(args, k.tenant, k.id)
	}
	which := strings.TrimSuffix(strings.Repeat("(tenant = ? AND id = ?) OR ", len(keys)), " OR ")
	rows, err := h.engine.read().QueryContext(ctx, "SELECT tenant, id, seq FROM sessions WHERE "+which, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	there := map[key]bool{}
	for rows.Next() {
		var k key
		var seq int64
		if err := rows.Scan(&k.tenant, &k.id, &seq); err != nil {
			return err
		}
		there[k] = true
		h.heard(k, seq)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, k := range keys {
		if !there[k] {
			h.removed(k)
		}
	}
	return nil
}

// close waits for what runs for followers.
func (h *hub) close() {
	h.mu.Lock()
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
	h.group.Wait()
}

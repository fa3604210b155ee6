package journal

import (
	"context"
	"iter"
	"sync"
	"time"
)

// Memory is a log that lives as long as its process. The gateway keeps one a
// request.
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	events []Event
	fence  int64
	more   chan struct{} // closed at the next append; nil while nobody waits
}

var _ Log = (*Memory)(nil)

// NewMemory makes an empty log that takes the time of each event from now.
func NewMemory(now func() time.Time) *Memory { return &Memory{now: now} }

// Take makes the caller the log's writer and returns the position to append
// at. Who wrote before is fenced off.
func (m *Memory) Take() Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fence++
	return Position{Seq: int64(len(m.events)), Fence: m.fence}
}

// Read yields what is stored now.
func (m *Memory) Read(ctx context.Context, after int64) iter.Seq2[Event, error] {
	m.mu.Lock()
	// Events never change once stored, so a view of the slice is safe to share.
	events := m.events[min(max(after, 0), int64(len(m.events))):]
	m.mu.Unlock()
	return func(yield func(Event, error) bool) {
		for _, e := range events {
			if err := ctx.Err(); err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Follow yields what is stored and what comes.
func (m *Memory) Follow(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			more := m.next()
			for e, err := range m.Read(ctx, after) {
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Seq
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

// next is closed when events are appended.
func (m *Memory) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.more == nil {
		m.more = make(chan struct{})
	}
	return m.more
}

// Append stores the drafts at the end.
func (m *Memory) Append(ctx context.Context, at Position, drafts ...Draft) (Position, error) {
	if err := ctx.Err(); err != nil {
		return at, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.Fence != m.fence {
		return at, ErrFenced
	}
	if at.Seq != int64(len(m.events)) {
		return at, ErrConflict
	}
	now := m.now()
	for _, d := range drafts {
		at.Seq++
		m.events = append(m.events, Event{
			Seq: at.Seq, Schema: Schema, At: now, TurnID: d.TurnID, Anchor: d.Anchor, Data: d.Data,
		})
	}
	if m.more != nil {
		close(m.more)
		m.more = nil
	}
	return at, nil
}

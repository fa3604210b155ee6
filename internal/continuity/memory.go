package continuity

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Memory is a store that lives as long as its process.
type Memory struct {
	bounds Bounds
	now    func() time.Time

	mu     sync.Mutex
	owners map[Owner]*owned
}

// owned is what one owner has, latest use in front.
type owned struct {
	order   *list.List // of *kept
	entries map[Mark]*list.Element
	bytes   int64
}

type kept struct {
	at    Mark
	entry Entry
	size  int64
	used  time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store that takes the time from now.
func NewMemory(b Bounds, now func() time.Time) *Memory {
	return &Memory{bounds: b, now: now, owners: map[Owner]*owned{}}
}

// Put keeps an entry. One that alone is larger than the owner's bound is not
// kept.
func (m *Memory) Put(_ context.Context, owner Owner, at Mark, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.owners[owner]
	if o == nil {
		o = &owned{order: list.New(), entries: map[Mark]*list.Element{}}
		m.owners[owner] = o
	}
	if old, ok := o.entries[at]; ok {
		o.remove(old)
	}
	k := &kept{at: at, entry: e, size: e.Size(), used: m.now()}
	o.entries[at] = o.order.PushFront(k)
	o.bytes += k.size
	m.evict(owner, o)
	return nil
}

// Get finds an entry and counts as a use of it.
func (m *Memory) Get(_ context.Context, owner Owner, at Mark) (Entry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.owners[owner]
	if o == nil {
		return Entry{}, false, nil
	}
	m.evict(owner, o)
	e, ok := o.entries[at]
	if !ok {
		return Entry{}, false, nil
	}
	k := e.Value.(*kept)
	k.used = m.now()
	o.order.MoveToFront(e)
	return k.entry, true, nil
}

// Any reports whether the owner has any entry.
func (m *Memory) Any(_ context.Context, owner Owner) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.owners[owner]
	if o == nil {
		return false, nil
	}
	m.evict(owner, o)
	return o.order.Len() > 0, nil
}

// evict drops what is too old and what no longer fits, oldest use first.
func (m *Memory) evict(owner Owner, o *owned) {
	oldest := m.now().Add(-m.bounds.Age)
	for e := o.order.Back(); e != nil; e = o.order.Back() {
		if o.bytes <= m.bounds.Bytes && o.order.Len() <= m.bounds.Entries && !e.Value.(*kept).used.Before(oldest) {
			return
		}
		o.remove(e)
	}
	delete(m.owners, owner)
}

func (o *owned) remove(e *list.Element) {
	k := o.order.Remove(e).(*kept)
	delete(o.entries, k.at)
	o.bytes -= k.size
}

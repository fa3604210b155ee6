package responses

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/store"
)

// Store keeps responses, each for one owner. [*store.DB] is one.
type Store interface {
	// PutResponse keeps a response, in place of the one of its id.
	PutResponse(ctx context.Context, owner continuity.Owner, r store.Response) error
	// GetResponse finds an owner's response.
	GetResponse(ctx context.Context, owner continuity.Owner, id string) (store.Response, bool, error)
	// Chain is a response and those that it goes on from, at most that many, the oldest
	// first; empty when there is none of that id.
	Chain(ctx context.Context, owner continuity.Owner, id string, most int) ([]store.Response, error)
	// DeleteResponse removes a response, and tells whether there was one.
	DeleteResponse(ctx context.Context, owner continuity.Owner, id string) (bool, error)
}

var _ Store = (*store.DB)(nil)

// memory keeps responses where there is no database, within the same bounds. What is there
// the longest goes first.
type memory struct {
	count int
	bytes int64
	age   time.Duration
	now   func() time.Time

	mu   sync.Mutex
	kept map[continuity.Owner][]kept // in the order in which they changed
}

type kept struct {
	store.Response
	changed time.Time
}

func (k kept) size() int64 {
	return int64(len(k.ID) + len(k.Previous) + len(k.Session) + len(k.Request) + len(k.Input) + len(k.Output) + len(k.Body))
}

func newMemory(limits config.Values, now func() time.Time) *memory {
	return &memory{
		count: limits.Int(config.ResponsesCount), bytes: limits.Get(config.ResponsesBytes), age: limits.Duration(config.ResponsesAge),
		now: now, kept: map[continuity.Owner][]kept{},
	}
}

// PutResponse keeps a copy of r.
func (m *memory) PutResponse(_ context.Context, owner continuity.Owner, r store.Response) error {
	k := kept{Response: r, changed: m.now()}
	if k.size() > m.bytes {
		e := fault.New(fault.TooLarge, "response %s has %d bytes, and %d are kept for one key: start the server with a larger --responses-bytes, or ask for the response with store set to false", r.ID, k.size(), m.bytes)
		e.Detail = "response_too_large"
		return e
	}
	k.Request, k.Input, k.Output, k.Body = bytes.Clone(r.Request), bytes.Clone(r.Input), bytes.Clone(r.Output), bytes.Clone(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	list := slices.DeleteFunc(m.kept[owner], func(x kept) bool { return x.ID == r.ID })
	list = append(list, k)
	total := int64(0)
	for i, x := range slices.Backward(list) {
		if total += x.size(); total > m.bytes || len(list)-i > m.count {
			list = slices.Delete(list, 0, i+1)
			break
		}
	}
	m.kept[owner] = list
	return nil
}

// expire drops what is too old, of all owners. m.mu is held.
func (m *memory) expire() {
	oldest := m.now().Add(-m.age)
	for owner, list := range m.kept {
		list = slices.DeleteFunc(list, func(x kept) bool { return x.changed.Before(oldest) })
		if m.kept[owner] = list; len(list) == 0 {
			delete(m.kept, owner)
		}
	}
}

// GetResponse finds a response.
func (m *memory) GetResponse(_ context.Context, owner continuity.Owner, id string) (store.Response, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.find(owner, id)
	return r, ok, nil
}

// find is GetResponse. m.mu is held.
func (m *memory) find(owner continuity.Owner, id string) (store.Response, bool) {
	oldest := m.now().Add(-m.age)
	for _, k := range m.kept[owner] {
		if k.ID == id && !k.changed.Before(oldest) {
			return k.Response, true
		}
	}
	return store.Response{}, false
}

// Chain follows what a response goes on from.
func (m *memory) Chain(_ context.Context, owner continuity.Owner, id string, most int) ([]store.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var chain []store.Response
	for id != "" && len(chain) < most {
		r, ok := m.find(owner, id)
		if !ok {
			break
		}
		chain, id = append(chain, r), r.Previous
	}
	slices.Reverse(chain)
	return chain, nil
}

// DeleteResponse removes a response.
func (m *memory) DeleteResponse(_ context.Context, owner continuity.Owner, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.find(owner, id)
	m.kept[owner] = slices.DeleteFunc(m.kept[owner], func(x kept) bool { return x.ID == id })
	return found, nil
}

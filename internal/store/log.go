package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
)

// key is a session among all.
type key struct{ tenant, id string }

// Log is the journal of a session. It is safe for concurrent use.
type Log struct {
	db *DB
	key

	mu      sync.Mutex
	last    int64 // the event that summary is folded up to; 0 before the first
	summary journal.Summary
}

var _ journal.Log = (*Log)(nil)

// entry is an append as an engine does it.
type entry struct {
	key
	at      journal.Position
	agent   string
	status  string
	summary []byte
	now     time.Time
	rows    []row
}

// row is a stored event.
type row struct {
	seq    int64
	schema int
	at     int64
	turn   string
	anchor string
	kind   string
	data   []byte
	blob   string // the digest of bytes, when they are kept apart
	bytes  []byte
}

const (
	sqlMove = `UPDATE sessions SET seq = ?, agent = ?, status = ?, summary = ?, updated_at = ?
		WHERE tenant = ? AND id = ? AND seq = ? AND fence = ? AND ` + sqlCurrent
	sqlAddEvent = `INSERT INTO events (tenant, session, seq, schema, at, turn, anchor, kind, data, blob)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''))`
	sqlAddBlob = `INSERT INTO blobs (tenant, digest, bytes, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (tenant, digest) DO NOTHING`
	sqlPlace  = `SELECT seq, fence, summary FROM sessions WHERE tenant = ? AND id = ?`
	sqlEvents = `SELECT e.seq, e.schema, e.at, e.turn, e.anchor, e.kind, e.data, coalesce(e.blob, ''), b.bytes
		FROM events e LEFT JOIN blobs b ON b.tenant = e.tenant AND b.digest = e.blob
		WHERE e.tenant = ? AND e.session = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`
)

// page is how many events are read at once.
const page = 256

// Log is the journal of a session, for reading and following and, with the position of
// [Log.Take] or [Log.Hold], for writing. Whether there is such a session shows when it
// is used.
func (db *DB) Log(tenant, id string) *Log { return &Log{db: db, key: key{tenant, id}} }

// ID is the session's.
func (l *Log) ID() string { return l.id }

// place is where the log stands.
func (l *Log) place(ctx context.Context) (at journal.Position, s journal.Summary, err error) {
	if !storable(l.id) {
		return at, s, fmt.Errorf("%w: %.200q", ErrNoSession, l.id)
	}
	var b []byte
	err = l.db.engine.read().QueryRowContext(ctx, sqlPlace, l.tenant, l.id).Scan(&at.Seq, &at.Fence, &b)
	if errors.Is(err, sql.ErrNoRows) {
		return at, s, fmt.Errorf("%w: %s", ErrNoSession, l.id)
	}
	if err != nil {
		return at, s, l.db.failed("read session "+l.id, err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return at, s, fmt.Errorf("store: read the summary of session %s: %w", l.id, err)
	}
	return at, s, nil
}

// Append stores the drafts at the end, and the summary that follows from them, in one
// transaction. The events are on disk when it returns.
func (l *Log) Append(ctx context.Context, at journal.Position, drafts ...journal.Draft) (journal.Position, error) {
	if err := ctx.Err(); err != nil {
		return at, err
	}
	summary, err := l.summaryAt(ctx, at)
	if err != nil {
		return at, err
	}
	e, events, summary, err := l.entry(at, summary, drafts)
	if err != nil {
		return at, err
	}
	stored, err := l.db.engine.append(ctx, e)
	if err != nil {
		return at, l.db.failed("append to session "+l.id, err)
	}
	if !stored {
		return at, l.refused(ctx, at)
	}
	at.Seq += int64(len(drafts))
	l.keep(at.Seq, summary)
	l.db.hub.tell(l.key, events)
	return at, nil
}

// entry is what an append stores, and the summary that follows from it.
func (l *Log) entry(at journal.Position, s journal.Summary, drafts []journal.Draft) (entry, []journal.Event, journal.Summary, error) {
	e := entry{key: l.key, at: at, now: l.db.o.Now().UTC()}
	events := make([]journal.Event, len(drafts))
	for i, d := range drafts {
		events[i] = journal.Event{
			Seq: at.Seq + int64(i) + 1, Schema: journal.Schema, At: e.now, TurnID: d.TurnID, Anchor: d.Anchor, Data: d.Data,
		}
		r, err := l.db.row(events[i])
		if err != nil {
			return e, nil, s, err
		}
		s = s.Apply(events[i])
		if !storable(r.turn) || !storable(r.anchor) || !storable(s.Agent) {
			return e, nil, s, fmt.Errorf("store: append to session %s: the turn %.80q, the anchor %.80q and the agent %.80q must be text", l.id, r.turn, r.anchor, s.Agent)
		}
		e.rows = append(e.rows, r)
	}
	b, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return e, nil, s, fmt.Errorf("store: write the summary of session %s: %w", l.id, err)
	}
	e.agent, e.status, e.summary = s.Agent, string(s.Status), b
	return e, events, s, nil
}

// addRows stores the events of an entry, and what of them is kept apart.
func addRows(ctx context.Context, q queries, e entry) error {
	for _, r := range e.rows {
		if r.blob != "" {
			if _, err := q.ExecContext(ctx, sqlAddBlob, e.tenant, r.blob, r.bytes, millis(e.now)); err != nil {
				return err
			}
		}
		_, err := q.ExecContext(ctx, sqlAddEvent, e.tenant, e.id, r.seq, r.schema, r.at, r.turn, r.anchor, r.kind, r.data, r.blob)
		if err != nil {
			return err
		}
	}
	return nil
}

// row is an event as it is stored: what is large goes into a blob, once for all events
// that hold the same.
func (db *DB) row(e journal.Event) (row, error) {
	data, err := journal.EncodeData(e.Data)
	if err != nil {
		return row{}, err
	}
	r := row{
		seq: e.Seq, schema: e.Schema, at: e.At.UnixNano(), turn: e.TurnID, anchor: string(e.Anchor),
		kind: string(e.Data.Kind()), data: data,
	}
	if len(data) > db.inline {
		r.blob, r.bytes, r.data = Digest(data), data, []byte{}
	}
	return r, nil
}

// summaryAt is the summary of the events up to a position, if the log stands there.
func (l *Log) summaryAt(ctx context.Context, at journal.Position) (journal.Summary, error) {
	l.mu.Lock()
	summary, known := l.summary, at.Seq > 0 && l.last == at.Seq
	l.mu.Unlock()
	if known {
		return summary, nil
	}
	stands, summary, err := l.place(ctx)
	if err != nil {
		return summary, err
	}
	if stands != at {
		return summary, wrong(stands, at)
	}
	return summary, nil
}

func (l *Log) keep(seq int64, s journal.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq > l.last {
		l.last, l.summary = seq, s
	}
}

// refused says why an append at a position was not stored.
func (l *Log) refused(ctx context.Context, at journal.Position) error {
	// Who was refused must learn it for certain, also when there is little time left.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience(l.db.o.Limits, passing))
	defer stop()
	stands, _, err := l.place(ctx)
	if err == nil && stands == at {
		err = l.db.current(ctx, l.db.engine.read())
	}
	if err != nil {
		return err
	}
	return wrong(stands, at)
}

func wrong(stands, at journal.Position) error {
	if stands.Fence != at.Fence {
		return journal.ErrFenced
	}
	return journal.ErrConflict
}

// Read yields the events after a sequence number, from 0, that are stored when it is
// called.
func (l *Log) Read(ctx context.Context, after int64) iter.Seq2[journal.Event, error] {
	stands, _, err := l.place(ctx)
	return func(yield func(journal.Event, error) bool) {
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		l.between(ctx, after, stands.Seq, yield)
	}
}

// between yields events page by page, so that no reader holds a connection while its
// consumer thinks. It returns the last that it yielded, and false when it is to stop. It
// yields less when the session has less.
func (l *Log) between(ctx context.Context, after, last int64, yield func(journal.Event, error) bool) (int64, bool) {
	for again := false; after < last; {
		events, err := l.page(ctx, after, last)
		if err == nil && len(events) == 0 {
			var ends bool
			if ends, err = l.endsAt(ctx, after); ends {
				return after, true
			}
			if err == nil && !again { // they may have been stored since
				again = true
				continue
			}
			if err == nil {
				err = fmt.Errorf("store: session %s: events after %d are missing: the database is damaged", l.id, after)
			}
		}
		again = false
		if err != nil {
			yield(journal.Event{}, err)
			return after, false
		}
		for _, e := range events {
			if err := ctx.Err(); err != nil {
				yield(journal.Event{}, err)
				return after, false
			}
			if e.Seq != after+1 {
				yield(journal.Event{}, fmt.Errorf("store: session %s: event %d is missing: the database is damaged", l.id, after+1))
				return after, false
			}
			if !yield(e, nil) {
				return after, false
			}
			after = e.Seq
		}
	}
	return after, true
}

// endsAt reports whether there is nothing after an event; it fails with [ErrNoSession] when
// the session was removed.
func (l *Log) endsAt(ctx context.Context, after int64) (bool, error) {
	stands, _, err := l.place(ctx)
	return err == nil && stands.Seq <= after, err
}

// page reads again when the connection turns out to be lost: each that lies idle in the
// pool may be.
func (l *Log) page(ctx context.Context, after, last int64) (events []journal.Event, err error) {
	for range l.db.o.Limits.Int(config.StoreConnections) + 1 {
		if events, err = l.pageOnce(ctx, after, last); err == nil || ctx.Err() != nil || !isLost(err) {
			break
		}
	}
	return events, err
}

func (l *Log) pageOnce(ctx context.Context, after, last int64) (events []journal.Event, err error) {
	rows, err := l.db.engine.read().QueryContext(ctx, sqlEvents, l.tenant, l.id, after, last, page)
	if err != nil {
		return nil, l.db.failed("read session "+l.id, err)
	}
	defer func() { err = errors.Join(err, l.db.failed("read session "+l.id, rows.Err()), rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.seq, &r.schema, &r.at, &r.turn, &r.anchor, &r.kind, &r.data, &r.blob, &r.bytes); err != nil {
			return nil, l.db.failed("read session "+l.id, err)
		}
		e, err := r.event()
		if err != nil {
			return nil, fmt.Errorf("store: session %s: %w", l.id, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// event is the row as it was appended.
func (r row) event() (journal.Event, error) {
	data := r.data
	if r.blob != "" {
		if data = r.bytes; Digest(data) != r.blob {
			return journal.Event{}, fmt.Errorf("event %d: its blob %s is not what was stored: the database is damaged", r.seq, r.blob)
		}
	}
	d, err := journal.DecodeData(journal.Kind(r.kind), r.schema, data)
	if err != nil {
		return journal.Event{}, fmt.Errorf("event %d: %w", r.seq, err)
	}
	return journal.Event{
		Seq: r.seq, Schema: r.schema, At: time.Unix(0, r.at).UTC(), TurnID: r.turn, Anchor: journal.NodeID(r.anchor), Data: d,
	}, nil
}

// Follow yields the events after a sequence number and then those that come, of every
// process, until ctx ends or its consumer stops. The last element has the error.
func (l *Log) Follow(ctx context.Context, after int64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		f := l.db.hub.join(l.key)
		defer f.leave()
		stands, _, err := l.place(ctx)
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		last, more := stands.Seq, true
		for {
			if after, more = l.between(ctx, after, last, yield); !more {
				return
			}
			if after < last {
				f.ends(after, last)
			}
			if after, last, more = l.hear(ctx, f, after, yield); !more {
				return
			}
		}
	}
}

// hear yields what is at hand and waits for more. It returns the last event that there is
// when that must be read from the database.
func (l *Log) hear(ctx context.Context, f follower, after int64, yield func(journal.Event, error) bool) (at, last int64, more bool) {
	for {
		events, last, changed := f.next(after)
		if changed == nil {
			yield(journal.Event{}, fmt.Errorf("%w: %s was removed", ErrNoSession, l.id))
			return after, last, false
		}
		for _, e := range events {
			if !yield(e, nil) {
				return after, last, false
			}
			after = e.Seq
		}
		if len(events) > 0 {
			continue
		}
		if after < last {
			return after, last, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			yield(journal.Event{}, ctx.Err())
			return after, last, false
		}
	}
}

// Digest is what a blob is found by: the SHA-256 of its bytes, in hexadecimal digits.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

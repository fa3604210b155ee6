package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/llm"
)

// Continuity remembers hidden rounds in the database: those of every process that has it
// open, across restarts. What goes beyond its bounds goes soon after, in the background;
// what is too old is never found. It is safe for concurrent use.
//
// An entry is written before its answer's last chunk leaves, and need not outlive a
// machine that loses power: a miss is plain forwarding.
type Continuity struct {
	db     *DB
	bounds continuity.Bounds

	evicting sync.Mutex // one at a time
	mu       sync.Mutex
	full     map[continuity.Owner]bool // who may have more than it may
	wake     chan struct{}
	stop     context.CancelFunc
	group    sync.WaitGroup
}

var _ continuity.Store = (*Continuity)(nil)

const (
	sqlRemember = `INSERT INTO continuity (tenant, owner, mark, size, used_at, entry) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, owner, mark) DO UPDATE SET size = excluded.size, used_at = excluded.used_at, entry = excluded.entry`
	sqlRecall    = `SELECT entry, used_at FROM continuity WHERE tenant = ? AND owner = ? AND mark = ? AND used_at >= ?`
	sqlUsed      = `UPDATE continuity SET used_at = ? WHERE tenant = ? AND owner = ? AND mark = ? AND used_at < ?`
	sqlAny       = `SELECT 1 FROM continuity WHERE tenant = ? AND owner = ? AND used_at >= ? LIMIT 1`
	sqlForget    = `DELETE FROM continuity WHERE tenant = ? AND owner = ? AND mark = ?`
	sqlForgetOld = `DELETE FROM continuity WHERE used_at < ?`
	// The newest entries that together still fit stay: an entry goes when it and all that
	// were used after it are too many, or too much.
	sqlForgetMost = `DELETE FROM continuity WHERE tenant = ? AND owner = ? AND mark IN (
		SELECT mark FROM (
			SELECT mark, row_number() OVER newest AS n, sum(size) OVER newest AS total
			FROM continuity WHERE tenant = ? AND owner = ?
			WINDOW newest AS (ORDER BY used_at DESC, mark ROWS UNBOUNDED PRECEDING)
		) AS ranked WHERE n > ? OR total > ?)`
)

// sweepEach is how often old entries are looked for.
const sweepEach = 10 * time.Minute

// sweepPause is how long new entries come together before what is too much goes: it costs a
// look at all that an owner has.
const sweepPause = time.Second

// usedStep is how much later a use must be to be written down: a use is a write, and a
// read that must wait for a disk is none.
const usedStep = time.Second

// NewContinuity begins to keep the bounds. Close what it returns before the database.
func (db *DB) NewContinuity(b continuity.Bounds) *Continuity {
	ctx, stop := context.WithCancel(context.Background()) // until it is closed
	c := &Continuity{db: db, bounds: b, full: map[continuity.Owner]bool{}, wake: make(chan struct{}, 1), stop: stop}
	c.group.Go(func() { c.sweep(ctx) })
	return c
}

// Close ends the background work.
func (c *Continuity) Close() {
	c.stop()
	c.group.Wait()
}

// Put keeps an entry. One that alone is larger than the owner's bound is not kept.
func (c *Continuity) Put(ctx context.Context, owner continuity.Owner, at continuity.Mark, e continuity.Entry) error {
	b, err := json.Marshal(e, llm.Verbatim())
	if err != nil {
		return fmt.Errorf("store: remember a round: %w", err)
	}
	size := e.Size()
	err = c.db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		if size > c.bounds.Bytes || c.bounds.Entries < 1 {
			_, err := q.ExecContext(ctx, sqlForget, owner.Tenant, owner.Key, at[:])
			return err
		}
		_, err := q.ExecContext(ctx, sqlRemember, owner.Tenant, owner.Key, at[:], size, millis(c.db.o.Now()), b)
		return err
	})
	if err != nil {
		return c.db.failed("remember a round", err)
	}
	c.mu.Lock()
	c.full[owner] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// Get finds an entry and counts as a use of it.
func (c *Continuity) Get(ctx context.Context, owner continuity.Owner, at continuity.Mark) (continuity.Entry, bool, error) {
	var b []byte
	var used int64
	now := c.db.o.Now()
	row := c.db.engine.read().QueryRowContext(ctx, sqlRecall, owner.Tenant, owner.Key, at[:], c.oldest(now))
	if err := row.Scan(&b, &used); errors.Is(err, sql.ErrNoRows) {
		return continuity.Entry{}, false, nil
	} else if err != nil {
		return continuity.Entry{}, false, c.db.failed("recall a round", err)
	}
	var e continuity.Entry
	if err := json.Unmarshal(b, &e, llm.Verbatim()); err != nil {
		return continuity.Entry{}, false, fmt.Errorf("store: recall a round: %w", err)
	}
	if now.Sub(fromMillis(used)) < usedStep {
		return e, true, nil
	}
	err := c.db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, sqlUsed, millis(now), owner.Tenant, owner.Key, at[:], millis(now))
		return err
	})
	if err != nil {
		// It was found all the same; it only goes sooner than it should.
		c.db.o.Logger.WarnContext(ctx, "the use of a round is not noted", "error", c.db.failed("note the use of a round", err))
	}
	return e, true, nil
}

// Any reports whether the owner has any entry.
func (c *Continuity) Any(ctx context.Context, owner continuity.Owner) (bool, error) {
	var one int
	err := c.db.engine.read().QueryRowContext(ctx, sqlAny, owner.Tenant, owner.Key, c.oldest(c.db.o.Now())).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, c.db.failed("look for rounds", err)
}

func (c *Continuity) oldest(now time.Time) int64 { return millis(now.Add(-c.bounds.Age)) }

// sweep keeps the bounds until ctx ends.
func (c *Continuity) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
			wait(ctx, sweepPause)
		case <-tick.C:
			c.report(ctx, c.forget(ctx, sqlForgetOld, c.oldest(c.db.o.Now())))
		}
		c.report(ctx, c.evict(ctx))
	}
}

func (c *Continuity) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.db.o.Logger.WarnContext(ctx, "remembered rounds are above their bounds", "error", c.db.failed("forget rounds", err))
	}
}

// evict forgets what owners have above their bounds.
func (c *Continuity) evict(ctx context.Context) error {
	c.evicting.Lock()
	defer c.evicting.Unlock()
	c.mu.Lock()
	full := c.full
	c.full = map[continuity.Owner]bool{}
	c.mu.Unlock()
	var err error
	for o := range full {
		err = errors.Join(err, c.forget(ctx, sqlForgetMost, o.Tenant, o.Key, o.Tenant, o.Key, c.bounds.Entries, c.bounds.Bytes))
	}
	return err
}

func (c *Continuity) forget(ctx context.Context, statement string, args ...any) error {
	return c.db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, statement, args...)
		return err
	})
}

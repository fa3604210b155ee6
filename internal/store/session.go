package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
)

// Session is what is known of a session without reading its events.
type Session struct {
	Tenant, ID string
	// Seq is the last event's sequence number.
	Seq int64
	// Held is set while a process has the session for writing.
	Held bool
	journal.Summary
}

const (
	sqlAddSession = `INSERT INTO sessions
		(tenant, id, agent, status, seq, fence, holder, held_until, summary, form, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, 0, '', 0, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING`
	sqlTake = `UPDATE sessions SET fence = fence + 1, holder = ?, held_until = ?
		WHERE tenant = ? AND id = ? AND (? OR held_until < ?) AND ` + sqlCurrent + ` RETURNING seq, fence`
	sqlKeep       = `UPDATE sessions SET held_until = ? WHERE tenant = ? AND id = ? AND fence = ?`
	sqlSessionRow = `SELECT tenant, id, seq, held_until, summary FROM sessions `
)

// maxID bounds the id of a session and of a tenant: they are parts of keys and of
// notifications.
const maxID = 128

// storable reports whether a text can stand in a column of both databases: PostgreSQL
// takes UTF-8 alone, and no zero.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// CreateSession makes a session that begins with the drafts, in one transaction. It fails
// with [ErrExists] when there is one of that id.
func (db *DB) CreateSession(ctx context.Context, tenant, id string, drafts ...journal.Draft) (*Log, error) {
	if id == "" || tenant == "" || len(id) > maxID || len(tenant) > maxID || !storable(tenant+id) || strings.Contains(tenant+id, "\n") {
		return nil, fmt.Errorf("store: create session %.200q of tenant %.200q: both have 1 to %d bytes, without line breaks", id, tenant, maxID)
	}
	l := db.Log(tenant, id)
	e, _, summary, err := l.entry(journal.Position{}, journal.Summary{}, drafts)
	if err != nil {
		return nil, err
	}
	err = db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		now := millis(e.now)
		result, err := q.ExecContext(ctx, sqlAddSession, tenant, id, summary.Agent, e.status, len(drafts), e.summary, summaryForm, now, now)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrExists)
		}
		if err := db.current(ctx, q); err != nil {
			return err
		}
		return addRows(ctx, q, e)
	})
	if errors.Is(err, ErrExists) {
		return nil, fmt.Errorf("%w: %s", ErrExists, id)
	}
	l.keep(int64(len(drafts)), summary)
	return l, db.failed("create session "+id, err)
}

const (
	sqlBlobsOf    = `SELECT DISTINCT blob FROM events WHERE tenant = ? AND session = ? AND blob IS NOT NULL ORDER BY blob`
	sqlBar        = `UPDATE sessions SET fence = fence + 1 WHERE tenant = ? AND id = ?`
	sqlDropEvents = `DELETE FROM events WHERE tenant = ? AND session = ?`
	sqlDrop       = `DELETE FROM sessions WHERE tenant = ? AND id = ?`
	sqlDropBlob   = `DELETE FROM blobs WHERE tenant = ? AND digest = ?
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = blobs.tenant AND e.blob = blobs.digest)`
)

// DeleteSession removes a session, its events, and the blobs that no other event of the
// tenant has: all of it or nothing. Whoever writes to it learns that it is gone. One that
// is not there is no error.
func (db *DB) DeleteSession(ctx context.Context, tenant, id string) error {
	err := db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		// Its writer can write no more from here on.
		if _, err := q.ExecContext(ctx, sqlBar, tenant, id); err != nil {
			return err
		}
		if err := db.current(ctx, q); err != nil {
			return err
		}
		return dropSession(ctx, q, tenant, id)
	})
	if err == nil {
		db.hub.removed(key{tenant, id})
	}
	return db.failed("delete session "+id, err)
}

func dropSession(ctx context.Context, q queries, tenant, id string) error {
	blobs, err := texts(ctx, q, sqlBlobsOf, tenant, id)
	if err != nil {
		return err
	}
	for _, statement := range []string{sqlDropEvents, sqlDrop} {
		if _, err := q.ExecContext(ctx, statement, tenant, id); err != nil {
			return err
		}
	}
	for _, digest := range blobs {
		if _, err := q.ExecContext(ctx, sqlDropBlob, tenant, digest); err != nil {
			return err
		}
	}
	return nil
}

// texts are the rows of one column.
func texts(ctx context.Context, q queries, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// Session finds one. It fails with [ErrNoSession].
func (db *DB) Session(ctx context.Context, tenant, id string) (Session, error) {
	if !storable(id) {
		return Session{}, fmt.Errorf("%w: %.200q", ErrNoSession, id)
	}
	found, err := db.sessions(ctx, "WHERE tenant = ? AND id = ?", tenant, id)
	if err != nil {
		return Session{}, err
	}
	if len(found) == 0 {
		return Session{}, fmt.Errorf("%w: %s", ErrNoSession, id)
	}
	return found[0], nil
}

// Query says which sessions [DB.Sessions] lists.
type Query struct {
	Tenant string
	// Agent and Status, if set, are those that the sessions must have.
	Agent  string
	Status journal.Status
	// Limit is how many at most.
	Limit int
	// Cursor is where the page before ended; empty for the first.
	Cursor string
}

// Sessions lists sessions, the one that changed last in front, and where the next page
// begins; empty when there is none. A cursor that is none of its own, and an agent that no
// session can have, are [fault.Invalid].
func (db *DB) Sessions(ctx context.Context, q Query) (found []Session, next string, err error) {
	if !storable(q.Agent) {
		return nil, "", invalid("agent_id", "the agent %.80q is no text: give its name", q.Agent)
	}
	where, args := "WHERE tenant = ?", []any{q.Tenant}
	if q.Agent != "" {
		where, args = where+" AND agent = ?", append(args, q.Agent)
	}
	if q.Status != "" {
		where, args = where+" AND status = ?", append(args, string(q.Status))
	}
	if q.Cursor != "" {
		at, id, ok := readCursor(q.Cursor)
		if !ok {
			return nil, "", invalid("cursor", "the cursor %.80q is none of a list of sessions: take the one that the page before ended with, or leave it out for the first page", q.Cursor)
		}
		where, args = where+" AND (updated_at < ? OR updated_at = ? AND id < ?)", append(args, at, at, id)
	}
	found, err = db.sessions(ctx, where+" ORDER BY updated_at DESC, id DESC LIMIT ?", append(args, min(int64(q.Limit), math.MaxInt64-1)+1)...)
	if err != nil || len(found) <= q.Limit {
		return found, "", err
	}
	found = found[:q.Limit]
	last := found[len(found)-1]
	return found, cursor(millis(last.UpdatedAt), last.ID), nil
}

func invalid(param, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param = param
	return e
}

func cursor(at int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at, 10) + "/" + id))
}

func readCursor(c string) (at int64, id string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil {
		return 0, "", false
	}
	digits, id, ok := strings.Cut(string(b), "/")
	at, err = strconv.ParseInt(digits, 10, 64)
	return at, id, ok && err == nil && storable(id)
}

// Orphans lists sessions, of all tenants, in which a turn runs that no process has any
// more: the one that had it is gone. They come by tenant and id, those behind the last one
// of the page before; its zero value is for the first page.
func (db *DB) Orphans(ctx context.Context, last Session, limit int) ([]Session, error) {
	return db.sessions(ctx, "WHERE status = 'running' AND held_until < ? AND (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT ?",
		millis(db.o.Now()), last.Tenant, last.ID, limit)
}

func (db *DB) sessions(ctx context.Context, where string, args ...any) (found []Session, err error) {
	rows, err := db.engine.read().QueryContext(ctx, sqlSessionRow+where, args...)
	if err != nil {
		return nil, db.failed("list sessions", err)
	}
	defer func() { err = errors.Join(err, db.failed("list sessions", rows.Err()), rows.Close()) }()
	now := millis(db.o.Now())
	for rows.Next() {
		var s Session
		var until int64
		var summary []byte
		if err := rows.Scan(&s.Tenant, &s.ID, &s.Seq, &until, &summary); err != nil {
			return nil, db.failed("list sessions", err)
		}
		if err := json.Unmarshal(summary, &s.Summary); err != nil {
			return nil, fmt.Errorf("store: read the summary of session %s: %w", s.ID, err)
		}
		s.Held = until >= now
		found = append(found, s)
	}
	return found, nil
}

// Take makes the caller the session's writer, whoever was it before: that one can write
// no more. It returns the position to append at.
func (l *Log) Take(ctx context.Context) (journal.Position, error) {
	return l.take(ctx, true, 0)
}

func (l *Log) take(ctx context.Context, force bool, until int64) (at journal.Position, err error) {
	if !storable(l.id) {
		return at, fmt.Errorf("%w: %.200q", ErrNoSession, l.id)
	}
	holder := ""
	if until > 0 {
		holder = l.db.instance
	}
	// A fence need not outlive a machine that loses power: its holders do not either.
	err = l.db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		return q.QueryRowContext(ctx, sqlTake, holder, until, l.tenant, l.id, force, millis(l.db.o.Now()), l.db.engine.knows()).Scan(&at.Seq, &at.Fence)
	})
	if errors.Is(err, sql.ErrNoRows) {
		if _, _, err := l.place(ctx); err != nil {
			return at, err
		}
		if err := l.db.current(ctx, l.db.engine.read()); err != nil {
			return at, err
		}
		return at, fmt.Errorf("%w: %s", ErrHeld, l.id)
	}
	return at, l.db.failed("take session "+l.id, err)
}

// Hold is a session that one turn has for itself. Others that ask for it are told that it
// is in use. A process that dies lets go of it when the limit "session-hold" is over.
type Hold struct {
	// At is where the log stood when the session was taken.
	At journal.Position

	log  *Log
	stop context.CancelFunc
	done sync.WaitGroup
}

// Hold takes the session for one turn, if nobody has it; else it fails with [ErrHeld].
// Release what it returns.
func (l *Log) Hold(ctx context.Context) (*Hold, error) {
	lease := l.db.o.Limits.Duration(config.SessionHold)
	at, err := l.take(ctx, false, millis(l.db.o.Now().Add(lease)))
	if err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx)) // until it is released
	h := &Hold{At: at, log: l, stop: stop}
	h.done.Go(func() { h.keep(keeping, lease) })
	return h, nil
}

// keep says again and again that the session is still had.
func (h *Hold) keep(ctx context.Context, lease time.Duration) {
	tick := time.NewTicker(lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.until(ctx, millis(h.log.db.o.Now().Add(lease))); err != nil && ctx.Err() == nil {
			h.log.db.o.Logger.WarnContext(ctx, "session may be lost to another process", "session", h.log.id, "error", err)
		}
	}
}

func (h *Hold) until(ctx context.Context, ms int64) error {
	l := h.log
	err := l.db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, sqlKeep, ms, l.tenant, l.id, h.At.Fence)
		return err
	})
	return l.db.failed("keep session "+l.id, err)
}

// Release lets others have the session. It is safe to call again.
func (h *Hold) Release(ctx context.Context) error {
	h.stop()
	h.done.Wait()
	return h.until(context.WithoutCancel(ctx), 0)
}

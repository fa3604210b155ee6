package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
)

// Response is what the Responses door keeps of one request: an answer that clients fetch
// again, go on from, or wait for.
type Response struct {
	ID string
	// Previous is the response that this one goes on from, and Session the session that
	// its turn is in; both may be empty.
	Previous, Session string
	Status            string
	// CreatedAt counts in milliseconds. PutResponse takes the time of now for a zero one.
	CreatedAt time.Time
	// Request is the request, Input its input items, Output the output items, and Body the
	// response as clients are shown it. They are kept byte for byte; one of no bytes comes
	// back nil.
	Request, Input, Output, Body jsontext.Value
}

func (r Response) size() int64 {
	return int64(len(r.ID) + len(r.Previous) + len(r.Session) + len(r.Request) + len(r.Input) + len(r.Output) + len(r.Body))
}

// OwnedResponse is a response with whose it is.
type OwnedResponse struct {
	Owner continuity.Owner
	Response
}

const (
	sqlPutResponse = `INSERT INTO responses
		(tenant, owner, id, previous, session, status, size, created_at, updated_at, request, input, output, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, owner, id) DO UPDATE SET previous = excluded.previous, session = excluded.session,
		status = excluded.status, size = excluded.size, created_at = excluded.created_at, updated_at = excluded.updated_at,
		request = excluded.request, input = excluded.input, output = excluded.output, body = excluded.body`
	sqlOldResponses = `DELETE FROM responses WHERE updated_at < ?`
	// As in sqlForgetMost, the newest that together still fit stay.
	sqlMostResponses = `DELETE FROM responses WHERE tenant = ? AND owner = ? AND id IN (
		SELECT id FROM (
			SELECT id, row_number() OVER newest AS n, sum(size) OVER newest AS total
			FROM responses WHERE tenant = ? AND owner = ?
			WINDOW newest AS (ORDER BY updated_at DESC, id ROWS UNBOUNDED PRECEDING)
		) AS ranked WHERE n > ? OR total > ?) AND id <> ?`
	sqlResponse = `SELECT r.tenant, r.owner, r.id, r.previous, r.session, r.status, r.created_at, r.request, r.input, r.output, r.body FROM `
	sqlChain    = `WITH RECURSIVE chain (id, previous, depth) AS (
			SELECT id, previous, 1 FROM responses WHERE tenant = ? AND owner = ? AND id = ? AND updated_at >= ?
			UNION ALL
			SELECT p.id, p.previous, c.depth + 1 FROM chain c JOIN responses p
			ON p.tenant = ? AND p.owner = ? AND p.id = c.previous AND p.updated_at >= ? WHERE c.depth < ?
		) ` + sqlResponse + `chain c JOIN responses r ON r.tenant = ? AND r.owner = ? AND r.id = c.id ORDER BY c.depth DESC`
	sqlDropResponse = `DELETE FROM responses WHERE tenant = ? AND owner = ? AND id = ?`
)

// PutResponse keeps a response, in place of the one of its id if there is one. What the
// owner then has above the limits "responses" and "responses-bytes" goes, the one that
// changed last stays; so does what is older than "responses-age", of any owner. A response
// that alone is above the limit is refused, and the one of its id stays as it was.
func (db *DB) PutResponse(ctx context.Context, owner continuity.Owner, r Response) error {
	if err := checkResponse(owner, r); err != nil {
		return err
	}
	size, most := r.size(), db.o.Limits.Get(config.ResponsesBytes)
	if size > most {
		e := fault.New(fault.TooLarge, "response %s has %d bytes, and %d are kept for one key: start the server with a larger --responses-bytes, or ask for the response with store set to false", r.ID, size, most)
		e.Detail = "response_too_large"
		return e
	}
	err := db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		now := db.o.Now()
		if r.CreatedAt.IsZero() {
			r.CreatedAt = now
		}
		if _, err := q.ExecContext(ctx, sqlPutResponse, owner.Tenant, owner.Key, r.ID, r.Previous, r.Session, r.Status, size, millis(r.CreatedAt), millis(now),
			stored(r.Request), stored(r.Input), stored(r.Output), stored(r.Body)); err != nil {
			return err
		}
		if err := db.current(ctx, q); err != nil {
			return err
		}
		return db.evictResponses(ctx, q, owner, r.ID, now)
	})
	return db.failed("keep response "+r.ID, err)
}

func checkResponse(owner continuity.Owner, r Response) error {
	if r.ID == "" || owner.Tenant == "" || !storable(owner.Tenant+owner.Key+r.ID+r.Previous+r.Session+r.Status) ||
		max(len(owner.Tenant), len(r.ID), len(r.Previous), len(r.Session), len(r.Status)) > maxID {
		return fmt.Errorf("store: keep response %.200q of tenant %.200q: both have 1 to %d bytes of text, and so have the response before it (%.200q), the session (%.200q) and the status (%.200q) where there is one", r.ID, owner.Tenant, maxID, r.Previous, r.Session, r.Status)
	}
	if r.Previous == r.ID {
		return fmt.Errorf("store: keep response %s: it goes on from itself", r.ID)
	}
	return nil
}

// stored is a column's value: none of them is NULL.
func stored(v jsontext.Value) []byte { return append([]byte{}, v...) }

// evictResponses keeps the bounds; the response that was just put stays.
func (db *DB) evictResponses(ctx context.Context, q queries, owner continuity.Owner, id string, now time.Time) error {
	if _, err := q.ExecContext(ctx, sqlOldResponses, db.oldestResponse(now)); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, sqlMostResponses, owner.Tenant, owner.Key, owner.Tenant, owner.Key,
		db.o.Limits.Int(config.ResponsesCount), db.o.Limits.Get(config.ResponsesBytes), id)
	return err
}

func (db *DB) oldestResponse(now time.Time) int64 {
	return millis(now.Add(-db.o.Limits.Duration(config.ResponsesAge)))
}

// GetResponse finds an owner's response; false when there is none of that id, or it is too
// old.
func (db *DB) GetResponse(ctx context.Context, owner continuity.Owner, id string) (Response, bool, error) {
	found, err := db.Chain(ctx, owner, id, 1)
	if err != nil || len(found) == 0 {
		return Response{}, false, err
	}
	return found[0], true, nil
}

// Chain is a response of an owner and those that it goes on from, at most that many, the
// oldest first. It is empty when there is no such response. When the oldest goes on from
// another one, that one is gone, or is more than were asked for.
func (db *DB) Chain(ctx context.Context, owner continuity.Owner, id string, most int) ([]Response, error) {
	if !storable(id) || most < 1 {
		return nil, nil
	}
	oldest := db.oldestResponse(db.o.Now())
	owned, err := db.responses(ctx, sqlChain, owner.Tenant, owner.Key, id, oldest, owner.Tenant, owner.Key, oldest, most, owner.Tenant, owner.Key)
	if err != nil {
		return nil, db.failed("read response "+id, err)
	}
	var chain []Response
	for _, r := range owned {
		chain = append(chain, r.Response)
	}
	return chain, nil
}

// DeleteResponse removes an owner's response, and tells whether there was one. Those that go
// on from it stay.
func (db *DB) DeleteResponse(ctx context.Context, owner continuity.Owner, id string) (bool, error) {
	if !storable(id) {
		return false, nil
	}
	var gone int64
	err := db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		result, err := q.ExecContext(ctx, sqlDropResponse, owner.Tenant, owner.Key, id)
		if err != nil {
			return err
		}
		if gone, err = result.RowsAffected(); err != nil {
			return err
		}
		return db.current(ctx, q)
	})
	return gone > 0, db.failed("delete response "+id, err)
}

// Running lists the responses, of all tenants, whose status is queued or in_progress. After
// a crash nobody works on them any more; but where several processes have the database, one
// whose session is held is another's: see [Session].
func (db *DB) Running(ctx context.Context) ([]OwnedResponse, error) {
	found, err := db.responses(ctx, sqlResponse+`responses r WHERE r.status IN ('queued', 'in_progress') ORDER BY r.tenant, r.owner, r.id`)
	return found, db.failed("list responses", err)
}

func (db *DB) responses(ctx context.Context, query string, args ...any) ([]OwnedResponse, error) {
	rows, err := db.engine.read().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []OwnedResponse
	for rows.Next() {
		r, err := scanResponse(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

func scanResponse(rows *sql.Rows) (r OwnedResponse, err error) {
	var created int64
	bodies := make([][]byte, 4)
	err = rows.Scan(&r.Owner.Tenant, &r.Owner.Key, &r.ID, &r.Previous, &r.Session, &r.Status, &created, &bodies[0], &bodies[1], &bodies[2], &bodies[3])
	r.CreatedAt = fromMillis(created)
	for i, to := range []*jsontext.Value{&r.Request, &r.Input, &r.Output, &r.Body} {
		if len(bodies[i]) > 0 {
			*to = bodies[i]
		}
	}
	return r, err
}

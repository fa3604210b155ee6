package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	sqlBlob    = `SELECT bytes FROM blobs WHERE tenant = ? AND digest = ?`
	sqlPutBlob = `INSERT INTO blobs (tenant, digest, bytes, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (tenant, digest) DO UPDATE SET created_at = excluded.created_at`
	// What is asked for here stands in an index: no bytes are read.
	sqlUnreferred = `SELECT tenant, digest FROM blobs WHERE (tenant, digest) > (?, ?)
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = blobs.tenant AND e.blob = blobs.digest)
		ORDER BY tenant, digest LIMIT ?`
	sqlSweepBlob = sqlDropBlob + ` AND created_at < ?`
)

// sweepAge is how long bytes stay that no row refers to. Whoever puts them has that long to
// store what does.
const sweepAge = 24 * time.Hour

// sweepMany is how many blobs are looked for at once.
const sweepMany = 100

// PutBlob keeps bytes for a tenant and returns their [Digest]. The same bytes are kept
// once. They are for a row to refer to: without one they go with [DB.Sweep] when a day is
// over.
func (db *DB) PutBlob(ctx context.Context, tenant string, b []byte) (string, error) {
	digest := Digest(b)
	err := db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, sqlPutBlob, tenant, digest, b, millis(db.o.Now()))
		return err
	})
	return digest, db.failed("keep a blob", err)
}

// Blob finds bytes of a tenant by their digest. It fails with [ErrNoBlob], also for one
// that another tenant has.
func (db *DB) Blob(ctx context.Context, tenant, digest string) ([]byte, error) {
	var b []byte
	err := db.engine.read().QueryRowContext(ctx, sqlBlob, tenant, digest).Scan(&b)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("%w: %.80s", ErrNoBlob, digest)
	case err != nil:
		return nil, db.failed("read a blob", err)
	case Digest(b) != digest:
		return nil, fmt.Errorf("store: blob %s is not what was stored: the database is damaged", digest)
	}
	return b, nil
}

// Sweep removes the blobs, of all tenants, that nothing has referred to for a day, and counts
// them.
func (db *DB) Sweep(ctx context.Context) (int, error) {
	done, before := 0, millis(db.o.Now().Add(-sweepAge))
	for last := (key{}); ; {
		found, err := db.keys(ctx, sqlUnreferred, last.tenant, last.id, sweepMany)
		if err != nil || len(found) == 0 {
			return done, db.failed("look for blobs that nothing refers to", err)
		}
		for _, last = range found {
			n, err := db.sweepOne(ctx, last, before)
			if err != nil {
				return done, db.failed("remove a blob that nothing refers to", err)
			}
			done += n
		}
	}
}

// sweepOne removes a blob that is old enough, unless something refers to it by now.
func (db *DB) sweepOne(ctx context.Context, k key, before int64) (n int, err error) {
	err = db.engine.write(ctx, passing, func(ctx context.Context, q queries) error {
		result, err := q.ExecContext(ctx, sqlSweepBlob, k.tenant, k.id, before)
		if err != nil {
			return err
		}
		gone, err := result.RowsAffected()
		n = int(gone)
		return err
	})
	if isReferred(err) {
		return 0, nil
	}
	return n, err
}

// isReferred tells the error of a row that another one refers to.
func isReferred(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23503"
	}
	code, ok := sqliteCode(err)
	return ok && code == sqlite3.SQLITE_CONSTRAINT
}

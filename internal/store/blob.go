package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const sqlBlob = `SELECT bytes FROM blobs WHERE tenant = ? AND digest = ?`

// PutBlob keeps bytes for a tenant and returns their [Digest]. The same bytes are kept
// once.
func (db *DB) PutBlob(ctx context.Context, tenant string, b []byte) (string, error) {
	digest := Digest(b)
	err := db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, sqlAddBlob, tenant, digest, b, millis(db.o.Now()))
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

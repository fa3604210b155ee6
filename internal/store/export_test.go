package store

import (
	"context"
	"io/fs"
)

// WithTables are options whose tables are made by other statements, of the folder of the
// database's kind.
func (o Options) WithTables(statements fs.FS) Options {
	o.tables = statements
	return o
}

// Statements are those of this build.
func Statements(folder string) (fs.FS, error) { return fs.Sub(migrations, "migrations/"+folder) }

// Exec runs a statement of a test.
func (db *DB) Exec(ctx context.Context, statement string, args ...any) error {
	return db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, statement, args...)
		return err
	})
}

// Count is how many rows a table has.
func (db *DB) Count(ctx context.Context, table string) (n int, err error) {
	err = db.engine.read().QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n)
	return n, err
}

// Heard is word, from wherever it comes, of a session that is as far as seq.
func (db *DB) Heard(tenant, id string, seq int64) { db.hub.heard(key{tenant, id}, seq) }

// Settle waits until what has to go is gone.
func (c *Continuity) Settle(ctx context.Context) { c.report(ctx, c.evict(ctx)) }

// Pragma asks SQLite about a file.
func (db *DB) Pragma(ctx context.Context, name string) (answer string, err error) {
	rows, err := db.engine.read().QueryContext(ctx, "PRAGMA "+name)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		answer += line
	}
	return answer, rows.Err()
}

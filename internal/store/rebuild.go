package store

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/journal"
)

// summaryForm is raised when [journal.Summary] folds otherwise than before: summaries of
// another form are thrown away when a database is opened, and folded anew.
const summaryForm = 1

const (
	sqlOtherForm = `SELECT tenant, id FROM sessions WHERE form <> ? AND (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT ?`
	sqlRebuilt   = `UPDATE sessions SET agent = ?, status = ?, summary = ?, form = ? WHERE tenant = ? AND id = ? AND seq = ?`
)

// rebuildMany is how many sessions are looked for at once.
const rebuildMany = 100

// rebuild folds all summaries that have another form, and counts them. One that cannot be
// folded keeps its form, and keeps nobody from the others.
func (db *DB) rebuild(ctx context.Context) (int, error) {
	done := 0
	for last := (key{}); ; {
		keys, err := db.keys(ctx, sqlOtherForm, summaryForm, last.tenant, last.id, rebuildMany)
		if err != nil || len(keys) == 0 {
			return done, db.failed("look for old summaries", err)
		}
		for _, k := range keys {
			last = k
			err := db.rebuildOne(ctx, k)
			switch {
			case ctx.Err() != nil:
				return done, ctx.Err()
			case err != nil:
				db.o.Logger.WarnContext(ctx, "the summary of a session is out of date", "session", k.id, "error", err)
			default:
				done++
			}
		}
	}
}

// keys are the rows of two columns, the tenant's in front.
func (db *DB) keys(ctx context.Context, query string, args ...any) ([]key, error) {
	rows, err := db.engine.read().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []key
	for rows.Next() {
		var k key
		if err := rows.Scan(&k.tenant, &k.id); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// rebuildOne folds one. One that another process appends to meanwhile gets its summary
// there, or is found again.
func (db *DB) rebuildOne(ctx context.Context, k key) error {
	var s journal.Summary
	var last int64
	for e, err := range db.Log(k.tenant, k.id).Read(ctx, 0) {
		if err != nil {
			return err
		}
		s, last = s.Apply(e), e.Seq
	}
	b, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("store: write the summary of session %s: %w", k.id, err)
	}
	err = db.engine.write(ctx, lasting, func(ctx context.Context, q queries) error {
		_, err := q.ExecContext(ctx, sqlRebuilt, s.Agent, string(s.Status), b, summaryForm, k.tenant, k.id, last)
		return err
	})
	return db.failed("fold the summary of session "+k.id, err)
}

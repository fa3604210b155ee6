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
	sqlOtherForm = `SELECT tenant, id FROM sessions WHERE form <> ? LIMIT ?`
	sqlRebuilt   = `UPDATE sessions SET agent = ?, status = ?, summary = ?, form = ? WHERE tenant = ? AND id = ? AND seq = ?`
)

// rebuildMany is how many sessions are looked for at once.
const rebuildMany = 100

// rebuild folds all summaries that have another form, and counts them.
func (db *DB) rebuild(ctx context.Context) (int, error) {
	done := 0
	for {
		keys, err := db.otherForm(ctx)
		if err != nil || len(keys) == 0 {
			return done, err
		}
		for _, k := range keys {
			if err := db.rebuildOne(ctx, k); err != nil {
				return done, err
			}
			done++
		}
	}
}

func (db *DB) otherForm(ctx context.Context) ([]key, error) {
	rows, err := db.engine.read().QueryContext(ctx, sqlOtherForm, summaryForm, rebuildMany)
	if err != nil {
		return nil, db.failed("look for old summaries", err)
	}
	defer rows.Close()
	var keys []key
	for rows.Next() {
		var k key
		if err := rows.Scan(&k.tenant, &k.id); err != nil {
			return nil, db.failed("look for old summaries", err)
		}
		keys = append(keys, k)
	}
	return keys, db.failed("look for old summaries", rows.Err())
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

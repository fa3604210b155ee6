package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// preparer is a connection, or a pool of them.
type preparer interface {
	queries
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared runs statements that are parsed once. The statements of this room are few and
// constant, but for those whose length depends on their arguments, which are not kept.
type prepared struct {
	on preparer

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

var _ queries = (*prepared)(nil)

// mostPrepared is how many statements are kept.
const mostPrepared = 64

func newPrepared(on preparer) *prepared { return &prepared{on: on, stmts: map[string]*sql.Stmt{}} }

// find is the statement of a text; nil when it is to be run unprepared.
func (p *prepared) find(ctx context.Context, query string) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stmts[query]; s != nil || len(p.stmts) >= mostPrepared {
		return s
	}
	s, err := p.on.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil // running it says why
	}
	p.stmts[query] = s
	return s
}

// ExecContext runs a statement that gives no rows.
func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := p.find(ctx, query); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return p.on.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that gives rows.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.find(ctx, query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.on.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that gives one row.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := p.find(ctx, query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.on.QueryRowContext(ctx, query, args...)
}

func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, s := range p.stmts {
		err = errors.Join(err, s.Close())
	}
	clear(p.stmts)
	return err
}

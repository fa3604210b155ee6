// Package store is the one database: journals of sessions, what is remembered for
// clients that keep nothing, and blobs beside both, on SQLite in a file or on
// PostgreSQL.
//
// It stores and finds; it folds no turn, calls no model and knows no dialect. Every row
// has a tenant, and no method reads across tenants but those that say so. What a method
// has acknowledged survives a crash of the process and, but for what [Continuity]
// remembers, one of the machine (DESIGN 5.7). A [DB] is safe for concurrent use, and
// several processes may have the same database open.
//
// Start at [Open], then [DB.CreateSession] and [Log].
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// Options set up a [DB].
type Options struct {
	// URL is the path of an SQLite file, or postgres://…. It may hold a password.
	URL    config.Secret
	Limits config.Values
	Now    func() time.Time
	// NewID makes an id that no other call of any process returns.
	NewID  func() string
	Logger *slog.Logger

	tables fs.FS // in place of the statements of this build, for tests
}

// DB is an open database.
type DB struct {
	o        Options
	engine   engine
	hub      *hub
	instance string // this process, among those that hold sessions
	inline   int
}

// queries is what statements are run on: one transaction, or a connection.
type queries interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// durability says what an acknowledged write must outlive.
type durability bool

const (
	// lasting outlives a machine that loses power.
	lasting durability = true
	// passing outlives the process.
	passing durability = false
)

// engine is what the two databases do differently. Statements have ? for arguments.
type engine interface {
	// write runs fn in one transaction. It may run fn more than once, when a first try
	// came to nothing. When ctx ends before fn began, fn is not run; after that the
	// outcome is waited for, so that nobody is told of a failure that was none, but no
	// longer than [patience].
	write(ctx context.Context, d durability, fn func(context.Context, queries) error) error
	// read is for single statements.
	read() queries
	// append is [Log.Append] in one transaction; false when the log does not stand where
	// the entry says.
	append(ctx context.Context, e entry) (bool, error)
	// explain turns an error of the database into one that says what to do.
	explain(err error) error
	// listen tells of appends of other processes until ctx ends; nil where the database
	// cannot.
	listen(ctx context.Context, heard func(key, int64))
	// named is the database for people, without a password.
	named() string
	// knows is the version of the tables that this build knows.
	knows() int64
	close() error
}

// Open opens a database, makes it if it is not there, and brings its tables to the form
// that this build knows, after a backup. It refuses a database that a newer build has
// written.
func Open(ctx context.Context, o Options) (*DB, error) {
	db := &DB{o: o, instance: o.NewID(), inline: o.Limits.Int(config.StoreInline)}
	var err error
	if IsPostgres(o.URL.Reveal()) {
		db.engine, err = openPostgres(ctx, o)
	} else {
		db.engine, err = openSQLite(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	db.hub = newHub(o.Limits.Duration(config.StorePoll), db.engine, o.Logger)
	if n, err := db.rebuild(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	} else if n > 0 {
		o.Logger.InfoContext(ctx, "summaries of sessions folded anew", "sessions", n)
	}
	return db, nil
}

// IsPostgres reports whether a database's URL means PostgreSQL.
func IsPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// Name is the database for people: its path, or its address without a password.
func (db *DB) Name() string { return db.engine.named() }

// Close waits for what is being written and gives everything back.
func (db *DB) Close() error {
	db.hub.close()
	return db.engine.close()
}

// Errors of this room that a caller tests for.
var (
	// ErrNoSession: there is none of that id in the tenant.
	ErrNoSession = errors.New("store: no such session")
	// ErrHeld: another process, or another turn of this one, has the session.
	ErrHeld = errors.New("store: the session is in use")
	// ErrExists: there is a session of that id already.
	ErrExists = errors.New("store: the session is there already")
	// ErrNoBlob: the tenant has no such blob.
	ErrNoBlob = errors.New("store: no such blob")
)

// failed is an error of an operation, explained. That of a context is its owner's, but for
// those that the database has for its own waits: they are explained.
func (db *DB) failed(operation string, err error) error {
	if err == nil {
		return nil
	}
	explained := db.engine.explain(err)
	_, told := errors.AsType[*fault.Error](explained)
	if !told && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return fmt.Errorf("store: %s: %w", operation, explained)
}

// patience is how long the outcome of a write on a server is waited for: it has to wait for
// other programs and then do its own work. What concerns a whole session may take longer
// than what a turn writes on its way.
func patience(limits config.Values, d durability) time.Duration {
	wait := limits.Duration(config.StoreWait)
	if d == lasting {
		return 6 * wait
	}
	return 2 * wait
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

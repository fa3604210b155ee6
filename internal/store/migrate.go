package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/metier-run/metier/internal/fault"
)

//go:embed migrations
var migrations embed.FS

// tables is how an engine's tables are brought to the form of this build.
type tables struct {
	dialect goose.Dialect
	folder  string // of the statements
	from    fs.FS  // instead of the ones of this build, for tests
	name    string // of the database, without a password
	names   string // the statement that counts what is there: see foreign
	locker  lock.SessionLocker
	backup  func(ctx context.Context, conn *sql.Conn, version int64, logger *slog.Logger) error
}

// migrate makes or changes the tables of a database, and returns the version that this
// build knows. Another process may do so at the same time: the one that comes second finds
// it done.
func migrate(ctx context.Context, db *sql.DB, t tables, logger *slog.Logger) (knows int64, err error) {
	for try := 1; ; try++ {
		knows, err = migrateOnce(ctx, db, t, logger)
		if err == nil || try == tries || ctx.Err() != nil || isRefused(err) {
			return knows, err
		}
	}
}

// tries is how often tables are tried to be changed: each try but the last may have lost
// to another process.
const tries = 3

func migrateOnce(ctx context.Context, db *sql.DB, t tables, logger *slog.Logger) (knows int64, err error) {
	files := t.from
	if files == nil {
		if files, err = fs.Sub(migrations, "migrations/"+t.folder); err != nil {
			return 0, err
		}
	}
	if err := foreign(ctx, db, t.name, t.names); err != nil {
		return 0, err
	}
	l := &copying{SessionLocker: t.locker, t: t, logger: logger}
	p, err := goose.NewProvider(t.dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(l))
	if err != nil {
		return 0, fmt.Errorf("read the statements that make tables: %w", err)
	}
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("find out the version of the tables: %w", err)
	}
	switch {
	case has == knows:
		return knows, nil
	case has > knows:
		return 0, newer(t.name, has, knows)
	}
	l.knows = knows
	if _, err := p.Up(ctx); err != nil {
		return 0, fmt.Errorf("bring the tables from version %d to %d: %w", has, knows, err)
	}
	return knows, nil
}

// lockWaits is for how many times the row store-wait the lock is waited for: a large database
// takes its time to be copied.
const lockWaits = 60

// copying is the lock under which tables change. The database is copied as soon as it is
// had: of all that would change the tables the first makes the copy, and no other.
type copying struct {
	lock.SessionLocker
	t      tables
	knows  int64
	logger *slog.Logger
}

// SessionLock takes the lock, and copies what will change.
func (l *copying) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := l.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	err := l.copy(ctx, conn)
	if err != nil {
		err = errors.Join(err, l.SessionUnlock(context.WithoutCancel(ctx), conn))
	}
	return err
}

func (l *copying) copy(ctx context.Context, conn *sql.Conn) error {
	has, err := versionOf(ctx, conn)
	switch {
	case err != nil:
		return fmt.Errorf("find out the version of the tables: %w", err)
	case has > l.knows:
		return newer(l.t.name, has, l.knows)
	case has == 0, has == l.knows:
		return nil
	}
	if err := l.t.backup(ctx, conn, has, l.logger); err != nil {
		return fmt.Errorf("copy the database before its tables change from version %d to %d: %w", has, l.knows, err)
	}
	return nil
}

const (
	sqlVersion = `SELECT coalesce(max(version_id), 0) FROM goose_db_version`
	// sqlCurrent holds while no newer build has changed the tables; its argument is the
	// version that this one knows.
	sqlCurrent = `NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id > ?)`
)

func versionOf(ctx context.Context, q queries) (version int64, err error) {
	err = q.QueryRowContext(ctx, sqlVersion).Scan(&version)
	return version, err
}

// current refuses tables that a newer build has changed while this one had them open. In a
// transaction it comes after a statement that has a lock on them.
func (db *DB) current(ctx context.Context, q queries) error {
	has, err := versionOf(ctx, q)
	if err != nil {
		return db.failed("find out the version of the tables", err)
	}
	if knows := db.engine.knows(); has > knows {
		return newer(db.engine.named(), has, knows)
	}
	return nil
}

// foreign refuses a database whose tables are another program's, which may have a version,
// too. names is the statement that counts the table of versions, the table of sessions, and
// all tables.
func foreign(ctx context.Context, db *sql.DB, name, names string) error {
	for range 2 { // another process may make the tables between the two statements
		var versions, sessions, all int
		if err := db.QueryRowContext(ctx, names).Scan(&versions, &sessions, &all); err != nil {
			return fmt.Errorf("see what the database has: %w", err)
		}
		switch {
		case versions > 0 && sessions > 0, all == 0:
			return nil
		case versions == 0:
			return theirs(name)
		}
		version, err := versionOf(ctx, db)
		if err != nil {
			return fmt.Errorf("find out the version of the tables: %w", err)
		}
		if version == 0 {
			return nil // they are about to be made
		}
	}
	return theirs(name)
}

func theirs(name string) error {
	e := fault.New(fault.Unavailable, "%s has the tables of another program: name another database with --db", name)
	e.Detail = detailForeign
	return e
}

const (
	detailNewer   = "store_newer"
	detailForeign = "store_foreign"
)

func newer(name string, has, knows int64) error {
	e := fault.New(fault.Unavailable, "%s was written by a newer metier (its tables have version %d, this one knows up to %d): use that one, or name another database with --db", name, has, knows)
	e.Detail = detailNewer
	return e
}

// isRefused tells the error of a database that no other try makes ours.
func isRefused(err error) bool {
	detail := fault.From(err).Detail
	return detail == detailNewer || detail == detailForeign
}

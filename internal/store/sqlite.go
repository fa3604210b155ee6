package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pressly/goose/v3/lock"
	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// sqlite is the engine of a file: one connection that writes, with a queue in front, and
// several that read. Readers never wait for the writer (WAL).
type sqlite struct {
	path    string
	version int64 // of the tables that this build knows
	readers *sql.DB
	cached  *prepared
	writes  *sql.DB
	writer  *writer
}

var _ engine = (*sqlite)(nil)

func openSQLite(ctx context.Context, o Options) (*sqlite, error) {
	path, err := filepath.Abs(o.URL.Reveal())
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", o.URL.Reveal(), err)
	}
	s := &sqlite{path: path}
	if err := prepareFile(path); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, s.explain(err))
	}
	wait := fmt.Sprintf("busy_timeout(%d)", o.Limits.Duration(config.StoreWait).Milliseconds())
	if err := foreignFile(ctx, path, wait); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, s.explain(err))
	}
	if s.writes, err = sql.Open("sqlite", dsn(path, wait, "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)", walLimit)); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, err)
	}
	s.writes.SetMaxOpenConns(1)
	if s.version, err = migrate(ctx, s.writes, sqliteTables(path, wait, o.tables), o.Logger); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", path, s.explain(err)), s.writes.Close())
	}
	if s.readers, err = sql.Open("sqlite", dsn(path, wait, "query_only(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", path, err), s.writes.Close())
	}
	readers := o.Limits.Int(config.StoreReaders)
	s.readers.SetMaxOpenConns(readers)
	s.readers.SetMaxIdleConns(readers)
	s.cached = newPrepared(s.readers)
	if s.writer, err = startWriter(ctx, s.writes); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", path, s.explain(err)), s.readers.Close(), s.writes.Close())
	}
	return s, nil
}

// walLimit is how large the log beside the file stays when there was much to write: 64 MiB.
const walLimit = "journal_size_limit(67108864)"

// prepareFile makes the folder and the file, for their owner's eyes alone: what people
// said to models is in it.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn names a file to the driver, whatever characters its path has.
func dsn(path string, pragmas ...string) string {
	query := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: query.Encode()}
	return u.String()
}

func (s *sqlite) named() string { return s.path }

func (s *sqlite) knows() int64 { return s.version }

func (s *sqlite) read() queries { return s.cached }

func (s *sqlite) write(ctx context.Context, d durability, fn func(context.Context, queries) error) error {
	return s.writer.do(ctx, d, fn)
}

func (s *sqlite) append(ctx context.Context, e entry) (stored bool, err error) {
	err = s.writer.do(ctx, lasting, func(ctx context.Context, q queries) error {
		stored, err = s.move(ctx, q, e)
		if err != nil || !stored {
			return err
		}
		return addRows(ctx, q, e)
	})
	return stored, err
}

// move sets a log to its new position, if it stands at the old one.
func (s *sqlite) move(ctx context.Context, q queries, e entry) (bool, error) {
	to := e.at.Seq + int64(len(e.rows))
	result, err := q.ExecContext(ctx, sqlMove, to, e.agent, e.status, e.summary, millis(e.now), e.tenant, e.id, e.at.Seq, e.at.Fence, s.version)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// listen has nothing to hear: a file tells nobody.
func (s *sqlite) listen(context.Context, func(key, int64)) {}

func (s *sqlite) close() error {
	return errors.Join(s.writer.close(), s.cached.close(), s.readers.Close(), s.writes.Close())
}

// sqliteCode is an SQLite error's result code without its extension.
func sqliteCode(err error) (int, bool) {
	var e interface{ Code() int }
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code() & 0xff, true
}

func (s *sqlite) explain(err error) error {
	say := func(format string, args ...any) error {
		e := fault.Wrap(err, fault.Unavailable, format, args...)
		e.Detail = "store_unavailable"
		return e
	}
	if errors.Is(err, fs.ErrPermission) {
		return say("this user may not write %s: change its rights, or name another database with --db", s.path)
	}
	if errors.Is(err, syscall.EISDIR) {
		return say("%s is a folder: name a file in it", s.path)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return say("%s cannot be made, because a part of its path is no folder: name another database with --db", s.path)
	}
	if errors.Is(err, syscall.EROFS) {
		return say("the disk of %s is read-only: make it writable, or name another database with --db", s.path)
	}
	code, ok := sqliteCode(err)
	if !ok {
		return err
	}
	switch code {
	case sqlite3.SQLITE_FULL:
		return say("the disk of %s is full, and nothing was stored: free some room, and try again", s.path)
	case sqlite3.SQLITE_READONLY:
		return say("%s cannot be written: its disk or file is read-only: make it writable, or name another database with --db", s.path)
	case sqlite3.SQLITE_CANTOPEN:
		return say("%s cannot be opened: see that its folder is there and writable, or name another database with --db", s.path)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return say("%s is in use by another program for longer than is waited: try again, and see what else has it open", s.path)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return say("%s is damaged or no database: put a backup in its place (a copy %s.v*.bak is kept before each change of its tables), or name another with --db", s.path, s.path)
	case sqlite3.SQLITE_IOERR:
		return say("the disk of %s gave an error, and nothing was stored: look at the system's log, and try again", s.path)
	}
	return err
}

// sqliteTables is how tables of a file are changed: by one process at a time.
func sqliteTables(path, wait string, from fs.FS) tables {
	return tables{
		dialect: "sqlite3", folder: "sqlite", from: from, name: path, names: sqliteNames, locker: &fileLock{path: path + ".lock", wait: wait},
		backup: func(ctx context.Context, conn *sql.Conn, version int64, logger *slog.Logger) error {
			return backupFile(ctx, conn, path, version, logger)
		},
	}
}

const sqliteNames = `SELECT coalesce(sum(name = 'goose_db_version'), 0), coalesce(sum(name = 'sessions'), 0), count(*)
	FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'`

// foreignFile refuses a file of another program before anything of it is changed, its mode
// included.
func foreignFile(ctx context.Context, path, wait string) error {
	db, err := sql.Open("sqlite", dsn(path, wait, "query_only(1)"))
	if err != nil {
		return err
	}
	return errors.Join(foreign(ctx, db, path, sqliteNames), db.Close())
}

// backupFile copies a database as it is at one moment. A whole copy that is there is
// replaced by a whole one alone.
func backupFile(ctx context.Context, conn *sql.Conn, path string, version int64, logger *slog.Logger) error {
	to := fmt.Sprintf("%s.v%d.bak", path, version)
	part := to + ".part"
	// That of a process that died may be there.
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite fills an empty file
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, to); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	logger.InfoContext(ctx, "database copied before its tables change", "copy", to)
	return nil
}

// fileLock is had by one of all that would change the tables of a file. It is a database
// of its own, which SQLite locks alike on every system, and whose lock goes with its
// process; it is there only while it is had.
type fileLock struct {
	path, wait string
	db         *sql.DB
}

var _ lock.SessionLocker = (*fileLock)(nil)

// SessionLock waits for the lock.
func (l *fileLock) SessionLock(ctx context.Context, _ *sql.Conn) error {
	for try := 1; ; {
		had, err := l.try(ctx)
		code, _ := sqliteCode(err)
		switch {
		case had, err != nil && (code != sqlite3.SQLITE_BUSY || try == lockWaits):
			return err
		case err != nil:
			try++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// try reports false when the file that was locked is not the one that others find: who had
// it before has removed it.
func (l *fileLock) try(ctx context.Context) (bool, error) {
	before, missing := os.Stat(l.path)
	db, err := sql.Open("sqlite", dsn(l.path, l.wait))
	if err != nil {
		return false, err
	}
	db.SetMaxOpenConns(1) // which is the one that has the lock, until it is closed
	if _, err := db.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return false, errors.Join(err, db.Close())
	}
	after, err := os.Stat(l.path)
	if missing != nil || err != nil || !os.SameFile(before, after) {
		return false, db.Close()
	}
	l.db = db
	return true, nil
}

// SessionUnlock lets others have the lock.
func (l *fileLock) SessionUnlock(context.Context, *sql.Conn) error {
	_ = os.Remove(l.path) // some systems keep a file that is open: then it stays, empty
	return l.db.Close()
}

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// postgres is the engine of a server.
type postgres struct {
	config *pgx.ConnConfig
	name   string // without a password
	limits config.Values
	tables int64 // the version that this build knows
	pool   *sql.DB
	on     numbered
	word   *word
}

var _ engine = (*postgres)(nil)

func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	c, err := pgx.ParseConfig(o.URL.Reveal())
	if err != nil {
		// The parser's error may show the password.
		return nil, fault.Usage("--db: this is no URL of a PostgreSQL database: it looks like postgres://user:password@host:5432/database")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = o.Limits.Duration(config.StoreWait)
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "metier"
	}
	p := &postgres{config: c, limits: o.Limits, name: fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database)}
	p.pool = stdlib.OpenDB(*c)
	p.on = numbered{p.pool}
	most := o.Limits.Int(config.StoreConnections)
	p.pool.SetMaxOpenConns(most)
	p.pool.SetMaxIdleConns(most)
	p.pool.SetConnMaxIdleTime(5 * time.Minute)
	if p.tables, err = migrate(ctx, p.pool, p.tablesOf(o.tables), o.Logger); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", p.name, p.explain(err)), p.pool.Close())
	}
	p.word = startWord(c, p.pool, o.Limits.Duration(config.StorePoll), o.Logger)
	return p, nil
}

func (p *postgres) named() string { return p.name }

func (p *postgres) knows() int64 { return p.tables }

func (p *postgres) read() queries { return p.on }

func (p *postgres) write(ctx context.Context, d durability, fn func(context.Context, queries) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.finish(ctx, patience(p.limits, d), func(ctx context.Context) error {
		tx, err := p.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := fn(ctx, numbered{tx}); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

// errLate: the server did not say in time what became of a write.
var errLate = errors.New("the server did not answer in time")

// finish does a write that nobody can call off: once it is sent it may be stored, and the
// outcome is what counts, not who still waits. A server that does not say it in time ends
// the wait with an error: whoever writes on learns by its fence and its position what was
// stored.
func (p *postgres) finish(ctx context.Context, most time.Duration, write func(context.Context) error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer stop()
	for try := 1; ; try++ {
		err := write(ctx)
		switch {
		case err == nil:
			return nil
		case isUnreachable(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w, which was %s", errLate, most)
		case try == raceTries || !isRace(err):
			return err
		}
	}
}

// raceTries is how often a write is done anew that another one got in the way of.
const raceTries = 5

// isRace tells the error of a transaction that came to nothing because of another one at the
// same time: a blob that both have was taken up by one and dropped by the other, or each
// waited for the other.
func isRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "23503" || e.Code == "40P01" || e.Code == "40001")
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// isLost tells the error of a connection that was there and is no more.
func isLost(err error) bool {
	if isUnreachable(err) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P") // the server ends it
	}
	_, cut := errors.AsType[*net.OpError](err)
	return cut || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed)
}

// sqlAppend is [sqlMove] and [sqlAddEvent] for all events, in one way to the server and
// back.
const sqlAppend = `WITH moved AS (
	UPDATE sessions SET seq = $1, agent = $2, status = $3, summary = $4, updated_at = $5
	WHERE tenant = $6 AND id = $7 AND seq = $8 AND fence = $9 AND NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id > $20)
	RETURNING id
), kept AS (
	INSERT INTO blobs (tenant, digest, bytes, created_at)
	SELECT $6, b.digest, b.bytes, $5 FROM moved, unnest($10::text[], $11::bytea[]) AS b (digest, bytes)
	ON CONFLICT (tenant, digest) DO NOTHING
), stored AS (
	INSERT INTO events (tenant, session, seq, schema, at, turn, anchor, kind, data, blob)
	SELECT $6, $7, e.seq, e.schema, e.at, e.turn, e.anchor, e.kind, e.data, nullif(e.blob, '') FROM moved, unnest($12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[], $18::bytea[], $19::text[])
		AS e (seq, schema, at, turn, anchor, kind, data, blob)
)
SELECT count(*) FROM moved`

func (p *postgres) append(ctx context.Context, e entry) (bool, error) {
	var (
		digests, turns, anchors, kinds, blobs []string
		bytes, data                           [][]byte
		seqs, schemas, ats                    []int64
		seen                                  = map[string]bool{}
	)
	for _, r := range e.rows {
		seqs, schemas, ats = append(seqs, r.seq), append(schemas, int64(r.schema)), append(ats, r.at)
		turns, anchors, kinds = append(turns, r.turn), append(anchors, r.anchor), append(kinds, r.kind)
		data, blobs = append(data, r.data), append(blobs, r.blob)
		if r.blob != "" && !seen[r.blob] {
			seen[r.blob] = true
			digests, bytes = append(digests, r.blob), append(bytes, r.bytes)
		}
	}
	to := e.at.Seq + int64(len(e.rows))
	var moved int
	err := p.finish(ctx, patience(p.limits, passing), func(ctx context.Context) error {
		return p.pool.QueryRowContext(
			ctx, sqlAppend, to, e.agent, e.status, e.summary, millis(e.now), e.tenant, e.id, e.at.Seq, e.at.Fence,
			digests, bytes, seqs, schemas, ats, turns, anchors, kinds, data, blobs, p.tables,
		).Scan(&moved)
	})
	if err != nil || moved == 0 {
		return false, err
	}
	p.word.say(e.key, to)
	return true, nil
}

func (p *postgres) listen(ctx context.Context, heard func(key, int64)) { p.word.listen(ctx, heard) }

func (p *postgres) close() error {
	p.word.close()
	return p.pool.Close()
}

func (p *postgres) explain(err error) error {
	say := func(format string, args ...any) error {
		e := fault.Wrap(err, fault.Unavailable, format, args...)
		e.Detail = "store_unavailable"
		return e
	}
	if errors.Is(err, errLate) {
		return say("%s does not answer: what was to be written may be stored or not; try again when it does", p.name)
	}
	if isUnreachable(err) && !errors.Is(err, context.Canceled) {
		return say("%s cannot be reached: see that it runs, and that user and password are right", p.name)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case e.Code == "53100":
		return say("the disk of %s is full, and nothing was stored: free some room, and try again", p.name)
	case e.Code == "25006":
		return say("%s is read-only: name the server that may be written with --db", p.name)
	case e.Code == "42501":
		return say("the user of %s may not do this: give it the right to make tables in its schema and, for the copy before they change, to make schemas in the database", p.name)
	case strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57"), strings.HasPrefix(e.Code, "08"):
		return say("%s does not answer now: try again", p.name)
	}
	return err
}

// tablesOf is how the tables of a server are changed: by one process at a time.
func (p *postgres) tablesOf(from fs.FS) tables {
	return tables{
		dialect: goose.DialectPostgres, folder: "postgres", from: from, name: p.name, names: postgresNames,
		locker: serverLock{p.name, lockWaits * p.limits.Duration(config.StoreWait)}, backup: p.backup,
	}
}

// serverLock is had by one of all that would change tables of a server, and goes with its
// connection.
type serverLock struct {
	name string
	most time.Duration
}

var _ lock.SessionLocker = serverLock{}

// SessionLock waits for the lock.
func (l serverLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	waiting, stop := context.WithTimeout(ctx, l.most)
	defer stop()
	_, err := conn.ExecContext(waiting, "SELECT pg_advisory_lock($1)", lock.DefaultLockID)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return fault.Wrap(err, fault.Unavailable, "another process has been changing tables of %s for longer than is waited: try again", l.name)
	}
	return err
}

// SessionUnlock lets others have the lock.
func (serverLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", lock.DefaultLockID)
	return err
}

// A schema may be shared with other programs, but for the names that are needed.
const postgresNames = `SELECT count(*) FILTER (WHERE relname = 'goose_db_version'), count(*) FILTER (WHERE relname = 'sessions'), count(*)
	FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
	AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname IN ('goose_db_version', 'sessions', 'blobs', 'events', 'continuity', 'responses')`

// tablesAt are the tables of a version.
func tablesAt(version int64) []string {
	names := []string{"sessions", "blobs", "events", "continuity"}
	if version >= 2 {
		names = append(names, "responses")
	}
	return names
}

// backup copies the tables into a schema of their own.
func (p *postgres) backup(ctx context.Context, conn *sql.Conn, version int64, logger *slog.Logger) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	// One server may hold the tables of several installations, each in its own schema.
	var schema string
	if err := tx.QueryRowContext(ctx, "SELECT quote_ident(current_schema() || $1)", fmt.Sprintf("_backup_v%d", version)).Scan(&schema); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	statements := []string{"DROP SCHEMA IF EXISTS " + schema + " CASCADE", "CREATE SCHEMA " + schema}
	for _, t := range tablesAt(version) {
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s.%s AS TABLE %s", schema, t, t))
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	logger.InfoContext(ctx, "tables copied before they change", "database", p.name, "schema", schema)
	return nil
}

// numbered runs statements whose arguments are marked with ? where the server wants $1,
// $2. No statement of this room has a ? elsewhere.
type numbered struct{ on queries }

var _ queries = numbered{}

func number(query string) string {
	var b strings.Builder
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// ExecContext runs a statement that gives no rows.
func (n numbered) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return n.on.ExecContext(ctx, number(query), args...)
}

// QueryContext runs a statement that gives rows.
func (n numbered) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return n.on.QueryContext(ctx, number(query), args...)
}

// QueryRowContext runs a statement that gives one row.
func (n numbered) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return n.on.QueryRowContext(ctx, number(query), args...)
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"
)

// writer is the one connection that writes to a file. Writes that wait for it share a
// transaction, and so one wait for the disk.
type writer struct {
	conn *sql.Conn
	stmt *prepared
	jobs chan *job
	done chan struct{} // closed when the goroutine is gone

	mu     sync.RWMutex // held for reading while a job is handed in
	closed bool
	full   bool // the connection waits for the disk at each commit
}

// job is a write that waits for its turn.
type job struct {
	ctx   context.Context
	d     durability
	fn    func(context.Context, queries) error
	taken atomic.Bool // by the writer, or by whoever gave it up
	err   error
	done  chan struct{}
}

// together is how many writes share a transaction at most.
const together = 64

var errClosed = errors.New("the database is closed")

func startWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, stmt: newPrepared(conn), jobs: make(chan *job, together), done: make(chan struct{}), full: true}
	go w.loop()
	return w, nil
}

// do has fn run in a transaction and waits until that is stored.
func (w *writer) do(ctx context.Context, d durability, fn func(context.Context, queries) error) error {
	j := &job{ctx: ctx, d: d, fn: fn, done: make(chan struct{})}
	if err := w.hand(j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
	}
	if j.taken.CompareAndSwap(false, true) {
		return ctx.Err()
	}
	<-j.done // it is being written: the outcome is what counts
	return j.err
}

func (w *writer) hand(j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.jobs <- j:
		return nil
	case <-j.ctx.Done():
		return j.ctx.Err()
	}
}

// close writes what waits and ends the writer.
func (w *writer) close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if !first {
		return nil
	}
	close(w.jobs)
	<-w.done
	return errors.Join(w.stmt.close(), w.conn.Close())
}

func (w *writer) loop() {
	defer close(w.done)
	for j := range w.jobs {
		batch := []*job{j}
		for more := true; more && len(batch) < together; {
			select {
			case j, ok := <-w.jobs:
				if more = ok; ok {
					batch = append(batch, j)
				}
			default:
				more = false
			}
		}
		w.run(batch)
	}
}

// run writes a batch. What nobody waits for any more is left out.
func (w *writer) run(batch []*job) {
	var todo []*job
	for _, j := range batch {
		if j.taken.CompareAndSwap(false, true) {
			todo = append(todo, j)
		}
	}
	if len(todo) > 1 && w.all(todo) {
		return
	}
	for _, j := range todo {
		j.err = w.alone(j)
		close(j.done)
	}
}

// all writes jobs in one transaction. It reports false when that came to nothing and
// each is to be tried alone; one that fails by itself takes no other down.
func (w *writer) all(jobs []*job) bool {
	ctx := context.Background() // a batch belongs to nobody: no one's leaving ends it
	if err := w.begin(ctx, jobs...); err != nil {
		return false
	}
	errs := make([]error, len(jobs))
	for i, j := range jobs {
		var ended bool
		if ended, errs[i] = w.inside(ctx, j); ended {
			w.rollback(ctx)
			return false
		}
	}
	if _, err := w.stmt.ExecContext(ctx, "COMMIT"); err != nil {
		w.rollback(ctx)
		return false
	}
	for i, j := range jobs {
		j.err = errs[i]
		close(j.done)
	}
	return true
}

// inside runs a job in a transaction that it shares. ended is true when its error may
// have ended the transaction for all.
func (w *writer) inside(ctx context.Context, j *job) (ended bool, err error) {
	if _, err := w.stmt.ExecContext(ctx, "SAVEPOINT job"); err != nil {
		return true, err
	}
	err = j.fn(ctx, w.stmt)
	if err != nil {
		if _, undo := w.stmt.ExecContext(ctx, "ROLLBACK TO job"); undo != nil || endsTransaction(err) {
			return true, err
		}
	}
	if _, release := w.stmt.ExecContext(ctx, "RELEASE job"); release != nil {
		return true, release
	}
	return false, err
}

// endsTransaction tells errors after which SQLite may have rolled everything back.
func endsTransaction(err error) bool {
	code, ok := sqliteCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return false
	}
	return true
}

// alone writes one job in a transaction of its own.
func (w *writer) alone(j *job) error {
	ctx := context.WithoutCancel(j.ctx)
	if err := w.begin(ctx, j); err != nil {
		return err
	}
	if err := j.fn(ctx, w.stmt); err != nil {
		w.rollback(ctx)
		return err
	}
	if _, err := w.stmt.ExecContext(ctx, "COMMIT"); err != nil {
		w.rollback(ctx)
		return err
	}
	return nil
}

// begin opens a transaction that waits for the disk at its end if a job wants that.
func (w *writer) begin(ctx context.Context, jobs ...*job) error {
	full := false
	for _, j := range jobs {
		full = full || j.d == lasting
	}
	if full != w.full {
		level := "PRAGMA synchronous = NORMAL"
		if full {
			level = "PRAGMA synchronous = FULL"
		}
		// Not prepared: SQLite carries some pragmas out when they are parsed.
		if _, err := w.conn.ExecContext(ctx, level); err != nil {
			return err
		}
		w.full = full
	}
	_, err := w.stmt.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// rollback ends a transaction. That there may be none any more is no error.
func (w *writer) rollback(ctx context.Context) { _, _ = w.stmt.ExecContext(ctx, "ROLLBACK") }

package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// word tells other processes of appends and hears of theirs, by NOTIFY and LISTEN.
//
// It is sent after an append and not in its transaction: the server commits transactions
// that notify one after the other, each with its wait for the disk. Word that is lost with
// a process costs its readers the time until they look by themselves.
type word struct {
	config *pgx.ConnConfig
	retry  time.Duration
	logger *slog.Logger
	wake   chan struct{}
	stop   context.CancelFunc
	group  sync.WaitGroup

	mu   sync.Mutex
	news map[key]int64 // to be told: how far each session is
}

// channel is where word of appends goes.
const channel = "metier_events"

const sqlTell = "SELECT pg_notify('" + channel + "', note) FROM unnest($1::text[]) AS n (note)"

// startWord begins to tell what is said. pool is what it is told over.
func startWord(c *pgx.ConnConfig, pool *sql.DB, retry time.Duration, logger *slog.Logger) *word {
	ctx, stop := context.WithCancel(context.Background()) // until it is closed
	w := &word{config: c, retry: retry, logger: logger, wake: make(chan struct{}, 1), stop: stop, news: map[key]int64{}}
	w.group.Go(func() { w.tellAll(ctx, pool) })
	return w
}

func (w *word) close() {
	w.stop()
	w.group.Wait()
}

// say has others told that a session is as far as seq.
func (w *word) say(k key, seq int64) {
	w.mu.Lock()
	w.news[k] = max(w.news[k], seq)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// tellAll tells the news until ctx ends, those of one moment together.
func (w *word) tellAll(ctx context.Context, pool *sql.DB) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		w.mu.Lock()
		news := w.news
		w.news = map[key]int64{}
		w.mu.Unlock()
		notes := make([]string, 0, len(news))
		for k, seq := range news {
			notes = append(notes, note(k, seq))
		}
		if err := tell(ctx, pool, notes); err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "other processes learn late of appends", "error", err)
		}
	}
}

// tell sends notes in a transaction that does not wait for the disk: nothing is stored.
func tell(ctx context.Context, pool *sql.DB, notes []string) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if _, err := tx.ExecContext(ctx, sqlTell, notes); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// note is how far a session is, and which it is.
func note(k key, seq int64) string {
	return strconv.FormatInt(seq, 10) + "\n" + k.tenant + "\n" + k.id
}

// readNote reads a note. Everybody who may use the database can send one: what does not
// look like one is none, and one that is wrong only makes a follower look.
func readNote(text string) (k key, seq int64, ok bool) {
	digits, rest, _ := strings.Cut(text, "\n")
	k.tenant, k.id, ok = strings.Cut(rest, "\n")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return k, seq, ok && err == nil && seq > 0
}

// listen hears of appends of other processes until ctx ends. When the connection is lost
// it is made anew; what was missed meanwhile is found by looking.
func (w *word) listen(ctx context.Context, heard func(key, int64)) {
	for ctx.Err() == nil {
		if err := w.listenOnce(ctx, heard); err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "word of other processes' appends is late", "error", err)
		}
		wait(ctx, w.retry)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (w *word) listenOnce(ctx context.Context, heard func(key, int64)) error {
	conn, err := pgx.ConnectConfig(ctx, w.config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it holds nothing
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if k, seq, ok := readNote(n.Payload); ok {
			heard(k, seq)
		}
	}
}

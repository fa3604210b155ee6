package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
	"github.com/metier-run/metier/internal/turn"
)

// storeName is the workload of stores, as -only knows it.
const storeName = "store"

// storeSizes are how much is measured of stores.
type storeSizes struct {
	rounds int
	// appends of one event each, batches of 50, and sessions that append at once.
	appends, batches, sessions int
	// events of a session that is folded, those that a follower hears one by one, and
	// followers at once.
	events, heard, followers int
}

// The ways to store, in the order of the table. A bare statement is what the same row
// costs with the driver alone: one INSERT in a transaction of its own, or 50.
const (
	bareSQLite   = "INSERT, SQLite"
	ourSQLite    = "Metier, SQLite"
	barePostgres = "INSERT, PostgreSQL"
	ourPostgres  = "Metier, PostgreSQL"
	ourMemory    = "Metier, memory"
)

func stores() []string {
	return []string{bareSQLite, ourSQLite, barePostgres, ourPostgres, ourMemory}
}

// inBatch is how many events a batch has.
const inBatch = 50

// storeRig is what stores are measured with.
type storeRig struct {
	rep  *report
	size storeSizes
	dir  string
	// Each is nil where there is no such database.
	bare  map[string]*sql.DB
	store map[string]*store.DB
	urls  map[string]string
	close []func() error
}

// runStores measures stores. Both databases wait for the disk at each commit.
func runStores(ctx context.Context, rep *report, size storeSizes) (err error) {
	r, err := openStores(ctx, rep, size)
	defer func() { err = errors.Join(err, r.end()) }()
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{r.single, r.batched, r.together, r.fold, r.follow, r.followers} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func openStores(ctx context.Context, rep *report, size storeSizes) (*storeRig, error) {
	r := &storeRig{rep: rep, size: size, bare: map[string]*sql.DB{}, store: map[string]*store.DB{}, urls: map[string]string{}}
	var err error
	if r.dir, err = os.MkdirTemp("", "bench-store"); err != nil {
		return r, err
	}
	r.close = append(r.close, func() error { return os.RemoveAll(r.dir) })
	dsn := "file:" + filepath.Join(r.dir, "bare.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	if err := r.openBare(ctx, bareSQLite, "sqlite", dsn, "BLOB"); err != nil {
		return r, err
	}
	if err := r.openStore(ctx, ourSQLite, filepath.Join(r.dir, "metier.db")); err != nil {
		return r, err
	}
	url, stop, err := storetest.Start(true)
	r.close = append(r.close, stop)
	if errors.Is(err, storetest.ErrNone) {
		rep.NoPostgres = err.Error()
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := r.openBare(ctx, barePostgres, "pgx", url, "BYTEA"); err != nil {
		return r, err
	}
	return r, r.openStore(ctx, ourPostgres, url)
}

func (r *storeRig) openBare(ctx context.Context, name, driver, dsn, bytes string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	r.bare[name] = db
	r.close = append(r.close, db.Close)
	_, err = db.ExecContext(ctx, "CREATE TABLE bare (session TEXT, seq INTEGER, data "+bytes+", PRIMARY KEY (session, seq))")
	return err
}

func (r *storeRig) openStore(ctx context.Context, name, url string) error {
	db, err := store.Open(ctx, store.Options{
		URL: config.NewSecret(url), Now: time.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	r.store[name], r.urls[name] = db, url
	r.close = append(r.close, db.Close)
	return nil
}

func (r *storeRig) end() error {
	var err error
	for i := len(r.close) - 1; i >= 0; i-- {
		err = errors.Join(err, r.close[i]())
	}
	return err
}

func (r *storeRig) row(title, unit string) *launchRow {
	x := &launchRow{Title: title, Unit: unit, Ways: map[string]*figure{}}
	r.rep.Stores = append(r.rep.Stores, x)
	return x
}

// compared sets the ratios to the bare statements.
func compared(rows ...*launchRow) {
	for _, x := range rows {
		x.compare(ourSQLite, against{To: bareSQLite})
		x.compare(ourPostgres, against{To: barePostgres})
	}
}

// fact is an event of about 300 bytes.
func fact() journal.Draft {
	return journal.Draft{TurnID: "turn_01KBCDEFGHJKMNPQRSTVWXYZ00", Anchor: "01KBCDEFGHJKMNPQRSTVWXYZ00", Data: journal.InvokeEnded{
		CallID: "call_0123456789", Result: journal.Result{Text: strings.Repeat("It has 12 pages. ", 12), OK: true, Skill: "pdf"},
	}}
}

func facts(n int) []journal.Draft {
	drafts := make([]journal.Draft, n)
	for i := range drafts {
		drafts[i] = fact()
	}
	return drafts
}

// session makes one and takes it.
func (r *storeRig) session(ctx context.Context, name string) (journal.Log, journal.Position, error) {
	if name == ourMemory {
		m := journal.NewMemory(time.Now)
		return m, m.Take(), nil
	}
	l, err := r.store[name].CreateSession(ctx, "bench", rand.Text())
	if err != nil {
		return nil, journal.Position{}, err
	}
	at, err := l.Take(ctx)
	return l, at, err
}

// ours are the ways of Metier that there are.
func (r *storeRig) ours() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range []string{ourSQLite, ourPostgres, ourMemory} {
			if (name == ourMemory || r.store[name] != nil) && !yield(name) {
				return
			}
		}
	}
}

// timed runs a step again and again and returns how long each took, in microseconds.
func timed(n int, step func() error) ([]float64, error) {
	took := make([]float64, n)
	for i := range took {
		began := time.Now()
		if err := step(); err != nil {
			return nil, err
		}
		took[i] = float64(time.Since(began)) / 1e3
	}
	return took, nil
}

// single appends one event at a time. Ways take turns.
func (r *storeRig) single(ctx context.Context) error {
	return r.appends(ctx, 1, r.size.appends, r.row("append of 1 event", "us, median"), r.row("append of 1 event", "us, worst"))
}

// batched appends 50 at a time.
func (r *storeRig) batched(ctx context.Context) error {
	return r.appends(ctx, inBatch, r.size.batches, r.row("append of 50 events", "us an event, median"), r.row("append of 50 events", "us an event, worst"))
}

func (r *storeRig) appends(ctx context.Context, events, times int, middle, worst *launchRow) error {
	all := map[string][]float64{}
	for range r.size.rounds {
		for name, db := range r.bare {
			took, err := timed(times/r.size.rounds, inserts(ctx, db, events, strings.Contains(name, "SQLite")))
			if err != nil {
				return err
			}
			all[name] = append(all[name], took...)
		}
		for name := range r.ours() {
			l, at, err := r.session(ctx, name)
			if err != nil {
				return err
			}
			drafts := facts(events)
			took, err := timed(times/r.size.rounds, func() error {
				at, err = l.Append(ctx, at, drafts...)
				return err
			})
			if err != nil {
				return err
			}
			all[name] = append(all[name], took...)
		}
	}
	for name, took := range all {
		middle.Ways[name] = &figure{Value: median(took) / float64(events)}
		worst.Ways[name] = &figure{Value: quantile(took, 1) / float64(events)}
	}
	compared(middle)
	return nil
}

// inserts is a transaction of bare statements.
func inserts(ctx context.Context, db *sql.DB, n int, sqlite bool) func() error {
	data, err := journal.EncodeData(fact().Data)
	insert := "INSERT INTO bare (session, seq, data) VALUES ($1, $2, $3)"
	if sqlite {
		insert = "INSERT INTO bare (session, seq, data) VALUES (?, ?, ?)"
	}
	return func() error {
		if err != nil {
			return err
		}
		session := rand.Text()
		if n == 1 {
			_, err := db.ExecContext(ctx, insert, session, 1, data)
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for seq := range n {
			if _, err := tx.ExecContext(ctx, insert, session, seq, data); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	}
}

// together has many sessions append at once.
func (r *storeRig) together(ctx context.Context) error {
	x := r.row(fmt.Sprintf("%d sessions at once, 1 event an append", r.size.sessions), "appends a second")
	worst := r.row(fmt.Sprintf("%d sessions at once, 1 event an append", r.size.sessions), "us, worst")
	for name := range r.ours() {
		var mu sync.Mutex
		var all []float64
		var failed error
		var group sync.WaitGroup
		began := time.Now()
		for range r.size.sessions {
			group.Go(func() {
				l, at, err := r.session(ctx, name)
				var took []float64
				if err == nil {
					took, err = timed(r.size.appends/r.size.sessions, func() error {
						at, err = l.Append(ctx, at, fact())
						return err
					})
				}
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
				all = append(all, took...)
			})
		}
		group.Wait()
		if failed != nil {
			return failed
		}
		x.Ways[name] = &figure{Value: float64(len(all)) / time.Since(began).Seconds()}
		worst.Ways[name] = &figure{Value: quantile(all, 1)}
	}
	return nil
}

// fold reads a long session and folds it.
func (r *storeRig) fold(ctx context.Context) error {
	x := r.row(fmt.Sprintf("fold of %d events, read from the store", r.size.events), "ms")
	for name := range r.ours() {
		l, at, err := r.session(ctx, name)
		if err != nil {
			return err
		}
		if err := fill(ctx, l, at, r.size.events); err != nil {
			return err
		}
		took, err := timed(r.size.rounds, func() error {
			var s turn.State
			for e, err := range l.Read(ctx, 0) {
				if err != nil {
					return err
				}
				s = s.Apply(e)
			}
			if s.Seq() != int64(r.size.events) {
				return fmt.Errorf("folded %d events of %d", s.Seq(), r.size.events)
			}
			return nil
		})
		if err != nil {
			return err
		}
		x.Ways[name] = &figure{Value: median(took) / 1e3}
	}
	return nil
}

// fill writes a session of so many messages.
func fill(ctx context.Context, l journal.Log, at journal.Position, n int) error {
	parent := journal.NodeID("")
	for at.Seq < int64(n) {
		var drafts []journal.Draft
		for i := range min(inBatch, n-int(at.Seq)) {
			id := journal.NodeID(fmt.Sprint("n", at.Seq+int64(i)))
			drafts = append(drafts, journal.Draft{Anchor: parent, Data: journal.MessagesAdded{
				Entries: []journal.Entry{{ID: id, Message: llm.TextMessage(llm.User, strings.Repeat("Some words. ", 15))}},
			}})
			parent = id
		}
		var err error
		if at, err = l.Append(ctx, at, drafts...); err != nil {
			return err
		}
	}
	return nil
}

// follow measures how long after an append a follower hears of it: one of this process,
// and one of another process, which has the database open by itself.
func (r *storeRig) follow(ctx context.Context) error {
	here, other := r.row("a follower of the same process hears", "us after the append, median"), r.row("a follower of another process hears", "us after the append, median")
	for name := range r.ours() {
		l, at, err := r.session(ctx, name)
		if err != nil {
			return err
		}
		took, at, err := hears(ctx, l, l, at, r.size.heard)
		if err != nil {
			return err
		}
		here.Ways[name] = &figure{Value: median(took)}
		if name != ourPostgres {
			continue // a file tells nobody: others look once a second
		}
		second := storeRig{store: map[string]*store.DB{}, urls: map[string]string{}}
		err = second.openStore(ctx, name, r.urls[name])
		if err == nil {
			took, _, err = hears(ctx, l, second.store[name].Log("bench", l.(*store.Log).ID()), at, r.size.heard)
		}
		if err = errors.Join(err, second.end()); err != nil {
			return err
		}
		other.Ways[name] = &figure{Value: median(took)}
	}
	return nil
}

// hears appends, and measures until a follower has heard.
func hears(ctx context.Context, l, from journal.Log, at journal.Position, n int) ([]float64, journal.Position, error) {
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan time.Time, 1)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	after := at.Seq
	group.Go(func() {
		defer close(heard)
		for _, err := range from.Follow(ctx, after) {
			if err != nil {
				return
			}
			heard <- time.Now()
		}
	})
	took := make([]float64, 0, n)
	for range n {
		var err error
		if at, err = l.Append(ctx, at, fact()); err != nil {
			return nil, at, err
		}
		stored := time.Now()
		when, ok := <-heard
		if !ok {
			return nil, at, errors.New("a follower fell silent")
		}
		took = append(took, max(0, float64(when.Sub(stored))/1e3))
	}
	return took, at, nil
}

// followers has a thousand follow one session, and measures what each costs.
func (r *storeRig) followers(ctx context.Context) error {
	memory := r.row(fmt.Sprintf("%d followers of one session", r.size.followers), "KiB each")
	all := r.row(fmt.Sprintf("%d followers of one session", r.size.followers), "ms until all have heard")
	for name := range r.ours() {
		if err := r.crowd(ctx, name, memory, all); err != nil {
			return err
		}
	}
	return nil
}

func (r *storeRig) crowd(ctx context.Context, name string, memory, all *launchRow) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	l, at, err := r.session(ctx, name)
	if err != nil {
		return err
	}
	if at, err = l.Append(ctx, at, fact()); err != nil {
		return err
	}
	before := inUse()
	var heard sync.WaitGroup
	heard.Add(r.size.followers)
	second := make(chan struct{}, r.size.followers)
	for range r.size.followers {
		group.Go(func() {
			for e, err := range l.Follow(ctx, 0) {
				switch {
				case err != nil:
					return
				case e.Seq == 1:
					heard.Done()
				default:
					second <- struct{}{}
				}
			}
		})
	}
	heard.Wait()
	memory.Ways[name] = &figure{Value: float64(inUse()-before) / 1024 / float64(r.size.followers)}
	began := time.Now()
	if _, err := l.Append(ctx, at, fact()); err != nil {
		return err
	}
	for range r.size.followers {
		<-second
	}
	all.Ways[name] = &figure{Value: float64(time.Since(began)) / 1e6}
	return nil
}

// inUse is the memory of heap and stacks.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// printStores writes the table of stores, if there is anything in it.
func (r *report) printStores(w io.Writer) error {
	if len(r.Stores) == 0 {
		return nil
	}
	if r.NoPostgres != "" {
		fmt.Fprintf(w, "\nPostgreSQL was not measured: %s\n", r.NoPostgres)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "store\tunit\t%s\t\n", strings.Join(stores(), "\t"))
	for _, x := range r.Stores {
		fmt.Fprintf(t, "%s\t%s\t", x.Title, x.Unit)
		for _, way := range stores() {
			fmt.Fprintf(t, "%s\t", x.cell(way))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nBoth databases wait for the disk at each commit. In brackets the ratio to bare statements of the same driver.")
	return err
}

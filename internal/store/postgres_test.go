package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
)

// wire stands between a process and its server, as a network does. While it is locked
// nothing goes through, and nobody learns why.
type wire struct {
	sync.RWMutex
	group sync.WaitGroup
	to    *pgconn.Config

	mu    sync.Mutex
	conns []net.Conn
}

// behind is the same database behind a wire, with the shortest waits.
func (p place) behind(t *testing.T) (store.Options, *wire) {
	t.Helper()
	to, err := pgconn.ParseConfig(p.url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: to}
	w.group.Go(func() { w.accept(l) })
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.group.Wait()
	})
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	o := p.options(t)
	o.URL = config.NewSecret(u.String())
	if o.Limits, err = o.Limits.Set(config.StoreWait, 1); err != nil {
		t.Fatal(err)
	}
	return o, w
}

func (w *wire) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // it is over
		}
		network, address := pgconn.NetworkAddress(w.to.Host, w.to.Port)
		server, err := net.Dial(network, address)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		w.mu.Unlock()
		w.group.Go(func() { w.carry(client, server) })
		w.group.Go(func() { w.carry(server, client) })
	}
}

func (w *wire) carry(from io.Reader, to io.WriteCloser) {
	defer to.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		w.RLock()
		_, err = to.Write(b[:n])
		w.RUnlock()
		if err != nil {
			return
		}
	}
}

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// TestPostgresSilent: a server that says nothing any more keeps nobody waiting for ever, also
// not for a write that has begun; what became of that shows when it speaks again.
func TestPostgresSilent(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	o, w := p.behind(t)
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := create(t, db, "s1")
	h, err := l.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var open sync.Once
	w.Lock()
	defer open.Do(w.Unlock)
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	failed := make(chan error, 3)
	go func() {
		_, err := l.Append(t.Context(), h.At, added("", "n", "x"))
		failed <- err
		failed <- h.Release(ctx)
		failed <- db.DeleteSession(t.Context(), tenant, "s1")
	}()
	for _, want := range []string{"does not answer", "postgres://127.0.0.1", "postgres://127.0.0.1"} {
		select {
		case err := <-failed:
			clean(t, err, want)
		case <-time.After(time.Minute):
			t.Fatal("a write waits for ever")
		}
	}
	open.Do(w.Unlock)
	if _, err := p.open(t).Log(tenant, "s1").Take(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPostgresAsleep: that a server cannot be reached is no fault of whoever asked, however
// it comes out.
func TestPostgresAsleep(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	o, w := p.behind(t)
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	create(t, db, "s1")
	w.Lock()
	defer w.Unlock()
	w.cut()
	for try := 0; ; try++ { // the first may be of a connection that was cut
		_, err = db.Session(t.Context(), tenant, "s1")
		if err != nil && strings.Contains(err.Error(), "cannot be reached") || try == 20 {
			break
		}
	}
	clean(t, err, "cannot be reached")
}

// waits waits until a statement of the test waits for a lock.
func waits(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for n := 0; n == 0; {
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPostgresSharedBlob: that another session drops a blob, or takes it up, at the same
// moment makes no turn and no deletion fail.
func TestPostgresSharedBlob(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	db := p.open(t)
	large := strings.Repeat("shared ", 1000)
	l, other := create(t, db, "s1"), create(t, db, "s2")
	mustAppend(t, l, take(t, l), added("", "n1", large))
	at := take(t, other)
	look, theirs := p.raw(t), p.raw(t)
	// ours runs until it waits for a statement of theirs, which then comes to its end.
	meanwhile := func(statement string, ours func() error, end func(pgx.Tx) error, args ...any) {
		t.Helper()
		tx, err := theirs.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- ours() }()
		waits(t, look)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// The append has found the blob when that goes, and waits for another one, which then
	// comes to nothing.
	second := added("n1", "n2", large)
	data, err := journal.EncodeData(second.Data)
	if err != nil {
		t.Fatal(err)
	}
	meanwhile("INSERT INTO blobs VALUES ($1, $2, '', 0)", func() error {
		_, err := other.Append(t.Context(), at, added("", "n1", large), second)
		return err
	}, func(tx pgx.Tx) error {
		return errors.Join(db.DeleteSession(t.Context(), tenant, "s1"), tx.Rollback(t.Context()))
	}, tenant, store.Digest(data))
	if got := len(read(t, other, 0)); got != 3 {
		t.Errorf("the other session has %d events, want 3", got)
	}
	create(t, db, "s3")
	meanwhile("INSERT INTO events SELECT tenant, 's3', seq, schema, at, turn, anchor, kind, data, blob FROM events WHERE session = 's2' AND seq = 2", func() error {
		return db.DeleteSession(t.Context(), tenant, "s2")
	}, func(tx pgx.Tx) error { return tx.Commit(t.Context()) })
	if n, err := db.Count(t.Context(), "blobs"); n != 1 || err != nil {
		t.Errorf("%d blobs are left, want the one that was taken up: %v", n, err)
	}
}

// TestPostgresCutBetweenPages: a follower outlives the connections that it reads over.
func TestPostgresCutBetweenPages(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	db := p.open(t)
	l := create(t, db, "s1")
	mustAppend(t, l, take(t, l), slices.Repeat(hundred(), 6)...)
	want := int64(1)
	for e, err := range l.Follow(t.Context(), 0) {
		if err != nil || e.Seq != want {
			t.Fatalf("event %d, %v, want event %d", e.Seq, err, want)
		}
		if e.Seq == 1 || e.Seq == 300 {
			p.cut(t)
		}
		if want++; want > 601 {
			break
		}
	}
}

// TestPostgresRights: who may make tables and no copy of them is told what is missing.
func TestPostgresRights(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	conn, user := p.raw(t), "user_"+strings.ToLower(rand.Text())
	for _, s := range []string{"CREATE ROLE " + user + " LOGIN", "GRANT ALL ON SCHEMA " + q.Get("search_path") + " TO " + user} {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Skip("this user of the server makes no others: ", err)
		}
	}
	t.Cleanup(func() {
		for _, s := range []string{"DROP OWNED BY " + user, "DROP ROLE " + user} {
			if _, err := conn.Exec(context.WithoutCancel(t.Context()), s); err != nil {
				t.Error(err)
			}
		}
	})
	q.Set("user", user)
	u.RawQuery = q.Encode()
	limited := place{u.String(), p.clock}
	create(t, limited.open(t), "s1")
	_, err = store.Open(t.Context(), limited.options(t).WithTables(p.later(t, "CREATE TABLE later (x INTEGER)")))
	clean(t, err, "to make schemas in the database")
}

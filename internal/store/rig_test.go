package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := storetest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// place is a database that a test may open again and again, as several processes do.
type place struct {
	url   string
	clock *clock
}

// clock is a hand on the time of a database.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, place{filepath.Join(t.TempDir(), "metier.db"), &clock{}})
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, place{storetest.Postgres(t), &clock{}})
	})
}

func newID() string { return rand.Text() }

// open opens the database for the rest of the test.
func (p place) open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), p.options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func (p place) options(t *testing.T) store.Options {
	t.Helper()
	limits, err := config.Values{}.Set(config.StoreInline, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return store.Options{
		URL: config.NewSecret(p.url), Limits: limits, Now: p.clock.now, NewID: newID, Logger: slog.New(slog.DiscardHandler),
	}
}

const tenant = "default"

// create makes a session.
func create(t *testing.T, db *store.DB, id string) *store.Log {
	t.Helper()
	l, err := db.CreateSession(t.Context(), tenant, id, journal.Draft{Data: journal.SessionCreated{Origin: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, l *store.Log) journal.Position {
	t.Helper()
	at, err := l.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func added(anchor, id, text string) journal.Draft {
	return journal.Draft{TurnID: "t1", Anchor: journal.NodeID(anchor), Data: journal.MessagesAdded{
		Entries: []journal.Entry{{ID: journal.NodeID(id), Message: llm.TextMessage(llm.User, text)}},
	}}
}

func mustAppend(t *testing.T, l journal.Log, at journal.Position, drafts ...journal.Draft) journal.Position {
	t.Helper()
	at, err := l.Append(t.Context(), at, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func read(t *testing.T, l journal.Log, after int64) []journal.Event {
	t.Helper()
	var events []journal.Event
	for e, err := range l.Read(t.Context(), after) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// raw is a connection to the server.
func (p place) raw(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // it holds nothing
	return conn
}

// cut ends all connections to the server but the one that says so.
func (p place) cut(t *testing.T) {
	t.Helper()
	_, err := p.raw(t).Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name')")
	if err != nil {
		t.Fatal(err)
	}
}

// backupSchema is where tables are copied to before they change.
func (p place) backupSchema() string {
	u, err := url.Parse(p.url)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s_backup_v%d", u.Query().Get("search_path"), p.version())
}

// backupFile is where a file is copied to before its tables change.
func (p place) backupFile() string { return fmt.Sprintf("%s.v%d.bak", p.url, p.version()) }

// version is that of this build's tables.
func (p place) version() int {
	folder := "sqlite"
	if store.IsPostgres(p.url) {
		folder = "postgres"
	}
	files, err := store.Statements(folder)
	if err != nil {
		panic(err)
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(names[len(names)-1][:5])
	if err != nil {
		panic(err)
	}
	return n
}

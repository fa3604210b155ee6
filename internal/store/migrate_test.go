package store_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
)

// later are the statements of a build after this one.
func (p place) later(t *testing.T, up string) fs.FS {
	t.Helper()
	folder := "sqlite"
	if store.IsPostgres(p.url) {
		folder = "postgres"
	}
	now, err := store.Statements(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"00099_later.sql": {Data: []byte("-- +goose Up\n" + up + ";\n")}}
	names, err := fs.Glob(now, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := fs.ReadFile(now, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	return files
}

// TestUpgrade: a later build changes the tables after a copy of what is there, which can
// be put back; the build before refuses what it does not know, and touches nothing.
func TestUpgrade(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db, err := store.Open(t.Context(), p.options(t))
		if err != nil {
			t.Fatal(err)
		}
		l := create(t, db, "s1")
		mustAppend(t, l, take(t, l), added("", "n1", strings.Repeat("x", 5000)))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		later, err := store.Open(t.Context(), p.options(t).WithTables(p.later(t, "CREATE TABLE later (x INTEGER)")))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(read(t, later.Log(tenant, "s1"), 0)); got != 2 {
			t.Errorf("after the change there are %d events, want 2", got)
		}
		if err := later.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = store.Open(t.Context(), p.options(t))
		if err == nil || !strings.Contains(err.Error(), "newer metier") {
			t.Fatalf("the build before opened it: %v", err)
		}
		p.checkBackup(t)
	})
}

// first are the statements of the first version.
func (p place) first(t *testing.T) fs.FS {
	t.Helper()
	files, ok := p.later(t, "").(fstest.MapFS)
	if !ok {
		t.Fatal("the statements are no map")
	}
	return fstest.MapFS{"00001_first.sql": files["00001_first.sql"]}
}

// TestUpgradeFromFirst: a database of the first version gets what came since, and its copy
// opens again.
func TestUpgradeFromFirst(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		old, err := store.Open(t.Context(), p.options(t).WithTables(p.first(t)))
		if err != nil {
			t.Fatal(err)
		}
		l := create(t, old, "s1")
		mustAppend(t, l, take(t, l), added("", "n1", strings.Repeat("x", 5000)))
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		db := p.open(t)
		if got := len(read(t, db.Log(tenant, "s1"), 0)); got != 2 {
			t.Errorf("after the change there are %d events, want 2", got)
		}
		putResponse(t, db, someone(), response("r1", ""))
		has(t, db, someone(), "r1")
		if !store.IsPostgres(p.url) {
			copied := place{p.url + ".v1.bak", p.clock}
			if got := len(read(t, copied.open(t).Log(tenant, "s1"), 0)); got != 2 {
				t.Errorf("the copy has %d events, want 2", got)
			}
			return
		}
		schema := strings.Replace(p.backupSchema(), fmt.Sprintf("_v%d", p.version()), "_v1", 1)
		if n, err := db.Count(t.Context(), schema+".events"); n != 2 || err != nil {
			t.Errorf("the copy has %d events, want 2: %v", n, err)
		}
		if err := db.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
}

// checkBackup puts the copy in the database's place.
func (p place) checkBackup(t *testing.T) {
	t.Helper()
	if store.IsPostgres(p.url) {
		db, err := store.Open(t.Context(), p.options(t).WithTables(p.later(t, "CREATE TABLE later (x INTEGER)")))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		schema := p.backupSchema()
		if n, err := db.Count(t.Context(), schema+".events"); n != 2 || err != nil {
			t.Errorf("the copy has %d events, want 2: %v", n, err)
		}
		if err := db.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
		return
	}
	backup := p.backupFile()
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v, %v", info, err)
	}
	old := place{backup, p.clock}
	if got := len(read(t, old.open(t).Log(tenant, "s1"), 0)); got != 2 {
		t.Errorf("the copy has %d events, want 2", got)
	}
}

// TestBrokenUpgrade: a change that fails leaves the tables as they were.
func TestBrokenUpgrade(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		create(t, p.open(t), "s1")
		_, err := store.Open(t.Context(), p.options(t).WithTables(p.later(t, "CREATE TABLE later (x INTEGER); INSERT INTO nowhere VALUES (1)")))
		if err == nil {
			t.Fatal("a broken change went through")
		}
		if _, err := p.open(t).Session(t.Context(), tenant, "s1"); err != nil {
			t.Errorf("after a broken change: %v", err)
		}
		if store.IsPostgres(p.url) {
			if err := p.open(t).Exec(t.Context(), "DROP SCHEMA "+p.backupSchema()+" CASCADE"); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestUpgradeTogether: of processes that would all change the tables one does, and the copy is
// of what was there before.
func TestUpgradeTogether(t *testing.T) {
	for range 5 {
		each(t, func(t *testing.T, p place) {
			l := create(t, p.open(t), "s1")
			mustAppend(t, l, take(t, l), added("", "n1", strings.Repeat("x", 5000)))
			later := p.later(t, "ALTER TABLE events ADD COLUMN later TEXT NOT NULL DEFAULT ''")
			var group sync.WaitGroup
			for range 3 {
				group.Go(func() {
					db, err := store.Open(t.Context(), p.options(t).WithTables(later))
					if err != nil {
						t.Error(err)
						return
					}
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if store.IsPostgres(p.url) {
				db, err := store.Open(t.Context(), p.options(t).WithTables(later))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if n, err := db.Count(t.Context(), fmt.Sprintf("information_schema.columns WHERE table_schema = '%s' AND column_name = 'later'", p.backupSchema())); n != 0 || err != nil {
					t.Errorf("the copy has what came later: %d, %v", n, err)
				}
			}
			p.checkBackup(t)
			for _, name := range []string{p.url + ".lock", p.backupFile() + ".part"} {
				if _, err := os.Stat(name); err == nil {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// TestForeign: the tables of another program are not touched.
func TestForeign(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		server := store.IsPostgres(p.url)
		name := "sqlite"
		if server {
			name = "pgx"
		}
		for _, theirs := range [][]string{
			{"CREATE TABLE sessions (x INTEGER)"},
			{"CREATE TABLE goose_db_version (id INTEGER, version_id BIGINT, is_applied BOOLEAN, tstamp TIMESTAMP)", "INSERT INTO goose_db_version VALUES (1, 1, true, NULL)"},
		} {
			if p.url = filepath.Join(t.TempDir(), "other.db"); server {
				p.url = storetest.Postgres(t)
			}
			db, err := sql.Open(name, p.url)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range theirs {
				if _, err := db.ExecContext(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			var before []byte
			if !server {
				if before, err = os.ReadFile(p.url); err != nil {
					t.Fatal(err)
				}
			}
			_, err = store.Open(t.Context(), p.options(t))
			clean(t, err, "the tables of another program")
			if after, err := os.ReadFile(p.url); !server && (err != nil || !bytes.Equal(before, after)) {
				t.Errorf("the file was changed: %v", err)
			}
		}
	})
}

// TestSharedSchema: a schema on a server may have tables of others, whose names differ.
func TestSharedSchema(t *testing.T) {
	p := place{storetest.Postgres(t), &clock{}}
	if _, err := p.raw(t).Exec(t.Context(), "CREATE TABLE notes (x INTEGER)"); err != nil {
		t.Fatal(err)
	}
	create(t, p.open(t), "s1")
}

// TestLeftBehind: a process whose tables a newer one has changed writes no more.
func TestLeftBehind(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		old := p.open(t)
		create(t, old, "s2")
		l := create(t, old, "s1")
		h, err := l.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := mustAppend(t, l, h.At, added("", "n1", "x"))
		later, err := store.Open(t.Context(), p.options(t).WithTables(p.later(t, "CREATE TABLE later (x INTEGER)")))
		if err != nil {
			t.Fatal(err)
		}
		defer later.Close()
		_, err = l.Append(t.Context(), at, added("n1", "n2", "x"))
		clean(t, err, "written by a newer metier")
		_, err = old.Log(tenant, "s2").Hold(t.Context())
		clean(t, err, "written by a newer metier")
		_, err = old.CreateSession(t.Context(), tenant, "s3")
		clean(t, err, "written by a newer metier")
		clean(t, old.DeleteSession(t.Context(), tenant, "s1"), "written by a newer metier")
		clean(t, old.PutResponse(t.Context(), someone(), response("r1", "")), "written by a newer metier")
		if got := len(read(t, l, 0)); got != 2 {
			t.Errorf("it reads %d events, want 2", got)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if h, err = later.Log(tenant, "s1").Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, later.Log(tenant, "s1"), h.At, added("n1", "n2", "x"))
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if store.IsPostgres(p.url) {
			if err := later.Exec(t.Context(), "DROP SCHEMA "+p.backupSchema()+" CASCADE"); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOpenTogether: processes that find no tables all make them, and one wins.
func TestOpenTogether(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				db, err := store.Open(t.Context(), p.options(t))
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

package store_test

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/metier-run/metier/internal/store"
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
	backup := p.url + ".v1.bak"
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

package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"

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
	options []goose.ProviderOption
	backup  func(ctx context.Context, db *sql.DB, version int64, logger *slog.Logger) error
}

// migrate makes or changes the tables of a database. Another process may do so at the
// same time: the one that comes second finds it done.
func migrate(ctx context.Context, db *sql.DB, t tables, logger *slog.Logger) error {
	for try := 1; ; try++ {
		err := migrateOnce(ctx, db, t, logger)
		if err == nil || try == tries || ctx.Err() != nil || isNewer(err) {
			return err
		}
	}
}

// tries is how often tables are tried to be changed: each try but the last may have lost
// to another process.
const tries = 3

func migrateOnce(ctx context.Context, db *sql.DB, t tables, logger *slog.Logger) error {
	files := t.from
	if files == nil {
		var err error
		if files, err = fs.Sub(migrations, "migrations/"+t.folder); err != nil {
			return err
		}
	}
	options := append([]goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}, t.options...)
	p, err := goose.NewProvider(t.dialect, db, files, options...)
	if err != nil {
		return fmt.Errorf("read the statements that make tables: %w", err)
	}
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("find out the version of the tables: %w", err)
	}
	switch {
	case has == knows:
		return nil
	case has > knows:
		return newer(t.name, has, knows)
	case has > 0:
		if err := t.backup(ctx, db, has, logger); err != nil {
			return fmt.Errorf("copy the database before its tables change from version %d to %d: %w", has, knows, err)
		}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the tables from version %d to %d: %w", has, knows, err)
	}
	return nil
}

const detailNewer = "store_newer"

func newer(name string, has, knows int64) error {
	e := fault.New(fault.Unavailable, "%s was written by a newer metier (its tables have version %d, this one knows up to %d): use that one, or name another database with --db", name, has, knows)
	e.Detail = detailNewer
	return e
}

func isNewer(err error) bool { return err != nil && fault.From(err).Detail == detailNewer }

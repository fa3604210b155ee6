package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	doorweb "github.com/metier-run/metier/internal/server/web"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/turn"
)

// MemoryDB as the database keeps nothing longer than the process.
const MemoryDB = "memory"

// dbFile is the database in METIER_HOME.
const dbFile = "metier.db"

// db is the database's URL or path; empty for none.
func (s Settings) db() config.Secret {
	switch {
	case s.DB.Reveal() == MemoryDB, s.DB.IsZero() && s.Home == "":
		return config.Secret{}
	case s.DB.IsZero():
		return config.NewSecret(filepath.Join(s.Home, dbFile))
	}
	return s.DB
}

// DBPath is the file of the database; empty when it is none, or is refused.
func (s Settings) DBPath() string {
	if url := s.db().Reveal(); !store.IsPostgres(url) && checkDB(url) == nil {
		return url
	}
	return ""
}

// OpenStore opens the database that the settings mean. It is nil where nothing is to be
// kept, and where nobody named a database and METIER_HOME cannot be written: warning says
// so then.
func OpenStore(ctx context.Context, s Settings, logger *slog.Logger) (db *store.DB, warning string, err error) {
	url := s.db()
	if url.IsZero() {
		return nil, "", nil
	}
	if err := checkDB(url.Reveal()); err != nil {
		return nil, "", err
	}
	db, err = store.Open(ctx, store.Options{URL: url, Limits: s.Limits, Now: time.Now, NewID: ids{}.NewID, Logger: logger})
	if err != nil && s.DB.IsZero() && readOnly(s.Home) {
		return nil, fmt.Sprintf("%s cannot be written: sessions and what is remembered end with this process; set METIER_HOME to a folder of yours, or name a database with --db", s.Home), nil
	}
	return db, "", err
}

// checkDB refuses what would be taken for the path of a file and is meant for a server: a
// URL of another kind, one with a slash or its scheme missing, and words such as
// password=…. It may hold a password: only its scheme is said.
func checkDB(text string) error {
	if store.IsPostgres(text) {
		return nil
	}
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return fault.Usage("the database is no %.20q: give postgres://USER:PASSWORD@HOST/NAME, or the path of a file", scheme+"://")
	}
	if filepath.VolumeName(text) == "" && serverWords.MatchString(text) {
		return fault.Usage("the database looks like a server's and is no URL: give postgres://USER:PASSWORD@HOST/NAME, or the path of a file; ./ in front of a name says that it is a file")
	}
	return nil
}

// serverWords are a URL's without its scheme or slashes, and those of a connection string.
var serverWords = regexp.MustCompile(`(?i)^postgres(ql)?:|^[^/\\]+:.*@|(^|\s)(host|hostaddr|user|password|dbname|service)\s*=`)

// readOnly reports whether a folder cannot be written, or not be made.
func readOnly(dir string) bool {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, "try-*"); err == nil {
			_ = f.Close() // nothing was written
			_ = os.Remove(f.Name())
			return false
		}
	}
	// Of a folder that was to be made: a part of its path, as /proc, takes none.
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
}

// openStore opens the database, and what remembers for clients that keep nothing.
func (a *App) openStore(ctx context.Context) (continuity.Store, error) {
	s := a.Settings
	bounds := continuity.Bounds{
		Bytes: s.Limits.Get(config.ContinuityBytes), Entries: s.Limits.Int(config.ContinuityCount), Age: s.Limits.Duration(config.ContinuityAge),
	}
	var err error
	if a.Store, a.StoreWarning, err = OpenStore(ctx, s, a.logger); err != nil {
		return nil, err
	}
	if a.Store == nil {
		return continuity.NewMemory(bounds, time.Now), nil
	}
	a.continuity = a.Store.NewContinuity(bounds)
	return a.continuity, nil
}

// closeStore is the last thing to be closed: turns write until they end.
func (a *App) closeStore() {
	if a.continuity != nil {
		a.continuity.Close()
	}
	if a.Store == nil {
		return
	}
	if err := a.Store.Close(); err != nil {
		a.logger.Error("database not closed", "error", err)
	}
}

// Session names the durable conversation of an id, made with its first turn; nil where
// nothing is kept. origin is the surface that the conversation is on.
func (a *App) Session(id, origin string) gateway.Journal {
	if a.Store == nil {
		return nil
	}
	return durable{db: a.Store, id: id, created: journal.SessionCreated{Origin: origin}, logger: a.logger}
}

// NewSessionID makes an id of a session.
func (a *App) NewSessionID() string { return "ses_" + a.host.NewID() }

// durable is a conversation in the database.
type durable struct {
	db      *store.DB
	id      string
	created journal.SessionCreated
	// there: the session was made before. If it is not there any more it was removed.
	there  bool
	logger *slog.Logger
}

// begin makes the session, if it is not there.
func (d durable) begin(ctx context.Context) error {
	_, err := d.db.CreateSession(ctx, access.FromContext(ctx).Tenant, d.id, journal.Draft{Data: d.created})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// Open takes the session for one turn.
func (d durable) Open(ctx context.Context) (journal.Log, journal.Position, func(context.Context), error) {
	l := d.db.Log(access.FromContext(ctx).Tenant, d.id)
	h, err := l.Hold(ctx)
	if errors.Is(err, store.ErrNoSession) && !d.there {
		if err = d.begin(ctx); err == nil {
			h, err = l.Hold(ctx)
		}
	}
	if errors.Is(err, store.ErrNoSession) {
		e := fault.New(fault.NotFound, "the session %s was removed", d.id)
		e.Detail = "session_not_found"
		return nil, journal.Position{}, nil, e
	}
	if errors.Is(err, store.ErrHeld) {
		e := fault.New(fault.Conflict, "the session %s is still answering: wait until its turn has ended", d.id)
		e.Detail = "session_busy"
		return nil, journal.Position{}, nil, e
	}
	if err != nil {
		return nil, journal.Position{}, nil, err
	}
	return l, h.At, func(ctx context.Context) {
		if err := h.Release(ctx); err != nil {
			d.logger.WarnContext(ctx, "session stays in use for a while", "session", d.id, "error", err)
		}
	}, nil
}

// webJournals keep the sessions of the web stream; nil where nothing is kept.
func (a *App) webJournals() doorweb.Journals {
	if a.Store == nil {
		return nil
	}
	return webJournals{a.Store, a.logger}
}

type webJournals struct {
	db     *store.DB
	logger *slog.Logger
}

// web is the origin of its sessions.
const web = "web"

// Begin makes the journal of a new session.
func (j webJournals) Begin(ctx context.Context, id, owner string) error {
	return j.durable(id, owner).begin(ctx)
}

func (j webJournals) durable(id, owner string) durable {
	return durable{db: j.db, id: id, created: journal.SessionCreated{Owner: owner, Origin: web}, there: true, logger: j.logger}
}

// Has reports whether there is one of the owner's.
func (j webJournals) Has(ctx context.Context, id, owner string) (bool, error) {
	s, err := j.db.Session(ctx, access.FromContext(ctx).Tenant, id)
	if errors.Is(err, store.ErrNoSession) {
		return false, nil
	}
	return err == nil && s.Origin == web && s.Owner == owner, err
}

// Journal is what a session's turns are written to.
func (j webJournals) Journal(id, owner string) gateway.Journal { return j.durable(id, owner) }

// Remove removes one for ever.
func (j webJournals) Remove(ctx context.Context, id string) error {
	return j.db.DeleteSession(ctx, access.FromContext(ctx).Tenant, id)
}

// Conversation is what was said in a session, along its active path, hidden rounds
// included: what a model can be asked to go on from. It fails with [fault.NotFound].
func (a *App) Conversation(ctx context.Context, tenant, id string) ([]llm.Message, error) {
	if a.Store == nil {
		return nil, fault.New(fault.Unavailable, "sessions are not kept here: name a database with --db")
	}
	var s turn.State
	for e, err := range a.Store.Log(tenant, id).Read(ctx, 0) {
		if err != nil {
			return nil, noSession(id, err)
		}
		s = s.Apply(e)
	}
	return answered(s.Path().Messages()), nil
}

// answered is a conversation up to the last call that has its answer. A turn that was cut
// off in the middle of its calls leaves a message that no model takes.
func answered(messages []llm.Message) []llm.Message {
	at := len(messages) - 1
	for at >= 0 && messages[at].Role == llm.Tool {
		at--
	}
	if at >= 0 && len(messages[at].Calls) > len(messages)-1-at {
		return messages[:at]
	}
	return messages
}

func noSession(id string, err error) error {
	if !errors.Is(err, store.ErrNoSession) {
		return err
	}
	e := fault.New(fault.NotFound, "there is no session %q: metier sessions list shows those that there are", id)
	e.Detail = "session_not_found"
	return e
}

// settleMany is how many sessions are settled at once.
const settleMany = 100

// Settle ends the turns of processes that are gone, now and then until ctx ends. It begins
// with what else they have left.
func (a *App) Settle(ctx context.Context) {
	if a.Store == nil {
		return
	}
	if n, err := a.Store.Sweep(ctx); err != nil && ctx.Err() == nil {
		a.logger.WarnContext(ctx, "blobs that nothing refers to stay", "error", err)
	} else if n > 0 {
		a.logger.InfoContext(ctx, "removed blobs that nothing refers to", "blobs", n)
	}
	tick := time.NewTicker(a.Settings.Limits.Duration(config.SessionHold))
	defer tick.Stop()
	for {
		if open, err := a.settle(ctx); err != nil && ctx.Err() == nil {
			a.logger.WarnContext(ctx, "turns of processes that are gone stay open", "turns", open, "first", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// settle counts the turns that stay open, and returns why the first one does.
func (a *App) settle(ctx context.Context) (open int, first error) {
	for last := (store.Session{}); ; {
		found, err := a.Store.Orphans(ctx, last, settleMany)
		if err != nil || len(found) == 0 {
			return open, errors.Join(first, err)
		}
		for _, last = range found {
			if err := a.settleOne(ctx, last); err != nil {
				if open++; first == nil {
					first = fmt.Errorf("session %s: %w", last.ID, err)
				}
			}
		}
	}
}

// settleOne ends a turn that nobody runs. Another process may be quicker, also to remove
// the session.
func (a *App) settleOne(ctx context.Context, s store.Session) (err error) {
	l := a.Store.Log(s.Tenant, s.ID)
	h, err := l.Hold(ctx)
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrNoSession) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Release(ctx)) }()
	var state turn.State
	for e, err := range l.Read(ctx, 0) {
		if err != nil {
			return err
		}
		state = state.Apply(e)
	}
	drafts := gateway.Abandon(state)
	if len(drafts) == 0 {
		return nil
	}
	if _, err = l.Append(ctx, h.At, drafts...); err != nil {
		return err
	}
	a.logger.InfoContext(ctx, "ended a turn whose process is gone", "session", s.ID, "turn", cmp.Or(state.TurnID(), "?"))
	return nil
}

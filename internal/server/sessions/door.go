// Package sessions is the operator's door to the durable sessions (/api/admin/sessions):
// the list, one session with its tree, its events, and a stream of those that come.
//
// It only reads, and only for callers who may: it shows what people said to models. It
// drives no turn.
//
// Start at [New].
package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/store"
)

// Prefix is where the sessions are.
const Prefix = "/api/admin/sessions"

// Options set up a [Door].
type Options struct {
	// Store is the database; nil where nothing is kept.
	Store *store.DB
	// Open lets callers in without a key: a server of one machine that was told so.
	Open   bool
	Limits config.Values
	Logger *slog.Logger
}

// Door answers the routes of sessions.
type Door struct {
	options   Options
	keepAlive time.Duration
}

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door { return &Door{options: o, keepAlive: o.Limits.Duration(config.KeepAlive)} }

// Routes are those of B2 18.4.
func (d *Door) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Prefix:                         d.admin(d.list),
		"GET " + Prefix + "/{id}":               d.admin(d.show),
		"GET " + Prefix + "/{id}/events":        d.admin(d.events),
		"GET " + Prefix + "/{id}/events/stream": d.admin(d.stream),
	}
}

// Owns claims the prefix and what is below it.
func (d *Door) Owns(r *http.Request) bool {
	return r.URL.Path == Prefix || strings.HasPrefix(r.URL.Path, Prefix+"/")
}

// Refuse writes an error as the server's own routes do.
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.From(err)
	if e.Code == fault.Internal || e.Err != nil && e.Code == fault.Unavailable {
		d.options.Logger.ErrorContext(r.Context(), "sessions request failed", "path", r.URL.Path, "error", err)
	}
	server.WriteJSON(w, e.Code.Status(), map[string]string{"error": strings.ToValidUTF8(e.Message, "\uFFFD")})
}

// handler answers a request or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// admin lets through who may see the sessions of their tenant.
func (d *Door) admin(next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := d.may(access.FromContext(r.Context()))
		if err == nil {
			err = next(w, r)
		}
		if err != nil {
			d.Refuse(w, r, err)
		}
	})
}

func (d *Door) may(c access.Caller) error {
	switch {
	case c.ID == "" && !d.options.Open:
		return fault.New(fault.Unauthenticated, "sessions are shown to keys with admin = true: make a key with metier keys new NAME, or start with --no-auth on a machine that is yours alone")
	case c.ID != "" && !c.Admin:
		return fault.New(fault.Forbidden, "the key %q may not see sessions: it needs admin = true in its section", c.ID)
	case d.options.Store == nil:
		return fault.New(fault.Unavailable, "this server keeps no sessions: start it with --db")
	}
	return nil
}

// Row is a session in a list.
type Row struct {
	SessionID string `json:"session_id"`
	Seq       int64  `json:"seq"`
	journal.Summary
}

// Page is a list of sessions.
type Page struct {
	Sessions []Row `json:"sessions"`
	// NextCursor is where the next page begins; empty when there is none.
	NextCursor string `json:"next_cursor,omitzero"`
}

// List reads a page of sessions. What the query says wrongly is [fault.Invalid].
func List(ctx context.Context, db *store.DB, q store.Query) (Page, error) {
	found, next, err := db.Sessions(ctx, q)
	if err != nil {
		return Page{}, err
	}
	p := Page{Sessions: make([]Row, len(found)), NextCursor: next}
	for i, s := range found {
		p.Sessions[i] = Row{SessionID: s.ID, Seq: s.Seq, Summary: s.Summary}
	}
	return p, nil
}

// ParseStatus reads the status that sessions of a list must have; empty is any. The error
// says what there is to give.
func ParseStatus(text string) (journal.Status, error) {
	switch s := journal.Status(text); s {
	case "", journal.Idle, journal.Running, journal.Waiting, journal.Ended:
		return s, nil
	}
	return "", errors.New("give idle, running, waiting or ended")
}

func (d *Door) list(w http.ResponseWriter, r *http.Request) error {
	limit, err := d.limit(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	status, err := ParseStatus(query.Get("status"))
	if err != nil {
		return badQuery("status", query.Get("status"), err.Error())
	}
	page, err := List(r.Context(), d.options.Store, store.Query{
		Tenant: access.FromContext(r.Context()).Tenant, Agent: query.Get("agent_id"), Status: status,
		Limit: limit, Cursor: query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, page)
	return nil
}

// limit is how many rows are asked for.
func (d *Door) limit(r *http.Request) (int, error) {
	row := d.options.Limits.Int(config.SessionPage)
	text := r.URL.Query().Get("limit")
	if text == "" {
		return row, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badQuery("limit", text, "give a number from 1")
	}
	return min(n, d.options.Limits.Int(config.SessionRows)), nil
}

func badQuery(name, value, what string) error {
	e := fault.New(fault.Invalid, "%s=%.80q: %s", name, value, what)
	e.Param = name
	return e
}

func (d *Door) show(w http.ResponseWriter, r *http.Request) error {
	s, err := Show(r.Context(), d.options.Store, access.FromContext(r.Context()).Tenant, r.PathValue("id"))
	if err != nil {
		return notFound(err)
	}
	server.WriteJSON(w, http.StatusOK, s)
	return nil
}

// notFound makes a session that is not there the client's error.
func notFound(err error) error {
	if !errors.Is(err, store.ErrNoSession) {
		return err
	}
	e := fault.Wrap(err, fault.NotFound, "there is no such session")
	e.Detail = "session_not_found"
	return e
}

// Package web is the door of the web stream: chat as a stream of small frames
// (/api/chat), the sessions that its conversations live in, uploads to them, and the
// list of models (B1 17.2 to 17.6).
//
// A session holds one conversation's workspace and nothing else that its client does
// not send. The door holds no loop, no skills logic and no page: what a browser shows is
// made elsewhere.
//
// Start at [New] and [NewSessions].
package web

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/skill"
)

// Options set up a [Door].
type Options struct {
	Gateway *gateway.Gateway
	// Sessions are those of the process: who made them closes them.
	Sessions *Sessions
	// Skills gives what is there now; nil when skills are turned off.
	Skills func() *skill.Snapshot
	// Scripts: those of skills may run. Installs: packages may be installed for commands.
	Scripts, Installs bool
	Limits            config.Values
	Now               func() time.Time
	Logger            *slog.Logger
}

// Door answers the routes of the web stream.
type Door struct {
	options   Options
	keepAlive time.Duration
	bounds    codec.Bounds
}

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door {
	return &Door{
		options: o, keepAlive: o.Limits.Duration(config.KeepAlive),
		bounds: codec.NewBounds(o.Limits),
	}
}

// Routes are those of DESIGN section 6 but for the page itself.
func (d *Door) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /api/chat":            http.HandlerFunc(d.chat),
		"GET /api/models":           http.HandlerFunc(d.models),
		"POST /api/sessions":        http.HandlerFunc(d.begin),
		"DELETE /api/sessions/{id}": http.HandlerFunc(d.end),
		"POST /api/upload":          http.HandlerFunc(d.upload),
	}
}

// Owns claims the door's own paths.
func (d *Door) Owns(r *http.Request) bool {
	switch r.URL.Path {
	case "/api/chat", "/api/models", "/api/sessions", "/api/upload":
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/api/sessions/")
}

// Refuse writes an error as the server's own routes do (seed 1, "HTTP - managing
// skills").
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	refuse(w, r, err, d.options.Logger)
}

// ownerOf is who sends a request: what tells callers apart, and whose files are what
// they make.
func ownerOf(r *http.Request) owner {
	c := access.FromContext(r.Context())
	return owner{caller: c.Tenant + "/" + gateway.Owner(c, r.Header), files: artifact.Owner(c.Tenant, c.ID)}
}

func (d *Door) begin(w http.ResponseWriter, r *http.Request) {
	id, err := d.options.Sessions.begin(r.Context(), ownerOf(r))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteJSON(w, http.StatusCreated, map[string]string{"sessionId": id})
}

func (d *Door) end(w http.ResponseWriter, r *http.Request) {
	if err := d.options.Sessions.end(r.Context(), ownerOf(r), r.PathValue("id")); err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteJSON(w, http.StatusOK, map[string]bool{"removed": true})
}

// listing is the answer of /api/models. A block that is null is one that this server
// does not have (seed 1, "The Web UI").
type listing struct {
	Models []model      `json:"models"`
	Skills *skillsBlock `json:"skills"`
	Code   *codeBlock   `json:"code"`
}

type model struct {
	ID string `json:"id"`
}

type skillsBlock struct {
	Enabled      bool `json:"enabled"`
	Installable  bool `json:"installable"`
	AllowScripts bool `json:"allowScripts"`
	Count        int  `json:"count"`
}

type codeBlock struct {
	Enabled bool `json:"enabled"`
	Install bool `json:"install"`
}

func (d *Door) models(w http.ResponseWriter, r *http.Request) {
	models, err := d.options.Gateway.Models(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	var l listing
	for _, m := range models {
		l.Models = append(l.Models, model{m.ID})
	}
	if s := d.options.Skills(); s != nil {
		l.Skills = &skillsBlock{Enabled: true, AllowScripts: d.options.Scripts, Count: len(s.Skills())}
	}
	if d.options.Sessions.code != nil {
		l.Code = &codeBlock{Enabled: true, Install: d.options.Installs}
	}
	server.WriteJSON(w, http.StatusOK, l)
}

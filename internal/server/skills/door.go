// Package skills is the door to the skills themselves: the list for the web UI
// with what did not load (/api/skills), one bundled file as text, a rescan, and
// the list in the shape of OpenAI's API (/v1/skills).
//
// It reads one snapshot a request, installs and deletes nothing, and shows no
// path of the host but to the operator's own machine (see [Options.ShowPaths]).
// It writes its own errors under both prefixes; what the server refuses below
// /v1 stays with the OpenAI door.
//
// Start at [New].
package skills

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/skill"
)

// Registry is where the skills come from.
type Registry interface {
	// Snapshot is the view that is in force; never nil.
	Snapshot() *skill.Snapshot
	// Rescan reads the roots again and gives the new view, which is then in force.
	// When it fails the old one stays.
	Rescan(ctx context.Context) (*skill.Snapshot, error)
}

// Options set up a [Door].
type Options struct {
	// Registry is nil when skills are turned off.
	Registry Registry
	// Roots are the directories that are scanned, in order of precedence.
	Roots []string
	// Installable: skills can be uploaded. AllowScripts: a skill's scripts may run.
	// Discovery: skills that a request did not name are told to the model.
	Installable, AllowScripts, Discovery bool
	// ShowPaths shows roots and the directories of what did not load. It is for
	// servers that only their own machine reaches: elsewhere the host's paths are
	// nobody's business, and errors are told by the folder's name.
	ShowPaths bool
	// MaxView is how many bytes of a bundled file one request shows; 0 is a page
	// of skills_read.
	MaxView int64
	Logger  *slog.Logger
}

// Door answers the routes of skills.
type Door struct{ options Options }

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door {
	var v config.Values
	o.MaxView = cmp.Or(o.MaxView, v.Get(config.PageSize))
	return &Door{options: o}
}

// The prefixes, each with its own shape of errors (seed 1, "HTTP - managing
// skills").
const (
	apiPrefix = "/api/skills"
	v1Prefix  = "/v1/"
)

// Routes are those of DESIGN section 6 but for upload and deletion.
func (d *Door) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /api/skills":                        http.HandlerFunc(d.list),
		"POST /api/skills/rescan":                http.HandlerFunc(d.rescan),
		"GET /api/skills/{name}":                 http.HandlerFunc(d.one),
		"GET /api/skills/{name}/files/{path...}": http.HandlerFunc(d.file),
		"GET /v1/skills":                         http.HandlerFunc(d.page),
		"GET /v1/skills/{name}":                  http.HandlerFunc(d.instructions),
	}
}

// Owns claims /api/skills and what is below it. Errors of the server below /v1
// are the OpenAI door's.
func (d *Door) Owns(r *http.Request) bool {
	return r.URL.Path == apiPrefix || strings.HasPrefix(r.URL.Path, apiPrefix+"/")
}

// Refuse writes an error in the shape of its prefix.
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.From(err)
	if e.Code == fault.Internal {
		d.options.Logger.ErrorContext(r.Context(), "skills request failed", "path", r.URL.Path, "error", err)
	}
	if strings.HasPrefix(r.URL.Path, v1Prefix) {
		server.WriteJSON(w, e.Code.Status(), openAIError{Error: openAIDetail{
			Message: e.Message, Type: errorType(e.Code), Param: orNull(e.Param), Code: orNull(e.Detail),
		}})
		return
	}
	server.WriteJSON(w, e.Code.Status(), map[string]string{"error": e.Message})
}

// openAIError always has all four keys, which SDKs read.
type openAIError struct {
	Error openAIDetail `json:"error"`
}

type openAIDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func errorType(c fault.Code) string {
	if c.Status() >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Listing is the answer of /api/skills.
type Listing struct {
	Enabled      bool        `json:"enabled"`
	Installable  bool        `json:"installable"`
	AllowScripts bool        `json:"allowScripts"`
	Discovery    bool        `json:"discovery"`
	Roots        []string    `json:"roots"`
	Skills       []Object    `json:"skills"`
	Errors       []LoadError `json:"errors"`
}

// LoadError is a folder that looked like a skill and did not load.
type LoadError struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

func (d *Door) list(w http.ResponseWriter, _ *http.Request) {
	if d.options.Registry == nil {
		server.WriteJSON(w, http.StatusOK, Listing{})
		return
	}
	server.WriteJSON(w, http.StatusOK, d.listing(d.options.Registry.Snapshot()))
}

func (d *Door) listing(s *skill.Snapshot) Listing {
	l := Listing{
		Enabled: true, Installable: d.options.Installable, AllowScripts: d.options.AllowScripts, Discovery: d.options.Discovery,
	}
	if d.options.ShowPaths {
		l.Roots = d.options.Roots
	}
	for _, k := range s.Skills() {
		l.Skills = append(l.Skills, Describe(k))
	}
	for _, e := range s.Errors() {
		l.Errors = append(l.Errors, d.loadError(e))
	}
	for _, dir := range s.Pending() {
		l.Errors = append(l.Errors, LoadError{Path: d.shown(dir), Message: "it was being written when it was read, so it stays as it was: rescan when that is done"})
	}
	return l
}

func (d *Door) rescan(w http.ResponseWriter, r *http.Request) {
	if d.options.Registry == nil {
		d.Refuse(w, r, turnedOff())
		return
	}
	s, err := d.options.Registry.Rescan(r.Context())
	if err != nil {
		d.options.Logger.WarnContext(r.Context(), "rescan failed", "error", err)
		d.Refuse(w, r, d.rescanError(err))
		return
	}
	server.WriteJSON(w, http.StatusOK, d.listing(s))
}

func (d *Door) rescanError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if d.options.ShowPaths {
		return fault.Wrap(err, fault.Unavailable, "the skills could not be read again, and those read before stay in use: %v", err)
	}
	return fault.Wrap(err, fault.Unavailable, "the skills could not be read again, and those read before stay in use; the server's log has the reason")
}

func (d *Door) one(w http.ResponseWriter, r *http.Request) {
	k, err := d.find(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteJSON(w, http.StatusOK, Describe(k))
}

// find looks up the skill that the path names.
func (d *Door) find(r *http.Request) (skill.Skill, error) {
	if d.options.Registry == nil {
		return skill.Skill{}, turnedOff()
	}
	name := r.PathValue("name")
	k, ok := d.options.Registry.Snapshot().Find(name)
	if !ok {
		e := fault.New(fault.NotFound, "there is no skill %q here: GET /api/skills or /v1/skills lists those there are", name)
		e.Param, e.Detail = "skill_id", "skill_not_found"
		return skill.Skill{}, e
	}
	return k, nil
}

func turnedOff() error {
	e := fault.New(fault.NotFound, "skills are turned off on this server (--no-skills)")
	e.Detail = "skills_disabled"
	return e
}

func (d *Door) instructions(w http.ResponseWriter, r *http.Request) {
	k, err := d.find(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	body, err := k.Body(r.Context())
	if err != nil {
		d.Refuse(w, r, d.readError(r, err))
		return
	}
	server.WriteJSON(w, http.StatusOK, Instructions{Object: Describe(k), Text: body})
}

// Page is a list as OpenAI's API and its SDKs have it.
type Page struct {
	Object  string   `json:"object"`
	Data    []Object `json:"data"`
	FirstID *string  `json:"first_id"`
	LastID  *string  `json:"last_id"`
	HasMore bool     `json:"has_more"`
}

// page lists by name. Without a limit it lists everything, so that a plain GET
// hides no skill. "after" need not be there any more: the list goes on behind
// where it would stand.
func (d *Door) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := limitOf(q.Get("limit"))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	order := cmp.Or(q.Get("order"), "asc")
	if order != "asc" && order != "desc" {
		d.Refuse(w, r, badParam("order", "order %q is not known: give asc or desc", order))
		return
	}
	var found []skill.Skill
	if d.options.Registry != nil {
		found = d.options.Registry.Snapshot().Skills()
	}
	if order == "desc" {
		slices.Reverse(found)
	}
	if after := strings.ToLower(strings.TrimSpace(q.Get("after"))); after != "" {
		found = slices.DeleteFunc(found, func(k skill.Skill) bool {
			return k.Name == after || (k.Name < after) == (order == "asc")
		})
	}
	p := Page{Object: "list"}
	if limit >= 0 && len(found) > limit {
		found, p.HasMore = found[:limit], true
	}
	for _, k := range found {
		p.Data = append(p.Data, Describe(k))
	}
	if n := len(p.Data); n > 0 {
		p.FirstID, p.LastID = &p.Data[0].ID, &p.Data[n-1].ID
	}
	server.WriteJSON(w, http.StatusOK, p)
}

// limitOf is -1 when there is no limit.
func limitOf(s string) (int, error) {
	if s == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, badParam("limit", "limit %q is not a whole number from 0: give how many skills to list", s)
	}
	return n, nil
}

func badParam(name, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param = name
	return e
}

// Package artifacts is the door to the files that launches have written
// (/api/code/artifacts): a list of a run's files, and each file as a download.
//
// What it serves was written by a model or a script, so a browser is never made
// to show it: every file is an attachment of a harmless type in a sandbox of its
// own. A run of somebody else is answered like one that is not there. The door
// keeps and removes nothing.
//
// Start at [New].
package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/workspace/artifact"
)

// Prefix is where runs are; see [artifact.URL].
const Prefix = "/api/code/artifacts"

// Store is where the files come from. Both calls fail with [artifact.ErrNotFound],
// and Open with a [*guard.PathError].
type Store interface {
	List(owner, runID string) (artifact.Run, error)
	Open(owner, runID, path string) (*os.File, artifact.File, error)
}

// Options set up a [Door].
type Options struct {
	// Store is nil when nothing may run, so that nothing is kept.
	Store  Store
	Logger *slog.Logger
}

// Door answers the routes of artifacts.
type Door struct{ options Options }

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door { return &Door{options: o} }

// Routes are those of DESIGN section 6. They take HEAD as well.
func (d *Door) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Prefix + "/{run}":           http.HandlerFunc(d.list),
		"GET " + Prefix + "/{run}/{path...}": http.HandlerFunc(d.file),
	}
}

// Owns claims the prefix and what is below it.
func (d *Door) Owns(r *http.Request) bool {
	return r.URL.Path == Prefix || strings.HasPrefix(r.URL.Path, Prefix+"/")
}

// Refuse writes an error as the server's own routes do (B1 14.4).
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.From(err)
	if e.Code == fault.Internal {
		d.options.Logger.ErrorContext(r.Context(), "artifacts request failed", "path", r.URL.Path, "error", err)
	}
	// The server's own texts name the path as it was sent, which may be any bytes.
	server.WriteJSON(w, e.Code.Status(), map[string]string{"error": strings.ToValidUTF8(e.Message, "\uFFFD")})
}

// Listing is a run.
type Listing struct {
	RunID string `json:"runId"`
	Files []File `json:"files"`
}

// File is a file of a run. URL is where this server has it, without a host.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"`
}

func (d *Door) list(w http.ResponseWriter, r *http.Request) {
	if d.options.Store == nil {
		d.Refuse(w, r, turnedOff())
		return
	}
	run, err := d.options.Store.List(owner(r), r.PathValue("run"))
	if err != nil {
		d.Refuse(w, r, refusal(err))
		return
	}
	l := Listing{RunID: run.ID}
	for _, f := range run.Files {
		l.Files = append(l.Files, File{Path: f.Path, Bytes: f.Bytes, URL: artifact.URL(Prefix, run.ID, f.Path)})
	}
	w.Header().Set("Cache-Control", cacheControl)
	server.WriteJSON(w, http.StatusOK, l)
}

// cacheControl keeps what a caller's launch wrote out of caches: it may be
// anything, and a cache does not ask for the key.
const cacheControl = "private, no-store"

func (d *Door) file(w http.ResponseWriter, r *http.Request) {
	if d.options.Store == nil {
		d.Refuse(w, r, turnedOff())
		return
	}
	if r.PathValue("path") == "" { // the listing with a "/" behind it
		d.list(w, r)
		return
	}
	runID := r.PathValue("run")
	f, file, err := d.options.Store.Open(owner(r), runID, r.PathValue("path"))
	if err != nil {
		d.Refuse(w, r, refusal(err))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		d.Refuse(w, r, refusal(err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType(file.Path))
	h.Set("Content-Disposition", `attachment; filename="`+downloadName(file.Path)+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", cacheControl)
	h.Set("ETag", etag(runID, file.Path))
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// etag is a strong one: a copy never changes, and no other run has the id.
func etag(runID, name string) string {
	sum := sha256.Sum256([]byte(name))
	return `"` + runID + "-" + hex.EncodeToString(sum[:8]) + `"`
}

// owner is who asks, as whoever captures must name it too.
func owner(r *http.Request) string {
	c := access.FromContext(r.Context())
	return artifact.Owner(c.Tenant, c.ID)
}

func turnedOff() error {
	e := fault.New(fault.NotFound, "this server keeps no files, because nothing may run on it: start it with --skills-allow-exec")
	e.Detail = "artifacts_disabled"
	return e
}

// refusal sorts what a caller named wrongly from a failure of the host, which is
// told to the log only.
func refusal(err error) error {
	if errors.Is(err, artifact.ErrNotFound) {
		e := fault.New(fault.NotFound, "%v", artifact.ErrNotFound)
		e.Detail = "artifact_not_found"
		return e
	}
	if bad, ok := errors.AsType[*guard.PathError](err); ok {
		e := fault.Wrap(err, fault.Invalid, "%v", bad)
		e.Param = "path"
		return e
	}
	return fault.Wrap(err, fault.Internal, "the file could not be read; the server's log has the cause under this request's id")
}

// downloadName is the name under which a browser saves a file: what is no letter,
// digit, ".", "-" or "_" is left out, and if that leaves nothing before the
// extension, it is "download" (B1 14.5). It neither hides the file nor looks like
// an option.
func downloadName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return -1
	}, path.Base(name))
	ext := path.Ext(safe)
	stem := strings.TrimLeft(strings.TrimSuffix(safe, ext), ".-")
	if strings.Trim(stem, "._-") == "" {
		stem = "download"
	}
	return strings.TrimRight(stem+ext, ".")
}

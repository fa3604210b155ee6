package skills

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/skill"
)

// The headers of a bundled file. A file is shown up to [Options.MaxView] bytes at
// a time, and the cut is told: NextHeader is the offset at which "?offset=" goes
// on, and is missing when nothing follows. TotalHeader is the size of the file.
const (
	NextHeader  = "X-Metier-Next-Offset"
	TotalHeader = "X-Metier-Total-Bytes"
)

// file shows a bundled file as plain text that no browser takes for a page.
func (d *Door) file(w http.ResponseWriter, r *http.Request) {
	k, err := d.find(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	offset, err := offsetOf(r.URL.Query().Get("offset"))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	page, err := k.Read(r.Context(), r.PathValue("path"), offset, d.options.MaxView)
	switch {
	case err != nil:
		d.Refuse(w, r, d.readError(r, err))
		return
	case page.Binary:
		d.Refuse(w, r, fault.New(fault.Unsupported, "%s is not text (%d bytes) and is not shown", page.Path, page.Total))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(TotalHeader, strconv.FormatInt(page.Total, 10))
	if page.More() {
		h.Set(NextHeader, strconv.FormatInt(page.Next, 10))
	}
	h.Set("Content-Length", strconv.Itoa(len(page.Text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(page.Text)) // a client that is gone needs nothing more
}

func offsetOf(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, badParam("offset", "offset %q is not a whole number: give the byte to start from", s)
	}
	return n, nil
}

// readError sorts what a caller named wrongly from a failure of the host, which
// is told to the log only.
func (d *Door) readError(r *http.Request, err error) error {
	e, ok := errors.AsType[*skill.ReadError](err)
	if !ok {
		if r.Context().Err() != nil {
			return r.Context().Err()
		}
		return fault.Wrap(err, fault.Internal, "the skill could not be read; the server's log has the cause under this request's id")
	}
	code := fault.Invalid
	if errors.Is(e, skill.ErrNoFile) {
		code = fault.NotFound
	}
	return fault.Wrap(err, code, "%s", e.Message)
}

package responses

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/wire"
)

// get gives a response as it stands, or streams the events of one that is worked on in the
// background.
func (d *Door) get(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kept, j, err := d.find(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	if q.Get("stream") != "true" {
		server.WriteBody(w, http.StatusOK, kept.Body)
		return
	}
	number := int64(-1)
	if text := q.Get("starting_after"); text != "" {
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 0 {
			d.Refuse(w, r, invalid("starting_after", `"starting_after" must be the number of an event`))
			return
		}
	}
	if j == nil {
		e := invalid("stream", "the events of this response are not here any more, or never were: only those of one that is worked on in the background are kept for a while; fetch it without stream")
		e.Detail = "events_not_found"
		d.Refuse(w, r, e)
		return
	}
	d.follow(w, r, j, number)
}

// find is the response that a request names, as it stands, and the work on it if that is
// done here.
func (d *Door) find(r *http.Request) (store.Response, *job, error) {
	ctx, owner, id := r.Context(), ownerOf(r.Context(), r.Header), r.PathValue("id")
	j := d.work.find(key{owner, id})
	found, ok, err := d.store.GetResponse(ctx, owner, id)
	if err != nil {
		return found, nil, err
	}
	if !ok {
		return found, nil, noResponse(id)
	}
	if j != nil {
		found.Body = j.stands()
		return found, j, nil
	}
	if !atWork(found.Status) {
		return found, nil, nil
	}
	found, err = d.abandoned(ctx, owner.Tenant, found, r)
	return found, nil, err
}

func atWork(status string) bool { return status == queued || status == inProgress }

// lostText is what a client is told of a response whose process ended in the middle of it.
const lostText = "the process that worked on the response ended in the middle of it: ask again"

// abandoned is a response that is said to be worked on, but not here. If nobody works on
// it, it has failed, and is kept so. One that was only just begun may have no session yet.
func (d *Door) abandoned(ctx context.Context, tenant string, found store.Response, r *http.Request) (store.Response, error) {
	if age := d.options.Now().Sub(found.CreatedAt); found.Session != "" && age < d.options.Limits.Duration(config.SessionHold) {
		return found, nil
	}
	if found.Session != "" && d.options.Held != nil {
		held, err := d.options.Held(ctx, tenant, found.Session)
		if err != nil || held {
			return found, err
		}
	}
	told := append(appendText(appendText([]byte{'{'}, "code", "server_error"), "message", lostText), '}')
	found.Body = wire.Set(wire.Set(found.Body, "status", []byte(`"`+failed+`"`)), "error", told)
	found.Status = failed
	return found, d.store.PutResponse(context.WithoutCancel(ctx), ownerOf(ctx, r.Header), found)
}

// remove removes a response; one that is worked on is cancelled before.
func (d *Door) remove(w http.ResponseWriter, r *http.Request) {
	owner, id := ownerOf(r.Context(), r.Header), r.PathValue("id")
	if j := d.work.find(key{owner, id}); j != nil {
		if err := j.stop(r.Context()); err != nil {
			d.Refuse(w, r, err)
			return
		}
		d.work.forget(j.key)
	}
	gone, err := d.store.DeleteResponse(r.Context(), owner, id)
	if err == nil && !gone {
		err = noResponse(id)
	}
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	out := appendText(appendText([]byte{'{'}, "id", id), "object", "response.deleted")
	server.WriteBody(w, http.StatusOK, append(appendFlag(out, "deleted", true), '}'))
}

// stop cancels a job and waits until it has ended.
func (j *job) stop(ctx context.Context) error {
	j.cancel(errCancelled)
	select {
	case <-j.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cancel ends the work on a response. One that has ended already stays as it is.
func (d *Door) cancel(w http.ResponseWriter, r *http.Request) {
	found, j, err := d.find(r)
	switch {
	case err != nil:
	case string(wire.Member(found.Body, "background")) != "true":
		err = invalid("", "only a response that is worked on in the background can be cancelled: close the connection of another one")
	case j != nil:
		if err = j.stop(r.Context()); err == nil {
			found.Body = j.stands()
		}
	case atWork(found.Status):
		err = fault.New(fault.Conflict, "another process works on the response: cancel it there")
	}
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, found.Body)
}

// The page of a list, as the vendor has it.
const (
	pageSize = 20
	pageMost = 100
)

// inputItems lists the items of a response's input, the last first.
func (d *Door) inputItems(w http.ResponseWriter, r *http.Request) {
	owner, id := ownerOf(r.Context(), r.Header), r.PathValue("id")
	found, ok, err := d.store.GetResponse(r.Context(), owner, id)
	if err == nil && !ok {
		err = noResponse(id)
	}
	var body []byte
	if err == nil {
		q := r.URL.Query()
		body, err = page(elements(found.Input), q.Get("order"), q.Get("limit"), q.Get("after"))
	}
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, body)
}

// page is a page of a list, behind the item of the given id.
func page(items []jsontext.Value, order, limit, after string) ([]byte, error) {
	most := pageSize
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > pageMost {
			return nil, invalid("limit", `"limit" must be a whole number from 1 to %d`, pageMost)
		}
		most = n
	}
	switch order {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
	default:
		return nil, invalid("order", `"order" must be asc or desc`)
	}
	idOf := func(v jsontext.Value) string { id, _ := wire.String(wire.Member(v, "id")); return id }
	if after != "" {
		i := slices.IndexFunc(items, func(v jsontext.Value) bool { return idOf(v) == after })
		if i < 0 {
			return nil, invalid("after", `"after" names no item of this list: %.80q`, after)
		}
		items = items[i+1:]
	}
	more := len(items) > most
	items = items[:min(len(items), most)]
	out := appendMember(appendText([]byte{'{'}, "object", "list"), "data", array(items))
	for _, end := range []string{"first_id", "last_id"} {
		switch {
		case len(items) == 0:
			out = appendMember(out, end, []byte("null"))
		case end == "first_id":
			out = appendText(out, end, idOf(items[0]))
		default:
			out = appendText(out, end, idOf(items[len(items)-1]))
		}
	}
	return append(appendFlag(out, "has_more", more), '}'), nil
}

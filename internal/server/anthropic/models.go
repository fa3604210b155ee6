package anthropic

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// How many models a page lists when the client does not say, and at most, as the vendor
// has it.
const (
	pageSize    = 20
	largestPage = 1000
)

func (d *Door) models(w http.ResponseWriter, r *http.Request) {
	d.name(w, r)
	models, err := d.options.Gateway.Models(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	page, more, err := pageOf(models, r.URL.Query())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	out := []byte(`{"data":[`)
	for i, m := range page {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendModel(out, m)
	}
	out = append(out, `],"has_more":`...)
	out = strconv.AppendBool(out, more)
	out = append(out, `,"first_id":`...)
	out = appendID(out, page, 0)
	out = append(out, `,"last_id":`...)
	out = appendID(out, page, len(page)-1)
	server.WriteBody(w, http.StatusOK, append(out, '}'))
}

func (d *Door) model(w http.ResponseWriter, r *http.Request) {
	d.name(w, r)
	models, err := d.options.Gateway.Models(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	id := r.PathValue("id")
	at := indexOf(models, id)
	if at < 0 {
		d.Refuse(w, r, fault.New(fault.NotFound, "there is no model %q here: GET /v1/models lists those there are", id))
		return
	}
	server.WriteBody(w, http.StatusOK, appendModel(nil, models[at]))
}

func indexOf(models []llm.Model, id string) int {
	return slices.IndexFunc(models, func(m llm.Model) bool { return m.ID == id })
}

// pageOf is the part of a list that the query asks for, and whether the list goes on in
// the direction that it is read in.
func pageOf(models []llm.Model, q url.Values) (page []llm.Model, more bool, err error) {
	limit := pageSize
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > largestPage {
			return nil, false, invalid("limit", fmt.Sprintf(`"limit" must be a whole number from 1 to %d`, largestPage))
		}
	}
	after, before := q.Get("after_id"), q.Get("before_id")
	if after != "" && before != "" {
		return nil, false, invalid("before_id", `"after_id" and "before_id" cannot be used together: leave one out`)
	}
	if before != "" {
		end := indexOf(models, before)
		if end < 0 {
			return nil, false, noCursor("before_id", before)
		}
		begin := max(0, end-limit)
		return models[begin:end], begin > 0, nil
	}
	begin := 0
	if after != "" {
		if begin = indexOf(models, after) + 1; begin == 0 {
			return nil, false, noCursor("after_id", after)
		}
	}
	end := min(len(models), begin+limit)
	return models[begin:end], end < len(models), nil
}

func noCursor(name, id string) error {
	return invalid(name, fmt.Sprintf("%q names no model of the list: %.80q", name, id))
}

// appendModel writes an entry of the list. The time of a model's release is mostly not
// known; then it is the beginning of the epoch, as the vendor has it.
func appendModel(dst []byte, m llm.Model) []byte {
	if m.Raw.Is(llm.Anthropic) {
		return append(dst, m.Raw.Bytes...)
	}
	name, _ := wire.String(wire.Member(m.Raw.Bytes, "name"))
	if name == "" {
		name = m.ID
	}
	created, err := strconv.ParseInt(string(wire.Member(m.Raw.Bytes, "created")), 10, 32)
	if err != nil {
		created = 0
	}
	dst = append(dst, `{"type":"model","id":`...)
	dst = wire.AppendString(dst, m.ID)
	dst = append(dst, `,"display_name":`...)
	dst = wire.AppendString(dst, name)
	dst = append(dst, `,"created_at":"`...)
	dst = time.Unix(created, 0).UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `"}`...)
}

func appendID(dst []byte, models []llm.Model, at int) []byte {
	if at < 0 || at >= len(models) {
		return append(dst, "null"...)
	}
	return wire.AppendString(dst, models[at].ID)
}

package ollama

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

func (d *Door) tags(w http.ResponseWriter, r *http.Request) {
	models, err := d.options.Gateway.Models(r.Context())
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	out := []byte(`{"models":[`)
	for i, m := range models {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendModel(out, m)
	}
	server.WriteBody(w, http.StatusOK, append(out, "]}"...))
}

// unknown are the details of a model whose upstream tells none.
const unknown = `{"parent_model":"","format":"","family":"","families":null,"parameter_size":"","quantization_level":""}`

// epoch stands where nobody knows when a model changed.
const epoch = "1970-01-01T00:00:00Z"

func appendModel(dst []byte, m llm.Model) []byte {
	if m.Raw.Is(llm.Ollama) {
		return append(dst, m.Raw.Bytes...)
	}
	dst = append(dst, `{"name":`...)
	dst = wire.AppendString(dst, m.ID)
	dst = append(dst, `,"model":`...)
	dst = wire.AppendString(dst, m.ID)
	return append(dst, `,"modified_at":"`+epoch+`","size":0,"digest":"","details":`+unknown+`}`...)
}

// loaded lists no model: which ones the upstream has in memory it does not say.
func (d *Door) loaded(w http.ResponseWriter, _ *http.Request) {
	server.WriteBody(w, http.StatusOK, []byte(`{"models":[]}`))
}

// apiVersion is the version of Ollama whose API the door speaks; clients look at it before
// they use what is newer.
const apiVersion = "0.17.4"

func (d *Door) version(w http.ResponseWriter, _ *http.Request) {
	server.WriteBody(w, http.StatusOK, []byte(`{"version":"`+apiVersion+`"}`))
}

// show tells what a model can carry.
func (d *Door) show(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	if err := wire.Check(body); err != nil {
		d.Refuse(w, r, invalid("", "the body is not valid JSON: "+err.Error()))
		return
	}
	name, _ := wire.String(wire.Member(body, "model"))
	if old, _ := wire.String(wire.Member(body, "name")); name == "" {
		name = old
	}
	if name == "" {
		d.Refuse(w, r, invalid("model", `"model" is missing: name one that GET /api/tags lists`))
		return
	}
	found, err := d.find(r, name)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	caps, err := d.options.Gateway.Capabilities(r.Context(), found.ID)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteBody(w, http.StatusOK, shown(found, caps))
}

// find is the model of a name, with or without the tag that Ollama supposes.
func (d *Door) find(r *http.Request, name string) (llm.Model, error) {
	models, err := d.options.Gateway.Models(r.Context())
	if err != nil {
		return llm.Model{}, err
	}
	const latest = ":latest"
	for _, m := range models {
		if m.ID == name || strings.TrimSuffix(m.ID, latest) == strings.TrimSuffix(name, latest) {
			return m, nil
		}
	}
	return llm.Model{}, fault.New(fault.NotFound, "model %q not found: GET /api/tags lists those there are", name)
}

// shown is a model as /api/show has it.
func shown(m llm.Model, caps llm.Capabilities) []byte {
	details := wire.Member(m.Raw.Bytes, "details")
	if details.Kind() != '{' {
		details = jsontext.Value(unknown)
	}
	out := []byte(`{"modelfile":"","parameters":"","template":"","details":`)
	out = append(out, details...)
	// Clients look for the window under the name of the architecture.
	out = append(out, `,"model_info":{"general.architecture":"metier"`...)
	if caps.Context > 0 {
		out = strconv.AppendInt(append(out, `,"metier.context_length":`...), int64(caps.Context), 10)
	}
	out = append(out, `},"capabilities":["completion"`...)
	if caps.Tools() {
		out = append(out, `,"tools"`...)
	}
	return append(out, `],"modified_at":"`+epoch+`"}`...)
}

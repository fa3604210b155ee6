package scripted

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

// Kind is a server whose probes a [Handler] imitates. The chat route is the same
// for all.
type Kind string

// The kinds.
const (
	OpenAI   Kind = "openai"
	LlamaCPP Kind = "llamacpp"
	Ollama   Kind = "ollama"
	LMStudio Kind = "lmstudio"
	VLLM     Kind = "vllm"
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{OpenAI, LlamaCPP, Ollama, LMStudio, VLLM} }

func (k Kind) known() bool { return slices.Contains(Kinds(), k) }

// owner is what the kind writes as the owner of a model.
func (k Kind) owner() string {
	switch k {
	case LlamaCPP:
		return "llamacpp"
	case Ollama:
		return "library"
	case LMStudio:
		return "organization_owner"
	case VLLM:
		return "vllm"
	}
	return "system"
}

// created is the time that listed models claim: the first second of 2026.
const created = 1767225600

type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	State   string `json:"state,omitzero"`
}

type modelList struct {
	Object string       `json:"object"`
	Data   []modelEntry `json:"data"`
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", h.chat)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, h.models("")) })
	mux.HandleFunc("GET /v1/models/{id}", h.model)
	mux.HandleFunc("/", h.unknown)
	switch h.options.Kind {
	case OpenAI:
		fixed(mux, "GET /health", `{"status":"ok"}`)
	case LlamaCPP:
		fixed(mux, "GET /health", `{"status":"ok"}`)
		fixed(mux, "GET /v1/health", `{"status":"ok"}`)
		fixed(mux, "GET /props", `{"default_generation_settings":{"n_ctx":8192},"total_slots":4,"model_path":"scripted.gguf",`+
			`"chat_template":"{{ messages }}","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true},"build_info":"b0-scripted"}`)
	case Ollama:
		fixed(mux, "GET /api/version", `{"version":"0.0.0"}`)
		mux.HandleFunc("GET /api/tags", h.tags)
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("Ollama is running")) })
	case LMStudio:
		mux.HandleFunc("GET /api/v0/models", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, h.models("loaded")) })
	case VLLM:
		mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
		fixed(mux, "GET /version", `{"version":"0.0.0"}`)
	}
	return mux
}

func (h *Handler) models(state string) modelList {
	list := modelList{Object: "list", Data: []modelEntry{}}
	for _, name := range h.names {
		list.Data = append(list.Data, modelEntry{ID: name, Object: "model", Created: created, OwnedBy: h.options.Kind.owner(), State: state})
	}
	return list
}

func (h *Handler) model(w http.ResponseWriter, r *http.Request) {
	for _, m := range h.models("").Data {
		if m.ID == r.PathValue("id") {
			answer(w, http.StatusOK, m)
			return
		}
	}
	refuse(w, http.StatusNotFound, "model_not_found", "no scenario is called "+r.PathValue("id"))
}

func (h *Handler) tags(w http.ResponseWriter, _ *http.Request) {
	type tag struct {
		Name  string `json:"name"`
		Model string `json:"model"`
	}
	list := struct {
		Models []tag `json:"models"`
	}{Models: []tag{}}
	for _, name := range h.names {
		list.Models = append(list.Models, tag{Name: name, Model: name})
	}
	answer(w, http.StatusOK, list)
}

// unknown answers what the kind has no route for. LM Studio says 200 to that,
// which a prober must not be taken in by.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	if h.options.Kind == LMStudio {
		answer(w, http.StatusOK, map[string]string{"error": "Unexpected endpoint or method. (" + r.Method + " " + r.URL.Path + ")"})
		return
	}
	refuse(w, http.StatusNotFound, "not_found", "no route "+r.Method+" "+r.URL.Path)
}

func fixed(mux *http.ServeMux, pattern, body string) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body)) // a client that is gone needs no answer
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone needs no answer
}

// refuse answers with an error object of the dialect.
func refuse(w http.ResponseWriter, status int, code, message string) {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	answer(w, status, struct {
		Error object `json:"error"`
	}{object{Message: "scripted upstream: " + message, Type: "invalid_request_error", Code: code}})
}

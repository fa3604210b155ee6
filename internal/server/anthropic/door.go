// Package anthropic is the door for clients of the Anthropic API: Messages, the
// counting of tokens, and the model list.
//
// It decodes a request, hands it to the gateway, and encodes the signals that come back
// as one well-formed message over all rounds. It holds no loop, no skills logic and no
// provider logic.
//
// Start at [New].
package anthropic

import (
	"net/http"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/server"
)

// Options set up a [Door].
type Options struct {
	Gateway *gateway.Gateway
	Limits  config.Values
	Now     func() time.Time
	NewID   func() string
}

// Door answers the Anthropic routes.
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

// prefix is the door's own: below it every path is this dialect's.
const prefix = "/anthropic"

// Routes are those of DESIGN section 6.
func (d *Door) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"HEAD /api/hello":               http.HandlerFunc(d.hello),
		"HEAD " + prefix:                http.HandlerFunc(d.hello),
		"HEAD " + prefix + "/{$}":       http.HandlerFunc(d.hello),
		"HEAD " + prefix + "/api/hello": http.HandlerFunc(d.hello),
	}
	// A base URL with one /v1 too few or too many is the most common slip of all.
	for _, base := range []string{"/v1", "", "/v1/v1", prefix + "/v1", prefix} {
		routes["POST "+base+"/messages"] = http.HandlerFunc(d.messages)
		routes["POST "+base+"/messages/count_tokens"] = http.HandlerFunc(d.count)
		routes["GET "+base+"/models"] = http.HandlerFunc(d.models)
		routes["GET "+base+"/models/{id...}"] = http.HandlerFunc(d.model)
	}
	return routes
}

// Owns claims what the vendor's paths and headers tell apart: everything below the door's
// prefix, messages, and what else is sent to the vendors' paths with a header that only
// this one has.
func (d *Door) Owns(r *http.Request) bool {
	if below(r.URL.Path) {
		return true
	}
	path, versioned := r.URL.Path, false
	for isOrBelow(path, "/v1") {
		path, versioned = path[len("/v1"):], true
	}
	switch {
	case isOrBelow(path, "/messages"):
		return true
	case !versioned && !shared(path):
		return false
	}
	h := r.Header
	if h.Get(versionHeader) != "" || h.Get("Anthropic-Beta") != "" {
		return true
	}
	if !shared(path) {
		return false
	}
	bearer := len(h.Get("Authorization")) >= len("Bearer ") && strings.EqualFold(h.Get("Authorization")[:len("Bearer ")], "Bearer ")
	return h.Get("X-Api-Key") != "" && !bearer || r.URL.Query().Get("beta") == "true" && h.Get("Openai-Beta") == ""
}

// below reports whether a path is below the door's own prefix.
func below(path string) bool { return isOrBelow(path, prefix) }

func isOrBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// shared reports whether both vendors have a path.
func shared(path string) bool {
	return isOrBelow(path, "/models") || isOrBelow(path, "/skills") || isOrBelow(path, "/files")
}

// hello answers clients that knock before they send anything.
func (d *Door) hello(w http.ResponseWriter, r *http.Request) {
	d.name(w, r)
	w.WriteHeader(http.StatusOK)
}

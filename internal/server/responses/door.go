// Package responses is the door for clients of OpenAI's Responses API: responses that are
// answered at once, streamed or worked on in the background, that are kept and gone on
// from, and the same over a WebSocket.
//
// It decodes a request into one of Chat Completions, hands it to the gateway, and encodes
// the signals that come back as the items and events of one response over all rounds. It
// holds no loop, no skills logic and no provider logic. What the dialect has and no upstream
// can be told of is named in a warning.
//
// Start at [New].
package responses

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
)

// Options set up a [Door].
type Options struct {
	Gateway *gateway.Gateway
	// Store keeps responses; nil keeps them in memory, as long as the door.
	Store Store
	// Journal names the durable conversation that a background response is worked on in,
	// by the id of its session; nil, or what it returns nil for, has none.
	Journal func(session string) gateway.Journal
	// Held reports whether some process has a session for writing. With nil none has: what
	// is not worked on here is worked on by nobody.
	Held   func(ctx context.Context, tenant, session string) (bool, error)
	Limits config.Values
	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger
}

// Door answers the routes of responses. Close it.
type Door struct {
	options   Options
	store     Store
	keepAlive time.Duration
	bounds    codec.Bounds
	work      *background
	sockets   *sockets
}

var _ server.Door = (*Door)(nil)

// New makes the door.
func New(o Options) *Door {
	d := &Door{
		options: o, store: o.Store, keepAlive: o.Limits.Duration(config.KeepAlive),
		bounds: codec.NewBounds(o.Limits), work: newBackground(o.Limits), sockets: newSockets(),
	}
	if d.store == nil {
		d.store = newMemory(o.Limits, o.Now)
	}
	return d
}

// Close ends what is worked on in the background, and the WebSockets, and returns when all
// have ended. Nothing new begins.
func (d *Door) Close() {
	d.work.close()
	d.sockets.close()
}

// Routes are those of DESIGN section 6.
func (d *Door) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	// A base URL without its /v1 is the most common slip of all.
	for _, base := range []string{"/v1", ""} {
		routes["POST "+base+"/responses"] = http.HandlerFunc(d.create)
		routes["GET "+base+"/responses"] = http.HandlerFunc(d.socket)
		routes["GET "+base+"/responses/{id}"] = http.HandlerFunc(d.get)
		routes["DELETE "+base+"/responses/{id}"] = http.HandlerFunc(d.remove)
		routes["GET "+base+"/responses/{id}/input_items"] = http.HandlerFunc(d.inputItems)
		routes["POST "+base+"/responses/{id}/cancel"] = http.HandlerFunc(d.cancel)
	}
	return routes
}

// Owns claims the door's own paths.
func (d *Door) Owns(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	return path == "/responses" || strings.HasPrefix(path, "/responses/")
}

// passing is the part of a client's header that an upstream may see.
func passing(h http.Header) http.Header { return server.Passing(openai.PassHeader(h), h) }

// ownerOf is whose the responses of a request are: a key's, or that of the upstream's
// account that the client brings.
func ownerOf(ctx context.Context, h http.Header) continuity.Owner {
	caller := access.FromContext(ctx)
	return continuity.Owner{Tenant: caller.Tenant, Key: gateway.Owner(caller, passing(h))}
}

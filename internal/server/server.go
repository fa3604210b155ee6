// Package server is the HTTP house that all doors stand in: request ids, the
// guard of a loopback server, bounded bodies, health, streams with keep-alives,
// and stopping without cutting what is open.
//
// It holds no dialect and no loop: doors live in its children and hand turns to
// the gateway.
//
// Start at [New] and [Door].
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// Door serves one dialect.
type Door interface {
	// Routes maps patterns of [http.ServeMux] to what answers them.
	Routes() map[string]http.Handler
	// Refuse writes an error in the door's dialect.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
	// Owns reports whether a request is this door's to refuse where nothing answers it,
	// and to answer where another door has the same route: vendors share paths, and what
	// tells them apart is in the header. The first door of [Options.Doors] that owns it
	// wins. It does not read the body.
	Owns(r *http.Request) bool
}

// Options set up a [Server].
type Options struct {
	Doors  []Door
	Limits config.Values
	Logger *slog.Logger
	NewID  func() string
	// Version is told by /healthz.
	Version string
	// Loopback refuses Host and Origin headers that are not of this machine, so
	// that no web page can use a server that asks for no key.
	Loopback bool
}

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	options  Options
	handler  http.Handler
	draining atomic.Bool
}

// New makes a server; [Server.Serve] starts it.
func New(o Options) *Server {
	s := &Server{options: o}
	mux := http.NewServeMux()
	for pattern, h := range routes(o.Doors) {
		mux.Handle(pattern, h)
	}
	mux.HandleFunc("GET /{$}", s.root)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	s.handler = s.identify(s.tellRefusals(s.protect(s.guardHost(s.bound(s.fallback(mux))))))
	return s
}

// routes are those of all doors. What several have goes to the one that owns a request,
// and if none does to the last.
func routes(doors []Door) map[string]http.Handler {
	all := map[string]http.Handler{}
	for _, d := range slices.Backward(doors) {
		for pattern, h := range d.Routes() {
			if other := all[pattern]; other != nil {
				h = either(d, h, other)
			}
			all[pattern] = h
		}
	}
	return all
}

func either(d Door, own, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.Owns(r) {
			own.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// headerTime bounds how long a client may take to send its header.
const headerTime = 30 * time.Second

// Serve answers on l until ctx ends. Then it takes no new connection, gives
// open streams the drain time, cancels the ones that are still there, and
// returns when all have ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	open, cut := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx))
	defer cut(nil)
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		BaseContext:       func(net.Listener) context.Context { return open },
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return s.drain(h, cut, failed)
}

type stoppingKey struct{}

// Watching is the context of a request that only watches: it ends with the request, and
// when the server begins to stop, which then need not wait for it.
func Watching(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	serving, ok := r.Context().Value(stoppingKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	release := context.AfterFunc(serving, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

func (s *Server) drain(h *http.Server, cut context.CancelCauseFunc, failed <-chan error) error {
	s.draining.Store(true)
	grace := s.options.Limits.Duration(config.Drain)
	s.options.Logger.Info("stopping", "grace", grace)
	// The server's own context is over; the grace is what is left.
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := h.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		stopping := fault.New(fault.Unavailable, "the server is stopping")
		stopping.Detail = "server_stopping"
		cut(stopping)
		last, cancel := context.WithTimeout(context.Background(), headerTime)
		defer cancel()
		err = h.Shutdown(last)
	}
	<-failed // http.ErrServerClosed, at once
	return err
}

// root tells a person, or a client that knocks, where they are.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A client that is gone is noticed by its request's context.
	_, _ = fmt.Fprintf(w, "metier %[1]s\nPoint an OpenAI client at http://%[2]s/v1,\nan Anthropic client at http://%[2]s, an Ollama client at http://%[2]s/ollama.\n", s.options.Version, r.Host)
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": s.options.Version})
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "stopping"})
		return
	}
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// fallback gives 404 and 405 the shape of the door that owns the path.
func (s *Server) fallback(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		// The mux knows whether another method would do; its text is not ours.
		probe := &statusProbe{header: http.Header{}}
		mux.ServeHTTP(probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			s.refuse(w, r, fault.New(fault.Method, "%s does not take %s: use %s", r.URL.Path, r.Method, allow))
			return
		}
		s.refuse(w, r, fault.New(fault.NotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	})
}

// statusProbe takes an answer that nobody sees.
type statusProbe struct{ header http.Header }

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }
func (p *statusProbe) WriteHeader(int)             {}

// refuse writes an error in the dialect of the path (seed 1, "HTTP - managing
// skills": each prefix has its own convention).
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	for _, d := range s.options.Doors {
		if d.Owns(r) {
			d.Refuse(w, r, err)
			return
		}
	}
	e := fault.From(err)
	WriteJSON(w, e.Code.Status(), map[string]string{"error": e.Message})
}

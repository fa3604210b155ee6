package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/telemetry"
)

// RequestIDHeader carries a request's id both ways. The OpenAI SDKs show it.
const RequestIDHeader = "X-Request-Id"

// identify gives every request an id: the client's, if it sent a fit one.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(RequestIDHeader)
		if !fitID(id) {
			id = "req_" + s.options.NewID()
		}
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(telemetry.WithRequestID(r.Context(), id)))
	})
}

// longestID is what fits in a log line and in an index.
const longestID = 128

// fitID reports whether an id from outside may be logged and stored.
func fitID(id string) bool {
	if id == "" || len(id) > longestID {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == ""
}

// protect keeps one request's panic from taking the others down.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.options.Logger.ErrorContext(r.Context(), "panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			// When the answer has begun this does nothing but cut it.
			s.refuse(w, r, fmt.Errorf("panic: %v", p))
			panic(http.ErrAbortHandler)
		}()
		next.ServeHTTP(w, r)
	})
}

// guardHost keeps web pages away from a loopback server: by name (DNS
// rebinding shows a foreign Host) and by Origin.
func (s *Server) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Loopback && !loopbackName(r.Host) {
			s.refuse(w, r, fault.New(fault.Forbidden, "this server answers on this machine only, and the request's Host is %q: use http://127.0.0.1, or start it with --host", r.Host))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !s.allowedOrigin(origin, r.Host) {
			s.refuse(w, r, fault.New(fault.Forbidden, "requests of web pages from %q are refused", origin))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowedOrigin allows the server's own pages, and on a loopback server those
// of other local ports.
func (s *Server) allowedOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" too: a page that hides where it is from
	}
	return strings.EqualFold(u.Host, host) || (s.options.Loopback && loopbackName(u.Host))
}

func loopbackName(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// bound refuses bodies above the limit while they are read, and those that take
// too long.
func (s *Server) bound(next http.Handler) http.Handler {
	most, longest := s.options.Limits.Get(config.RequestBody), s.options.Limits.Duration(config.RequestTime)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			// A writer without deadlines has no connection that could be held.
			_ = control.SetReadDeadline(time.Now().Add(longest))
			r.Body = &timedBody{http.MaxBytesReader(w, r.Body, most), control}
		}
		next.ServeHTTP(w, r)
	})
}

// WriteJSON writes a small object. It may quote what a client sent, so bytes that
// are no text are replaced.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	WriteBody(w, status, body)
}

// WriteBody writes bytes that are JSON already.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that is gone is noticed by its request's context.
	_, _ = w.Write(body)
}

package server

import (
	"log/slog"
	"net/http"
)

// tellRefusals logs what was answered with an error and what it said, so that an
// operator sees why a client fails, or that somebody tries keys. Turns have a
// line of their own.
func (s *Server) tellRefusals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &refusal{ResponseWriter: w}
		next.ServeHTTP(seen, r)
		if seen.status < http.StatusBadRequest {
			return
		}
		s.options.Logger.LogAttrs(r.Context(), slog.LevelInfo, "refused",
			slog.Int("status", seen.status), slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("from", r.RemoteAddr), slog.String("said", string(seen.said)))
	})
}

// saidSize is how much of an error's body is logged.
const saidSize = 300

// refusal keeps the beginning of an answer that is an error. It is a writer that
// can be flushed and unwrapped like the one it stands for.
type refusal struct {
	http.ResponseWriter
	status int
	said   []byte
}

func (r *refusal) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *refusal) Write(b []byte) (int, error) {
	if r.status >= http.StatusBadRequest && len(r.said) < saidSize {
		r.said = append(r.said, b[:min(len(b), saidSize-len(r.said))]...)
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] flush: without it streams are silent.
func (r *refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

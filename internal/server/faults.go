package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
)

// FaultOf gives every error of a turn a text that its reader can act on. An error with a
// method Fault says it itself.
func FaultOf(err error) *fault.Error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	var own interface{ Fault() *fault.Error }
	if errors.As(err, &own) {
		return own.Fault()
	}
	if e, ok := errors.AsType[*llm.StreamError](err); ok {
		f := fault.Wrap(err, fault.Upstream, "the upstream's answer broke: %s", e.Message)
		f.Detail = e.Detail
		return f
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		f := fault.Wrap(err, fault.Upstream, "the upstream refused the request: %s", e.Message)
		if seconds, err := strconv.Atoi(e.Header.Get("Retry-After")); err == nil {
			f.RetryAfter = time.Duration(seconds) * time.Second
		}
		return f
	}
	return fault.From(err)
}

// TellRetry writes the header that says when to come again, if the error says it.
func TellRetry(w http.ResponseWriter, e *fault.Error) {
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}

// StatusOf is an error's status. That of an upstream's own refusal is kept, if it is one
// of an error.
func StatusOf(err error) int {
	if s, ok := errors.AsType[*llm.StatusError](err); ok && s.Status >= http.StatusBadRequest && s.Status <= 599 {
		return s.Status
	}
	return FaultOf(err).Code.Status()
}

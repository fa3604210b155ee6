package web

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
)

func refuse(w http.ResponseWriter, r *http.Request, err error, logger *slog.Logger) {
	e := faultOf(err)
	if e.Code == fault.Internal {
		logger.ErrorContext(r.Context(), "web request failed", "path", r.URL.Path, "error", err)
	}
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	server.WriteJSON(w, statusOf(err, e), map[string]string{"error": strings.ToValidUTF8(e.Message, "\uFFFD")})
}

// statusOf keeps the status of an upstream's own refusal, if it is one of an error.
func statusOf(err error, e *fault.Error) int {
	if s, ok := errors.AsType[*llm.StatusError](err); ok && s.Status >= http.StatusBadRequest && s.Status <= 599 {
		return s.Status
	}
	return e.Code.Status()
}

// faultOf gives every error of a turn a text that its reader can act on.
func faultOf(err error) *fault.Error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*openai.DecodeError](err); ok {
		return &fault.Error{Code: fault.Invalid, Message: e.Message, Param: e.Param, Detail: e.Detail, Err: err}
	}
	if e, ok := errors.AsType[*llm.StreamError](err); ok {
		return fault.Wrap(err, fault.Upstream, "the upstream's answer broke: %s", e.Message)
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

// invalid is a 400 about one member of the body.
func invalid(param, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param = param
	return e
}

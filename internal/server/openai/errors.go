package openai

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// Refuse writes an error as this dialect has it. What an upstream of the same
// dialect answered keeps its body, and its status if that is one of an error.
func (d *Door) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		refuseUpstream(w, e)
		return
	}
	e := faultOf(err)
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	server.WriteBody(w, e.Code.Status(), errorBody(e))
}

func refuseUpstream(w http.ResponseWriter, e *llm.StatusError) {
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	if e.Dialect == llm.OpenAIChat {
		server.WriteBody(w, refusalStatus(e.Status), e.Body)
		return
	}
	f := fault.New(fault.Upstream, "the upstream refused the request: %s", e.Message)
	server.WriteBody(w, refusalStatus(e.Status), errorBody(f))
}

// refusalStatus keeps an upstream's status if it is one of an error.
func refusalStatus(status int) int {
	if status < http.StatusBadRequest || status > 599 {
		return http.StatusBadGateway
	}
	return status
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
		broke := fault.Wrap(err, fault.Upstream, "the upstream's answer broke: %s", e.Message)
		broke.Detail = e.Detail
		return broke
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		return fault.Wrap(err, fault.Upstream, "the upstream refused the request: %s", e.Message)
	}
	return fault.From(err)
}

// errorBody is the error object; all four keys are always there.
func errorBody(e *fault.Error) []byte {
	out := []byte(`{"error":{"message":`)
	out = wire.AppendString(out, e.Message)
	out = append(out, `,"type":`...)
	out = wire.AppendString(out, errorType(e.Code))
	out = append(out, `,"param":`...)
	out = appendOrNull(out, e.Param)
	out = append(out, `,"code":`...)
	code := e.Detail
	if code == "" && e.Code != fault.Invalid {
		code = string(e.Code)
	}
	out = appendOrNull(out, code)
	return append(out, "}}"...)
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return wire.AppendString(dst, s)
}

func errorType(c fault.Code) string {
	switch c {
	case fault.Unauthenticated:
		return "authentication_error"
	case fault.Forbidden:
		return "permission_error"
	case fault.Busy:
		return "rate_limit_error"
	}
	if c.Status() >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}

// streamError is the body of an error inside a stream: the upstream's own event
// where there is one.
func streamError(err error) []byte {
	if e, ok := errors.AsType[*llm.StreamError](err); ok && len(e.Raw) > 0 {
		return e.Raw
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok && e.Dialect == llm.OpenAIChat {
		return e.Body
	}
	return errorBody(faultOf(err))
}

package openai

import (
	"errors"
	"net/http"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
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
	e := server.FaultOf(err)
	server.TellRetry(w, e)
	server.WriteBody(w, e.Code.Status(), errorBody(e))
}

func refuseUpstream(w http.ResponseWriter, e *llm.StatusError) {
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	body := e.Body
	if e.Dialect != llm.OpenAIChat {
		body = errorBody(server.FaultOf(e))
	}
	server.WriteBody(w, server.StatusOf(e), body)
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
	return errorBody(server.FaultOf(err))
}

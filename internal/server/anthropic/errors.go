package anthropic

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/telemetry"
	"github.com/metier-run/metier/internal/wire"
)

// requestID is the vendor's header of a request's id; its SDKs show it.
const requestID = "Request-Id"

// name tells the id of a request as the vendor does, beside the server's own header.
func (d *Door) name(w http.ResponseWriter, r *http.Request) {
	if id := telemetry.RequestID(r.Context()); id != "" {
		w.Header().Set(requestID, id)
	}
}

// Refuse writes an error as this dialect has it. What an upstream of the same dialect
// answered keeps its body, and its status if that is one of an error.
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	d.name(w, r)
	id := telemetry.RequestID(r.Context())
	e, ok := errors.AsType[*llm.StatusError](err)
	if !ok {
		f := server.FaultOf(err)
		server.TellRetry(w, f)
		server.WriteBody(w, statusOf(f.Code), errorBody(f, id))
		return
	}
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	status := server.StatusOf(e)
	if isError(e.Dialect, e.Body) {
		server.WriteBody(w, status, e.Body)
		return
	}
	f := server.FaultOf(e)
	server.WriteBody(w, status, appendError(nil, typeOf(status), f, id))
}

// isError reports whether bytes of an upstream are an error of this dialect.
func isError(dialect llm.Dialect, body []byte) bool {
	if dialect != llm.Anthropic {
		return false
	}
	kind, _ := wire.String(wire.Member(jsontext.Value(body), "type"))
	return kind == "error"
}

// overloaded is the vendor's status of a server that has too much to do.
const overloaded = 529

// statusOf is the status of an error of the host. Where the gate is full the vendor's word
// is that the server is overloaded, and not that the caller asks too often: the
// SDKs come again after either.
func statusOf(c fault.Code) int {
	if c == fault.Busy {
		return overloaded
	}
	return c.Status()
}

// typeOf names what a status of an upstream of another dialect means; the vendor has one type
// for each.
func typeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case overloaded:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

func errorBody(f *fault.Error, id string) []byte {
	return appendError(nil, anthropic.ErrorType(f.Code), f, id)
}

// appendError writes an error object. The finer code stands where the vendor's clients look
// for theirs.
func appendError(dst []byte, kind string, f *fault.Error, id string) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = wire.AppendString(dst, kind)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, f.Message)
	if f.Detail != "" {
		dst = append(dst, `,"details":{"error_code":`...)
		dst = append(wire.AppendString(dst, f.Detail), '}')
	}
	dst = append(dst, `},"request_id":`...)
	if id == "" {
		return append(dst, "null}"...)
	}
	return append(wire.AppendString(dst, id), '}')
}

// streamError is the body of an error inside a stream: the upstream's own event where it
// is one of this dialect.
func streamError(err error, id string) []byte {
	if e, ok := errors.AsType[*llm.StreamError](err); ok && isError(llm.Anthropic, e.Raw) {
		return e.Raw
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		if isError(e.Dialect, e.Body) {
			return e.Body
		}
		return appendError(nil, typeOf(server.StatusOf(e)), server.FaultOf(e), id)
	}
	return errorBody(server.FaultOf(err), id)
}

package openai

import (
	"errors"
	"net/http"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// DetailOverflow is what clients of this dialect know a conversation by that is too long.
const DetailOverflow = "context_length_exceeded"

// Refusal is an error as this dialect tells it; told is how the host has it. What an
// upstream of another dialect refuses has the type that its status means in this one.
func Refusal(err error, told *fault.Error) *fault.Error {
	f := *told
	if e, ok := errors.AsType[*llm.StatusError](err); ok && f.Code == fault.Upstream {
		f.Code, f.Detail = codeOf(e.Status), string(fault.Upstream)
		if e.Overflow != nil {
			f.Detail = DetailOverflow
		}
	}
	if e, ok := errors.AsType[*llm.StreamError](err); ok && e.Overflow != nil {
		f.Detail = DetailOverflow
	}
	return &f
}

func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized:
		return fault.Unauthenticated
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusTooManyRequests:
		return fault.Busy
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return fault.Invalid
	}
	return fault.Upstream
}

// ErrorBody is the body of an error.
func ErrorBody(e *fault.Error) []byte {
	return append(AppendError([]byte(`{"error":`), e), '}')
}

// AppendError writes the error object; all four keys are always there.
func AppendError(dst []byte, e *fault.Error) []byte {
	dst = append(dst, `{"message":`...)
	dst = wire.AppendString(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = wire.AppendString(dst, errorType(e.Code))
	dst = append(dst, `,"param":`...)
	dst = appendOrNull(dst, e.Param)
	dst = append(dst, `,"code":`...)
	code := e.Detail
	if code == "" && e.Code != fault.Invalid {
		code = string(e.Code)
	}
	return append(appendOrNull(dst, code), '}')
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

// Package fault says what went wrong in words that a person can act on, and
// maps that to an HTTP status, a wire code and an exit code in one place.
//
// It never formats a reply: each door gives an [Error] the shape of its own
// dialect. The text of an [Error] may be shown to anybody who made the request;
// the wrapped cause is for the log only.
//
// Start at [Error] and [From].
package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Code classifies an error. It is the vocabulary that statuses, exit codes and
// log lines share.
type Code string

// The codes. Each one's HTTP status is in [Code.Status].
const (
	Invalid         Code = "invalid_request"
	Unauthenticated Code = "unauthenticated"
	Forbidden       Code = "forbidden"
	NotFound        Code = "not_found"
	Conflict        Code = "conflict"
	Method          Code = "method_not_allowed"
	TooLarge        Code = "too_large"
	Unsupported     Code = "unsupported_media_type"
	Busy            Code = "busy"
	Cancelled       Code = "cancelled"
	Internal        Code = "internal"
	Upstream        Code = "upstream_error"
	Unavailable     Code = "unavailable"
	Timeout         Code = "timeout"
)

// statusCancelled is the status that logs show for a client that went away; no
// client ever reads it.
const statusCancelled = 499

// Status is the HTTP status that a door answers with.
func (c Code) Status() int {
	switch c {
	case Invalid:
		return http.StatusBadRequest
	case Unauthenticated:
		return http.StatusUnauthorized
	case Forbidden:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case Conflict:
		return http.StatusConflict
	case Method:
		return http.StatusMethodNotAllowed
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case Unsupported:
		return http.StatusUnsupportedMediaType
	case Busy:
		return http.StatusTooManyRequests
	case Cancelled:
		return statusCancelled
	case Upstream:
		return http.StatusBadGateway
	case Unavailable:
		return http.StatusServiceUnavailable
	case Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// Error is a failure with a text that its reader can act on.
type Error struct {
	Code Code
	// Message names the input and says what to do. It holds no secret and no
	// path of the host that the reader does not already know.
	Message string
	// Param names the field of the request that is at fault, if one is.
	Param string
	// Detail is a finer machine-readable code, such as "skill_not_found".
	Detail string
	// RetryAfter is how long a client should wait; zero says nothing.
	RetryAfter time.Duration
	// Err is the cause, for logs.
	Err error
}

// New makes an [Error] without a cause.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an [Error] that shows its own text and keeps err for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// Error is the text and, where there is one, the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// From finds the [Error] in err's chain. Anything else becomes [Internal] with
// a text that gives nothing away, but for a context that ended.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Wrap(err, Cancelled, "the request was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Wrap(err, Timeout, "the request took longer than it may")
	}
	return Wrap(err, Internal, "something failed inside the server; its log has the cause under this request's id")
}

// Exit codes of the command line (DESIGN section 6).
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// UsageError is a command line that was called wrongly.
type UsageError struct{ Err error }

// Error is the cause's text.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes a [UsageError].
func Usage(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ExitCode is the exit status of a command that ended with err.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage
	}
	return ExitFailed
}

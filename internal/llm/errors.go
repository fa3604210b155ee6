package llm

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// StatusError is an upstream's own refusal. A door of the same dialect hands the
// body and these headers on as they came, and the status if it is an error's.
type StatusError struct {
	// Upstream is the address that refused, for people.
	Upstream string
	Status   int
	// Header holds the headers that a client acts on: Retry-After, rate limits
	// and the upstream's request id.
	Header http.Header
	Body   []byte
	// Dialect is that of Body when it is a well-formed error object.
	Dialect Dialect
	// Message is the upstream's text, or a summary of a body that has none.
	Message string
	// Overflow is set when the conversation did not fit the model's window.
	Overflow *Overflow
}

// Overflow is a conversation that is too long for a model.
type Overflow struct {
	// Limit is the window in tokens; 0 when the upstream did not say.
	Limit int
}

// Error is the status and the upstream's text.
func (e *StatusError) Error() string {
	if e.Upstream == "" {
		return fmt.Sprintf("upstream answered %d: %s", e.Status, e.Message)
	}
	return fmt.Sprintf("upstream %s answered %d: %s", e.Upstream, e.Status, e.Message)
}

// StreamError is an error that an upstream reported inside a stream that had
// begun, or a stream that broke off.
type StreamError struct {
	Message string
	// Raw is the error event, if the upstream sent one.
	Raw jsontext.Value
	// Overflow is set when the conversation did not fit the model's window.
	Overflow *Overflow
	// Detail is the code of the limit that the reply broke, if it is one.
	Detail string
	Err    error
}

// Error is the text and the cause.
func (e *StreamError) Error() string {
	if e.Err == nil {
		return "upstream stream: " + e.Message
	}
	return "upstream stream: " + e.Message + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e *StreamError) Unwrap() error { return e.Err }

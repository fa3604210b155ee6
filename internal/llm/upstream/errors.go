package upstream

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// statusError is an upstream's refusal with what a client acts on. A key of the
// host that the upstream quotes is blotted out: the client has no right to it.
func (c *Client) statusError(res *http.Response, body []byte) *llm.StatusError {
	body = c.key.Scrub(body)
	e := &llm.StatusError{Upstream: c.name, Status: res.StatusCode, Header: http.Header{}, Body: body}
	for name, values := range res.Header {
		if passesBack(name) {
			e.Header[name] = values
		}
	}
	if wire.Lenient(body) {
		if fault := ErrorMember(jsontext.Value(body)); fault != nil {
			e.Message = ErrorText(fault)
			if fault.Kind() == '{' || c.dialect == llm.Ollama {
				e.Dialect = c.dialect
			}
			e.Overflow = tooLong(res.StatusCode, body, e.Message)
			return e
		}
	}
	e.Message = Excerpt(body)
	e.Overflow = tooLong(res.StatusCode, body, e.Message)
	return e
}

// tooLong is an overflow if the status can be one's: a rate limit speaks of
// tokens too.
func tooLong(status int, body []byte, message string) *llm.Overflow {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return OverflowOf(body, message)
	}
	return nil
}

// passesBack reports whether a client acts on a header of an upstream's answer.
// The content type is not among them: a page that an upstream wrote must not
// open as one of ours.
func passesBack(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "x-ratelimit-") || strings.HasPrefix(name, "anthropic-ratelimit-") {
		return true
	}
	return slices.Contains([]string{"retry-after", "retry-after-ms", "x-should-retry", "www-authenticate"}, name)
}

// ErrorMember is what the error member of an answer holds, or nil if that is
// nothing: some servers send an empty one beside every good chunk. All dialects have it.
func ErrorMember(v jsontext.Value) jsontext.Value {
	fault := wire.Member(v, "error")
	if text, ok := wire.Contents(fault); ok && len(text) > 0 {
		return fault
	}
	if c := wire.Object(fault); c.Next() {
		return fault
	}
	return nil
}

// ErrorText is the message of an error member, which is an object or a string.
func ErrorText(v jsontext.Value) string {
	if s, ok := wire.String(v); ok {
		return s
	}
	if s, ok := wire.String(wire.Member(v, "message")); ok {
		return s
	}
	return Excerpt(v)
}

// StreamError is an error that came where a reply was expected; data is the whole event.
func StreamError(data, fault jsontext.Value) *llm.StreamError {
	text := ErrorText(fault)
	return &llm.StreamError{Message: text, Raw: slices.Clone(data), Overflow: OverflowOf(data, text)}
}

// excerptSize is how much of a strange answer an error shows.
const excerptSize = 200

// Excerpt is the beginning of a strange answer, for an error.
func Excerpt(b []byte) string {
	if len(b) <= excerptSize {
		return strconv.Quote(string(b))
	}
	return strconv.Quote(string(b[:excerptSize])) + "…"
}

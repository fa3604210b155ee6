package openai

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// statusError is an upstream's refusal with what a client acts on. A key of the
// host that the upstream quotes is blotted out: the client has no right to it.
func (p *Provider) statusError(res *http.Response, body []byte) *llm.StatusError {
	body = p.key.Scrub(body)
	e := &llm.StatusError{Upstream: p.reachable, Status: res.StatusCode, Header: http.Header{}, Body: body}
	for name, values := range res.Header {
		if passesBack(name) {
			e.Header[name] = values
		}
	}
	if wire.Lenient(body) {
		if fault := errorMember(jsontext.Value(body)); fault != nil {
			e.Message = errorText(fault)
			if fault.Kind() == '{' {
				e.Dialect = llm.OpenAIChat
			}
			e.Overflow = tooLong(res.StatusCode, body, e.Message)
			return e
		}
	}
	e.Message = excerpt(body)
	e.Overflow = tooLong(res.StatusCode, body, e.Message)
	return e
}

// tooLong is an overflow if the status can be one's: a rate limit speaks of
// tokens too.
func tooLong(status int, body []byte, message string) *llm.Overflow {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return overflowOf(body, message)
	}
	return nil
}

// passesBack reports whether a client acts on a header of an upstream's answer.
// The content type is not among them: a page that an upstream wrote must not
// open as one of ours.
func passesBack(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "x-ratelimit-") {
		return true
	}
	return slices.Contains([]string{"retry-after", "retry-after-ms", "x-should-retry", "www-authenticate"}, name)
}

// passesOn lists the headers of a client that an upstream may see: credentials
// (replaced by the upstream's own key where there is one), what routers bill
// and attribute by, and traces.
func passesOn() []string {
	return []string{
		"Authorization", "Openai-Organization", "Openai-Project", "Openai-Beta",
		"Http-Referer", "X-Title", "Idempotency-Key", "Traceparent", "Tracestate",
	}
}

// PassHeader is the part of a client's header that an upstream may see.
func PassHeader(client http.Header) http.Header {
	h := http.Header{}
	for _, name := range passesOn() {
		if v := client.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	return h
}

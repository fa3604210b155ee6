package openai

import "net/http"

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

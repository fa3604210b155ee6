package server_test

import (
	"net/http"
	"testing"

	"github.com/metier-run/metier/internal/server"
)

// TestCredential: a key that a client presents is one, whichever header its SDK uses.
func TestCredential(t *testing.T) {
	for _, c := range []struct{ bearer, key, want string }{
		{"", "", ""},
		{"Bearer a", "", "Bearer a"},
		{"", " a ", "Bearer a"},
		{"Bearer a", "b", "Bearer a"},
	} {
		h := http.Header{}
		if c.bearer != "" {
			h.Set("Authorization", c.bearer)
		}
		if c.key != "" {
			h.Set("x-api-key", c.key)
		}
		if got := server.Credential(h); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
		pass := server.Passing(http.Header{"Traceparent": {"00"}}, h)
		if got := pass.Get("Authorization"); got != c.want || pass.Get("Traceparent") == "" || pass.Get("X-Api-Key") != "" {
			t.Errorf("%+v: passes %v", c, pass)
		}
	}
}

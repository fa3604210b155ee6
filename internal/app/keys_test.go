package app_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm/scripted"
)

const laptop = "sk-metier-laptops-key"

// locked serves an upstream behind one key and gives the upstream's log.
func locked(t *testing.T, own config.Secret, keys ...access.Key) (string, *scripted.Handler) {
	t.Helper()
	h, err := scripted.New(scripted.Options{})
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	url := serve(t, app.Settings{
		Home: t.TempDir(), NoSkills: true, Keys: keys,
		Upstream: app.Upstream{URL: up.URL + "/v1", Type: "openai", Key: own},
	})
	return url, h
}

func send(t *testing.T, method, url string, header map[string]string) (*http.Response, string) {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"model":"hello","messages":[{"role":"user","content":"hi"}]}`)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range header {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// TestKeys: with keys every route of the API needs one, health does not, and a
// key of this server never goes upstream.
func TestKeys(t *testing.T) {
	key := access.Key{ID: "laptop", Hash: access.Hash(config.NewSecret(laptop))}
	url, h := locked(t, config.Secret{}, key)
	for route, method := range map[string]string{"/v1/chat/completions": http.MethodPost, "/v1/models": http.MethodGet, "/v1/models/hello": http.MethodGet} {
		for _, header := range []map[string]string{nil, {"Authorization": "Bearer wrong"}, {"X-Api-Key": "wrong"}} {
			res, body := send(t, method, url+route, header)
			shape := `"error":{"message":`
			if header["X-Api-Key"] != "" && method == http.MethodGet {
				shape = `{"type":"error","error":{"type":"authentication_error",` // a path of both vendors
			}
			if res.StatusCode != http.StatusUnauthorized || res.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, shape) || strings.Contains(body, "wrong") {
				t.Errorf("%s %v: %d %s", route, header, res.StatusCode, body)
			}
		}
		for _, header := range []map[string]string{
			{"Authorization": "Bearer " + laptop},
			{"X-Api-Key": laptop, "Authorization": "Bearer dummy-of-an-sdk"},
		} {
			if res, body := send(t, method, url+route, header); res.StatusCode != http.StatusOK {
				t.Errorf("%s with the key: %d %s", route, res.StatusCode, body)
			}
		}
	}
	for _, route := range []string{"/v1/messages", "/v1/messages/count_tokens", "/anthropic/v1/messages"} {
		if res, body := send(t, http.MethodPost, url+route, map[string]string{"Anthropic-Version": "2023-06-01", "X-Api-Key": "wrong"}); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", route, res.StatusCode, body)
		}
	}
	if res, _ := send(t, http.MethodGet, url+"/healthz", nil); res.StatusCode != http.StatusOK {
		t.Errorf("/healthz without a key: %d", res.StatusCode)
	}
	if n := len(h.Requests()); n != 2 {
		t.Errorf("the upstream was asked %d times, want twice", n)
	}
	for _, r := range h.Requests() {
		for name, v := range r.Header {
			if text := strings.Join(v, " "); strings.Contains(text, laptop) || strings.Contains(text, "dummy") {
				t.Errorf("the upstream saw %s: %s", name, text)
			}
		}
	}
}

// TestWithoutKeys: a client's own key goes upstream when the server has no keys.
func TestWithoutKeys(t *testing.T) {
	url, h := locked(t, config.Secret{})
	if res, body := send(t, http.MethodPost, url+"/v1/chat/completions", map[string]string{"Authorization": "Bearer clients-own"}); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if got := h.Requests()[0].Header.Get("Authorization"); got != "Bearer clients-own" {
		t.Errorf("upstream saw %q", got)
	}
}

// TestUpstreamsKey: the operator's key for the upstream stands in the place of the
// caller's.
func TestUpstreamsKey(t *testing.T) {
	key := access.Key{ID: "laptop", Hash: access.Hash(config.NewSecret(laptop))}
	url, h := locked(t, config.NewSecret("operators"), key)
	if res, body := send(t, http.MethodPost, url+"/v1/chat/completions", map[string]string{"Authorization": "Bearer " + laptop}); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if got := h.Requests()[0].Header.Get("Authorization"); got != "Bearer operators" {
		t.Errorf("upstream saw %q", got)
	}
}

func TestSameKeyTwice(t *testing.T) {
	one := access.Key{ID: "a", Hash: access.Hash(config.NewSecret(laptop))}
	two := one
	two.ID = "b"
	_, err := app.Open(t.Context(), app.Settings{Home: t.TempDir(), NoSkills: true, Keys: []access.Key{one, two}, Upstream: app.Upstream{URL: app.Demo}}, slog.New(slog.DiscardHandler))
	if fault.ExitCode(err) != fault.ExitUsage {
		t.Errorf("Open: %v, want a usage error", err)
	}
}

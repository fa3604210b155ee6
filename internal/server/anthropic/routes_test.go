package anthropic_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	door "github.com/metier-run/metier/internal/server/anthropic"
)

// TestRoutes: every address that a base URL may lead to, what is not there, and who of the
// two doors answers.
func TestRoutes(t *testing.T) {
	r := newRig(t, rigOptions{})
	none := []string{version, ""}
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		want         string
	}{
		{"POST", "/v1/messages", nil, 200, `"type":"message"`},
		{"POST", "/v1/messages?beta=true", nil, 200, `"type":"message"`},
		{"POST", "/messages", nil, 200, `"type":"message"`},
		{"POST", "/v1/v1/messages", nil, 200, `"type":"message"`},
		{"POST", "/anthropic/v1/messages", nil, 200, `"type":"message"`},
		{"POST", "/anthropic/messages", nil, 200, `"type":"message"`},
		{"POST", "/anthropic/v1/messages", none, 200, `"type":"message"`},
		{"POST", "/v1/messages", none, 400, `anthropic-version: the header is required`},
		{"POST", "/v1/messages/count_tokens", none, 400, `anthropic-version: the header is required`},
		{"POST", "/v1/messages", []string{version, "2024-01-01"}, 200, `"type":"message"`},
		{"POST", "/v1/messages/count_tokens", nil, 200, `{"input_tokens":`},
		{"POST", "/anthropic/v1/messages/count_tokens", none, 200, `{"input_tokens":`},

		{"GET", "/v1/models", nil, 200, `"display_name":"hello"`},
		{"GET", "/v1/models", none, 200, `"object":"list"`},
		{"GET", "/v1/models", []string{version, "", "Anthropic-Beta", "x"}, 200, `"has_more"`},
		{"GET", "/v1/models", []string{version, "", "X-Api-Key", "k"}, 200, `"has_more"`},
		{"GET", "/v1/models", []string{version, "", "X-Api-Key", "k", "Authorization", "Bearer k"}, 200, `"object":"list"`},
		{"GET", "/v1/models?beta=true", none, 200, `"has_more"`},
		{"GET", "/v1/models?beta=true", []string{version, "", "Openai-Beta", "x"}, 200, `"object":"list"`},
		{"GET", "/anthropic/v1/models", none, 200, `"has_more"`},
		{"GET", "/models", nil, 200, `"has_more"`},
		{"GET", "/models", none, 200, `"object":"list"`},
		{"GET", "/v1/models/hello", nil, 200, `{"type":"model","id":"hello"`},
		{"GET", "/v1/models/hello", none, 200, `"object":"model"`},
		{"GET", "/v1/models/no/such", nil, 404, `"type":"not_found_error"`},

		{"HEAD", "/", none, 200, ""},
		{"HEAD", "/api/hello", none, 200, ""},
		{"HEAD", "/anthropic", none, 200, ""},
		{"HEAD", "/anthropic/", none, 200, ""},
		{"HEAD", "/anthropic/api/hello", none, 200, ""},

		{"GET", "/v1/messages", none, 405, `"type":"invalid_request_error"`},
		{"POST", "/v1/messages/batches", none, 404, `"type":"not_found_error"`},
		{"GET", "/anthropic/none", none, 404, `"type":"not_found_error"`},
		{"POST", "/v1/complete", nil, 404, `"type":"not_found_error"`},
		{"POST", "/v1/complete", none, 404, `"param":null`},
		{"POST", "/complete", nil, 404, `{"error":"`},
	} {
		res, body := r.send(t, c.method, c.path, request("hello", ""), c.header...)
		if res.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %v: %d %s, want %d with %q", c.method, c.path, c.header, res.StatusCode, body, c.status, c.want)
		}
		if strings.Contains(c.path, "messages") && res.Header.Get("Request-Id") == "" {
			t.Errorf("%s %s: no request id", c.method, c.path)
		}
	}
}

// TestVersions: a version that is not known, or is missing where that is allowed, is said.
func TestVersions(t *testing.T) {
	r := newRig(t, rigOptions{noSkills: true})
	for _, c := range []struct{ path, version, warning string }{
		{"/v1/messages", "2023-06-01", ""},
		{"/v1/messages", "2026-10-21", ""},
		{"/v1/messages", "2027-01-01", `"2027-01-01" is not known: the request is read as of 2026-10-21`},
		{"/anthropic/v1/messages", "", "read as of 2023-06-01"},
	} {
		res, body := r.send(t, http.MethodPost, c.path, request("hello", ""), version, c.version)
		got := strings.Join(res.Header.Values("X-Metier-Warning"), "; ")
		if res.StatusCode != http.StatusOK || (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s %q: %d, warning %q, want %q: %s", c.path, c.version, res.StatusCode, got, c.warning, body)
		}
	}
}

// many is an upstream with so many models.
type many struct {
	llm.Script
	n int
}

func (m *many) Models(context.Context) ([]llm.Model, error) {
	var models []llm.Model
	for i := range m.n {
		models = append(models, llm.Model{ID: fmt.Sprintf("m%02d", i), Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"id":"x","name":"Model X","created":1767225600}`)}})
	}
	return models, nil
}

// TestModelPages: pages of the list as the vendor has them.
func TestModelPages(t *testing.T) {
	r := newRig(t, rigOptions{provider: &many{n: 25}})
	for _, c := range []struct {
		query, first, last string
		n                  int
		more               bool
	}{
		{"", "m00", "m19", 20, true},
		{"?limit=1000", "m00", "m24", 25, false},
		{"?after_id=m19", "m20", "m24", 5, false},
		{"?after_id=m04&limit=3", "m05", "m07", 3, true},
		{"?before_id=m04&limit=3", "m01", "m03", 3, true},
		{"?before_id=m03", "m00", "m02", 3, false},
		{"?after_id=m24", "", "", 0, false},
	} {
		_, body := r.send(t, http.MethodGet, "/v1/models"+c.query, "")
		list := buffered(t, body)
		data := list["data"].([]any)
		first, _ := list["first_id"].(string)
		last, _ := list["last_id"].(string)
		if len(data) != c.n || first != c.first || last != c.last || list["has_more"] != c.more {
			t.Errorf("%s: %d models from %q to %q, more %v", c.query, len(data), first, last, list["has_more"])
		}
		if len(data) > 0 {
			m := data[0].(object)
			if m["id"] != c.first || m["type"] != "model" || m["display_name"] != "Model X" || m["created_at"] != "2026-01-01T00:00:00Z" {
				t.Errorf("%s: the entry is %v", c.query, m)
			}
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?after_id=none", "?before_id=none", "?after_id=m01&before_id=m03"} {
		if res, body := r.send(t, http.MethodGet, "/v1/models"+query, ""); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, res.StatusCode, body)
		}
	}
	own := newRig(t, rigOptions{provider: &vendor{t: t}})
	if _, body := own.send(t, http.MethodGet, "/v1/models/claude-x", ""); !strings.Contains(body, `"max_input_tokens":200000`) {
		t.Errorf("the vendor's entry was changed: %s", body)
	}
}

// TestKeys: a key of the server is taken from either header, and goes nowhere.
func TestKeys(t *testing.T) {
	keys, err := access.New([]access.Key{{ID: "ann", Hash: sha256.Sum256([]byte("k-1")), Skills: []string{"release-notes"}}})
	if err != nil {
		t.Fatal(err)
	}
	v := &vendor{t: t, rounds: [][]string{round(began(1), says(0, "x"), ended("end_turn", 1, 1)), round(began(1), says(0, "x"), ended("end_turn", 1, 1))}}
	r := newRig(t, rigOptions{provider: v, keys: keys})
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"X-Api-Key", "k-1"}, 200},
		{[]string{"Authorization", "Bearer k-1"}, 200},
		{[]string{"X-Api-Key", "k-2"}, 401},
		{nil, 401},
	} {
		res, body := r.post(t, request("claude-x", `,"skills_discovery":false`), c.header...)
		if res.StatusCode != c.status || c.status == 401 && !strings.Contains(body, `"type":"authentication_error"`) {
			t.Errorf("%v: %d %s", c.header, res.StatusCode, body)
		}
	}
	for _, q := range v.sent() {
		if q.Header.Get("Authorization") != "" || q.Header.Get("X-Api-Key") != "" {
			t.Errorf("the server's key went upstream: %v", q.Header)
		}
		if all := fmt.Sprint(q.Messages); !strings.Contains(all, "release-notes") {
			t.Errorf("the key's skill was not selected: %s", all)
		}
	}
}

// TestHeaders: what a client says beside its body goes to an upstream of this dialect, its
// key always as a bearer token.
func TestHeaders(t *testing.T) {
	answer := round(began(1), says(0, "x"), ended("end_turn", 1, 1))
	v := &vendor{t: t, rounds: [][]string{answer, answer}}
	r := newRig(t, rigOptions{provider: v, noSkills: true})
	for _, key := range [][]string{{"X-Api-Key", "sk-1"}, {"Authorization", "Bearer sk-1"}} {
		r.post(t, request("claude-x", ""), append(key, "Anthropic-Beta", "a,b", "X-Claude-Code-Session-Id", "s-1", "Cookie", "c=1")...)
	}
	for _, q := range v.sent() {
		for name, want := range map[string]string{
			"Authorization": "Bearer sk-1", "Anthropic-Beta": "a,b", "Anthropic-Version": "2026-10-21", "X-Claude-Code-Session-Id": "s-1",
			"X-Api-Key": "", "Cookie": "", "User-Agent": "",
		} {
			if got := q.Header.Get(name); got != want {
				t.Errorf("%s went upstream as %q, want %q", name, got, want)
			}
		}
	}
}

// counting is an upstream that counts.
type counting struct {
	vendor
	tokens int64
	err    error
	asked  *llm.Request
}

func (c *counting) CountTokens(_ context.Context, r *llm.Request) (int64, error) {
	c.asked = r
	return c.tokens, c.err
}

// wrapped hides what its provider can beside being one.
type wrapped struct{ llm.Provider }

func (w wrapped) Unwrap() llm.Provider { return w.Provider }

// TestCount: the tokens are those of what would be sent, the host's part included, counted
// by the upstream where it can.
func TestCount(t *testing.T) {
	c := &counting{vendor: vendor{t: t}, tokens: 4321}
	r := newRig(t, rigOptions{provider: wrapped{c}})
	ask := func(more string) (string, string) {
		res, body := r.send(t, http.MethodPost, "/v1/messages/count_tokens", `{"model":"claude-x","messages":[{"role":"user","content":"hello"}]`+more+`}`, "X-Api-Key", "sk-1")
		if res.StatusCode != http.StatusOK {
			return fmt.Sprint(res.StatusCode), body
		}
		return body, strings.Join(res.Header.Values("X-Metier-Warning"), "; ")
	}
	if got, warning := ask(weather); got != `{"input_tokens":4321}` || warning != "" {
		t.Errorf("counted: %s, warning %q", got, warning)
	}
	names := []string{}
	for _, d := range c.asked.Tools {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "get_weather skills_list skills_read" || !strings.Contains(fmt.Sprint(c.asked.Messages), "release-notes") {
		t.Errorf("it counted tools %s in %v", got, c.asked.Messages)
	}
	if c.asked.Header.Get("Authorization") != "Bearer sk-1" {
		t.Errorf("it was asked with %v", c.asked.Header)
	}
	c.err = &llm.StatusError{Status: http.StatusNotFound, Dialect: llm.Anthropic, Body: []byte("{}")}
	with, warning := ask("")
	if !strings.Contains(warning, "estimate") {
		t.Errorf("nobody said that %s is an estimate: %q", with, warning)
	}
	without, _ := ask(`,"skills_discovery":false`)
	if without != `{"input_tokens":15}` && len(without) >= len(with) {
		t.Errorf("%s with skills, %s without", with, without)
	}
	c.err = &llm.StatusError{Status: http.StatusUnauthorized, Dialect: llm.Anthropic, Body: []byte(`{"type":"error","error":{"type":"authentication_error","message":"no"}}`)}
	if status, body := ask(""); status != "401" || !strings.Contains(body, "authentication_error") {
		t.Errorf("the upstream's refusal became %s %s", status, body)
	}
	if status, body := ask(`,"skills":["nope"]`); status != "400" || !strings.Contains(body, "nope") {
		t.Errorf("an unknown skill: %s %s", status, body)
	}
	if got := len(c.sent()); got != 0 {
		t.Errorf("%d generations were asked for", got)
	}
}

// TestOwns: other doors' paths are not claimed, whatever the headers.
func TestOwns(t *testing.T) {
	d := door.New(door.Options{Limits: config.Values{}})
	for path, want := range map[string]bool{
		"/v1/messages": true, "/v1/messages/count_tokens": true, "/messages": true, "/anthropic": true, "/anthropic/x": true,
		"/v1/models": true, "/models": true, "/v1/skills/x": true, "/v1/files": true, "/v1/anything": true,
		"/anthropics": false, "/v1x": false, "/api/skills": false, "/api/chat": false, "/": false, "/healthz": false,
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(version, "2023-06-01")
		r.Header.Set("X-Api-Key", "k")
		if got := d.Owns(r); got != want {
			t.Errorf("%s: owns %v, want %v", path, got, want)
		}
	}
	plain := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
	plain.Header.Set("X-Api-Key", "k")
	if d.Owns(plain) {
		t.Error("a request for chat completions is claimed for its key's header")
	}
}

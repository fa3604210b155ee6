package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
)

// TestOperatorSelects: what a key and a model select and restrict, for clients
// that cannot add a field.
func TestOperatorSelects(t *testing.T) {
	model := func(m config.Model) map[string]config.Model { return map[string]config.Model{"hello": m} }
	for _, c := range []struct {
		name       string
		options    rigOptions
		caller     access.Caller
		more       string
		status     int
		has, lacks []string
		warning    string
	}{
		{name: "a key's skill", caller: access.Caller{ID: "k", Skills: []string{"release-notes"}}, more: `,"skills_discovery":false`, has: []string{"release-notes", "skills_read"}, lacks: []string{"meeting-minutes"}},
		{name: "a model's skill", options: rigOptions{models: model(config.Model{Skills: []string{"release-notes"}})}, more: `,"skills_discovery":false`, has: []string{"release-notes"}, lacks: []string{"meeting-minutes"}},
		{name: "a key's skill that is gone", caller: access.Caller{ID: "k", Skills: []string{"gone"}}, more: `,"skills_discovery":false`, lacks: []string{"skills_read"}, warning: "gone"},
		{name: "a model that may not be used", caller: access.Caller{ID: "k", Models: []string{"other"}}, status: 403},
		{name: "discovery for named skills only, none named", options: rigOptions{discovery: config.DiscoveryNamed}, lacks: []string{"skills_read"}},
		{name: "discovery for named skills only, one named", options: rigOptions{discovery: config.DiscoveryNamed}, more: `,"skills":["release-notes"]`, has: []string{"release-notes", "meeting-minutes"}},
		{name: "discovery off for a model", options: rigOptions{models: model(config.Model{Discovery: config.DiscoveryOff})}, lacks: []string{"skills_read"}},
		{name: "bodies inline for a model", options: rigOptions{models: model(config.Model{Inline: true})}, more: `,"skills":["release-notes"]`, has: []string{"names the ticket in square brackets", "skills_read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.options)
			if c.caller.ID != "" {
				r.as(t, c.options, c.caller)
			}
			res, body := r.post(t, request("hello", c.more))
			if want := max(c.status, http.StatusOK); res.StatusCode != want {
				t.Fatalf("%d %s, want %d", res.StatusCode, body, want)
			}
			if c.status != 0 {
				return
			}
			sent := string(r.upstream.Requests()[0].Body)
			for _, want := range c.has {
				if !strings.Contains(sent, want) {
					t.Errorf("upstream got no %q: %s", want, sent)
				}
			}
			for _, bad := range c.lacks {
				if strings.Contains(sent, bad) {
					t.Errorf("upstream got %q: %s", bad, sent)
				}
			}
			if got := res.Header.Get("X-Metier-Warning"); (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
				t.Errorf("warning %q, want one about %q", got, c.warning)
			}
		})
	}
}

// TestKeyedContinuity: one key's hidden rounds are not another's.
func TestKeyedContinuity(t *testing.T) {
	up := &reader{}
	o := rigOptions{upstream: up, continuity: inMemory(t)}
	c := &talk{rig: newRig(t, o), history: histories()[0]}
	c.rig.as(t, o, access.Caller{ID: "ann", Tenant: access.DefaultTenant})
	c.say(t, user("question 1"))
	c.rig.as(t, o, access.Caller{ID: "bob", Tenant: access.DefaultTenant})
	before := len(up.sent())
	c.say(t, user("question 2"))
	if got := len(up.sent()) - before; got != 2 {
		t.Errorf("bob's turn took %d rounds, want 2: what ann's model read is hers", got)
	}
}

// TestOtherModels: a key that may use some models cannot name others beside them.
func TestOtherModels(t *testing.T) {
	o := rigOptions{}
	r := newRig(t, o)
	for _, c := range []struct {
		name, more string
		models     []string
		want       int
	}{
		{"fallbacks", `,"fallbacks":["big"]`, []string{"hello"}, http.StatusForbidden},
		{"a router's list", `,"models":["big"]`, []string{"hello"}, http.StatusForbidden},
		{"any case", `,"Models":["big"]`, []string{"hello"}, http.StatusForbidden},
		{"a name that only looks the same", `,"Model":"big"`, []string{"hello"}, http.StatusBadRequest},
		{"all models", `,"models":["big"]`, nil, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.as(t, o, access.Caller{ID: "ann", Tenant: access.DefaultTenant, Models: c.models})
			res, body := r.post(t, `{"model":"hello","messages":[{"role":"user","content":"hi"}]`+c.more+`}`)
			if res.StatusCode != c.want {
				t.Errorf("%d %s, want %d", res.StatusCode, body, c.want)
			}
		})
	}
}

// TestIdempotencyKey: it names one request to the upstream, so it goes along only
// where a turn makes no more than one.
func TestIdempotencyKey(t *testing.T) {
	r := newRig(t, rigOptions{})
	for more, want := range map[string]string{`,"skills_discovery":false`: "once", "": ""} {
		res, body := r.post(t, `{"model":"hello","messages":[{"role":"user","content":"hi"}]`+more+`}`, "Idempotency-Key", "once")
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
		sent := r.upstream.Requests()
		if got := sent[len(sent)-1].Header.Get("Idempotency-Key"); got != want {
			t.Errorf("with %q the upstream saw %q, want %q", more, got, want)
		}
	}
}

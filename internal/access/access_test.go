package access_test

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

func key(id, text string, models ...string) access.Key {
	return access.Key{ID: id, Hash: access.Hash(config.NewSecret(text)), Skills: []string{"of-" + id}, Models: models}
}

func keys(t *testing.T, all ...access.Key) *access.Keys {
	t.Helper()
	k, err := access.New(all)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestIdentify(t *testing.T) {
	k := keys(t, key("one", "k-1"), key("two", "k-2", "m"))
	const invalid, missing = "invalid_api_key", "missing_api_key"
	for name, c := range map[string]struct {
		header    http.Header
		id, fault string
	}{
		"bearer":             {http.Header{"Authorization": {"Bearer k-1"}}, "one", ""},
		"any case":           {http.Header{"Authorization": {"bEARER  k-2 "}}, "two", ""},
		"x-api-key":          {http.Header{"X-Api-Key": {"k-2"}}, "two", ""},
		"authorization wins": {http.Header{"Authorization": {"Bearer k-1"}, "X-Api-Key": {"k-2"}}, "one", ""},
		"the other is right": {http.Header{"Authorization": {"Bearer dummy"}, "X-Api-Key": {"k-2"}}, "two", ""},
		"nothing":            {http.Header{}, "", missing},
		"empty":              {http.Header{"Authorization": {"Bearer "}, "X-Api-Key": {" "}}, "", missing},
		"basic":              {http.Header{"Authorization": {"Basic k-1"}}, "", missing},
		"no scheme":          {http.Header{"Authorization": {"k-1"}}, "", missing},
		"unknown":            {http.Header{"Authorization": {"Bearer k-3"}}, "", invalid},
		"prefix":             {http.Header{"Authorization": {"Bearer k-"}}, "", invalid},
		"the hash":           {http.Header{"X-Api-Key": {config.HashPrefix}}, "", invalid},
		"two joined":         {http.Header{"Authorization": {"Bearer k-1, Bearer k-2"}}, "", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := k.Identify(&http.Request{Header: c.header})
			if got.ID != c.id || (err == nil) != (c.fault == "") {
				t.Fatalf("Identify = %+v, %v, want %q, %q", got, err, c.id, c.fault)
			}
			if err == nil {
				want := access.Caller{ID: c.id, Tenant: access.DefaultTenant, Skills: []string{"of-" + c.id}, Models: got.Models}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
				return
			}
			e := fault.From(err)
			if e.Code != fault.Unauthenticated || e.Detail != c.fault || strings.Contains(e.Error(), "k-") {
				t.Errorf("got %+v, want %s and not a word of the key", e, c.fault)
			}
		})
	}
	for _, none := range []*access.Keys{nil, {}, keys(t)} {
		got, err := none.Identify(&http.Request{Header: http.Header{"Authorization": {"Bearer x"}}})
		if d := cmp.Diff(access.Anonymous(), got); d != "" || err != nil || none.Len() != 0 {
			t.Errorf("without keys: %v %s", err, d)
		}
	}
}

func TestNew(t *testing.T) {
	for want, all := range map[string][]access.Key{
		"two of that name": {key("a", "1"), key("a", "2")},
		"the same key":     {key("a", "1"), key("b", "1")},
		"has no text":      {{ID: "a"}},
		"it has no text":   {{ID: "a", Hash: sha256.Sum256(nil)}},
	} {
		if _, err := access.New(all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q", err, want)
		}
	}
}

// TestNewKey: a key that was made is accepted by the hash that a file holds, and
// no two are the same.
func TestNewKey(t *testing.T) {
	one, hash := access.NewKey()
	two, _ := access.NewKey()
	if one.Reveal() == two.Reveal() || len(one.Reveal()) < len(access.KeyPrefix)+26 {
		t.Errorf("keys %q, %q", one.Reveal(), two.Reveal())
	}
	d, err := config.ParseFiles(config.Source{Name: "f", Text: []byte("[key.k]\nhash = '" + hash + "'\n")})
	if err != nil {
		t.Fatal(err)
	}
	read := config.ReadKeys(d)
	if err := d.Check(); err != nil || len(read) != 1 {
		t.Fatalf("the hash does not read: %v", err)
	}
	if read[0].Hash != access.Hash(one) {
		t.Error("the hash of the file is not that of the key")
	}
}

// TestRequire: nobody passes without a key, no key passes on, and the caller is
// in the context.
func TestRequire(t *testing.T) {
	k := keys(t, key("one", "k-1"))
	var seen *http.Request
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r })
	refuse := func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(fault.From(err).Code.Status()) }
	ask := func(k *access.Keys, header http.Header) (*httptest.ResponseRecorder, *http.Request) {
		seen = nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", nil)
		r.Header = header
		before := header.Clone()
		w := httptest.NewRecorder()
		access.Require(k, next, refuse).ServeHTTP(w, r)
		if d := cmp.Diff(before, header); d != "" {
			t.Errorf("the header of whoever called was changed: %s", d)
		}
		return w, seen
	}

	w, r := ask(k, http.Header{"Authorization": {"Bearer wrong"}})
	if r != nil || w.Code != http.StatusUnauthorized || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("a wrong key: %d %v, reached the handler: %v", w.Code, w.Header(), r != nil)
	}
	for _, h := range []http.Header{
		{"Authorization": {"Bearer k-1"}, "X-Title": {"t"}},
		{"Authorization": {"Bearer other"}, "X-Api-Key": {"k-1"}, "X-Title": {"t"}},
	} {
		_, r = ask(k, h)
		if r == nil || access.FromContext(r.Context()).ID != "one" {
			t.Fatalf("the right key did not pass: %v", h)
		}
		if d := cmp.Diff(http.Header{"X-Title": {"t"}}, r.Header); d != "" {
			t.Errorf("what the handler sees of the header: %s", d)
		}
	}
	_, r = ask(nil, http.Header{"Authorization": {"Bearer clients-own"}})
	if r == nil || r.Header.Get("Authorization") != "Bearer clients-own" || access.FromContext(r.Context()).ID != "" {
		t.Error("without keys the client's own key must pass")
	}
	if c := access.FromContext(t.Context()); c.Tenant != access.DefaultTenant || c.ID != "" {
		t.Errorf("no caller in the context: %+v", c)
	}
}

func TestMay(t *testing.T) {
	c := access.Caller{ID: "k", Models: []string{"a", "b"}}
	err := c.May("x")
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Code != fault.Forbidden || e.Param != "model" || !strings.Contains(e.Message, `"k" may not use the model "x": it may use a, b`) {
		t.Errorf("May: %v", err)
	}
	if c.May("a") != nil || c.Sees("x") || access.Anonymous().May("x") != nil {
		t.Error("an allowed model is refused")
	}
}

package responses_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/journal"
	door "github.com/metier-run/metier/internal/server/responses"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/wire"
)

// base is a database for a test, and the sessions in it.
type base struct {
	db  *store.DB
	ids *ids
}

func openBase(t *testing.T, file string) *base {
	t.Helper()
	b := &base{ids: &ids{}}
	var err error
	b.db, err = store.Open(t.Context(), store.Options{
		URL: config.NewSecret(file), Now: newClock().now, NewID: b.ids.NewID, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// session is the durable conversation of an id.
type session struct {
	db *store.DB
	id string
}

func (b *base) journal(id string) gateway.Journal { return session{b.db, id} }

func (b *base) held(ctx context.Context, tenant, id string) (bool, error) {
	s, err := b.db.Session(ctx, tenant, id)
	if errors.Is(err, store.ErrNoSession) {
		return false, nil
	}
	return s.Held, err
}

func (s session) Open(ctx context.Context) (journal.Log, journal.Position, func(context.Context), error) {
	if _, err := s.db.CreateSession(ctx, access.FromContext(ctx).Tenant, s.id, journal.Draft{Data: journal.SessionCreated{Origin: "responses"}}); err != nil {
		return nil, journal.Position{}, nil, err
	}
	l := s.db.Log(access.FromContext(ctx).Tenant, s.id)
	h, err := l.Hold(ctx)
	if err != nil {
		return nil, journal.Position{}, nil, err
	}
	return l, h.At, func(ctx context.Context) { _ = h.Release(ctx) }, nil
}

// eachStore runs a test with everything that keeps responses.
func eachStore(t *testing.T, test func(t *testing.T, o rigOptions)) {
	t.Run("memory", func(t *testing.T) { test(t, rigOptions{}) })
	t.Run("sqlite", func(t *testing.T) {
		b := openBase(t, filepath.Join(t.TempDir(), "metier.db"))
		test(t, rigOptions{store: b.db, journal: b.journal, held: b.held})
	})
}

// TestKept: a response is fetched, listed, gone on from and removed, by its owner alone.
func TestKept(t *testing.T) {
	eachStore(t, func(t *testing.T, o rigOptions) {
		o.upstream = &reader{}
		r := newRig(t, o)
		ann, bob := []string{"Authorization", "Bearer ann"}, []string{"Authorization", "Bearer bob"}
		first := r.made(t, `{"model":"m","instructions":"Be brief.","input":"question one"}`, ann...)
		id := member(first, "id")
		if got := r.get(t, id, ann...); string(got) != string(first) {
			t.Errorf("got %s\nmade %s", got, first)
		}
		for _, c := range []struct {
			method, path string
			want         int
		}{
			{http.MethodGet, id, 404},
			{http.MethodGet, id + "/input_items", 404},
			{http.MethodPost, id + "/cancel", 404},
			{http.MethodDelete, id, 404},
			{http.MethodGet, "resp_nope", 404},
		} {
			if res, body := r.ask(t, c.method, "/v1/responses/"+c.path, "", bob...); res.StatusCode != c.want || member([]byte(body), "error", "code") != "response_not_found" {
				t.Errorf("bob: %s %s: %d %s", c.method, c.path, res.StatusCode, body)
			}
		}
		goOn := `{"model":"m","input":"question two","previous_response_id":` + quote(id) + `}`
		if res, body := r.post(t, goOn, bob...); res.StatusCode != 400 || member([]byte(body), "error", "code") != "previous_response_not_found" {
			t.Errorf("bob goes on: %d %s", res.StatusCode, body)
		}
		reference := `{"model":"m","input":[{"type":"item_reference","id":` + quote(lastItem(first)) + `},{"role":"user","content":"so?"}]}`
		if res, body := r.post(t, reference, bob...); res.StatusCode != 400 {
			t.Errorf("bob refers: %d %s", res.StatusCode, body)
		}
		second := r.made(t, goOn, ann...)
		if sent := string(r.up.last(t)); !strings.Contains(sent, "question one") || !strings.Contains(sent, "answer 2") || !strings.Contains(sent, "question two") || strings.Contains(sent, "Be brief.") {
			t.Errorf("sent %s", sent)
		}
		if member(second, "previous_response_id") != id {
			t.Errorf("%s", second)
		}
		if res, body := r.ask(t, http.MethodPost, "/v1/responses/"+id+"/cancel", "", ann...); res.StatusCode != 400 {
			t.Errorf("cancel: %d %s", res.StatusCode, body)
		}
		res, body := r.ask(t, http.MethodDelete, "/v1/responses/"+id, "", ann...)
		if want := `{"id":` + quote(id) + `,"object":"response.deleted","deleted":true}`; res.StatusCode != 200 || body != want {
			t.Errorf("delete: %d %s", res.StatusCode, body)
		}
		if res, _ := r.ask(t, http.MethodGet, "/v1/responses/"+id, "", ann...); res.StatusCode != 404 {
			t.Errorf("after delete: %d", res.StatusCode)
		}
		// The chain is broken: going on would leave the beginning out in silence.
		broken := `{"model":"m","input":"x","previous_response_id":` + quote(member(second, "id")) + `}`
		if res, body := r.post(t, broken, ann...); res.StatusCode != 400 || !strings.Contains(body, id) {
			t.Errorf("broken chain: %d %s", res.StatusCode, body)
		}
	})
}

// TestKeyOwns: keys of this server own responses, whatever else a request holds.
func TestKeyOwns(t *testing.T) {
	keys, err := access.New([]access.Key{
		{ID: "ann", Hash: sha256.Sum256([]byte("sk-ann"))},
		{ID: "bob", Hash: sha256.Sum256([]byte("sk-bob"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{keys: keys})
	id := member(r.made(t, request("hello", ""), "Authorization", "Bearer sk-ann"), "id")
	r.get(t, id, "X-Api-Key", "sk-ann")
	for _, key := range []string{"sk-bob", "sk-nope"} {
		if res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id, "", "Authorization", "Bearer "+key); res.StatusCode != 404 && res.StatusCode != 401 {
			t.Errorf("%s: %d %s", key, res.StatusCode, body)
		}
	}
}

// TestNotKept: store false keeps nothing.
func TestNotKept(t *testing.T) {
	eachStore(t, func(t *testing.T, o rigOptions) {
		r := newRig(t, o)
		got := r.made(t, request("hello", `,"store":false`))
		if member(got, "store") != "false" {
			t.Errorf("%s", got)
		}
		if res, body := r.ask(t, http.MethodGet, "/v1/responses/"+member(got, "id"), ""); res.StatusCode != 404 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	})
}

// TestTooLargeToKeep: what cannot be kept is answered, and says so.
func TestTooLargeToKeep(t *testing.T) {
	limits, err := config.Values{}.Set(config.ResponsesBytes, 1024)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{limits: limits})
	got := r.made(t, request("hello", `,"metadata":{"a":`+quote(strings.Repeat("x", 500))+`}`))
	if member(got, "store") != "false" || textOf(got) == "" || !strings.Contains(r.log.String(), "response not kept") {
		t.Errorf("%s\n%s", got, r.log)
	}
	if res, body := r.post(t, request("hello", `,"background":true,"metadata":{"a":`+quote(strings.Repeat("x", 500))+`}`)); res.StatusCode != 503 {
		t.Errorf("in the background: %d %s", res.StatusCode, body)
	}
}

// TestMemoryForgets: what is there the longest goes first, of each owner by itself.
func TestMemoryForgets(t *testing.T) {
	limits, err := config.Values{}.Set(config.ResponsesCount, 2)
	if err != nil {
		t.Fatal(err)
	}
	limits, err = limits.Set(config.ResponsesAge, 60)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{limits: limits})
	var made []string
	for range 3 {
		made = append(made, member(r.made(t, request("hello", "")), "id"))
	}
	r.made(t, request("hello", ""), "Authorization", "Bearer bob")
	there := func(want ...int) {
		t.Helper()
		for i, id := range made {
			if res, _ := r.ask(t, http.MethodGet, "/v1/responses/"+id, ""); res.StatusCode != want[i] {
				t.Errorf("response %d: %d, want %d", i, res.StatusCode, want[i])
			}
		}
	}
	there(404, 200, 200)
	r.clock.at.Add(61)
	there(404, 404, 404)
}

// TestInputItems: the list has the vendor's shape and pages.
func TestInputItems(t *testing.T) {
	r := newRig(t, rigOptions{})
	var items []string
	for i := range 5 {
		items = append(items, user(fmt.Sprint("n", i)))
	}
	items = append(items, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"done","id":"mine"}`)
	id := member(r.made(t, `{"model":"hello","input":[`+strings.Join(items, ",")+`]}`), "id")
	list := func(query string) (jsontext.Value, []string) {
		t.Helper()
		res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id+"/input_items"+query, "")
		if res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", query, res.StatusCode, body)
		}
		var ids []string
		for c := wire.Array(wire.Member([]byte(body), "data")); c.Next(); {
			ids = append(ids, member(c.Value, "id"))
		}
		return jsontext.Value(body), ids
	}
	all, ids := list("?order=asc")
	if len(ids) != 7 || ids[6] != "mine" || member(all, "has_more") != "false" || member(all, "object") != "list" || member(all, "first_id") != ids[0] || member(all, "last_id") != "mine" {
		t.Errorf("%s", all)
	}
	var paged []string
	after := ""
	for range 4 {
		page, got := list("?limit=2" + after)
		paged = append(paged, got...)
		if member(page, "has_more") == "false" {
			break
		}
		after = "&after=" + member(page, "last_id")
	}
	if got, want := strings.Join(paged, " "), strings.Join([]string{ids[6], ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]}, " "); got != want {
		t.Errorf("pages %s, want %s", got, want)
	}
	for _, bad := range []string{"?limit=0", "?limit=x", "?order=up", "?after=nope"} {
		if res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id+"/input_items"+bad, ""); res.StatusCode != 400 {
			t.Errorf("%s: %d %s", bad, res.StatusCode, body)
		}
	}
	// Items that are kept can be referred to by their ids, also in another conversation.
	res, body := r.post(t, `{"model":"hello","input":[{"type":"item_reference","id":`+quote(ids[3])+`}]}`)
	if res.StatusCode != 200 || !strings.Contains(string(r.up.last(t)), `"n3"`) {
		t.Errorf("%d %s: sent %s", res.StatusCode, body, r.up.last(t))
	}
}

// TestUnfinishedChain: a response that failed cannot be gone on from.
func TestUnfinishedChain(t *testing.T) {
	r := newRig(t, rigOptions{})
	_, body := r.post(t, request("cut", streamed))
	failed := listen(t, body)
	res, body := r.post(t, request("hello", `,"previous_response_id":`+quote(member(failed, "id"))))
	if res.StatusCode != 400 || member([]byte(body), "error", "code") != "previous_response_not_completed" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

var _ door.Store = (*store.DB)(nil)

// lastItem is the id of a response's last item.
func lastItem(response jsontext.Value) string {
	id := ""
	for c := wire.Array(wire.Member(response, "output")); c.Next(); {
		id = member(c.Value, "id")
	}
	return id
}

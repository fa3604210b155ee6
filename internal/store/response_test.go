package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/store"
)

func someone() continuity.Owner { return continuity.Owner{Tenant: tenant, Key: "k"} }

func response(id, previous string) store.Response {
	return store.Response{
		ID: id, Previous: previous, Session: "s-" + id, Status: "completed", CreatedAt: time.UnixMilli(1_700_000_000_123).UTC(),
		Request: jsontext.Value(`{"model":"m"}`), Input: jsontext.Value(`[{"in":"` + id + `"}]`), Output: jsontext.Value(`[{"out":"` + id + `"}]`), Body: jsontext.Value(`{"id":"` + id + `"}`),
	}
}

func putResponse(t *testing.T, db *store.DB, owner continuity.Owner, r store.Response) {
	t.Helper()
	if err := db.PutResponse(t.Context(), owner, r); err != nil {
		t.Fatal(err)
	}
}

// has is the response of an id, or fails the test.
func has(t *testing.T, db *store.DB, owner continuity.Owner, id string) store.Response {
	t.Helper()
	r, ok, err := db.GetResponse(t.Context(), owner, id)
	if err != nil || !ok {
		t.Fatalf("response %s: %v, %v", id, ok, err)
	}
	return r
}

func lacks(t *testing.T, db *store.DB, owner continuity.Owner, id string) {
	t.Helper()
	if r, ok, err := db.GetResponse(t.Context(), owner, id); ok || err != nil {
		t.Errorf("response %.40q of %v: found %v, %v", id, owner, r, err)
	}
}

// ids are those of a chain.
func ids(t *testing.T, db *store.DB, owner continuity.Owner, id string, most int) string {
	t.Helper()
	chain, err := db.Chain(t.Context(), owner, id, most)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range chain {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

// TestResponses: a response comes back byte for byte, from another process too, is replaced
// by the next of its id, and is its owner's alone.
func TestResponses(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db, other := p.open(t), p.open(t)
		want := response("r1", "r0")
		want.Input = jsontext.Value("\"a\x00b\\u0000\xff\"") // no text for PostgreSQL
		putResponse(t, db, someone(), want)
		if diff := cmp.Diff(want, has(t, other, someone(), "r1")); diff != "" {
			t.Errorf("what came back differs (-want +got):\n%s", diff)
		}
		for _, owner := range []continuity.Owner{{Tenant: tenant, Key: "other"}, {Tenant: "other", Key: "k"}, {Tenant: tenant}} {
			lacks(t, db, owner, "r1")
			if ok, err := db.DeleteResponse(t.Context(), owner, "r1"); ok || err != nil {
				t.Errorf("%v removed it: %v, %v", owner, ok, err)
			}
		}
		before := time.Now().Truncate(time.Millisecond)
		putResponse(t, other, someone(), store.Response{ID: "r1", Status: "failed"})
		got := has(t, db, someone(), "r1")
		if got.CreatedAt.Before(before) {
			t.Errorf("created at %v, want now", got.CreatedAt)
		}
		if diff := cmp.Diff(store.Response{ID: "r1", Status: "failed", CreatedAt: got.CreatedAt}, got); diff != "" {
			t.Errorf("what replaced it differs (-want +got):\n%s", diff)
		}
		for _, want := range []bool{true, false} {
			if ok, err := db.DeleteResponse(t.Context(), someone(), "r1"); ok != want || err != nil {
				t.Errorf("removing it: %v, %v; want %v", ok, err, want)
			}
		}
		lacks(t, db, someone(), "r1")
	})
}

// TestResponseChain: a chain is whole and in order, as long as was asked for, and one
// owner's.
func TestResponseChain(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for i := range 5 {
			putResponse(t, db, someone(), response(fmt.Sprint("r", i), fmt.Sprint("r", i-1)))
		}
		putResponse(t, db, someone(), response("fork", "r1"))
		thief := continuity.Owner{Tenant: tenant, Key: "thief"}
		putResponse(t, db, thief, response("mine", "r4"))
		putResponse(t, db, thief, response("r0", "")) // no way to it leads through another's
		if diff := cmp.Diff(response("r3", "r2"), must(t, db, "r3")); diff != "" {
			t.Errorf("the last of a chain differs (-want +got):\n%s", diff)
		}
		tests := []struct {
			owner, id string
			most      int
			want      string
		}{
			{"k", "r4", 100, "r0 r1 r2 r3 r4"},
			{"k", "r4", 2, "r3 r4"},
			{"k", "r0", 100, "r0"},
			{"k", "fork", 100, "r0 r1 fork"},
			{"k", "none", 100, ""},
			{"k", "r4", 0, ""},
			{"k", "a\x00", 1, ""},
			{"k", "\xff", 1, ""},
			{"thief", "mine", 100, "mine"},
		}
		for _, test := range tests {
			if got := ids(t, db, continuity.Owner{Tenant: tenant, Key: test.owner}, test.id, test.most); got != test.want {
				t.Errorf("chain of %q of %s, at most %d: %q, want %q", test.id, test.owner, test.most, got, test.want)
			}
		}
		if _, err := db.DeleteResponse(t.Context(), someone(), "r2"); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, db, someone(), "r4", 100); got != "r3 r4" {
			t.Errorf("with one gone the chain is %q", got)
		}
		putResponse(t, db, someone(), response("r3", "r4")) // they go on from each other
		if got := ids(t, db, someone(), "r4", 5); got != "r4 r3 r4 r3 r4" {
			t.Errorf("a ring gives %q", got)
		}
	})
}

// must is the last of a chain.
func must(t *testing.T, db *store.DB, id string) store.Response {
	t.Helper()
	chain, err := db.Chain(t.Context(), someone(), id, 10)
	if err != nil || len(chain) == 0 {
		t.Fatalf("chain of %s: %v, %v", id, chain, err)
	}
	return chain[len(chain)-1]
}

// bounded opens a database that keeps little.
func (p place) bounded(t *testing.T, name config.Name, value int64) *store.DB {
	t.Helper()
	o := p.options(t)
	var err error
	if o.Limits, err = o.Limits.Set(name, value); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestResponseCount: those that changed last stay, and those of others.
func TestResponseCount(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.bounded(t, config.ResponsesCount, 2)
		other := continuity.Owner{Tenant: tenant, Key: "other"}
		putResponse(t, db, other, response("r0", ""))
		for _, id := range []string{"r1", "r2", "r1", "r3"} {
			p.clock.advance(time.Second)
			putResponse(t, db, someone(), response(id, ""))
		}
		lacks(t, db, someone(), "r2")
		has(t, db, someone(), "r1")
		has(t, db, someone(), "r3")
		has(t, db, other, "r0")
	})
}

// TestResponseBytes: a response that fits alone takes the room of those before it, and one
// that does not is refused.
func TestResponseBytes(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.bounded(t, config.ResponsesBytes, 4096)
		large := func(id string, n int) store.Response {
			r := response(id, "")
			r.Output = jsontext.Value(strings.Repeat("x", n))
			return r
		}
		for _, id := range []string{"r1", "r2", "r3"} {
			p.clock.advance(time.Second)
			putResponse(t, db, someone(), large(id, 1500))
		}
		lacks(t, db, someone(), "r1")
		has(t, db, someone(), "r2")
		err := db.PutResponse(t.Context(), someone(), large("r3", 5000))
		if f := fault.From(err); f.Code != fault.TooLarge || f.Detail != "response_too_large" || !strings.Contains(f.Message, "--responses-bytes") {
			t.Errorf("it is refused with %v, %s, %s", err, f.Code, f.Detail)
		}
		if got := has(t, db, someone(), "r3"); len(got.Output) != 1500 {
			t.Errorf("what was there has %d bytes of output", len(got.Output))
		}
	})
}

// TestResponseAge: what is too old is not found, and gone with the next that is kept.
func TestResponseAge(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		putResponse(t, db, continuity.Owner{Tenant: "other", Key: "other"}, response("r0", ""))
		putResponse(t, db, someone(), response("r1", ""))
		p.clock.advance(29 * 24 * time.Hour)
		putResponse(t, db, someone(), response("r2", "r1"))
		if got := ids(t, db, someone(), "r2", 9); got != "r1 r2" {
			t.Errorf("after 29 days the chain is %q", got)
		}
		p.clock.advance(2 * 24 * time.Hour)
		lacks(t, db, someone(), "r1")
		if got := ids(t, db, someone(), "r2", 9); got != "r2" {
			t.Errorf("after 31 days the chain is %q", got)
		}
		putResponse(t, db, someone(), response("r3", "r2"))
		if n, err := db.Count(t.Context(), "responses"); n != 2 || err != nil {
			t.Errorf("%d responses are kept, %v; want 2", n, err)
		}
	})
}

// TestRunning: whoever starts after a crash finds what was under way, of everybody.
func TestRunning(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		statuses := []string{"queued", "in_progress", "completed", "failed", "incomplete", "cancelled"}
		for i, status := range statuses {
			r := response(fmt.Sprint("r", i), "")
			r.Status = status
			putResponse(t, db, continuity.Owner{Tenant: fmt.Sprint("t", i), Key: "k"}, r)
		}
		found, err := p.open(t).Running(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []store.OwnedResponse
		for i, status := range statuses[:2] {
			r := response(fmt.Sprint("r", i), "")
			r.Status = status
			want = append(want, store.OwnedResponse{Owner: continuity.Owner{Tenant: fmt.Sprint("t", i), Key: "k"}, Response: r})
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("what runs differs (-want +got):\n%s", diff)
		}
	})
}

// TestUnstorableResponse: what cannot stand in a column is refused by name on both.
func TestUnstorableResponse(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		long := strings.Repeat("x", 129)
		for _, r := range []store.Response{
			{},
			{ID: long},
			{ID: "a\x00"},
			{ID: "\xff"},
			{ID: "r1", Previous: "a\x00"},
			{ID: "r1", Session: "\xff"},
			{ID: "r1", Status: "a\x00"},
			{ID: "r1", Previous: long},
			{ID: "r1", Session: long},
			{ID: "r1", Previous: "r1"},
		} {
			if err := db.PutResponse(t.Context(), someone(), r); err == nil || !strings.Contains(err.Error(), "store: keep response") {
				t.Errorf("%.60q was kept: %v", fmt.Sprint(r), err)
			}
		}
		for _, owner := range []continuity.Owner{{Key: "k"}, {Tenant: tenant, Key: "a\x00"}} {
			if err := db.PutResponse(t.Context(), owner, response("r1", "")); err == nil {
				t.Errorf("owner %q was taken", owner)
			}
		}
		if ok, err := db.DeleteResponse(t.Context(), someone(), "a\x00"); ok || err != nil {
			t.Errorf("removing what cannot be: %v, %v", ok, err)
		}
	})
}

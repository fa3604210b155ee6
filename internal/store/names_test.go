package store_test

import (
	"errors"
	"testing"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/store"
)

// TestForeignNames: what no column can hold is the name of no session, and no failure of
// the database.
func TestForeignNames(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		db := p.open(t)
		for _, id := range []string{"\x00", "a\x00b", "\xff"} {
			_, err := db.Session(t.Context(), tenant, id)
			_, held := db.Log(tenant, id).Hold(t.Context())
			var read error
			for _, read = range db.Log(tenant, id).Read(t.Context(), 0) {
				break
			}
			for _, err := range []error{err, held, read} {
				if !errors.Is(err, store.ErrNoSession) {
					t.Errorf("%q: %v, want ErrNoSession", id, err)
				}
			}
			_, _, err = db.Sessions(t.Context(), store.Query{Tenant: tenant, Agent: id, Limit: 1})
			if e := fault.From(err); e.Code != fault.Invalid || e.Param != "agent_id" {
				t.Errorf("agent %q: %v", id, err)
			}
		}
		_, _, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Cursor: "x", Limit: 1})
		if e := fault.From(err); e.Code != fault.Invalid || e.Param != "cursor" {
			t.Errorf("cursor: %v", err)
		}
	})
}

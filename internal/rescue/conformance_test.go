package rescue_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/rescue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance runs the suite of providers over a wrapped one: what is no
// call written as text must come through as if nothing stood between.
func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, scenario string) (llm.Provider, string) {
		h, err := scripted.New(scripted.Options{})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(h)
		o := openai.Options{}
		transport := upstream.NewTransport(o.Limits)
		t.Cleanup(func() {
			transport.CloseIdleConnections()
			srv.Close()
		})
		if o.Base, err = url.Parse(srv.URL + "/v1"); err != nil {
			t.Fatal(err)
		}
		n := 0
		newID := func() string { n++; return strings.Repeat("i", n) }
		o.Transport, o.NewID = transport, newID
		return rescue.Wrap(openai.New(o), rescue.Options{MaxHeld: 32 << 10, NewID: newID}), scenario
	})
}

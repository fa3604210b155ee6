package llm_test

import (
	"context"
	"testing"

	"github.com/metier-run/metier/internal/llm"
)

type counter interface {
	CountTokens(context.Context, *llm.Request) (int64, error)
}

// counting is a provider that can do more; wrapped hides it, and sealed does for good.
type (
	counting struct{ llm.Script }
	wrapped  struct{ llm.Provider }
	sealed   struct{ llm.Provider }
)

func (*counting) CountTokens(context.Context, *llm.Request) (int64, error) { return 7, nil }
func (w wrapped) Unwrap() llm.Provider                                     { return w.Provider }

// TestAs: what a provider can do is found below those that wrap it.
func TestAs(t *testing.T) {
	own := &counting{}
	for name, tt := range map[string]struct {
		p    llm.Provider
		want bool
	}{
		"itself":            {own, true},
		"wrapped":           {wrapped{own}, true},
		"wrapped twice":     {wrapped{wrapped{own}}, true},
		"no such thing":     {wrapped{&llm.Script{}}, false},
		"below one that is": {wrapped{sealed{own}}, false},
		"nothing wrapped":   {wrapped{}, false},
		"nothing":           {nil, false},
	} {
		got, ok := llm.As[counter](tt.p)
		if ok != tt.want {
			t.Errorf("%s: found %v, want %v", name, ok, tt.want)
		}
		if n := int64(0); ok {
			if n, _ = got.CountTokens(t.Context(), nil); n != 7 {
				t.Errorf("%s: another one was found, which counts %d", name, n)
			}
		}
	}
}

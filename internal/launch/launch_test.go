package launch

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLook(t *testing.T) {
	s := Look(context.Background(), Options{Policy: sandbox.DefaultPolicy(), Scratch: filepath.Join(t.TempDir(), "scratch")})
	t.Logf("%+v", s)
	for _, r := range s.Rows {
		t.Log(r.Name, r.Problem, r.Capabilities)
	}
}

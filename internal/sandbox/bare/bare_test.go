package bare

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCapabilities(t *testing.T) {
	var text strings.Builder
	for _, system := range []string{"linux", "darwin", "windows"} {
		able := capabilities(system)
		fmt.Fprintf(&text, "%s: tier %s\n", system, able.Tier)
		for _, c := range able.All {
			fmt.Fprintf(&text, "  %-9s held %-5t %s\n", c.Aspect, c.Held, c.Note)
		}
		fmt.Fprintf(&text, "  gaps: %s\n", strings.Join(able.Gaps(sandbox.Network{}), "; "))
	}
	golden := filepath.Join("testdata", "capabilities.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("capabilities differ from %s; -update writes it (-want +got):\n%s", golden, diff)
	}
}

func TestPolicyTakesItOnlyWhenAsked(t *testing.T) {
	found := []sandbox.Finding{{Name: sandbox.Bare, Backend: New(Options{})}}
	for mode, want := range map[sandbox.Mode]bool{sandbox.Required: false, sandbox.Preferred: true, sandbox.Off: true} {
		for _, least := range []sandbox.Tier{sandbox.TierNone, sandbox.TierWeak, sandbox.TierFull} {
			_, err := sandbox.Policy{Mode: mode, Minimum: least}.Choose(found)
			if got := err == nil; got != want {
				t.Errorf("mode %s, minimum %s: taken %t, want %t (%v)", mode, least, got, want, err)
			}
		}
	}
}

func TestProxyIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := New(Options{})
	_, err := b.Start(t.Context(), sandbox.Launch{
		Line: "echo ran > ran", Dir: dir, Write: []string{dir},
		Network: sandbox.Network{Mode: sandbox.NetworkProxied, Serve: func(context.Context, net.Listener) {}},
	})
	if _, ok := errors.AsType[*sandbox.Unavailable](err); !ok {
		t.Errorf("error %v is no Unavailable", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran without its proxy")
	}
}

func TestDefectiveLaunchIsRefused(t *testing.T) {
	if _, err := New(Options{}).Start(t.Context(), sandbox.Launch{Line: "true"}); err == nil {
		t.Error("a launch without a directory was started")
	}
}

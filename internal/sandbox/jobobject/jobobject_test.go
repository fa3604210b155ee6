package jobobject

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestCapabilities(t *testing.T) {
	able := New(Options{}).Capabilities()
	var text strings.Builder
	fmt.Fprintf(&text, "%s: tier %s\n", able.Backend, able.Tier)
	for _, c := range able.All {
		fmt.Fprintf(&text, "  %-9s held %-5t %s\n", c.Aspect, c.Held, c.Note)
	}
	fmt.Fprintf(&text, "  gaps: %s\n", strings.Join(able.Gaps(sandbox.Network{}), "; "))
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

func TestPolicyTakesItOnlyWhenPreferred(t *testing.T) {
	found := []sandbox.Finding{{Name: Name, Backend: New(Options{})}}
	for mode, want := range map[sandbox.Mode]bool{sandbox.Required: false, sandbox.Preferred: true} {
		for _, named := range []string{"", Name} {
			_, err := sandbox.Policy{Mode: mode, Minimum: sandbox.TierWeak, Backend: named}.Choose(found)
			if got := err == nil; got != want {
				t.Errorf("mode %s, backend %q: taken %t, want %t (%v)", mode, named, got, want, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	const always = limitKillOnClose | limitNoErrorBox
	for name, test := range map[string]struct {
		launch sandbox.Launch
		want   sandbox.JobLimits
	}{
		"none":     {sandbox.Launch{}, sandbox.JobLimits{Flags: always, Desktop: 0xff}},
		"memory":   {sandbox.Launch{Memory: 64 << 20}, sandbox.JobLimits{Flags: always | limitJobMemory, Memory: 64 << 20, Desktop: 0xff}},
		"children": {sandbox.Launch{Processes: 16}, sandbox.JobLimits{Flags: always | limitActive, Processes: 16, Desktop: 0xff}},
		"too many": {sandbox.Launch{Processes: 1 << 40}, sandbox.JobLimits{Flags: always | limitActive, Processes: 1<<32 - 1, Desktop: 0xff}},
	} {
		got := limitsOf(test.launch)
		if *got != test.want {
			t.Errorf("%s: %+v, want %+v", name, *got, test.want)
		}
		const breakaway, silent = 0x800, 0x1000
		if got.Flags&(breakaway|silent) != 0 {
			t.Errorf("%s: a process may leave the job", name)
		}
	}
}

func TestFindElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this is Windows")
	}
	f := Find(context.Background())
	if f.Backend != nil || f.Name != Name || f.Problem == nil || f.Problem.Error() != "sandbox jobobject: make a job object: this is not Windows" {
		t.Errorf("finding is %+v", f)
	}
	dir := t.TempDir()
	b := New(Options{})
	if _, err := b.Start(t.Context(), sandbox.Launch{Argv: []string{"/usr/bin/true"}, Dir: dir, Write: []string{dir}}); err == nil {
		t.Error("it started something")
	}
}

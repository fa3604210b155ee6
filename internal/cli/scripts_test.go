package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/sandbox"
)

// TestSayScripts: what a start says comes from the capabilities, and each thing that an
// operator must know has a line of its own.
func TestSayScripts(t *testing.T) {
	whole := sandbox.Capabilities{Backend: "native", Tier: sandbox.TierFull}
	for _, a := range sandbox.Aspects() {
		whole.All = append(whole.All, sandbox.Capability{Aspect: a, Held: true})
	}
	open := sandbox.Capabilities{Backend: "bare"}
	part := sandbox.Capabilities{Backend: "landlock", Tier: sandbox.TierWeak, All: whole.All[:2]}
	for name, c := range map[string]struct {
		confinement app.Confinement
		off         bool
		want, brief string
	}{
		"off":   {app.Confinement{Capabilities: whole}, true, "", ""},
		"whole": {app.Confinement{Capabilities: whole}, false, "scripts: on, sandbox native (full)\n", "scripts: on, sandbox native (full)\n"},
		"proxied": {
			app.Confinement{Capabilities: whole, Network: sandbox.NetworkProxied, Domains: []string{"a.example", "b.example"}},
			false,
			"scripts: on, sandbox native (full)\nscripts: the network is open to them for a.example, b.example only\n",
			"scripts: on, sandbox native (full)\n",
		},
		"gaps, network open": {
			app.Confinement{Capabilities: part, Network: sandbox.NetworkOpen},
			false,
			"scripts: on, sandbox landlock (weak)\nscripts: Not confined on this host: a child may outlive the request; may see other processes\n" +
				"scripts: the network is open to them (--skills-allow-network)\n",
			"scripts: on, sandbox landlock (weak)\nscripts: Not confined on this host: a child may outlive the request; may see other processes\n",
		},
		"refused": {
			app.Confinement{Capabilities: open, Network: sandbox.NetworkOpen, Problem: errors.New("it cannot\x1b[2J")},
			false,
			"scripts: refused on this host: it cannot [2J (metier doctor says more)\n", "scripts: refused on this host: it cannot [2J (metier doctor says more)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var full, brief strings.Builder
			sayScripts(&full, c.confinement, !c.off)
			sayConfinement(&brief, "scripts", c.confinement, !c.off)
			if d := cmp.Diff([]string{c.want, c.brief}, []string{full.String(), brief.String()}); d != "" {
				t.Error(d)
			}
		})
	}
}

package sandbox

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func good() Launch {
	return Launch{Purpose: Script, Argv: []string{"/bin/true"}, Dir: "/w/d", Write: []string{"/w"}, Read: []string{"/s"}, Env: []string{"A=b", "E="}}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Launch)
		want   string // in the error; empty for none
	}{
		{"good", func(*Launch) {}, ""},
		{"a line", func(l *Launch) { l.Argv, l.Line = nil, "true; 'x" }, ""},
		{"nothing to run", func(l *Launch) { l.Argv = nil }, "exactly one"},
		{"two things to run", func(l *Launch) { l.Line = "true" }, "exactly one"},
		{"a program by name", func(l *Launch) { l.Argv = []string{"true"} }, "not an absolute path"},
		{"no directory", func(l *Launch) { l.Dir = "" }, "no working directory"},
		{"a directory that is not to be written", func(l *Launch) { l.Dir = "/s" }, "may not be written"},
		{"a directory with the same beginning", func(l *Launch) { l.Dir = "/wd" }, "may not be written"},
		{"a relative path", func(l *Launch) { l.Read = []string{"s"} }, "not absolute and clean"},
		{"a path that is not clean", func(l *Launch) { l.Read = []string{"/s/../t"} }, "not absolute and clean"},
		{"the root", func(l *Launch) { l.Hide = []string{"/"} }, "is the root"},
		{"a NUL in an argument", func(l *Launch) { l.Argv = append(l.Argv, "a\x00b") }, "NUL"},
		{"a NUL in a variable", func(l *Launch) { l.Env = []string{"A=\x00"} }, "not NAME=value"},
		{"a variable without a value", func(l *Launch) { l.Env = []string{"A"} }, "not NAME=value"},
		{"a variable without a name", func(l *Launch) { l.Env = []string{"=a"} }, "not NAME=value"},
		{"a proxied network without a proxy", func(l *Launch) { l.Network.Mode = NetworkProxied }, "needs a proxy"},
		{"a proxied network", func(l *Launch) {
			l.Network = Network{Mode: NetworkProxied, Serve: func(context.Context, net.Listener) {}}
		}, ""},
	}
	for _, tt := range tests {
		l := good()
		tt.change(&l)
		err := l.Check()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "launch script: ")) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	for i, word := range tiers() {
		if got, err := ParseTier(strings.ToUpper(word)); err != nil || got != Tier(i) || got.String() != word {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	for i, word := range modes() {
		if got, err := ParseMode(word); err != nil || got != Mode(i) || got.String() != word {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	if _, err := ParseTier("best"); err == nil || !strings.Contains(err.Error(), "none, weak, partial, full, strong") {
		t.Error(err)
	}
	if _, err := ParseMode("on"); err == nil || !strings.Contains(err.Error(), "required, preferred, off") {
		t.Error(err)
	}
	if got := Tier(9).String() + Mode(-1).String(); got != "tier 9mode -1" {
		t.Error(got)
	}
}

func TestGaps(t *testing.T) {
	none := Capabilities{}
	if diff := cmp.Diff([]string{"may write anywhere", "may read the home directory", "may reach the network", "a child may outlive the request", "may see other processes"}, none.Gaps(Network{})); diff != "" {
		t.Error(diff)
	}
	open := none.Gaps(Network{Mode: NetworkOpen})
	if strings.Contains(strings.Join(open, ";"), "network") {
		t.Error("an opened network is a gap:", open)
	}
	var all Capabilities
	for _, a := range Aspects() {
		all.All = append(all.All, Capability{Aspect: a, Held: true})
	}
	if got := all.Gaps(Network{}); got != nil {
		t.Error(got)
	}
}

// fake is a backend by its tier.
type fake struct {
	name string
	tier Tier
}

func (f fake) Name() string               { return f.name }
func (f fake) Capabilities() Capabilities { return Capabilities{Backend: f.name, Tier: f.tier} }
func (f fake) Start(context.Context, Launch) (Job, error) {
	return nil, errors.New("a fake starts nothing")
}
func (f fake) Close() error { return nil }

func found(name string, tier Tier) Finding {
	return Finding{Name: name, Backend: fake{name, tier}}
}

// TestChoose: never less than was asked for, never the costly one unasked.
func TestChoose(t *testing.T) {
	broken := Finding{Name: "native", Problem: &Unavailable{Backend: "native", Step: "make namespaces", Err: errors.New("no"), Fix: "do this"}}
	native, bwrap, weak, gvisor, bare := found("native", TierFull), found("bwrap", TierFull), found("landlock", TierWeak), found("runsc", TierStrong), found(Bare, TierNone)
	full := DefaultPolicy()
	tests := []struct {
		name   string
		policy Policy
		found  []Finding
		want   string // the name, or what the refusal says
	}{
		{"the first that is good enough", full, []Finding{native, bwrap, gvisor, bare}, "native"},
		{"the next when the first is broken", full, []Finding{broken, bwrap, bare}, "bwrap"},
		{"a lower tier is not taken in silence", full, []Finding{broken, weak, bare}, "!landlock confines only at tier weak"},
		{"the refusal says what would help", full, []Finding{broken, bare}, "!do this"},
		{"a lowered minimum", Policy{Minimum: TierWeak}, []Finding{broken, weak, bare}, "landlock"},
		{"a minimum of none is no leave to run bare", Policy{Minimum: TierNone}, []Finding{broken, bare}, "!do this"},
		{"the strongest is asked for by its tier", Policy{Minimum: TierStrong}, []Finding{native, gvisor, bare}, "runsc"},
		{"or by its name", Policy{Minimum: TierFull, Backend: "runsc"}, []Finding{native, gvisor, bare}, "runsc"},
		{"and taken when nothing before it will do", full, []Finding{broken, weak, gvisor, bare}, "runsc"},
		{"by name", Policy{Minimum: TierFull, Backend: "bwrap"}, []Finding{native, bwrap}, "bwrap"},
		{"by name, too weak", Policy{Minimum: TierFull, Backend: "landlock"}, []Finding{native, weak}, "!tier weak"},
		{"by a name that is not there", Policy{Minimum: TierFull, Backend: "docker"}, []Finding{native}, "!no such backend"},
		{"bare by name", Policy{Minimum: TierFull, Backend: Bare}, []Finding{native, bare}, "!by bare: bare confines nothing"},
		{"preferred takes the best", Policy{Mode: Preferred, Minimum: TierFull}, []Finding{broken, weak, bare}, "landlock"},
		{"preferred runs bare at last", Policy{Mode: Preferred, Minimum: TierFull}, []Finding{broken, bare}, Bare},
		{"preferred takes what is good", Policy{Mode: Preferred, Minimum: TierFull}, []Finding{native, bare}, "native"},
		{"off is bare whatever there is", Policy{Mode: Off, Minimum: TierFull}, []Finding{native, bare}, Bare},
	}
	for _, tt := range tests {
		got, err := tt.policy.Choose(tt.found)
		said, refused := strings.CutPrefix(tt.want, "!")
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), said)):
			t.Errorf("%s: %v, %v", tt.name, got, err)
		case !refused && (err != nil || got.Name() != tt.want):
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	cause := errors.New("operation not permitted")
	var err error = &Unavailable{Backend: "native", Step: "make namespaces", Err: cause, Fix: "do this"}
	if got := err.Error(); got != "sandbox native: make namespaces: operation not permitted; do this" {
		t.Error(got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

package hostile

import (
	"fmt"
	"testing"

	"github.com/metier-run/metier/internal/sandbox"
)

// TestJudge: what is no proof is not taken for one.
func TestJudge(t *testing.T) {
	out := &outcome{escaped: []string{"a"}, held: []string{"b:EPERM"}}
	in := &outcome{held: []string{"a:EPERM", "b:EPERM"}}
	none, wrong := &outcome{}, &outcome{held: []string{"a:EPERM"}, broken: []string{"b:no-file"}}
	for _, c := range []struct {
		name    string
		kind    kind
		control bool
		o       *outcome
		text    string
		fault   bool
	}{
		{"all held", attack, false, in, isHeld, false},
		{"one way out", attack, false, out, isEscaped, true},
		{"nothing tried", attack, false, none, isBroken, true},
		{"one way not tried", attack, false, wrong, isBroken, true},
		{"held without confinement", attack, true, in, excepted, true},
		{"partly held without confinement", attack, true, out, partly, true},
		{"all out without confinement", attack, true, &outcome{escaped: []string{"a"}}, escapes, false},
		{"bad manners", manners, false, out, isEscaped, true},
		{"honest work", honest, false, none, works, false},
		{"honest work that fails", honest, false, wrong, isBroken, true},
		{"not prevented", told, false, out, isTold, false},
		{"prevented against what is told", told, false, in, isBroken, true},
	} {
		text, fault := judge(row{id: "x", kind: c.kind}, cell{ID: "x", User: "user"}, c.control, c.o)
		if text != c.text || (fault != "") != c.fault {
			t.Errorf("%s: %q, fault %q", c.name, text, fault)
		}
	}
}

// TestVerdict: only the computed marker is believed, and a secret in the output
// speaks against whatever the program says.
func TestVerdict(t *testing.T) {
	x := &trial{secret: "the secret"}
	say := func(n uint64, more string) sandbox.Result {
		text := fmt.Sprintf("%s\nVERDICT %d escaped= held=a:EPERM broken=\n", more, n)
		return sandbox.Result{Ended: sandbox.Exited, Stdout: sandbox.Output{Head: []byte(text), Total: int64(len(text))}}
	}
	if o := x.verdict(5, say(5*7919+13, "")); len(o.held) != 1 || len(o.broken)+len(o.escaped) > 0 {
		t.Errorf("the right marker: %s", o)
	}
	if o := x.verdict(5, say(5, "")); len(o.broken) == 0 {
		t.Errorf("the marker of an echo is believed: %s", o)
	}
	if o := x.verdict(5, say(5*7919+13, "SEEN the secret")); len(o.escaped) != 1 {
		t.Errorf("a secret in the output is not seen: %s", o)
	}
}

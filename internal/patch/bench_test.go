package patch

import (
	"context"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/guard"
)

// BenchmarkHostile is the worst that a patch can ask for within the limits: many
// hunks that nearly match everywhere in a large file of equal lines.
func BenchmarkHostile(b *testing.B) {
	d := newDisk(map[string]string{"f": strings.Repeat("\n", 8<<20)})
	var hunks strings.Builder
	for range 20 {
		hunks.WriteString("@@\n")
		hunks.WriteString(strings.Repeat(" \n", 2000))
		hunks.WriteString("-x\n")
	}
	p, err := Parse(env("*** Update File: f\n"+hunks.String()), guard.Clean, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Resolve(context.Background(), d, Limits{}); err == nil {
			b.Fatal("it matches")
		}
	}
}

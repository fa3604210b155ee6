package cli

import (
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/turn"
)

// TestProgressIsShort: a command that says much takes a few short lines of a terminal,
// in whatever pieces it comes, and a line without an end takes no memory.
func TestProgressIsShort(t *testing.T) {
	long := strings.Repeat("é", 3*shownWidth)
	cut := "  | " + strings.Repeat("é", shownWidth) + "...\n"
	for name, tt := range map[string]struct {
		pieces []string
		want   string
	}{
		"short":     {[]string{"a\nb", "c\n"}, "  | a\n  | bc\n"},
		"long":      {[]string{long + "\n"}, cut},
		"in pieces": {[]string{long, long, long + "\nb\n"}, cut + "  | b\n"},
		"as long":   {[]string{long[:2*shownWidth], "\n"}, "  | " + long[:2*shownWidth] + "\n"},
		"many":      {[]string{strings.Repeat("a\n", 20)}, strings.Repeat("  | a\n", shownLines) + "  | ...\n"},
		"no end":    {[]string{long}, ""},
	} {
		var said strings.Builder
		p := &progress{out: &said}
		for _, text := range tt.pieces {
			p.see(turn.Signal{Kind: turn.CallRunning, Text: text})
			if len(p.partial) > 4*(shownWidth+1) {
				t.Errorf("%s: %d bytes are kept", name, len(p.partial))
			}
		}
		if said.String() != tt.want {
			t.Errorf("%s: %q, want %q", name, said.String(), tt.want)
		}
	}
}

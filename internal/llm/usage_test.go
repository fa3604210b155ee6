package llm_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

// TestUsageAdd: whatever upstreams say, a sum is a number of tokens.
func TestUsageAdd(t *testing.T) {
	all := func(n int64) llm.Usage {
		return llm.Usage{Input: n, Output: n, Total: n, Cached: n, Written: n, Reasoning: n}
	}
	for _, c := range []struct{ a, b, want int64 }{
		{0, 0, 0},
		{1, 2, 3},
		{-5, 7, 7},
		{7, -5, 7},
		{-1, -1, 0},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64},
		{1, math.MaxInt64 - 1, math.MaxInt64},
		{math.MinInt64, math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64, math.MaxInt64},
	} {
		if diff := cmp.Diff(all(c.want), all(c.a).Add(all(c.b))); diff != "" {
			t.Errorf("%d and %d (-want +got):\n%s", c.a, c.b, diff)
		}
	}
}

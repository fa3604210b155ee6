package diagnose

import (
	"strings"
	"testing"
)

// BenchmarkRead reads as much as is kept of a command's two streams, in shapes that
// make readers work: the bound is a few hundredths of a second each.
func BenchmarkRead(b *testing.B) {
	const size = 64 << 10
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	for name, output := range map[string]string{
		"plain":   fill("all is well with line and line\n"),
		"one":     fill("x"),
		"modules": fill("No module named a; ModuleNotFoundError: No module named 'a'; 'a' is not a package "),
		"frames":  "Traceback (most recent call last):\n" + fill("  File \"main.py\", line 99, in f\n    x\n") + "ValueError: x\n",
		"stacks":  fill("Error: x\n    at f (main.js:99:1)\n"),
		"errors":  fill("a.c:99:1: error: x\n"),
		"paths":   fill("/srv/m/ws/s-1/work/src/"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				text := bench().Rewrite(output)
				Read(text, Facts{Python: "3.8"}).Coach()
				Repair(text, workspace)
			}
		})
	}
}

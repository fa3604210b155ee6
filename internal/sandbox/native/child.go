package native

import (
	"os"
	"runtime/debug"
)

// init leaves for a child's work before main begins, when this process was
// started as one. Nothing that the rest of the binary sets up is needed there,
// and a launch should not wait for it.
func init() {
	run := childOf(os.Args)
	if run == nil {
		return
	}
	if os.Args[0] != spawnerName {
		// The others are small and short: they never collect garbage.
		debug.SetGCPercent(-1)
	}
	os.Exit(run())
}

// childOf is the work of a child with these arguments; nil for any other process.
func childOf(args []string) func() int {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == canaryArgs && args[1] == canaryName:
		return func() int { return canaryMain(args[2:]) }
	}
	return child(args[0])
}

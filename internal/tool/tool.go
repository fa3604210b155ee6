// Package tool says what a set of tools is to the machine: what it offers on a
// path, and how a call is answered.
//
// It holds no tool. Sets live in its children; the machine in turn decides
// which calls reach them.
//
// Start at [Set].
package tool

import (
	"context"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// Env is what a call is judged by.
type Env struct {
	TurnID string
	Round  int
	// Attempt is 1 but for a call that is run again after a crash.
	Attempt int
	// Offer is what the call's own round offered.
	Offer journal.Offer
	// Path is the conversation up to the message that holds the call.
	Path journal.Path
	// Caller lists the names of the caller's own tools.
	Caller []string
	// Room is how many bytes of result the model's window has left for this call;
	// 0 when that is unknown. What is longer is cut.
	Room int
	// Progress, if set, is told what the call says while it runs. It never waits and
	// keeps nothing of its argument.
	Progress func(p []byte)
}

// Set is a set of the host's tools. It is safe for concurrent use.
type Set interface {
	// Offer is what the set offers on a path. It is a pure function of the path
	// and of what the set was made with.
	Offer(p journal.Path) journal.Offer
	// Invoke answers a call, also one to a tool that nobody has. A model's
	// mistake is a Result with a sentence to act on; an error is a fault of the
	// host.
	Invoke(ctx context.Context, c llm.Call, e Env) (journal.Result, error)
	// Ordered reports whether a call to the named tool begins only when the ordered
	// calls before it in its message have ended; the others run side by side.
	Ordered(name string) bool
	// Replay says what becomes of a call to the named tool that was sent and not
	// ended before a crash.
	Replay(name string) journal.Replay
}

// Written is a file that a call has just written, for a look at its syntax.
type Written struct {
	// Path is relative to the work folder, with "/" between names; Shown is how the
	// model would write it.
	Path, Shown string
	// Data is what the file holds.
	Data []byte
}

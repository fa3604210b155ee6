package turn

import (
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// Plan is what a state wants done next. The driver appends Record, then carries
// out Do, then asks the new state for its plan. Ids that a draft leaves empty,
// the offer of a generation and the replay of a call are stamped by the driver.
type Plan struct {
	// Record is appended before any of Do starts.
	Record []journal.Draft
	Do     []Effect
	// Wait lists what only somebody else can bring.
	Wait []Wait
	// End is set when the driver has nothing left to do.
	End *Outcome
}

// Effect is something to do outside the machine: [Generate] or [Invoke].
type Effect interface{ effect() }

// Generate asks the model for a reply.
type Generate struct {
	Round   int
	Attempt int
	Forced  bool
}

// Invoke has the host's toolset answer a call.
type Invoke struct {
	Call    llm.Call
	Attempt int
}

func (Generate) effect() {}
func (Invoke) effect()   {}

// Wait is something that a parked turn waits for.
type Wait struct {
	// Call is a caller's tool that has not been answered.
	Call llm.Call
}

// Reason says in which way a driver's run came to its end.
type Reason string

// The reasons. All but Parked close the turn.
const (
	Answered  Reason = Reason(journal.Answered)
	Failed    Reason = Reason(journal.Failed)
	Cancelled Reason = Reason(journal.Cancelled)
	Parked    Reason = "parked"
)

// Outcome is where a run of the driver ended.
type Outcome struct {
	Reason Reason
	// Finish is what a door reports to its client.
	Finish llm.Finish
	// Rounds counts the generations of the turn.
	Rounds int
	// Usage sums them.
	Usage llm.Usage
	// Model is what the upstream called itself in the last round.
	Model string
	// Waits is what a parked turn waits for.
	Waits []Wait
	// Error is the text of a failure.
	Error string
	// OutOfRounds is set when the answer was forced, and still asked for tools.
	OutOfRounds bool
	// Elided counts the results that were left out of later rounds to make room.
	Elided int
}

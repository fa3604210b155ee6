package turn

import (
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// SignalKind says what a [Signal] tells.
type SignalKind int

// The kinds, in the order in which a round sends them. The last two are sent only if
// [Driver.Progress] is set.
const (
	// RoundStarted: a generation was announced and is being asked for.
	RoundStarted SignalKind = iota + 1
	// Delta: a piece of the reply that the client may see.
	Delta
	// RoundEnded: the whole reply is in the journal.
	RoundEnded
	// CallStarted: the host runs a call.
	CallStarted
	// CallEnded: the call's result is in the journal.
	CallEnded
	// CallWriting: a piece of a call of the host comes, before RoundEnded.
	CallWriting
	// CallRunning: a call of the host has said something, between CallStarted and
	// CallEnded.
	CallRunning
)

// Signal tells a watcher how a turn goes. Only [Delta] is meant for the client
// of a chat door; the others are for progress, logs and records. What a signal
// points to is valid until emit returns.
type Signal struct {
	Kind  SignalKind
	Round int
	// Piece is set on Delta. It holds no call of the host, its calls are numbered
	// densely, and its finish and usage are there only when the round is the
	// turn's last. Its Raw is empty when anything of that was changed.
	Piece *llm.Piece
	// Reply is set on RoundEnded, with all its calls.
	Reply *llm.Reply
	// Call is set on CallStarted, CallRunning and CallEnded; on CallWriting only its
	// name.
	Call   llm.Call
	Result journal.Result
	// Text is the piece of CallWriting or CallRunning.
	Text string
}

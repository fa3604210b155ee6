// Package journal keeps what happened in a session or a request, as facts that
// are stored once and never changed.
//
// A [Log] is an append-only list of [Event] values. Everything else (the
// message tree, its head, the active path, the state of a turn) is a fold over
// it. Whoever appends says at which [Position] it believes the log to stand,
// so that two drivers can never both move one turn.
//
// The package decides nothing and calls nobody: the machine in turn does.
// Deltas of a stream are never events; whole rounds are (DESIGN section 2).
//
// Start at [Log], then [Data] for the kinds of facts, then [Tree].
package journal

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Schema is the version of the facts that this build writes.
const Schema = 1

// NodeID names a message in the tree. The empty id is the root.
type NodeID string

// Event is one stored fact.
type Event struct {
	Seq    int64 // from 1, without gaps
	Schema int
	At     time.Time
	TurnID string
	// Anchor is the node that the fact belongs to: the tip of the path on which
	// it happened.
	Anchor NodeID
	Data   Data
}

// Draft is a fact that is not stored yet. The log adds sequence and time.
type Draft struct {
	TurnID string
	Anchor NodeID
	Data   Data
}

// Position is where a writer believes the log to stand.
type Position struct {
	// Seq is the sequence number of the last event that the writer has seen.
	Seq int64
	// Fence is the writer's term. Who opens a log for writing gets a higher one,
	// and the one before can write no more.
	Fence int64
}

// Errors of [Log.Append].
var (
	// ErrConflict: the log has events that the writer has not seen. Read them,
	// fold them, and plan again.
	ErrConflict = errors.New("journal: the log has moved on")
	// ErrFenced: another writer has taken the log over. Stop.
	ErrFenced = errors.New("journal: another writer owns the log")
)

// Log is the journal of one session or one request. All implementations run the
// suite of journaltest. It is safe for concurrent use.
type Log interface {
	// Read yields the events after the given sequence number that are stored
	// when it is called. An error is the last element.
	Read(ctx context.Context, after int64) iter.Seq2[Event, error]
	// Follow yields the events after the given sequence number and then those that
	// are appended, each once and in order, until ctx ends or its consumer stops. A
	// slow consumer keeps no writer waiting. The error is the last element.
	Follow(ctx context.Context, after int64) iter.Seq2[Event, error]
	// Append stores all drafts or none and returns the new position. It fails
	// with [ErrConflict] or [ErrFenced] when at is not the log's own position.
	Append(ctx context.Context, at Position, drafts ...Draft) (Position, error)
}

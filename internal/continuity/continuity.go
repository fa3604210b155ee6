// Package continuity remembers, for clients that keep no state here, what they
// never saw of their own conversation: the rounds in which the host answered.
//
// A client sends back what it saw. The same visible conversation, of the same
// caller, under the same selection, leads by a chain of hashes to the messages
// that really were exchanged, and they are put back in place of the visible
// one. Anything that differs is a miss, and a miss is plain forwarding, never an
// error (DESIGN section 2, "Continuity for stateless clients").
//
// The package decides nothing about a turn and reads no wire format: messages
// come expanded.
//
// Start at [Scope] and [Restore].
package continuity

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"time"

	"github.com/metier-run/metier/internal/llm"
)

// Scope is what a conversation must have in common with the one before to be
// its continuation.
type Scope struct {
	Tenant string
	// Key is the caller, User the end user that it acts for.
	Key, User string
	Model     string
	// Skills are the selected ones, Discovery whether others are advertised.
	Skills    []string
	Discovery bool
	// Nameless: clients of the dialect keep no ids of calls, so that messages are told
	// apart without them, and calls by their order.
	Nameless bool
}

// Told is a message as the conversation's clients keep it.
func (s Scope) Told(m llm.Message) llm.Message {
	if !s.Nameless {
		return m
	}
	m.CallID, m.Calls = "", slices.Clone(m.Calls)
	for i := range m.Calls {
		m.Calls[i].ID = ""
	}
	return m
}

// Owner is whose bytes an entry counts against, and who alone can find it.
type Owner struct{ Tenant, Key string }

// Owner is whom the conversation belongs to.
func (s Scope) Owner() Owner { return Owner{s.Tenant, s.Key} }

// Mark identifies a visible conversation up to one of its messages.
type Mark [sha256.Size]byte

// Chain is the mark of the empty conversation in the scope.
func (s Scope) Chain() Mark {
	h := sha256.New()
	skills := slices.Sorted(slices.Values(s.Skills))
	who := []string{s.Tenant, s.Key, s.User, s.Model, boolWord(s.Discovery)}
	if s.Nameless {
		who = append(who, "nameless", "")
	}
	putAll(h, append(who, skills...)...)
	return Mark(h.Sum(nil))
}

func boolWord(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// Add is the mark of a conversation with one more message. Only what clients
// send back unchanged counts: see [Canonical].
func (m Mark) Add(message llm.Message) Mark {
	h := sha256.New()
	h.Write(m[:])
	putAll(h, Canonical(message)...)
	return Mark(h.Sum(nil))
}

// AddCalls is the mark of a conversation with one more message whose calls are
// known by id and name alone; ok is false for a message without such calls.
// Clients that hold a call against a schema send back what that made of it:
// members dropped, defaults filled in.
func (m Mark) AddCalls(message llm.Message) (at Mark, ok bool) {
	if len(message.Calls) == 0 || slices.ContainsFunc(message.Calls, func(c llm.Call) bool { return c.ID == "" }) {
		return Mark{}, false
	}
	bare := message
	bare.Calls = slices.Clone(message.Calls)
	for i := range bare.Calls {
		bare.Calls[i].Arguments = ""
	}
	h := sha256.New()
	h.Write(m[:])
	putAll(h, append([]string{"calls"}, Canonical(bare)...)...)
	return Mark(h.Sum(nil)), true
}

// putAll writes texts so that no two lists give the same bytes.
func putAll(h hash.Hash, texts ...string) {
	var size [8]byte
	for _, t := range texts {
		binary.BigEndian.PutUint64(size[:], uint64(len(t)))
		h.Write(size[:])
		h.Write([]byte(t))
	}
}

// Round is a hidden round: the model's message and the host's answers to it.
type Round struct {
	Message llm.Message   `json:"message"`
	Results []llm.Message `json:"results,omitzero"`
	// Skills are those that the round's calls read.
	Skills []string `json:"skills,omitzero"`
	// Workspace names the workspace that the round's calls worked in; empty when they
	// worked in none.
	Workspace string `json:"workspace,omitzero"`
}

// Entry is what stands behind one visible assistant message.
type Entry struct {
	// Hidden are the rounds before the last one.
	Hidden []Round `json:"hidden,omitzero"`
	// Last is the message that the visible one shows the end of, with the host's
	// results when it also called the caller.
	Last Round `json:"last"`
}

// Size is how many bytes an entry counts for.
func (e Entry) Size() int64 {
	size := e.Last.size()
	for _, r := range e.Hidden {
		size += r.size()
	}
	return size
}

func (r Round) size() int64 {
	size := messageSize(r.Message)
	for _, m := range r.Results {
		size += messageSize(m)
	}
	return size
}

// overhead is what a message costs beside its text.
const overhead = 256

func messageSize(m llm.Message) int64 {
	size := int64(overhead + len(m.Raw.Bytes) + len(m.CallID))
	for _, p := range m.Parts {
		size += int64(len(p.Text) + len(p.Raw.Bytes))
	}
	for _, c := range m.Calls {
		size += int64(len(c.ID) + len(c.Name) + len(c.Arguments))
	}
	return size
}

// Store keeps entries. All implementations run the suite of continuitytest. It
// is safe for concurrent use.
type Store interface {
	// Put keeps an entry under a mark. What no longer fits the owner's bounds
	// goes, oldest use first, at once or soon after.
	Put(ctx context.Context, owner Owner, at Mark, e Entry) error
	// Get finds an entry of an owner.
	Get(ctx context.Context, owner Owner, at Mark) (Entry, bool, error)
	// Any reports whether the owner has any entry: without one nothing need be
	// hashed.
	Any(ctx context.Context, owner Owner) (bool, error)
}

// Bounds limit a [Store].
type Bounds struct {
	Bytes   int64         // of one owner
	Entries int           // of one owner
	Age     time.Duration // since the last use
}

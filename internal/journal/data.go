package journal

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// Kind names a kind of fact in stored form. A kind is never reused or renamed.
type Kind string

// Data is the content of an event: one of the types of this file.
type Data interface{ Kind() Kind }

// The kinds.
const (
	KindMessagesAdded     Kind = "messages.added"
	KindTurnStarted       Kind = "turn.started"
	KindTurnResumed       Kind = "turn.resumed"
	KindTurnEnded         Kind = "turn.ended"
	KindGenerateRequested Kind = "generate.requested"
	KindGenerateEnded     Kind = "generate.ended"
	KindGenerateFailed    Kind = "generate.failed"
	KindInvokeRequested   Kind = "invoke.requested"
	KindInvokeEnded       Kind = "invoke.ended"
	KindResultsElided     Kind = "results.elided"
	KindSessionCreated    Kind = "session.created"
	KindHeadMoved         Kind = "head.moved"
	KindConfigSet         Kind = "config.set"
	KindStateSet          Kind = "state.set"
)

// Kinds lists the kinds that this build knows.
func Kinds() []Kind {
	return []Kind{
		KindMessagesAdded, KindTurnStarted, KindTurnResumed, KindTurnEnded, KindGenerateRequested, KindGenerateEnded,
		KindGenerateFailed, KindInvokeRequested, KindInvokeEnded, KindResultsElided, KindSessionCreated, KindHeadMoved,
		KindConfigSet, KindStateSet,
	}
}

// SessionCreated is the first fact of a session.
type SessionCreated struct {
	// Agent is the declared agent; empty for a plain conversation.
	Agent string `json:"agent,omitzero"`
	// Owner is whose session it is, within its tenant.
	Owner string `json:"owner,omitzero"`
	// Origin is the surface that made it, such as "run" or "web".
	Origin string `json:"origin,omitzero"`
}

// HeadMoved makes another node the head (B2 1.7). Work in flight on the branch that was
// left is void, and its turn is cancelled.
type HeadMoved struct {
	To NodeID `json:"to,omitzero"` // empty is the root
}

// ConfigSet is a version of the session's configuration, StateSet one of its state. Each
// belongs to the event's anchor: on a path, the newest whose anchor lies on it wins. The
// empty anchor is the root, which lies on every path (B2 1.11).
type (
	ConfigSet struct {
		Value jsontext.Value `json:"value"`
	}
	StateSet struct {
		Value jsontext.Value `json:"value"`
	}
)

// Entry is a message and the node that it becomes.
type Entry struct {
	ID      NodeID      `json:"id"`
	Message llm.Message `json:"message"`
}

// MessagesAdded hangs a chain of messages below the event's anchor and moves
// the head to the last of them.
type MessagesAdded struct {
	Entries []Entry `json:"entries"`
}

// Bounds limit a turn (DESIGN section 2, rule 5).
type Bounds struct {
	// Rounds is how many rounds in a row may end in calls that the host answers.
	// An answer from outside (a new input, a caller's result) starts the count again.
	Rounds int `json:"rounds"`
	// Calls is how many of them are answered in one round.
	Calls int `json:"calls"`
}

// TurnStarted opens a turn. It holds everything that was rendered for it, so
// that a restart, or a newer binary, sends the same bytes.
type TurnStarted struct {
	Model string `json:"model"`
	// Dialect and Rest are the caller's own members (see [llm.Request]).
	Dialect llm.Dialect  `json:"dialect,omitzero"`
	Rest    []llm.Member `json:"rest,omitzero"`
	Options llm.Options  `json:"options,omitzero"`
	// Added are those that the host adds (see [llm.Request]).
	Added []llm.Member `json:"added,omitzero"`
	// Caller lists the tools that the caller brought and will answer itself.
	Caller []llm.Declaration `json:"caller,omitzero"`
	// Block is the text put behind the leading system or developer message, or
	// in a message of its own when there is none.
	Block  string `json:"block,omitzero"`
	Bounds Bounds `json:"bounds"`
	// ResultsAsUser is set for models that drop messages of role tool.
	ResultsAsUser bool `json:"results_as_user,omitzero"`
	// Context is the model's window in tokens; 0 when it is unknown.
	Context int `json:"context,omitzero"`
	// Snapshot is the digest of the skills that the turn sees.
	Snapshot string `json:"snapshot,omitzero"`
}

// TurnResumed says that a driver took the turn over with effects announced and
// not ended: whoever carried them out is gone.
type TurnResumed struct{}

// Reason says how a turn ended.
type Reason string

// The reasons.
const (
	Answered  Reason = "answered"
	Failed    Reason = "failed"
	Cancelled Reason = "cancelled"
)

// TurnEnded closes a turn.
type TurnEnded struct {
	Reason Reason `json:"reason"`
	// Error is the text of a failure.
	Error string `json:"error,omitzero"`
}

// Replay says what becomes of a call that was sent and not ended before a
// crash.
type Replay string

// The replays. Exactly-once does not exist: a tool is run again, or its call is
// answered as interrupted.
const (
	Again Replay = "again"
	Never Replay = "never"
)

// Offer is what the host's toolset offers on a path. Calls are judged by the
// offer of their own round.
type Offer struct {
	// Declared tools are in the request, in this order. Unlocking appends.
	Declared []llm.Declaration `json:"declared,omitzero"`
}

// GenerateRequested announces a generation.
type GenerateRequested struct {
	ID      string `json:"id"`
	Round   int    `json:"round"`   // from 1, over the whole turn
	Attempt int    `json:"attempt"` // from 1
	// Forced marks the answer that is asked for when the rounds are used up.
	Forced bool           `json:"forced,omitzero"`
	Choice llm.ChoiceMode `json:"choice,omitzero"`
	// Offer is nil when it is that of the generation before.
	Offer *Offer `json:"offer,omitzero"`
}

// Handler says who answers a call.
type Handler string

// The handlers.
const (
	Host   Handler = "host"
	Caller Handler = "caller"
)

// GenerateEnded records a whole generation.
type GenerateEnded struct {
	ID    string    `json:"id"`
	Node  NodeID    `json:"node"`
	Reply llm.Reply `json:"reply"`
	// Handlers has one entry for each call of the reply.
	Handlers []Handler `json:"handlers,omitzero"`
}

// GenerateFailed records that a generation gave nothing.
type GenerateFailed struct {
	ID    string `json:"id"`
	Error string `json:"error"`
	// Overflow: the conversation did not fit the model's window, of Limit tokens
	// if the upstream said how many.
	Overflow bool `json:"overflow,omitzero"`
	Limit    int  `json:"limit,omitzero"`
}

// Elided is a result that no longer goes to the model, and what goes in its
// place.
type Elided struct {
	Node NodeID `json:"node"`
	Text string `json:"text"`
}

// ResultsElided makes room in the model's window. The results themselves stay
// in the tree.
type ResultsElided struct {
	Results []Elided `json:"results"`
}

// InvokeRequested announces that the host runs a call.
type InvokeRequested struct {
	Call    llm.Call `json:"call"`
	Attempt int      `json:"attempt"` // from 1
	Replay  Replay   `json:"replay"`
}

// Result is the answer to a call.
type Result struct {
	// Text is what the model reads.
	Text string `json:"text"`
	OK   bool   `json:"ok"`
	// Skill and Detail say what was touched, for logs and progress.
	Skill  string `json:"skill,omitzero"`
	Detail string `json:"detail,omitzero"`
	// Workspace says that the call worked with the files of a workspace.
	Workspace bool `json:"workspace,omitzero"`
	// Files are what the call made and a person can fetch.
	Files []File `json:"files,omitzero"`
}

// File is a file that a person can fetch.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"` // or its path on this host
}

// InvokeEnded records the answer to a call, the host's or the caller's.
type InvokeEnded struct {
	CallID string `json:"call_id"`
	Result Result `json:"result"`
}

// Kind is the stored name of the fact.
func (MessagesAdded) Kind() Kind { return KindMessagesAdded }

// Kind is the stored name of the fact.
func (TurnStarted) Kind() Kind { return KindTurnStarted }

// Kind is the stored name of the fact.
func (TurnResumed) Kind() Kind { return KindTurnResumed }

// Kind is the stored name of the fact.
func (TurnEnded) Kind() Kind { return KindTurnEnded }

// Kind is the stored name of the fact.
func (GenerateRequested) Kind() Kind { return KindGenerateRequested }

// Kind is the stored name of the fact.
func (GenerateEnded) Kind() Kind { return KindGenerateEnded }

// Kind is the stored name of the fact.
func (GenerateFailed) Kind() Kind { return KindGenerateFailed }

// Kind is the stored name of the fact.
func (InvokeRequested) Kind() Kind { return KindInvokeRequested }

// Kind is the stored name of the fact.
func (InvokeEnded) Kind() Kind { return KindInvokeEnded }

// Kind is the stored name of the fact.
func (ResultsElided) Kind() Kind { return KindResultsElided }

// Kind is the stored name of the fact.
func (SessionCreated) Kind() Kind { return KindSessionCreated }

// Kind is the stored name of the fact.
func (HeadMoved) Kind() Kind { return KindHeadMoved }

// Kind is the stored name of the fact.
func (ConfigSet) Kind() Kind { return KindConfigSet }

// Kind is the stored name of the fact.
func (StateSet) Kind() Kind { return KindStateSet }

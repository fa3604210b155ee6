// Package llm is the neutral view of a conversation with a model: messages,
// calls, declarations, requests, and the pieces of a streamed reply.
//
// Beside the neutral fields a value keeps its [Raw] bytes, so that a provider
// that speaks the dialect a client used sends those bytes verbatim. Neutral
// fields are filled where somebody needs them: a door that feeds an upstream of
// its own dialect leaves [Message.Parts] empty.
//
// The package knows no wire format and opens no connection: dialects live in
// its children.
//
// Start at [Provider].
package llm

import (
	"context"
	"iter"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Dialect names a wire format.
type Dialect string

// The dialects that a provider speaks.
const (
	OpenAIChat Dialect = "openai.chat"
	Anthropic  Dialect = "anthropic.messages"
	Ollama     Dialect = "ollama.chat"
)

// Raw is a value exactly as it stood on the wire.
type Raw struct {
	Dialect Dialect        `json:"dialect,omitzero"`
	Bytes   jsontext.Value `json:"bytes,omitzero"`
}

// Is reports whether r holds bytes of dialect d.
func (r Raw) Is(d Dialect) bool { return r.Dialect == d && len(r.Bytes) > 0 }

// Role is who speaks in a message.
type Role string

// The roles.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one entry of a conversation.
type Message struct {
	Role Role `json:"role"`
	// CallID is the call that a message of role [Tool] answers.
	CallID string `json:"call_id,omitzero"`
	Parts  []Part `json:"parts,omitzero"`
	Calls  []Call `json:"calls,omitzero"`
	Raw    Raw    `json:"raw,omitzero"`
	// Tail is text that the host adds behind the message's own. A provider
	// renders it after a blank line and leaves every other byte of Raw alone
	// (seed 1, "Prompt injection and the KV prefix cache").
	Tail string `json:"tail,omitzero"`
	// Joined says that on the wire the message and the one before it are one: a dialect
	// whose results of calls stand inside a user's message has several of ours in one.
	// Raw holds the message's own piece of it then.
	Joined bool `json:"joined,omitzero"`
}

// PartKind says what a [Part] holds.
type PartKind string

// The kinds of parts.
const (
	Text      PartKind = "text"
	Reasoning PartKind = "reasoning"
	Image     PartKind = "image"
	File      PartKind = "file"  // a document, a sound, any other file
	Other     PartKind = "other" // anything that only its own dialect can carry
)

// Part is a piece of a message's content.
type Part struct {
	Kind PartKind `json:"kind"`
	Text string   `json:"text,omitzero"`
	// Media is set on [Image] and [File].
	Media *Media `json:"media,omitzero"`
	Raw   Raw    `json:"raw,omitzero"`
}

// TextMessage is a message of one text part.
func TextMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Kind: Text, Text: text}}}
}

// Text is the text of the message's parts, joined, without reasoning and tail.
func (m Message) Text() string {
	if len(m.Parts) == 1 && m.Parts[0].Kind == Text {
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == Text {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Call is a model's wish to have a tool run.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is what the model wrote, usually a JSON object, not yet judged.
	Arguments string `json:"arguments"`
	// Rescued marks a call that the model wrote as text. The message goes back as
	// it was written, so nothing in it has the call's id: its result goes back as
	// a user turn.
	Rescued bool `json:"rescued,omitzero"`
}

// Declaration tells a model of one tool.
type Declaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	// Parameters is a JSON Schema of type object.
	Parameters jsontext.Value `json:"parameters,omitzero"`
	// Special marks a tool that is no function with a schema: only its own dialect can
	// declare it.
	Special bool `json:"special,omitzero"`
	Raw     Raw  `json:"raw,omitzero"`
}

// ChoiceMode is what a request allows a model to do with its tools.
type ChoiceMode string

// The modes. The zero value leaves the client's own wish as it is.
const (
	ChoiceUnset    ChoiceMode = ""
	ChoiceAuto     ChoiceMode = "auto"
	ChoiceNone     ChoiceMode = "none"
	ChoiceRequired ChoiceMode = "required"
	ChoiceNamed    ChoiceMode = "named"
	ChoiceOther    ChoiceMode = "other" // a form that only the dialect understands
)

// Options are a client's settings in neutral form: those that the host acts on, and those
// that more than one dialect has. A door fills them whatever the upstream speaks; a
// provider reads them only of a request of another dialect. What is nil or zero was not
// said.
type Options struct {
	Choice ChoiceMode `json:"choice,omitzero"`
	// Function is the tool that [ChoiceNamed] names.
	Function string `json:"function,omitzero"`
	// Structured is set when the reply must be JSON of a given form; Schema is that form,
	// and empty when any object will do.
	Structured bool           `json:"structured,omitzero"`
	Schema     jsontext.Value `json:"schema,omitzero"`
	// MaxTokens bounds the reply; 0 when the client set no bound.
	MaxTokens int `json:"max_tokens,omitzero"`
	// Choices is how many alternatives are asked for; 0 and 1 are the same.
	Choices int `json:"choices,omitzero"`

	Temperature      *float64 `json:"temperature,omitzero"`
	TopP             *float64 `json:"top_p,omitzero"`
	TopK             *int     `json:"top_k,omitzero"`
	Seed             *int64   `json:"seed,omitzero"`
	Stop             []string `json:"stop,omitzero"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitzero"`
	PresencePenalty  *float64 `json:"presence_penalty,omitzero"`
	// RepeatPenalty is what local servers multiply the odds of tokens that come again
	// with; 1 is none.
	RepeatPenalty *float64 `json:"repeat_penalty,omitzero"`
	// Parallel: the model may write several calls in one reply.
	Parallel *bool `json:"parallel,omitzero"`
	// Effort is how much the model thinks before it answers: one of "none", "minimal",
	// "low", "medium", "high" and "xhigh", in that order.
	Effort string `json:"effort,omitzero"`
}

// Member is one member of a client's request object.
type Member struct {
	Name string `json:"name"`
	// Value is empty where the provider writes the member itself: messages and
	// tools keep their places in the client's order that way.
	Value jsontext.Value `json:"value,omitzero"`
	// Neutral: the request's neutral fields say the same, so that nothing is lost where
	// the member itself cannot go.
	Neutral bool `json:"neutral,omitzero"`
}

// Request is one generation to ask for.
type Request struct {
	Model    string
	Messages []Message
	Tools    []Declaration
	Options  Options
	// Choice replaces the client's tool choice, if set (DESIGN section 2, rule 5).
	Choice ChoiceMode
	// Rest holds the client's members in their order, in dialect Dialect.
	Dialect Dialect
	Rest    []Member
	// Added are members in the provider's own dialect that the host adds for the sampler.
	// One that the client says too stays the client's, unless that is null.
	Added []Member
	// Header holds headers of the client that an upstream may see, its credential always
	// as "Authorization: Bearer". It is never stored. A provider of another dialect than
	// Dialect sends none but the credential.
	Header http.Header
}

// Take removes a member from Rest and returns its value, or nil.
func (r *Request) Take(name string) jsontext.Value {
	for i, m := range r.Rest {
		if m.Name == name {
			r.Rest = append(r.Rest[:i:i], r.Rest[i+1:]...)
			return m.Value
		}
	}
	return nil
}

// Authorization is the header of a client's credential in [Request.Header].
const Authorization = "Authorization"

// Finish says why a generation ended.
type Finish string

// The reasons that more than one dialect has. A provider passes any other through as its
// upstream wrote it, and a door writes one that its dialect has not as [FinishStop].
const (
	FinishStop    Finish = "stop"
	FinishCalls   Finish = "tool_calls"
	FinishLength  Finish = "length"
	FinishRefused Finish = "content_filter" // the upstream would not answer
)

// Usage counts tokens. Fields that an upstream does not report stay 0.
type Usage struct {
	Input     int64 `json:"input,omitzero"`
	Output    int64 `json:"output,omitzero"`
	Total     int64 `json:"total,omitzero"`
	Cached    int64 `json:"cached,omitzero"`    // of Input, read from a cache
	Written   int64 `json:"written,omitzero"`   // of Input, written to a cache
	Reasoning int64 `json:"reasoning,omitzero"` // of Output
}

// Add is the sum of two usages. What an upstream says of itself may be anything: less than
// nothing counts as nothing, and a sum stays at the largest number there is.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: sum(u.Input, v.Input), Output: sum(u.Output, v.Output), Total: sum(u.Total, v.Total),
		Cached: sum(u.Cached, v.Cached), Written: sum(u.Written, v.Written), Reasoning: sum(u.Reasoning, v.Reasoning),
	}
}

func sum(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	return a + min(b, math.MaxInt64-a)
}

// CallDelta is a fragment of a call. The first fragment of an index carries its
// ID and Name.
type CallDelta struct {
	Index     int
	ID, Name  string
	Arguments string
	// Raw is the element as it stood in the wire event.
	Raw jsontext.Value
}

// Piece is one step of a streamed reply. Text and Raw are valid until the next
// piece is asked for.
type Piece struct {
	// Choice is the alternative that the piece belongs to; the machine reads
	// only 0 and passes the others through.
	Choice    int
	Text      string
	Reasoning string
	Calls     []CallDelta
	Finish    Finish
	Usage     *Usage
	// Raw is the whole wire event in the upstream's dialect.
	Raw Raw
	// Repeats says that Raw is the wire event of the piece before but for its
	// text, which needs no escapes.
	Repeats bool
	// More says that the next piece is here already: a door may wait with its
	// flush.
	More bool
	// Reply is set on the last piece only.
	Reply *Reply
}

// Reply is a whole generation.
type Reply struct {
	// Message is the assistant's message; its Raw is what goes back to the
	// upstream in the next round.
	Message Message `json:"message"`
	Finish  Finish  `json:"finish"`
	Usage   Usage   `json:"usage"`
	// Model is the name that the upstream gave itself.
	Model string `json:"model,omitzero"`
}

// Capabilities are what a model can carry (DESIGN section 3).
type Capabilities struct {
	// Declares: the model is told of declared tools.
	Declares bool
	// Parsed: its calls come back as calls, not as text.
	Parsed bool
	// Results: it accepts messages of role tool. Without it results go as user turns.
	Results bool
	// Context is the number of tokens of its window; 0 when unknown.
	Context int
	// Penalty names the member of a request that lifts the upstream's own penalty on
	// tokens that come again, with the value 1; empty when it has none by default.
	Penalty string
}

// Tools reports whether a model can finish a call's round trip.
func (c Capabilities) Tools() bool { return c.Declares && c.Parsed }

// Model is an entry of an upstream's list.
type Model struct {
	ID  string
	Raw Raw
}

// Provider speaks to one upstream. All implementations run the suite of
// llmtest.
type Provider interface {
	// Dialect is the wire format whose Raw bytes Stream sends verbatim; empty
	// when there is none.
	Dialect() Dialect
	// Capabilities tells what the named model can carry.
	Capabilities(ctx context.Context, model string) (Capabilities, error)
	// Models lists what the upstream offers.
	Models(ctx context.Context) ([]Model, error)
	// Lost names what of a request the upstream is not told of, in a few words for its
	// client, such as `the member "logit_bias"` or "images"; see [Request.Lost]. Nothing
	// of a request of the provider's own dialect is lost.
	Lost(r *Request) []string
	// Stream asks for one generation. The last piece has Reply set; the ids of its calls
	// are not empty and differ. An error is
	// the last element; [*StatusError] is what an upstream itself answered. The
	// consumer may stop early and everything is released.
	Stream(ctx context.Context, r *Request) iter.Seq2[Piece, error]
}

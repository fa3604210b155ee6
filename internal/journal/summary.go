package journal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/llm"
)

// Status says what a session is doing, by its last turn (B2 18.6).
type Status string

// The statuses.
const (
	Idle    Status = "idle"    // no turn is open, and the last one was answered
	Running Status = "running" // a turn is open, and the host has something to do
	Waiting Status = "waiting" // a turn is open, and waits for somebody else
	Ended   Status = "ended"   // no turn is open, and the last one failed or was cancelled
)

// Summary is what a list of sessions shows. It is a fold that needs nothing but the
// summary before and an event, so that a store can keep it beside the log: a cache that
// can be thrown away and folded anew.
type Summary struct {
	// Agent is the declared agent, Owner whose session it is, Origin the surface that
	// made it; each may be empty.
	Agent  string `json:"agent,omitzero"`
	Owner  string `json:"owner,omitzero"`
	Origin string `json:"origin,omitzero"`
	// Title is the beginning of what was asked first, in one line.
	Title string `json:"title,omitzero"`
	// Model is that of the last turn.
	Model  string `json:"model,omitzero"`
	Status Status `json:"status"`
	// Reason is how the last turn ended; empty before the first and while one is open.
	Reason Reason `json:"reason,omitzero"`
	// Turns counts all that were begun, Messages all nodes of the tree.
	Turns    int       `json:"turn_count"`
	Messages int       `json:"message_count"`
	Usage    llm.Usage `json:"usage,omitzero"`
	Head     NodeID    `json:"head,omitzero"`
	// CreatedAt and UpdatedAt are the times of the first and the last event.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// Open are the calls of the last reply that somebody outside answers, by their ids;
	// Hosted counts those that the host has to answer.
	Open   []string `json:"open,omitzero"`
	Hosted int      `json:"hosted,omitzero"`
	// Forced is set while the answer is asked for that ends a turn out of rounds: the host
	// answers none of its calls.
	Forced bool `json:"forced,omitzero"`
}

// Apply folds one event.
func (s Summary) Apply(e Event) Summary {
	if s.CreatedAt.IsZero() {
		s.CreatedAt, s.Status = e.At, Idle
	}
	s.UpdatedAt = e.At
	switch d := e.Data.(type) {
	case SessionCreated:
		s.Agent, s.Owner, s.Origin = d.Agent, d.Owner, d.Origin
	case MessagesAdded:
		s = s.added(d)
	case HeadMoved:
		s = s.nothingOpen()
		s.Head = d.To
		if s.busy() {
			s.Status, s.Reason = Ended, Cancelled
		}
	case TurnStarted:
		s = s.nothingOpen()
		s.Model, s.Status, s.Reason = d.Model, Running, ""
		s.Turns++
	case TurnEnded:
		s = s.nothingOpen()
		s.Status, s.Reason = Ended, d.Reason
		if d.Reason == Answered {
			s.Status = Idle
		}
	case GenerateRequested:
		s.Forced = d.Forced
	case GenerateEnded:
		s = s.generated(d)
	case InvokeEnded:
		s = s.answered(d)
	}
	return s
}

func (s Summary) added(d MessagesAdded) Summary {
	s.Messages += len(d.Entries)
	for _, m := range d.Entries {
		s.Head = m.ID
		if s.Title == "" && m.Message.Role == llm.User {
			s.Title = title(m.Message.Text())
		}
	}
	return s.nothingOpen().waits()
}

// generated opens the calls of a reply: those that the turn goes on with.
func (s Summary) generated(d GenerateEnded) Summary {
	forced := s.Forced
	s = s.nothingOpen()
	s.Messages++
	s.Head, s.Usage = d.Node, s.Usage.Add(d.Reply.Usage)
	if d.Reply.Finish == llm.FinishLength {
		return s.waits() // cut: none of its calls is answered
	}
	for i, c := range d.Reply.Message.Calls {
		if i < len(d.Handlers) && d.Handlers[i] == Caller {
			s.Open = append(s.Open, c.ID)
		} else if !forced {
			s.Hosted++
		}
	}
	return s.waits()
}

func (s Summary) answered(d InvokeEnded) Summary {
	for i, id := range s.Open {
		if id == d.CallID {
			s.Open = append(append([]string(nil), s.Open[:i]...), s.Open[i+1:]...)
			return s.waits()
		}
	}
	s.Hosted = max(0, s.Hosted-1)
	return s.waits()
}

// nothingOpen is the summary when no call is open and none can be.
func (s Summary) nothingOpen() Summary {
	s.Open, s.Hosted, s.Forced = nil, 0, false
	return s
}

// busy reports whether a turn is open.
func (s Summary) busy() bool { return s.Status == Running || s.Status == Waiting }

// waits says what an open turn does, by its open calls.
func (s Summary) waits() Summary {
	if !s.busy() {
		return s
	}
	s.Status = Running
	if len(s.Open) > 0 && s.Hosted == 0 {
		s.Status = Waiting
	}
	return s
}

// titleRunes is how long a title is at most, in characters.
const titleRunes = 80

// title is the beginning of a text, in one line of characters that a terminal shows.
func title(text string) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(strings.ToValidUTF8(text, "")) {
		word = strings.Map(shown, word)
		if word == "" {
			continue
		}
		if n > 0 {
			b.WriteByte(' ')
			n++
		}
		for _, r := range word {
			if n++; n > titleRunes {
				return strings.TrimSpace(b.String()) + "…"
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shown drops characters that draw nothing or change how others are drawn.
func shown(r rune) rune {
	if !unicode.IsPrint(r) || r == utf8.RuneError {
		return -1
	}
	return r
}

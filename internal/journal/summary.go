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
		s = s.added(e, d)
	case HeadMoved:
		s.Head, s.Open, s.Hosted = d.To, nil, 0
		if s.Status == Running || s.Status == Waiting {
			s.Status, s.Reason = Ended, Cancelled
		}
	case TurnStarted:
		s.Model, s.Status, s.Reason, s.Open, s.Hosted = d.Model, Running, "", nil, 0
		s.Turns++
	case TurnResumed:
		s.Status = Running
	case TurnEnded:
		s.Status, s.Reason, s.Open, s.Hosted = Ended, d.Reason, nil, 0
		if d.Reason == Answered {
			s.Status = Idle
		}
	case GenerateEnded:
		s = s.generated(d)
	case InvokeEnded:
		s = s.answered(d)
	}
	return s
}

func (s Summary) added(e Event, d MessagesAdded) Summary {
	s.Messages += len(d.Entries)
	s.Head = e.Anchor
	for _, m := range d.Entries {
		s.Head = m.ID
		if s.Title == "" && m.Message.Role == llm.User {
			s.Title = title(m.Message.Text())
		}
	}
	s.Open, s.Hosted = nil, 0
	if s.Status == Waiting {
		s.Status = Running
	}
	return s
}

func (s Summary) generated(d GenerateEnded) Summary {
	s.Messages++
	s.Head, s.Usage = d.Node, s.Usage.Add(d.Reply.Usage)
	s.Open, s.Hosted = nil, 0
	for i, c := range d.Reply.Message.Calls {
		if i < len(d.Handlers) && d.Handlers[i] == Caller {
			s.Open = append(s.Open, c.ID)
		} else {
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

// waits says what the session does while calls are open.
func (s Summary) waits() Summary {
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

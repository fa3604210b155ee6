package llmtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// The scenarios that [Run] opens.
const (
	Hello        = "hello"
	CallerTool   = "caller-tool"
	TwoReads     = "two-reads"
	ManyCalls    = "many-calls"
	Mixed        = "mixed"
	NoIDs        = "no-ids"
	CutCall      = "cut-call"
	Reasoning    = "reasoning"
	UsageCached  = "usage-cached"
	TwoChoices   = "n-two"
	SplitUTF8    = "split-utf8"
	CRLF         = "crlf"
	MultiLine    = "multi-line"
	NoDone       = "no-done"
	JSONAnswer   = "json-answer"
	Long         = "long"
	RateLimited  = "rate-limited"
	Unauthorized = "unauthorized"
	Overflow     = "overflow"
	ServerError  = "server-error"
	Cut          = "cut"
	CutEvent     = "cut-event"
	CutHeaders   = "cut-headers"
	EarlyEnd     = "early-end"
	Malformed    = "malformed"
	ErrorInside  = "error-in-stream"
	SlowLoad     = "slow-load"
	Hang         = "hang"
	HangHeaders  = "hang-headers"
)

// longWords is how many pieces of text the long scenario has.
const longWords = 2000

// Case is what a scenario must yield.
type Case struct {
	Scenario string
	// Text is what the pieces of choice 0 say; of a failure, what they said
	// before it.
	Text      string
	Reasoning string
	// Calls are those of the reply. An empty ID stands for any.
	Calls  []llm.Call
	Finish llm.Finish
	// Usage is not compared when it is zero.
	Usage llm.Usage
	// Choices is the text of further alternatives.
	Choices map[int]string
	// Fails judges the error that the stream must end with; nil wants a reply.
	Fails func(error) error
	// Then is what follows when every call of the reply has been answered.
	Then *Case
}

// Cases is the table.
func Cases() []Case {
	return append(good(), bad()...)
}

func good() []Case {
	read := func(id, skill string) llm.Call {
		return llm.Call{ID: id, Name: "skills_read", Arguments: `{"skill":"` + skill + `","path":"SKILL.md"}`}
	}
	weather := func(id, city string) llm.Call {
		return llm.Call{ID: id, Name: "get_weather", Arguments: `{"city":"` + city + `"}`}
	}
	return []Case{
		{Scenario: Hello, Text: "Good morning, and welcome.", Finish: llm.FinishStop, Usage: usage(12, 6)},
		{
			Scenario: CallerTool, Calls: []llm.Call{weather("call_weather_1", "Oslo")}, Finish: llm.FinishCalls, Usage: usage(60, 16),
			Then: &Case{Text: "It is clear in Oslo.", Finish: llm.FinishStop, Usage: usage(90, 7)},
		},
		{
			Scenario: TwoReads, Finish: llm.FinishCalls, Usage: usage(190, 48),
			Calls: []llm.Call{read("call_two_a", "release-notes"), read("call_two_b", "meeting-minutes")},
			Then:  &Case{Text: "Both skills ask for dates.", Finish: llm.FinishStop, Usage: usage(700, 9)},
		},
		{
			Scenario: ManyCalls, Finish: llm.FinishCalls, Calls: tenReads(),
			Then: &Case{Text: "I asked for too much at once.", Finish: llm.FinishStop},
		},
		{
			Scenario: Mixed, Text: "Let me look. ", Finish: llm.FinishCalls,
			Calls: []llm.Call{read("call_mixed_skill", "release-notes"), weather("call_mixed_weather", "Bergen")},
			Then:  &Case{Text: "It rains in Bergen, and the notes say so.", Finish: llm.FinishStop},
		},
		{
			Scenario: NoIDs, Finish: llm.FinishCalls,
			Calls: []llm.Call{read("", "release-notes"), read("", "meeting-minutes")},
			Then:  &Case{Text: "Both were read.", Finish: llm.FinishStop},
		},
		{
			Scenario: CutCall, Finish: llm.FinishLength,
			Calls: []llm.Call{{ID: "call_cut_1", Name: "skills_read", Arguments: `{"skill":"relea`}},
		},
		{
			Scenario: Reasoning, Reasoning: "They ask for a number. Seven fits.", Text: "The number is seven.", Finish: llm.FinishStop,
			Usage: llm.Usage{Input: 25, Output: 16, Total: 41, Reasoning: 9},
		},
		{
			Scenario: UsageCached, Calls: []llm.Call{read("call_usage_1", "release-notes")}, Finish: llm.FinishCalls,
			Usage: llm.Usage{Input: 200, Output: 20, Total: 220, Cached: 128},
			Then: &Case{
				Text: "Read from the cache.", Finish: llm.FinishStop,
				Usage: llm.Usage{Input: 500, Output: 6, Total: 506, Cached: 384},
			},
		},
		{Scenario: TwoChoices, Text: "Heads, I say.", Choices: map[int]string{1: "Tails, I say."}, Finish: llm.FinishStop, Usage: usage(15, 8)},
		{Scenario: SplitUTF8, Text: "Grüße, 世界 und 🦉.", Finish: llm.FinishStop, Usage: usage(10, 9)},
		{Scenario: CRLF, Text: "Carriage returned.", Finish: llm.FinishStop, Usage: usage(8, 3)},
		{Scenario: MultiLine, Text: "Two lines, one event.", Finish: llm.FinishStop, Usage: usage(8, 6)},
		{Scenario: NoDone, Text: "Complete, if curt.", Finish: llm.FinishStop, Usage: usage(8, 4)},
		{Scenario: JSONAnswer, Text: "All at once.", Finish: llm.FinishStop, Usage: usage(9, 4)},
		{Scenario: Long, Text: longText(), Finish: llm.FinishStop, Usage: usage(8, longWords)},
	}
}

func bad() []Case {
	return []Case{
		{Scenario: RateLimited, Fails: all(refused(429, "Slow down: 0 of 60 requests are left in this minute."), header("Retry-After", "7"))},
		{Scenario: Unauthorized, Fails: refused(401, "This key opens nothing here.")},
		{Scenario: Overflow, Fails: refused(400, "the request has 9000 tokens and the window holds 4096")},
		{Scenario: ServerError, Fails: page(502)},
		{Scenario: Cut, Text: "This will not be", Fails: broken("", false)},
		{Scenario: CutEvent, Text: "Half ", Fails: broken("", false)},
		{Scenario: EarlyEnd, Text: "And then ", Fails: broken("", false)},
		{Scenario: Malformed, Text: "Fine so far. ", Fails: broken("", false)},
		{Scenario: ErrorInside, Text: "I was ", Fails: broken("The worker ran out of memory.", true)},
		{Scenario: CutHeaders, Fails: unanswered},
	}
}

func usage(in, out int64) llm.Usage { return llm.Usage{Input: in, Output: out, Total: in + out} }

func tenReads() []llm.Call {
	var calls []llm.Call
	for i := range 10 {
		calls = append(calls, llm.Call{
			ID: fmt.Sprintf("call_many_%d", i), Name: "skills_read",
			Arguments: fmt.Sprintf(`{"skill":"release-notes","path":"references/part-%d.md"}`, i),
		})
	}
	return calls
}

func longText() string {
	var b strings.Builder
	for i := range longWords {
		fmt.Fprintf(&b, "w%d ", i+1)
	}
	return b.String()
}

// Verify asks the provider and says how what it yields differs from the case.
func (c Case) Verify(ctx context.Context, p llm.Provider, model string) error {
	return c.verify(ctx, p, Ask(model))
}

func (c Case) verify(ctx context.Context, p llm.Provider, r *llm.Request) error {
	h, err := Listen(ctx, p, r)
	if c.Fails != nil {
		if h.Text != c.Text {
			return fmt.Errorf("before the failure: got text %q, want %q", h.Text, c.Text)
		}
		return c.Fails(err)
	}
	if err != nil {
		return err
	}
	if err := c.compare(h); err != nil {
		return err
	}
	if c.Then == nil {
		return nil
	}
	next := *r
	next.Messages = append(append(next.Messages[:len(next.Messages):len(next.Messages)], h.Reply.Message), results(h.Reply.Message.Calls)...)
	if err := c.Then.verify(ctx, p, &next); err != nil {
		return fmt.Errorf("after the results: %w", err)
	}
	return nil
}

func results(calls []llm.Call) []llm.Message {
	var messages []llm.Message
	for _, c := range calls {
		m := llm.TextMessage(llm.Tool, "result of "+c.Name)
		m.CallID = c.ID
		messages = append(messages, m)
	}
	return messages
}

func (c Case) compare(h Heard) error {
	switch {
	case h.Text != c.Text:
		return fmt.Errorf("text: got %q, want %q", h.Text, c.Text)
	case h.Reasoning != c.Reasoning:
		return fmt.Errorf("reasoning: got %q, want %q", h.Reasoning, c.Reasoning)
	case h.Finish != c.Finish:
		return fmt.Errorf("finish: got %q, want %q", h.Finish, c.Finish)
	case c.Usage != llm.Usage{} && h.Reply.Usage != c.Usage:
		return fmt.Errorf("usage: got %+v, want %+v", h.Reply.Usage, c.Usage)
	case len(c.Choices) > 0 && !maps.Equal(h.Choices, c.Choices):
		return fmt.Errorf("alternatives: got %v, want %v", h.Choices, c.Choices)
	case len(h.Calls) != len(c.Calls):
		return fmt.Errorf("calls: got %+v, want %+v", h.Calls, c.Calls)
	}
	for i, want := range c.Calls {
		got := h.Calls[i]
		if want.ID == "" {
			want.ID = got.ID
		}
		if got != want {
			return fmt.Errorf("call %d: got %+v, want %+v", i, got, want)
		}
	}
	return nil
}

func all(checks ...func(error) error) func(error) error {
	return func(err error) error {
		for _, check := range checks {
			if wrong := check(err); wrong != nil {
				return wrong
			}
		}
		return nil
	}
}

// refused wants an upstream's refusal with a well-formed error object.
func refused(status int, message string) func(error) error {
	return func(err error) error {
		e, ok := errors.AsType[*llm.StatusError](err)
		switch {
		case !ok || e.Status != status:
			return fmt.Errorf("got %v, want a StatusError with %d", err, status)
		case e.Message != message:
			return fmt.Errorf("message: got %q, want %q", e.Message, message)
		case !strings.Contains(string(e.Body), message):
			return fmt.Errorf("body: got %q, want the upstream's own", e.Body)
		case e.Dialect == "":
			return errors.New("dialect: it is empty, though the body is an error object")
		}
		return nil
	}
}

func header(name, value string) func(error) error {
	return func(err error) error {
		e, ok := errors.AsType[*llm.StatusError](err)
		if !ok {
			return fmt.Errorf("got %v, want a StatusError", err)
		}
		if got := e.Header.Get(name); got != value {
			return fmt.Errorf("header %s: got %q, want %q", name, got, value)
		}
		return nil
	}
}

// page wants a refusal whose body is no error object.
func page(status int) func(error) error {
	return func(err error) error {
		e, ok := errors.AsType[*llm.StatusError](err)
		switch {
		case !ok || e.Status != status:
			return fmt.Errorf("got %v, want a StatusError with %d", err, status)
		case e.Dialect != "":
			return fmt.Errorf("dialect: got %q, but the body is no error object", e.Dialect)
		case e.Message == "" || len(e.Body) == 0:
			return fmt.Errorf("got message %q and body %q: want a summary and the bytes", e.Message, e.Body)
		}
		return nil
	}
}

// broken wants a stream that broke after it had begun. raw: the upstream's event
// is kept.
func broken(message string, raw bool) func(error) error {
	return func(err error) error {
		e, ok := errors.AsType[*llm.StreamError](err)
		switch {
		case !ok:
			return fmt.Errorf("got %v, want a StreamError", err)
		case e.Message == "" || !strings.Contains(e.Message, message):
			return fmt.Errorf("message: got %q, want one with %q", e.Message, message)
		case raw && !strings.Contains(string(e.Raw), message):
			return fmt.Errorf("raw: got %q, want the error event", e.Raw)
		}
		return nil
	}
}

// unanswered wants an error that is no answer of the upstream.
func unanswered(err error) error {
	_, status := errors.AsType[*llm.StatusError](err)
	if err == nil || status {
		return fmt.Errorf("got %v, want an error of the connection", err)
	}
	return nil
}

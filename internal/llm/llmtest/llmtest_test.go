package llmtest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake yields prepared pieces. It has no upstream, so nothing is left of it.
type fake struct {
	pieces []llm.Piece
	err    error
	// leak leaves a goroutine behind for every stream, until the channel closes.
	leak chan struct{}
	// deaf ignores its context.
	deaf bool
}

func (f *fake) Dialect() llm.Dialect { return "" }

func (f *fake) Lost(*llm.Request) []string { return nil }

func (f *fake) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{}, nil
}

func (f *fake) Models(context.Context) ([]llm.Model, error) { return []llm.Model{{ID: "fake"}}, nil }

func (f *fake) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		if f.leak != nil {
			go func() { <-f.leak }()
		}
		for _, p := range f.pieces {
			if !yield(p, nil) {
				return
			}
			if ctx.Err() != nil && !f.deaf {
				yield(llm.Piece{}, ctx.Err())
				return
			}
		}
		if f.err != nil {
			yield(llm.Piece{}, f.err)
		}
	}
}

func reply(text string, calls ...llm.Call) *llm.Reply {
	m := llm.TextMessage(llm.Assistant, text)
	m.Calls = calls
	return &llm.Reply{Message: m, Finish: llm.FinishStop, Model: "fake"}
}

// TestListenFindsFaults holds that each rule of a stream can be broken, and is
// then named.
func TestListenFindsFaults(t *testing.T) {
	call := llm.CallDelta{ID: "a", Name: "n", Arguments: "{}"}
	for name, tt := range map[string]struct {
		pieces []llm.Piece
		err    error
		want   string
	}{
		"nothing":          {want: "neither a reply nor an error"},
		"no reply":         {pieces: []llm.Piece{{Text: "x"}}, want: "neither a reply nor an error"},
		"piece after":      {pieces: []llm.Piece{{Finish: "stop", Reply: reply("")}, {}}, want: "follows the one"},
		"other text":       {pieces: []llm.Piece{{Text: "x"}, {Finish: "stop", Reply: reply("y")}}, want: "the pieces said"},
		"lost call":        {pieces: []llm.Piece{{Calls: []llm.CallDelta{call}}, {Finish: "stop", Reply: reply("")}}, want: "calls"},
		"nameless call":    {pieces: []llm.Piece{{Calls: []llm.CallDelta{{ID: "a"}}}}, want: "first fragment"},
		"call without id":  {pieces: []llm.Piece{{Calls: []llm.CallDelta{{Name: "n"}}}}, want: "first fragment"},
		"two of one id":    {pieces: []llm.Piece{{Calls: []llm.CallDelta{call, {Index: 1, ID: "a", Name: "n"}}}, {Finish: "stop", Reply: reply("", llm.Call{ID: "a", Name: "n", Arguments: "{}"}, llm.Call{ID: "a", Name: "n"})}}, want: "taken"},
		"no finish":        {pieces: []llm.Piece{{Reply: &llm.Reply{Message: llm.TextMessage(llm.Assistant, ""), Model: "m"}}}, want: "finish"},
		"other usage":      {pieces: []llm.Piece{{Usage: &llm.Usage{Input: 1}}, {Finish: "stop", Reply: reply("")}}, want: "usage"},
		"nameless model":   {pieces: []llm.Piece{{Finish: "stop", Reply: &llm.Reply{Message: llm.TextMessage(llm.Assistant, ""), Finish: "stop"}}}, want: "model"},
		"wrong role":       {pieces: []llm.Piece{{Finish: "stop", Reply: &llm.Reply{Message: llm.TextMessage(llm.User, ""), Finish: "stop", Model: "m"}}}, want: "role"},
		"the stream's own": {err: errors.New("own"), want: "own"},
		"good":             {pieces: []llm.Piece{{Text: "x"}, {Finish: "stop", Reply: reply("x")}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Listen(t.Context(), &fake{pieces: tt.pieces, err: tt.err}, Ask("fake"))
			mustSay(t, err, tt.want)
		})
	}
}

func mustSay(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

// TestCasesFindFaults holds that a wrong value fails the case that is about it.
func TestCasesFindFaults(t *testing.T) {
	said := []llm.Piece{{Text: "x"}, {Finish: "stop", Reply: reply("x")}}
	refusal := &llm.StatusError{Status: 429, Message: "slow", Body: []byte(`{"error":"slow"}`), Dialect: "d"}
	for name, tt := range map[string]struct {
		c    Case
		fake fake
		want string
	}{
		"text":            {Case{Text: "y", Finish: "stop"}, fake{pieces: said}, "text"},
		"reasoning":       {Case{Text: "x", Reasoning: "r", Finish: "stop"}, fake{pieces: said}, "reasoning"},
		"finish":          {Case{Text: "x", Finish: "length"}, fake{pieces: said}, "finish"},
		"usage":           {Case{Text: "x", Finish: "stop", Usage: usage(1, 1)}, fake{pieces: said}, "usage"},
		"alternatives":    {Case{Text: "x", Finish: "stop", Choices: map[int]string{1: "z"}}, fake{pieces: said}, "alternatives"},
		"calls":           {Case{Text: "x", Finish: "stop", Calls: tenReads()}, fake{pieces: said}, "calls"},
		"right":           {Case{Text: "x", Finish: "stop"}, fake{pieces: said}, ""},
		"success":         {Case{Text: "x", Fails: refused(429, "slow")}, fake{pieces: said}, "StatusError"},
		"other status":    {Case{Fails: refused(401, "slow")}, fake{err: refusal}, "401"},
		"other message":   {Case{Fails: refused(429, "fast")}, fake{err: refusal}, "message"},
		"lost header":     {Case{Fails: header("Retry-After", "7")}, fake{err: refusal}, "Retry-After"},
		"lost body":       {Case{Fails: refused(429, "slow")}, fake{err: &llm.StatusError{Status: 429, Message: "slow", Dialect: "d"}}, "body"},
		"no dialect":      {Case{Fails: refused(429, "slow")}, fake{err: &llm.StatusError{Status: 429, Message: "slow", Body: refusal.Body}}, "dialect"},
		"a page":          {Case{Fails: page(429)}, fake{err: refusal}, "dialect"},
		"right refusal":   {Case{Fails: refused(429, "slow")}, fake{err: refusal}, ""},
		"plain error":     {Case{Fails: broken("", false)}, fake{err: errors.New("eof")}, "StreamError"},
		"lost event":      {Case{Fails: broken("boom", true)}, fake{err: &llm.StreamError{Message: "boom"}}, "raw"},
		"lost text":       {Case{Text: "x", Fails: broken("", false)}, fake{err: &llm.StreamError{Message: "boom"}}, "before the failure"},
		"refused instead": {Case{Fails: unanswered}, fake{err: refusal}, "connection"},
	} {
		t.Run(name, func(t *testing.T) { mustSay(t, tt.c.Verify(t.Context(), &tt.fake, "fake"), tt.want) })
	}
}

func TestReleaseFindsLeaks(t *testing.T) {
	leak := make(chan struct{})
	text := []llm.Piece{{Text: "x"}, {Text: "y"}}
	err := stopEarly(t.Context(), &fake{pieces: text, leak: leak}, "fake")
	close(leak)
	mustSay(t, err, "not released")
	mustSay(t, stopEarly(t.Context(), &fake{pieces: text}, "fake"), "")
}

func TestCancelFindsDeafness(t *testing.T) {
	text := []llm.Piece{{Text: "x"}, {Text: "y"}}
	mustSay(t, cancelInStream(t.Context(), &fake{pieces: text, deaf: true}, "fake"), "without an error")
	mustSay(t, cancelInStream(t.Context(), &fake{pieces: text[:1], err: errors.New("other")}, "fake"), "")
	mustSay(t, cancelInStream(t.Context(), &fake{pieces: text, deaf: true, err: errors.New("other")}, "fake"), "want an error that is context canceled")
}

func TestModelsAreNamed(t *testing.T) {
	mustSay(t, describes(t.Context(), &fake{}, "fake"), "")
	mustSay(t, describes(t.Context(), &fake{}, "another"), "not among them")
}

func TestCasesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if c.Scenario == "" || seen[c.Scenario] {
			t.Errorf("scenario %q is empty or comes twice", c.Scenario)
		}
		seen[c.Scenario] = true
	}
}

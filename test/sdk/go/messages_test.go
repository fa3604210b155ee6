package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// connectAnthropic makes a client of Anthropic. It speaks the version of 2026-10-21.
func connectAnthropic(t *testing.T) anthropic.Client {
	t.Helper()
	return anthropic.NewClient(option.WithBaseURL(address(t)), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// message asks in one of both ways.
func message(ctx context.Context, t *testing.T, streamed bool, p anthropic.MessageNewParams, o ...option.RequestOption) (anthropic.Message, error) {
	t.Helper()
	p.MaxTokens = 512
	c := connectAnthropic(t)
	if !streamed {
		whole, err := c.Messages.New(ctx, p, o...)
		if err != nil {
			return anthropic.Message{}, err
		}
		return *whole, nil
	}
	stream := c.Messages.NewStreaming(ctx, p, o...)
	var got anthropic.Message
	for stream.Next() {
		if err := got.Accumulate(stream.Current()); err != nil {
			t.Errorf("the accumulator refuses an event: %v", err)
		}
	}
	return got, stream.Err()
}

func saying(model string, blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: model, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}}
}

func messageText(m anthropic.Message) string {
	var text strings.Builder
	for _, b := range m.Content {
		if b.Type == "text" {
			text.WriteString(b.Text)
		}
	}
	return text.String()
}

func toolUses(m anthropic.Message) []anthropic.ContentBlockUnion {
	var found []anthropic.ContentBlockUnion
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			found = append(found, b)
		}
	}
	return found
}

// dialogue is a client that holds its own history: what comes back is put back with
// ToParam.
type dialogue struct {
	params   anthropic.MessageNewParams
	streamed bool
}

func (d *dialogue) say(t *testing.T, blocks ...anthropic.ContentBlockParamUnion) anthropic.Message {
	t.Helper()
	d.params.Messages = append(d.params.Messages, anthropic.NewUserMessage(blocks...))
	got, err := message(t.Context(), t, d.streamed, d.params)
	if err != nil {
		t.Fatal(err)
	}
	d.params.Messages = append(d.params.Messages, got.ToParam())
	return got
}

func (d *dialogue) answerCalls(t *testing.T, m anthropic.Message) anthropic.Message {
	t.Helper()
	var results []anthropic.ContentBlockParamUnion
	for _, b := range toolUses(m) {
		results = append(results, anthropic.NewToolResultBlock(b.ID, skies(t, string(b.Input)), false))
	}
	return d.say(t, results...)
}

func talking(model string, streamed bool) *dialogue {
	return &dialogue{streamed: streamed, params: anthropic.MessageNewParams{Model: model, Tools: []anthropic.ToolUnionParam{{
		OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"city": map[string]string{"type": "string"}, "days": map[string]string{"type": "number"}},
		}},
	}}}}
}

func wantMessage(t *testing.T, m anthropic.Message, want string, reason anthropic.StopReason) {
	t.Helper()
	if got := messageText(m); got != want || m.StopReason != reason {
		t.Errorf("got %q, %s; want %q, %s", got, m.StopReason, want, reason)
	}
}

func TestMessagesSkillStaysRead(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		d := talking("remembered", streamed)
		wantMessage(t, d.say(t, anthropic.NewTextBlock(opening)), "Let me look. \n\n**Act now** comes first – always ✓\n\n", "end_turn")
		second := d.say(t, anthropic.NewTextBlock("Second question"))
		wantMessage(t, second, "", "tool_use")
		wantMessage(t, d.answerCalls(t, second), "One more page: It snows in Tromsø. ", "end_turn")
		wantMessage(t, d.say(t, anthropic.NewTextBlock("Third question")), "The next train is the Heron.", "end_turn")
		wantTalkWith(t, "remembered", opening, true, map[string]string{"call_weather": rewrittenWeather(t, opening)})
	})
}

// rewrittenWeather is the call in which the host had no part, as this client writes it:
// it keeps the text of numbers and of strings as it came, or does not.
func rewrittenWeather(t *testing.T, opening string) string {
	t.Helper()
	talk := talkOf(t, "remembered", opening)
	for _, c := range talk[len(talk)-1].Calls {
		if c.ID != "call_weather" {
			continue
		}
		if skies(t, c.Arguments) != "snow, 4 degrees" || !strings.Contains(c.Arguments, `"days"`) {
			t.Errorf("the upstream got the arguments %s", c.Arguments)
		}
		return c.Arguments
	}
	t.Error("the upstream did not get the caller's call")
	return ""
}

func TestMessagesSharedRound(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		d := talking("shared-round", streamed)
		first := d.say(t, anthropic.NewTextBlock(opening))
		if calls := toolUses(first); len(calls) != 2 || calls[0].ID != "call_bergen" || calls[1].ID != "call_tromso" {
			t.Fatalf("calls %+v", calls)
		}
		wantMessage(t, d.answerCalls(t, first), "Rain in Bergen, snow in Tromsø.", "end_turn")
		wantMessage(t, d.say(t, anthropic.NewTextBlock("Second question")), "The same again.", "end_turn")
		wantTalk(t, "shared-round", opening)
	})
}

func TestMessagesSkills(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id := tag(t, "body")
		p := saying("selected", anthropic.NewTextBlock("What comes last?"))
		p.SetExtraFields(map[string]any{"skills": []string{"release-notes"}, "skills_discovery": false})
		got, err := message(t.Context(), t, streamed, p, option.WithHeader("X-Request-Id", id))
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, got, "What goes away comes last.", "end_turn")
		if l := turnOf(t, id); l.Selected != "release-notes" || l.Advertised != 0 || l.Reads != "release-notes/SKILL.md" {
			t.Errorf("logged %+v", l)
		}
		id = tag(t, "header")
		p = saying("skill-read", anthropic.NewTextBlock("Notes, please."))
		got, err = message(t.Context(), t, streamed, p, option.WithHeader("X-Request-Id", id), option.WithHeader("X-Metier-Skills", "release-notes"))
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, got, "The notes begin with what changed for the reader.", "end_turn")
		if u := got.Usage; u.InputTokens != 600 || u.OutputTokens != 36 {
			t.Errorf("usage %s", u.RawJSON())
		}
		if l := turnOf(t, id); l.Selected != "release-notes" {
			t.Errorf("logged %+v", l)
		}
	})
}

func TestMessagesPictureAndSystem(t *testing.T) {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	p := saying("sees", anthropic.NewTextBlock("What is on it?"), anthropic.NewImageBlockBase64("image/png", pixel))
	p.System = []anthropic.TextBlockParam{{Text: "You sort pictures."}}
	got, err := message(t.Context(), t, true, p)
	if err != nil {
		t.Fatal(err)
	}
	wantMessage(t, got, "One pixel.", "end_turn")
}

func TestMessagesCountAndModels(t *testing.T) {
	c := connectAnthropic(t)
	count := func(text string) int64 {
		n, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
			Model: "hello", Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
		})
		if err != nil {
			t.Fatal(err)
		}
		return n.InputTokens
	}
	if few, more := count("Hello?"), count(strings.Repeat("Hello? ", 200)); few < 1 || more < few+100 {
		t.Errorf("counted %d and %d", few, more)
	}
	listed := map[string]bool{}
	pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
	for pages.Next() {
		listed[pages.Current().ID] = true
	}
	if err := pages.Err(); err != nil || !listed["hello"] {
		t.Errorf("listed %v, error %v", listed, err)
	}
	if m, err := c.Models.Get(t.Context(), "hello", anthropic.ModelGetParams{}); err != nil || m.ID != "hello" {
		t.Errorf("got %+v, %v", m, err)
	}
	_, err := c.Models.Get(t.Context(), "no-such-model", anthropic.ModelGetParams{})
	if e := anthropicError(t, err); e.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
}

func anthropicError(t *testing.T, err error) *anthropic.Error {
	t.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		t.Fatalf("no error of the API: %T %v", err, err)
	}
	return e
}

func TestMessagesFaults(t *testing.T) {
	for model, want := range map[string]struct {
		status int
		kind   string
	}{
		"rate-limited": {429, "rate_limit_error"}, "unauthorized": {401, "authentication_error"}, "overflow": {400, "invalid_request_error"},
		"server-error": {502, "api_error"}, "no-such-model": {404, "not_found_error"}, "cut": {502, "api_error"},
	} {
		_, err := message(t.Context(), t, false, saying(model, anthropic.NewTextBlock("Hello?")))
		if e := anthropicError(t, err); e.StatusCode != want.status || e.Message == "" || !strings.Contains(e.RawJSON(), `"`+want.kind+`"`) {
			t.Errorf("%s: %d %s", model, e.StatusCode, e.RawJSON())
		}
	}
	p := saying("hello", anthropic.NewTextBlock("Hello?"))
	p.SetExtraFields(map[string]any{"skills": []string{"no-such-skill"}})
	_, err := message(t.Context(), t, true, p)
	if e := anthropicError(t, err); e.StatusCode != http.StatusBadRequest || !strings.Contains(e.Message, "no-such-skill") {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
	for _, model := range []string{"error-in-stream", "cut"} {
		if got, err := message(t.Context(), t, true, saying(model, anthropic.NewTextBlock("Hello?"))); err == nil {
			t.Errorf("%s: half an answer looks whole: %+v", model, got)
		}
	}
}

func TestMessagesLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id := tag(t, "1")
	c := connectAnthropic(t)
	p := saying("hang", anthropic.NewTextBlock("Hello?"))
	p.MaxTokens = 64
	stream := c.Messages.NewStreaming(ctx, p, option.WithHeader("X-Request-Id", id))
	for stream.Next() {
		if stream.Current().Type == "content_block_delta" {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("got %v", stream.Err())
	}
	gone(t, "hang")
	if l := turnOf(t, id); l.Outcome != "cancelled" {
		t.Errorf("logged %+v", l)
	}
}

package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// respond asks in one of both ways and wants no error.
func respond(t *testing.T, streamed bool, p responses.ResponseNewParams, o ...option.RequestOption) responses.Response {
	t.Helper()
	c := connect(t)
	if !streamed {
		whole, err := c.Responses.New(t.Context(), p, o...)
		if err != nil {
			t.Fatal(err)
		}
		return *whole
	}
	stream := c.Responses.NewStreaming(t.Context(), p, o...)
	var last responses.ResponseStreamEventUnion
	var text strings.Builder
	for n := int64(0); stream.Next(); n++ {
		if last = stream.Current(); last.SequenceNumber != n {
			t.Errorf("event %d has the number %d", n, last.SequenceNumber)
		}
		if last.Type == "response.output_text.delta" {
			text.WriteString(last.Delta)
		}
	}
	if err := stream.Err(); err != nil || last.Type != "response.completed" {
		t.Fatalf("the last event is %q, error %v", last.Type, err)
	}
	if got := last.Response.OutputText(); got != text.String() {
		t.Errorf("the deltas say %q, the answer %q", text.String(), got)
	}
	return last.Response
}

func asking(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func functionCalls(r responses.Response) []responses.ResponseFunctionToolCall {
	var found []responses.ResponseFunctionToolCall
	for _, o := range r.Output {
		if o.Type == "function_call" {
			found = append(found, o.AsFunctionCall())
		}
	}
	return found
}

// skies is what the caller's tool says.
func skies(t *testing.T, arguments string) string {
	t.Helper()
	var at struct {
		City string `json:"city"`
	}
	if err := json.Unmarshal([]byte(arguments), &at); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"Bergen": "rain, 7 degrees", "Tromsø": "snow, 4 degrees"}[at.City]
}

// exchange is a conversation that the server remembers.
type exchange struct {
	model    string
	streamed bool
	last     string
}

func (e *exchange) send(t *testing.T, input ...responses.ResponseInputItemUnionParam) responses.Response {
	t.Helper()
	p := responses.ResponseNewParams{
		Model: e.model,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", map[string]any{
			"type":       "object",
			"properties": map[string]any{"city": map[string]string{"type": "string"}, "days": map[string]string{"type": "number"}},
		}, false)},
	}
	if e.last != "" {
		p.PreviousResponseID = openai.String(e.last)
	}
	got := respond(t, e.streamed, p)
	e.last = got.ID
	return got
}

func (e *exchange) say(t *testing.T, text string) responses.Response {
	t.Helper()
	return e.send(t, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
}

func (e *exchange) answerCalls(t *testing.T, r responses.Response) responses.Response {
	t.Helper()
	var results []responses.ResponseInputItemUnionParam
	for _, c := range functionCalls(r) {
		result := responses.ResponseInputItemParamOfFunctionCallOutput(skies(t, c.Arguments))
		result.OfFunctionCallOutput.CallID = openai.String(c.CallID)
		results = append(results, result)
	}
	return e.send(t, results...)
}

func wantOutput(t *testing.T, r responses.Response, want string) {
	t.Helper()
	if got := r.OutputText(); got != want || r.Status != responses.ResponseStatusCompleted {
		t.Errorf("got %q, %s; want %q", got, r.Status, want)
	}
}

func TestResponsesSkillStaysRead(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		e := &exchange{model: "remembered", streamed: streamed}
		wantOutput(t, e.say(t, opening), "Let me look. \n\n**Act now** comes first – always ✓\n\n")
		second := e.say(t, "Second question")
		if calls := functionCalls(second); len(calls) != 1 || calls[0].CallID != "call_weather" || calls[0].Name != "get_weather" {
			t.Fatalf("calls %+v", calls)
		}
		wantOutput(t, e.answerCalls(t, second), "One more page: It snows in Tromsø. ")
		wantOutput(t, e.say(t, "Third question"), "The next train is the Heron.")
		wantTalk(t, "remembered", opening)
	})
}

func TestResponsesSharedRound(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		e := &exchange{model: "shared-round", streamed: streamed}
		first := e.say(t, opening)
		if calls := functionCalls(first); len(calls) != 2 {
			t.Fatalf("calls %+v", calls)
		}
		wantOutput(t, e.answerCalls(t, first), "Rain in Bergen, snow in Tromsø.")
		wantOutput(t, e.say(t, "Second question"), "The same again.")
		wantTalk(t, "shared-round", opening)
	})
}

func TestResponsesSkills(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id, tag := tagged(t, "body")
		p := asking("selected", "What comes last?")
		p.SetExtraFields(map[string]any{"skills": []string{"release-notes"}, "skills_discovery": false})
		wantOutput(t, respond(t, streamed, p, tag), "What goes away comes last.")
		if l := turnOf(t, id); l.Selected != "release-notes" || l.Advertised != 0 || l.Reads != "release-notes/SKILL.md" {
			t.Errorf("logged %+v", l)
		}
		id, tag = tagged(t, "header")
		got := respond(t, streamed, asking("skill-read", "Notes, please."), tag, option.WithHeader("X-Metier-Skills", "release-notes"))
		wantOutput(t, got, "The notes begin with what changed for the reader.")
		if u := got.Usage; u.InputTokens != 600 || u.OutputTokens != 36 || u.TotalTokens != 636 {
			t.Errorf("usage %+v", u)
		}
		if l := turnOf(t, id); l.Selected != "release-notes" {
			t.Errorf("logged %+v", l)
		}
	})
}

func TestResponsesAreKept(t *testing.T) {
	c := connect(t)
	made := respond(t, false, asking("hello", "Hello?"))
	got, err := c.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
	if err != nil {
		t.Fatal(err)
	}
	wantOutput(t, *got, "Good morning, and welcome.")
	var items []string
	pages := c.Responses.InputItems.ListAutoPaging(t.Context(), made.ID, responses.InputItemListParams{})
	for pages.Next() {
		items = append(items, pages.Current().RawJSON())
	}
	if err := pages.Err(); err != nil || len(items) != 1 || !strings.Contains(items[0], "Hello?") {
		t.Errorf("input items %v, error %v", items, err)
	}
	if err := c.Responses.Delete(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	_, err = c.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
	if e := apiError(t, err); e.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
}

func TestResponsesFaults(t *testing.T) {
	c := connect(t)
	for model, status := range map[string]int{
		"rate-limited": 429, "unauthorized": 401, "overflow": 400, "server-error": 502, "no-such-model": 404, "cut": 502,
	} {
		_, err := c.Responses.New(t.Context(), asking(model, "Hello?"))
		if e := apiError(t, err); e.StatusCode != status || e.Message == "" {
			t.Errorf("%s: %d %s", model, e.StatusCode, e.RawJSON())
		}
	}
	p := asking("hello", "Hello?")
	p.SetExtraFields(map[string]any{"skills": []string{"no-such-skill"}})
	_, err := c.Responses.New(t.Context(), p)
	if e := apiError(t, err); e.Code != "skill_not_found" || e.Param != "skills" {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
	for _, model := range []string{"error-in-stream", "cut"} {
		stream := c.Responses.NewStreaming(t.Context(), asking(model, "Hello?"))
		var kinds []string
		for stream.Next() {
			kinds = append(kinds, stream.Current().Type)
		}
		if err := stream.Err(); err != nil || len(kinds) == 0 || kinds[len(kinds)-1] != "response.failed" || slices.Contains(kinds, "response.completed") {
			t.Errorf("%s: events %v, error %v", model, kinds, err)
		}
	}
}

func TestResponsesLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id, tag := tagged(t, "1")
	c := connect(t)
	stream := c.Responses.NewStreaming(ctx, asking("hang", "Hello?"), tag)
	for stream.Next() {
		if stream.Current().Type == "response.output_text.delta" {
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

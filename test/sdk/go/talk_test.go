package client

import (
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/openai/openai-go/v3"
)

// conversation is a client that holds its own history, as all clients of chat
// completions do: what comes back is put back with ToParam.
type conversation struct {
	client   openai.Client
	params   openai.ChatCompletionNewParams
	streamed bool
}

func converse(t *testing.T, model, text string, streamed bool) *conversation {
	return &conversation{client: connect(t), params: withWeather(question(model, text)), streamed: streamed}
}

// next asks and keeps the answer.
func (c *conversation) next(t *testing.T) openai.ChatCompletion {
	t.Helper()
	got := answer(t, c.client, c.streamed, c.params)
	c.params.Messages = append(c.params.Messages, got.Choices[0].Message.ToParam())
	return got
}

func (c *conversation) say(t *testing.T, text string) openai.ChatCompletion {
	t.Helper()
	c.params.Messages = append(c.params.Messages, openai.UserMessage(text))
	return c.next(t)
}

// wantTalk holds what the upstream was sent over the whole conversation that a
// text is said in: the steps and no other, nothing that it had read already a
// second time, and at the end the model's own bytes and the result of each call.
func wantTalk(t *testing.T, model, says string) {
	t.Helper()
	wantTalkWith(t, model, says, true, nil)
}

// wantTalkWith is wantTalk for a client that knows no ids of calls, so that those of
// its own calls are made for it, or that writes arguments of its own calls anew.
func wantTalkWith(t *testing.T, model, says string, named bool, rewritten map[string]string) {
	t.Helper()
	data, err := os.ReadFile("../testdata/talks.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct {
		Steps   []int    `json:"steps"`
		Calls   []call   `json:"calls"`
		Answers []spoken `json:"answers"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	want, talk := all[model], talkOf(t, model, says)
	var steps []int
	for _, s := range talk {
		steps = append(steps, s.Step)
		if s.Lost != 0 {
			t.Errorf("step %d: %d bytes of what was sent before do not come again", s.Step, s.Lost)
		}
	}
	if !slices.Equal(steps, want.Steps) {
		t.Fatalf("the upstream answered with steps %v, want %v", steps, want.Steps)
	}
	last := talk[len(talk)-1]
	for i, c := range want.Calls {
		if !named && c.Name != "skills_read" && i < len(last.Calls) {
			want.Calls[i].ID = last.Calls[i].ID
		}
		if a, ok := rewritten[c.ID]; ok {
			want.Calls[i].Arguments = a
		}
	}
	if !slices.Equal(last.Calls, want.Calls) {
		t.Errorf("the upstream got the calls\n%+v, want\n%+v", last.Calls, want.Calls)
	}
	if !slices.EqualFunc(last.Results, want.Calls, func(id string, c call) bool { return id == c.ID }) {
		t.Errorf("the upstream got the results of %v for the calls %+v", last.Results, want.Calls)
	}
	if !slices.Equal(last.Answers, want.Answers) {
		t.Errorf("the upstream got the answers\n%+q, want\n%+q", last.Answers, want.Answers)
	}
}

// TestSkillStaysRead: what a turn has read is there in the turns after it, though
// the client never saw it.
func TestSkillStaysRead(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		c := converse(t, "remembered", opening, streamed)
		wantText(t, c.next(t), "Let me look. \n\n**Act now** comes first – always ✓\n\n", "stop")
		wantCall(t, c.say(t, "Second question"), "call_weather", `{ "city" : "Troms\u00f8", "days": 2.0 }`)
		c.params.Messages = append(c.params.Messages, openai.ToolMessage("snow, 4 degrees", "call_weather"))
		wantText(t, c.next(t), "One more page: It snows in Tromsø. ", "stop")
		wantText(t, c.say(t, "Third question"), "The next train is the Heron.", "stop")
		wantTalk(t, "remembered", opening)
	})
}

// TestSharedRound: the caller answers its own calls of a round that the host has
// a call in too; the model gets all results, in the order of its calls.
func TestSharedRound(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		c := converse(t, "shared-round", opening, streamed)
		weather := map[string]string{"call_bergen": "rain, 7 degrees", "call_tromso": "snow, 4 degrees"}
		calls := c.next(t).Choices[0].Message.ToolCalls
		if len(calls) != len(weather) {
			t.Fatalf("calls %+v", calls)
		}
		for _, x := range calls {
			c.params.Messages = append(c.params.Messages, openai.ToolMessage(weather[x.ID], x.ID))
		}
		wantText(t, c.next(t), "Rain in Bergen, snow in Tromsø.", "stop")
		wantText(t, c.say(t, "Second question"), "The same again.", "stop")
		wantTalk(t, "shared-round", opening)
	})
}

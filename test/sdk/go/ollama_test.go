package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

// headers are sent with every request of a client that can add none itself.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+key)
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connectOllama(t *testing.T, path string, h headers) *api.Client {
	t.Helper()
	base, err := url.Parse(address(t) + path)
	if err != nil {
		t.Fatal(err)
	}
	return api.NewClient(base, &http.Client{Transport: h})
}

// chat asks in one of both ways and gathers what comes.
func chat(ctx context.Context, t *testing.T, c *api.Client, streamed bool, r api.ChatRequest) (api.ChatResponse, error) {
	t.Helper()
	r.Stream = &streamed
	var got api.ChatResponse
	ends := 0
	err := c.Chat(ctx, &r, func(part api.ChatResponse) error {
		message := got.Message
		got = part
		got.Message = api.Message{
			Role: part.Message.Role, Content: message.Content + part.Message.Content, Thinking: message.Thinking + part.Message.Thinking,
			ToolCalls: slices.Concat(message.ToolCalls, part.Message.ToolCalls),
		}
		if part.Done {
			ends++
		}
		return nil
	})
	if err == nil && (ends != 1 || !got.Done) {
		t.Errorf("it ends %d times; the last part: %+v", ends, got)
	}
	return got, err
}

func telling(model, text string) api.ChatRequest {
	return api.ChatRequest{Model: model, Messages: []api.Message{{Role: "user", Content: text}}}
}

// history is a client that holds what was said, as all clients of Ollama do.
type history struct {
	request  api.ChatRequest
	streamed bool
}

func remembering(model string, streamed bool) *history {
	properties := api.NewToolPropertiesMap()
	properties.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}})
	properties.Set("days", api.ToolProperty{Type: api.PropertyType{"number"}})
	return &history{streamed: streamed, request: api.ChatRequest{Model: model, Tools: api.Tools{{
		Type:     "function",
		Function: api.ToolFunction{Name: "get_weather", Parameters: api.ToolFunctionParameters{Type: "object", Properties: properties}},
	}}}}
}

func (h *history) say(t *testing.T, messages ...api.Message) api.Message {
	t.Helper()
	h.request.Messages = append(h.request.Messages, messages...)
	got, err := chat(t.Context(), t, connectOllama(t, "", nil), h.streamed, h.request)
	if err != nil {
		t.Fatal(err)
	}
	h.request.Messages = append(h.request.Messages, got.Message)
	return got.Message
}

func (h *history) answerCalls(t *testing.T, m api.Message) api.Message {
	t.Helper()
	var results []api.Message
	for _, c := range m.ToolCalls {
		results = append(results, api.Message{
			Role: "tool", ToolName: c.Function.Name, ToolCallID: c.ID, Content: skies(t, c.Function.Arguments.String()),
		})
	}
	return h.say(t, results...)
}

func user(text string) api.Message { return api.Message{Role: "user", Content: text} }

func wantContent(t *testing.T, m api.Message, want string) {
	t.Helper()
	if m.Content != want || m.Role != "assistant" {
		t.Errorf("got %q from %q, want %q", m.Content, m.Role, want)
	}
}

func TestOllamaSkillStaysRead(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		h := remembering("remembered", streamed)
		wantContent(t, h.say(t, user(opening)), "Let me look. \n\n**Act now** comes first – always ✓\n\n")
		second := h.say(t, user("Second question"))
		if len(second.ToolCalls) != 1 || second.ToolCalls[0].Function.Name != "get_weather" {
			t.Fatalf("calls %+v", second.ToolCalls)
		}
		wantContent(t, h.answerCalls(t, second), "One more page: It snows in Tromsø. ")
		wantContent(t, h.say(t, user("Third question")), "The next train is the Heron.")
		// The call in which the host had no part goes back as this client writes it.
		wantTalkWith(t, "remembered", opening, false, map[string]string{"call_weather": `{"city":"Tromsø","days":2}`})
	})
}

func TestOllamaSharedRound(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		opening := "First question of " + t.Name()
		h := remembering("shared-round", streamed)
		first := h.say(t, user(opening))
		if len(first.ToolCalls) != 2 {
			t.Fatalf("calls %+v", first.ToolCalls)
		}
		wantContent(t, h.answerCalls(t, first), "Rain in Bergen, snow in Tromsø.")
		wantContent(t, h.say(t, user("Second question")), "The same again.")
		wantTalkWith(t, "shared-round", opening, false, nil)
	})
}

func TestOllamaSkills(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id := tag(t, "1")
		c := connectOllama(t, "", headers{"X-Request-Id": id, "X-Metier-Skills": "release-notes"})
		got, err := chat(t.Context(), t, c, streamed, telling("skill-read", "Notes, please."))
		if err != nil {
			t.Fatal(err)
		}
		wantContent(t, got.Message, "The notes begin with what changed for the reader.")
		if got.PromptEvalCount != 600 || got.EvalCount != 36 || got.DoneReason != "stop" {
			t.Errorf("counts %+v, reason %q", got.Metrics, got.DoneReason)
		}
		if l := turnOf(t, id); l.Selected != "release-notes" || l.Reads != "release-notes/SKILL.md" {
			t.Errorf("logged %+v", l)
		}
	})
}

func TestOllamaGenerate(t *testing.T) {
	for _, path := range []string{"", "/ollama"} {
		var text strings.Builder
		err := connectOllama(t, path, nil).Generate(t.Context(), &api.GenerateRequest{Model: "hello", Prompt: "Hello?"}, func(part api.GenerateResponse) error {
			text.WriteString(part.Response)
			return nil
		})
		if err != nil || text.String() != "Good morning, and welcome." {
			t.Errorf("below %q: %q, %v", path, text.String(), err)
		}
	}
}

func TestOllamaModels(t *testing.T) {
	c := connectOllama(t, "", nil)
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Models, func(m api.ListModelResponse) bool { return m.Name == "hello" && m.Model == "hello" }) {
		t.Errorf("listed %+v", list.Models)
	}
	shown, err := c.Show(t.Context(), &api.ShowRequest{Model: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(shown.Capabilities, "tools") {
		t.Errorf("capabilities %v", shown.Capabilities)
	}
	if version, err := c.Version(t.Context()); err != nil || version == "" {
		t.Errorf("version %q, %v", version, err)
	}
}

func TestOllamaFaults(t *testing.T) {
	c := connectOllama(t, "", nil)
	for model, status := range map[string]int{"rate-limited": 429, "overflow": 400, "server-error": 502, "no-such-model": 404, "cut": 502} {
		_, err := chat(t.Context(), t, c, false, telling(model, "Hello?"))
		if e, ok := errors.AsType[api.StatusError](err); !ok || e.StatusCode != status || e.ErrorMessage == "" {
			t.Errorf("%s: %T %v", model, err, err)
		}
	}
	_, err := chat(t.Context(), t, c, false, telling("unauthorized", "Hello?"))
	if e, ok := errors.AsType[api.AuthorizationError](err); !ok || e.StatusCode != http.StatusUnauthorized {
		t.Errorf("%T %v", err, err)
	}
	for _, model := range []string{"error-in-stream", "cut"} {
		if got, err := chat(t.Context(), t, c, true, telling(model, "Hello?")); err == nil || got.Done {
			t.Errorf("%s: half an answer looks whole: %+v", model, got)
		}
	}
}

func TestOllamaLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id := tag(t, "1")
	r := telling("hang", "Hello?")
	err := connectOllama(t, "", headers{"X-Request-Id": id}).Chat(ctx, &r, func(part api.ChatResponse) error {
		if part.Message.Content != "" {
			cancel()
		}
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) { // this client does not tell of it
		t.Errorf("got %v", err)
	}
	gone(t, "hang")
	if l := turnOf(t, id); l.Outcome != "cancelled" {
		t.Errorf("logged %+v", l)
	}
}

package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// wellFormed holds what a client may rely on in any stream that ended well.
func wellFormed(t *testing.T, g gathered) {
	t.Helper()
	if len(g.chunks) == 0 {
		t.Fatal("no chunks")
	}
	roles, ends := 0, 0
	for i, c := range g.chunks {
		if c.ID != g.chunks[0].ID || !strings.HasPrefix(c.ID, "chatcmpl-") || c.Model != g.chunks[0].Model || c.Object != "chat.completion.chunk" || c.Created != g.chunks[0].Created {
			t.Errorf("chunk %d is of another completion than the first: %s", i, c.RawJSON())
		}
		for _, choice := range c.Choices {
			if ends > 0 {
				t.Errorf("chunk %d comes after the end: %s", i, c.RawJSON())
			}
			if choice.Delta.Role != "" {
				roles++
			}
			if choice.FinishReason != "" {
				ends++
			}
		}
	}
	if first := g.chunks[0]; roles != 1 || len(first.Choices) != 1 || first.Choices[0].Delta.Role != "assistant" {
		t.Errorf("the role is said %d times; first chunk: %s", roles, first.RawJSON())
	}
	if ends != 1 {
		t.Errorf("it finishes %d times", ends)
	}
}

func wantText(t *testing.T, got openai.ChatCompletion, want, finish string) {
	t.Helper()
	if len(got.Choices) != 1 {
		t.Fatalf("%d choices", len(got.Choices))
	}
	if c := got.Choices[0]; c.Message.Content != want || c.FinishReason != finish || c.Message.Role != "assistant" {
		t.Errorf("got %q from %q, finish %q; want %q, finish %q", c.Message.Content, c.Message.Role, c.FinishReason, want, finish)
	}
}

// tokens are the numbers that are compared.
func tokens(u openai.CompletionUsage) [4]int64 {
	return [4]int64{u.PromptTokens, u.CompletionTokens, u.TotalTokens, u.PromptTokensDetails.CachedTokens}
}

func TestBuffered(t *testing.T) {
	id, tag := tagged(t, "1")
	var res *http.Response
	got := answer(t, connect(t), false, question("hello", "Hello?"), tag, option.WithResponseInto(&res))
	wantText(t, got, "Good morning, and welcome.", "stop")
	if got.Object != "chat.completion" || got.Model != "hello" || !strings.HasPrefix(got.ID, "chatcmpl-") {
		t.Errorf("got %s", got.RawJSON())
	}
	if want := [4]int64{12, 6, 18, 0}; tokens(got.Usage) != want {
		t.Errorf("usage %v, want %v", tokens(got.Usage), want)
	}
	if back := res.Header.Get("X-Request-Id"); back != id {
		t.Errorf("sent request id %q, got %q", id, back)
	}
	if auth := requestsFor(t, "hello")[0].Header.Get("Authorization"); auth != "Bearer "+key {
		t.Errorf("the upstream got Authorization %q", auth)
	}
}

func TestRequestIDOfOurs(t *testing.T) {
	var res *http.Response
	answer(t, connect(t), true, question("hello", "Hello?"), option.WithResponseInto(&res))
	id := res.Header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") {
		t.Fatalf("request id %q", id)
	}
	if l := turnOf(t, id); l.Outcome != "answered" || l.Rounds != 1 {
		t.Errorf("logged %+v", l)
	}
}

func TestStreamed(t *testing.T) {
	for model, want := range map[string]string{
		"hello":       "Good morning, and welcome.",
		"split-utf8":  "Grüße, 世界 und 🦉.",
		"json-answer": "All at once.",
		"crlf":        "Carriage returned.",
	} {
		t.Run(model, func(t *testing.T) {
			g := gather(t, streaming(t, connect(t), question(model, "Hello?")))
			if g.err != nil {
				t.Fatal(g.err)
			}
			if g.text() != want {
				t.Errorf("got %q, want %q", g.text(), want)
			}
			for _, c := range g.chunks {
				if c.JSON.Usage.Valid() {
					t.Errorf("usage that nobody asked for: %s", c.RawJSON())
				}
			}
		})
	}
}

func TestTwoThousandChunks(t *testing.T) {
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&want, "w%d ", i+1)
	}
	wantText(t, answer(t, connect(t), true, question("long", "Go on.")), want.String(), "stop")
}

func TestChoices(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		p := question("n-two", "Heads or tails?")
		p.N = openai.Int(2)
		c := connect(t)
		var choices []openai.ChatCompletionChoice
		if streamed {
			choices = gather(t, streaming(t, c, p)).Choices
		} else {
			choices = answer(t, c, false, p).Choices
		}
		if len(choices) != 2 || choices[0].Message.Content != "Heads, I say." || choices[1].Message.Content != "Tails, I say." {
			t.Errorf("choices: %+v", choices)
		}
	})
}

func TestDiscovery(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id, tag := tagged(t, "1")
		p := question("skill-read", "How do we write release notes?")
		if streamed {
			p = withUsage(p)
		}
		got := answer(t, connect(t), streamed, p, tag)
		wantText(t, got, "The notes begin with what changed for the reader.", "stop")
		if len(got.Choices[0].Message.ToolCalls) > 0 {
			t.Error("the host's calls show")
		}
		if want := [4]int64{600, 36, 636, 0}; tokens(got.Usage) != want {
			t.Errorf("usage %v, want %v", tokens(got.Usage), want)
		}
		want := turnLine{Level: "INFO", Outcome: "answered", Rounds: 2, HostCalls: 1, Advertised: 3, Reads: "release-notes/SKILL.md"}
		if l := turnOf(t, id); l != want {
			t.Errorf("logged %+v, want %+v", l, want)
		}
	})
}

func TestSkillsByBody(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id, tag := tagged(t, "1")
		p := question("selected", "What comes last?")
		p.SetExtraFields(map[string]any{"skills": []string{"release-notes"}, "skills_discovery": false})
		wantText(t, answer(t, connect(t), streamed, p, tag), "What goes away comes last.", "stop")
		want := turnLine{Level: "INFO", Outcome: "answered", Rounds: 2, HostCalls: 1, Selected: "release-notes", Reads: "release-notes/SKILL.md"}
		if l := turnOf(t, id); l != want {
			t.Errorf("logged %+v, want %+v", l, want)
		}
	})
}

func TestSkillsByHeader(t *testing.T) {
	id, tag := tagged(t, "1")
	c := connect(t, option.WithHeader("X-Metier-Skills", "release-notes, unit-pricing"))
	wantText(t, answer(t, c, true, question("skill-read", "Notes, please."), tag), "The notes begin with what changed for the reader.", "stop")
	if l := turnOf(t, id); l.Selected != "release-notes,unit-pricing" || l.Advertised != 1 {
		t.Errorf("logged %+v", l)
	}
	for _, r := range requestsFor(t, "skill-read") {
		if r.Header.Get("X-Metier-Skills") != "" {
			t.Error("the host's header went upstream")
		}
	}
}

func TestUsage(t *testing.T) {
	want := [4]int64{700, 26, 726, 512}
	bothWays(t, func(t *testing.T, streamed bool) {
		p := question("usage-cached", "Notes, please.")
		if streamed {
			p = withUsage(p)
		}
		if got := answer(t, connect(t), streamed, p); tokens(got.Usage) != want {
			t.Errorf("usage %v, want %v", tokens(got.Usage), want)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		g := gather(t, streaming(t, connect(t), question("usage-cached", "Notes, please.")))
		wellFormed(t, g)
		for _, c := range g.chunks {
			if len(c.Choices) != 1 || c.JSON.Usage.Valid() {
				t.Errorf("chunk: %s", c.RawJSON())
			}
		}
	})
	t.Run("once and last", func(t *testing.T) {
		g := gather(t, streaming(t, connect(t), withUsage(question("usage-cached", "Notes, please."))))
		last := len(g.chunks) - 1
		for i, c := range g.chunks {
			if c.JSON.Usage.Valid() != (i == last) || len(c.Choices) == 0 != (i == last) {
				t.Errorf("chunk %d of %d: %s", i+1, len(g.chunks), c.RawJSON())
			}
		}
	})
}

// wantCall is the caller's one call.
func wantCall(t *testing.T, got openai.ChatCompletion, id, arguments string) {
	t.Helper()
	if len(got.Choices) != 1 || got.Choices[0].FinishReason != "tool_calls" || len(got.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("got %+v", got.Choices)
	}
	if c := got.Choices[0].Message.ToolCalls[0]; c.ID != id || c.Function.Name != "get_weather" || c.Function.Arguments != arguments {
		t.Errorf("call %q %s(%s), want %q get_weather(%s)", c.ID, c.Function.Name, c.Function.Arguments, id, arguments)
	}
}

func TestCallersTool(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		c := connect(t)
		id, tag := tagged(t, "1")
		p := withWeather(question("caller-tool", "How is the weather in Oslo?"))
		first := answer(t, c, streamed, p, tag)
		wantCall(t, first, "call_weather_1", `{"city":"Oslo"}`)
		if l := turnOf(t, id); l.Outcome != "parked" || l.CallerCalls != 1 || l.HostCalls != 0 {
			t.Errorf("logged %+v", l)
		}
		p.Messages = append(p.Messages, first.Choices[0].Message.ToParam(), openai.ToolMessage("clear, 3 degrees", "call_weather_1"))
		wantText(t, answer(t, c, streamed, p), "It is clear in Oslo.", "stop")
	})
}

func TestMixedRound(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		c := connect(t)
		id, tag := tagged(t, "1")
		p := withWeather(question("mixed-round", "Notes on the weather in Bergen, please."))
		first := answer(t, c, streamed, p, tag)
		wantCall(t, first, "call_mixed_weather", `{"city":"Bergen"}`)
		if text := first.Choices[0].Message.Content; text != "Let me look. " {
			t.Errorf("text before the call: %q", text)
		}
		want := turnLine{Level: "INFO", Outcome: "parked", Rounds: 1, HostCalls: 1, CallerCalls: 1, Advertised: 3, Reads: "release-notes/SKILL.md"}
		if l := turnOf(t, id); l != want {
			t.Errorf("logged %+v, want %+v", l, want)
		}
		p.Messages = append(p.Messages, first.Choices[0].Message.ToParam(), openai.ToolMessage("rain, 7 degrees", "call_mixed_weather"))
		wantText(t, answer(t, c, streamed, p), "It rains in Bergen.", "stop")
	})
}

func TestModels(t *testing.T) {
	c := connect(t)
	listed := map[string]bool{}
	pages := c.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		listed[pages.Current().ID] = true
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	if !listed["hello"] || !listed["skill-read"] {
		t.Errorf("listed: %v", listed)
	}
	m, err := c.Models.Get(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != "hello" || m.Object != "model" {
		t.Errorf("got %s", m.RawJSON())
	}
}

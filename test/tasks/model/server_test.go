package model

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/test/tasks/task"
)

// client is a host that answers every call with the same text.
type client struct {
	url      string
	model    string
	messages []map[string]any
}

type generation struct {
	text  string
	calls []call
}

// ask sends the conversation and takes the answer into it.
func (c *client) ask(t *testing.T, stream, tools bool) (generation, error) {
	t.Helper()
	body := map[string]any{"model": c.model, "stream": stream, "messages": c.messages}
	if tools {
		body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "shell"}}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/chat/completions", strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // read to its end
	if resp.StatusCode != http.StatusOK {
		return generation{}, fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	g := parse(t, answer, stream)
	m := map[string]any{"role": "assistant", "content": g.text}
	if len(g.calls) > 0 {
		m["tool_calls"] = g.calls
	}
	c.messages = append(c.messages, m)
	return g, nil
}

type choice struct {
	Choices []struct {
		Delta, Message struct {
			Content string `json:"content"`
			Calls   []call `json:"tool_calls"`
		}
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

func parse(t *testing.T, answer []byte, stream bool) generation {
	t.Helper()
	var g generation
	if !stream {
		var c choice
		if err := json.Unmarshal(answer, &c, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		return generation{c.Choices[0].Message.Content, c.Choices[0].Message.Calls}
	}
	events, ended := strings.CutSuffix(string(answer), "data: [DONE]\n\n")
	if !ended {
		t.Fatalf("the stream does not end: %q", answer)
	}
	for event := range strings.SplitSeq(strings.TrimSpace(events), "\n\n") {
		var c choice
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &c, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		g.text += c.Choices[0].Delta.Content
		g.calls = append(g.calls, c.Choices[0].Delta.Calls...)
	}
	return g
}

func (c *client) results(g generation, text string) {
	for _, call := range g.calls {
		c.messages = append(c.messages, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": text})
	}
}

func serve(t *testing.T, o Options) (*Handler, string, []task.Task) {
	t.Helper()
	b, tasks := openBook(t)
	h := New(b, o)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, s.URL, tasks
}

func user(text string) map[string]any { return map[string]any{"role": "user", "content": text} }

// A whole conversation over the wire, streamed and not, several at once.
func TestConversation(t *testing.T) {
	h, url, tasks := serve(t, Options{})
	var wg sync.WaitGroup
	for _, stream := range []bool{true, false} {
		for n := range 3 {
			wg.Go(func() {
				run := Run{Task: tasks[0].Name, Faults: []string{"fenced-patch"}, Seed: 4, Tag: fmt.Sprint(stream, n)}
				c := &client{url: url, model: run.ID(), messages: []map[string]any{user(tasks[0].Prompt)}}
				for range 10 {
					g, err := c.ask(t, stream, true)
					if err != nil {
						t.Error(err)
						return
					}
					if len(g.calls) == 0 {
						break
					}
					c.results(g, "exit 0 (0.1s)\n\nupdated pricing.py (+1 -1)")
				}
				r, ok := h.Report(run)
				if !ok || !r.Ended || r.Requests != r.Baseline || r.Bytes == 0 {
					t.Errorf("the report is %+v, want as many requests as without the fault", r)
				}
				if _, err := c.ask(t, stream, true); err == nil {
					t.Error("a conversation that has ended is answered again")
				}
			})
		}
	}
	wg.Wait()
}

// A model out of rounds calls nevertheless, and goes on in the next turn: at once if
// the answer said why it stopped, else after looking around.
func TestOutOfRounds(t *testing.T) {
	h, url, tasks := serve(t, Options{Rounds: 9})
	counts := map[string]int{}
	for tag, said := range map[string]string{"told": "I ran out of tool rounds before calling shell.", "silent": ""} {
		run := Run{Task: tasks[0].Name, Faults: []string{"out-of-rounds"}, Tag: tag}
		c := &client{url: url, model: run.ID(), messages: []map[string]any{user(tasks[0].Prompt)}}
		for i := range 10 {
			g, err := c.ask(t, i%2 == 0, i < 9)
			if err != nil {
				t.Fatal(err)
			}
			c.results(g, "exit 0 (0.1s)")
			if i == 8 {
				c.messages = append(c.messages, user("No more tools."))
			}
		}
		// The host keeps its own words and the dropped calls out of what the user sees.
		c.messages = []map[string]any{user(tasks[0].Prompt), {"role": "assistant", "content": said}, user("Go on.")}
		for range 5 {
			g, err := c.ask(t, true, true)
			if err != nil {
				t.Fatal(err)
			}
			if len(g.calls) == 0 {
				break
			}
			c.results(g, "exit 0 (0.1s)")
		}
		r, _ := h.Report(run)
		if !r.Ended {
			t.Errorf("%s: the conversation did not end:\n%s", tag, story(r.Moves))
		}
		counts[tag] = r.Requests
	}
	if counts["told"] != 12 || counts["silent"] != 14 {
		t.Errorf("it takes %v requests, want 12 when told and 14 when not", counts)
	}
}

func TestRefusals(t *testing.T) {
	_, url, _ := serve(t, Options{})
	for _, model := range []string{"gpt", "no-such-task@1", "01-python-failing-test+no-such-fault@1"} {
		c := &client{url: url, model: model, messages: []map[string]any{user("hello")}}
		if g, err := c.ask(t, true, true); err == nil {
			t.Errorf("the model %s answers %v", model, g)
		}
	}
}

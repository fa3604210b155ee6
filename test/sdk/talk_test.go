package sdk

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// said is a request of a conversation, as the upstream got it.
type said struct {
	Step int `json:"step"`
	// Lost is how many bytes of the messages sent before do not come again: what
	// an upstream that caches prompts has to read once more.
	Lost int `json:"lost"`
	// Answers are the request's messages of role assistant, in order, Calls their
	// calls, and Results the ids of the calls that its messages of role tool answer.
	Answers []saidAnswer `json:"answers"`
	Calls   []saidCall   `json:"calls"`
	Results []string     `json:"results"`
}

type saidAnswer struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning"`
}

type saidCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// talk answers GET /talk?model=NAME&says=TEXT: the requests for a model in which
// a message says TEXT, in the order in which they came. A client that says
// something of its own in every conversation sees that conversation alone. What
// it should see is in testdata/talks.json.
func (b *board) talk(w http.ResponseWriter, r *http.Request) {
	talk := []said{}
	var before jsontext.Value
	for _, asked := range b.requests(r.FormValue("model")) {
		messages := wire.Member(asked.Body, "messages")
		if !strings.Contains(string(messages), r.FormValue("says")) {
			continue
		}
		one, err := readSaid(messages)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		one.Step, one.Lost = asked.Step, prefixLost(before, messages)
		talk, before = append(talk, one), messages
	}
	send(w, talk)
}

func readSaid(messages jsontext.Value) (said, error) {
	var all []struct {
		Role       string `json:"role"`
		Content    any    `json:"content"`
		Reasoning  string `json:"reasoning_content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string   `json:"id"`
			Function saidCall `json:"function"`
		} `json:"tool_calls"`
	}
	one := said{Answers: []saidAnswer{}, Calls: []saidCall{}, Results: []string{}}
	if err := json.Unmarshal(messages, &all); err != nil {
		return one, err
	}
	for _, m := range all {
		if m.Role == "assistant" {
			text, _ := m.Content.(string) // null beside calls
			one.Answers = append(one.Answers, saidAnswer{text, m.Reasoning})
		}
		for _, c := range m.ToolCalls {
			one.Calls = append(one.Calls, saidCall{c.ID, c.Function.Name, c.Function.Arguments})
		}
		if m.ToolCallID != "" {
			one.Results = append(one.Results, m.ToolCallID)
		}
	}
	return one, nil
}

func prefixLost(before, now jsontext.Value) int {
	before = bytes.TrimSuffix(before, []byte("]"))
	n := 0
	for n < len(before) && n < len(now) && before[n] == now[n] {
		n++
	}
	return len(before) - n
}

package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// facts is what conditions ask of a request.
type facts struct {
	body    []byte
	text    string // of all messages, decoded
	model   string
	stream  bool
	usage   bool
	tools   []string
	choice  string
	results int
	nth     int64
}

const (
	choiceUnset = "unset"
	choiceNamed = "named"
)

func (f *facts) contains(s string) bool {
	return bytes.Contains(f.body, []byte(s)) || strings.Contains(f.text, s)
}

// chatRequest is the part of a body that the handler looks at.
type chatRequest struct {
	Model         string `json:"model"`
	Stream        *bool  `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages   []chatMessage  `json:"messages"`
	ToolChoice jsontext.Value `json:"tool_choice"`
	Tools      []chatTool     `json:"tools"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// readFacts refuses what the vendors refuse.
func readFacts(body []byte) (*facts, error) {
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("the body is no chat request: %w", err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	f := &facts{
		body: body, model: r.Model, choice: r.choice(),
		stream: r.Stream != nil && *r.Stream,
		usage:  r.StreamOptions != nil && r.StreamOptions.IncludeUsage,
	}
	for _, t := range r.Tools {
		f.tools = append(f.tools, t.Function.Name)
	}
	var text strings.Builder
	for _, m := range r.Messages {
		if m.Role == "tool" {
			f.results++
		}
		text.WriteString(contentText(m.Content))
		text.WriteByte('\n')
		for _, c := range m.ToolCalls {
			text.WriteString(c.Function.Name + " " + c.Function.Arguments + "\n")
		}
	}
	f.text = text.String()
	return f, nil
}

func (r *chatRequest) choice() string {
	var word string
	switch {
	case len(r.ToolChoice) == 0 || r.ToolChoice.Kind() == 'n':
		return choiceUnset
	case json.Unmarshal(r.ToolChoice, &word) == nil:
		return word
	}
	return choiceNamed
}

// contentText is the text of a message's content, which is a string or parts.
func contentText(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(v, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func (r *chatRequest) check() error {
	switch {
	case r.Model == "":
		return errors.New("model is missing")
	case len(r.Messages) == 0:
		return errors.New("messages is missing or empty")
	case r.StreamOptions != nil && (r.Stream == nil || !*r.Stream):
		return errors.New("stream_options is allowed only with stream: true")
	case r.choice() == "required" && len(r.Tools) == 0:
		return errors.New("tool_choice is allowed only with tools")
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		if t.Type != "" && t.Type != "function" {
			continue // custom and hosted tools are named elsewhere, or not at all
		}
		if t.Function.Name == "" || seen[t.Function.Name] {
			return fmt.Errorf("tools[%d]: the name %q is empty or taken", i, t.Function.Name)
		}
		seen[t.Function.Name] = true
	}
	return checkPairs(r.Messages)
}

// checkPairs holds that every call is answered by the messages right behind it,
// and that nothing else is.
func checkPairs(messages []chatMessage) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages[%d]: role tool answers %q, which no assistant message right before it calls", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages[%d]: comes before all calls of the assistant message are answered", i)
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || open[c.ID] {
				return fmt.Errorf("messages[%d]: the call id %q is empty or taken", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return errors.New("messages: the last calls are not answered")
	}
	return nil
}

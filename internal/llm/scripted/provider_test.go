package scripted_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// client is the least provider that passes the suite. It is there to prove the
// scenarios and the suite against each other, whatever the real one does.
type client struct {
	http *http.Client
	url  string
}

type delta struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Calls     []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type event struct {
	Model   string `json:"model"`
	Choices []struct {
		Index   int    `json:"index"`
		Delta   delta  `json:"delta"`
		Message delta  `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		PromptD    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionD struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (c *client) Dialect() llm.Dialect { return "" }

func (c *client) Lost(*llm.Request) []string { return nil }

func (c *client) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

func (c *client) Models(ctx context.Context) ([]llm.Model, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/models", nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.UnmarshalRead(res.Body, &list); err != nil {
		return nil, err
	}
	var models []llm.Model
	for _, m := range list.Data {
		models = append(models, llm.Model{ID: m.ID})
	}
	return models, nil
}

func (c *client) body(r *llm.Request) []byte {
	type object = map[string]any
	var messages, tools []object
	for _, m := range r.Messages {
		o := object{"role": m.Role, "content": m.Text()}
		if m.CallID != "" {
			o["tool_call_id"] = m.CallID
		}
		var calls []object
		for _, call := range m.Calls {
			calls = append(calls, object{"id": call.ID, "type": "function", "function": object{"name": call.Name, "arguments": call.Arguments}})
		}
		if calls != nil {
			o["tool_calls"] = calls
		}
		messages = append(messages, o)
	}
	for _, d := range r.Tools {
		tools = append(tools, object{"type": "function", "function": object{"name": d.Name, "parameters": d.Parameters}})
	}
	o := object{"model": r.Model, "messages": messages, "stream": true, "stream_options": object{"include_usage": true}}
	if len(tools) > 0 {
		o["tools"] = tools
	}
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return data
}

func (c *client) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/chat/completions", bytes.NewReader(c.body(r)))
		if err != nil {
			yield(llm.Piece{}, err)
			return
		}
		res, err := c.http.Do(req)
		if err != nil {
			yield(llm.Piece{}, err)
			return
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			yield(llm.Piece{}, refusal(res))
			return
		}
		s := &stream{index: map[int]int{}}
		err = s.read(res, yield)
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(llm.Piece{}, err)
		}
	}
}

func refusal(res *http.Response) error {
	body, _ := io.ReadAll(res.Body)
	e := &llm.StatusError{Status: res.StatusCode, Header: res.Header, Body: body, Message: http.StatusText(res.StatusCode)}
	var v event
	if json.Unmarshal(body, &v) == nil && v.Error != nil {
		e.Message, e.Dialect = v.Error.Message, llm.OpenAIChat
	}
	return e
}

var errStopped = errors.New("stopped")

// stream reads one answer.
type stream struct {
	asm   llm.Assembler
	model string
	index map[int]int
	done  bool
}

func (s *stream) read(res *http.Response, yield func(llm.Piece, error) bool) error {
	var err error
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		var all []byte
		if all, err = io.ReadAll(res.Body); err == nil {
			err = s.event(all, yield)
		}
	} else {
		err = s.events(res.Body, yield)
	}
	if err != nil {
		return err
	}
	reply := s.asm.Reply()
	if reply.Finish == "" {
		return &llm.StreamError{Message: "it ended before the answer did"}
	}
	reply.Model = s.model
	yield(llm.Piece{Reply: &reply}, nil)
	return nil
}

func (s *stream) events(r io.Reader, yield func(llm.Piece, error) bool) error {
	in := bufio.NewReader(r)
	var data []byte
	for !s.done {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &llm.StreamError{Message: "it broke off", Err: err}
		}
		line = strings.TrimRight(line, "\r\n")
		if part, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(append(data, strings.TrimPrefix(part, " ")...), '\n')
		}
		if line == "" && len(data) > 0 {
			if err := s.event(data, yield); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	return nil
}

func (s *stream) event(data []byte, yield func(llm.Piece, error) bool) error {
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		s.done = true
		return nil
	}
	var v event
	if err := json.Unmarshal(data, &v); err != nil {
		return &llm.StreamError{Message: "an event is no JSON", Err: err}
	}
	if v.Error != nil {
		return &llm.StreamError{Message: v.Error.Message, Raw: jsontext.Value(bytes.Clone(data))}
	}
	s.model = v.Model
	for i := range v.Choices {
		c := &v.Choices[i]
		d := c.Delta
		d.Content += c.Message.Content
		d.Calls = append(d.Calls, c.Message.Calls...)
		if !s.emit(llm.Piece{Choice: c.Index, Text: d.Content, Reasoning: d.Reasoning, Calls: s.calls(d), Finish: llm.Finish(c.Finish)}, yield) {
			return errStopped
		}
	}
	if u := v.Usage; u != nil {
		usage := llm.Usage{Input: u.Prompt, Output: u.Completion, Total: u.Total, Cached: u.PromptD.Cached, Reasoning: u.CompletionD.Reasoning}
		if !s.emit(llm.Piece{Usage: &usage}, yield) {
			return errStopped
		}
	}
	return nil
}

func (s *stream) emit(p llm.Piece, yield func(llm.Piece, error) bool) bool {
	s.asm.Add(p)
	return yield(p, nil)
}

func (s *stream) calls(d delta) []llm.CallDelta {
	var calls []llm.CallDelta
	for _, c := range d.Calls {
		id := c.ID
		if _, known := s.index[c.Index]; !known {
			s.index[c.Index] = len(s.index)
			if id == "" {
				id = fmt.Sprintf("call_own_%d", c.Index)
			}
		}
		calls = append(calls, llm.CallDelta{Index: c.Index, ID: id, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return calls
}

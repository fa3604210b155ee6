package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// call is a call of the client's tool as the client sees it.
type call struct{ id, name, arguments string }

// answer is what a client made of one answer.
type answer struct {
	text, reasoning string
	calls           []call
	finish          string
	in, out         int64
	ends            int    // how often it was told that the answer is whole
	failed          string // the error that came in place of an end
	// back is what the client sends back as the assistant's part.
	back []object
}

// client asks in one dialect and keeps the conversation, as an SDK does.
type client interface {
	// request is the next one: the question, or the results of the last answer's calls.
	request(q question, stream bool) (path string, header http.Header, body object)
	// read makes an answer of a body, and fails where it breaks the dialect's rules.
	read(body []byte, stream bool) (answer, error)
	// refusal is the text of an error that came in place of an answer.
	refusal(body []byte) string
	// go on with an answer and the results of its calls.
	next(a answer, results []string)
}

// value is JSON that a client reads with a light hand.
type value struct{ any }

func parse(b []byte) (value, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return value{}, fmt.Errorf("%w: %s", err, excerpt(string(b)))
	}
	return value{v}, nil
}

func (v value) at(path ...any) value {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.any.(map[string]any)
			v = value{m[step]}
		case int:
			a, _ := v.any.([]any)
			if step >= len(a) {
				return value{}
			}
			v = value{a[step]}
		}
	}
	return v
}

func (v value) text() string { s, _ := v.any.(string); return s }

func (v value) number() int64 { f, _ := v.any.(float64); return int64(f) }

func (v value) list() []value {
	a, _ := v.any.([]any)
	out := make([]value, len(a))
	for i, x := range a {
		out[i] = value{x}
	}
	return out
}

// event is a server-sent event.
type event struct {
	name string
	data []byte
}

// events reads a stream of them. Comments are skipped.
func events(body []byte) ([]event, error) {
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\n\n")) {
		return nil, fmt.Errorf("the stream ends in the middle of an event: %q", body[max(0, len(body)-80):])
	}
	var out []event
	for block := range strings.SplitSeq(string(body), "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = append(e.data, data...)
			}
		}
		if e.data != nil {
			out = append(out, e)
		}
	}
	return out, nil
}

func parameters() object {
	return object{"type": "object", "properties": object{"city": object{"type": "string"}}}
}

// chatClient speaks Chat Completions.
type chatClient struct{ messages []object }

func (c *chatClient) request(q question, stream bool) (string, http.Header, object) {
	if c.messages == nil {
		var content any = q.text
		if q.image {
			content = []object{{"type": "text", "text": q.text}, {"type": "image_url", "image_url": object{"url": "data:image/png;base64," + pixel}}}
		}
		c.messages = []object{{"role": "user", "content": content}}
	}
	body := object{"model": "m", "messages": c.messages, "stream": stream}
	if stream {
		body["stream_options"] = object{"include_usage": true}
	}
	if q.tool {
		body["tools"] = []object{{"type": "function", "function": object{"name": weather, "description": "Tells the weather.", "parameters": parameters()}}}
	}
	if q.odd {
		body["logit_bias"], body["seed"] = object{"50256": -100}, 7
	}
	return "/v1/chat/completions", nil, body
}

func (c *chatClient) refusal(body []byte) string {
	v, _ := parse(body)
	return v.at("error", "message").text()
}

func (c *chatClient) read(body []byte, stream bool) (answer, error) {
	if !stream {
		return c.whole(body)
	}
	all, err := events(body)
	if err != nil {
		return answer{}, err
	}
	var a answer
	roles, id := 0, ""
	for _, e := range all {
		if string(e.data) == "[DONE]" {
			a.ends++
			continue
		}
		v, err := parse(e.data)
		if err != nil {
			return a, err
		}
		if m := v.at("error", "message").text(); m != "" {
			a.failed = m
			continue
		}
		if a.ends > 0 || a.failed != "" {
			return a, errors.New("something came after the end")
		}
		if id != "" && v.at("id").text() != id {
			return a, errors.New("the id changed")
		}
		id = v.at("id").text()
		if v.at("usage").any != nil {
			a.in, a.out = a.in+v.at("usage", "prompt_tokens").number(), a.out+v.at("usage", "completion_tokens").number()
		}
		choice := v.at("choices", 0)
		if f := choice.at("finish_reason").text(); f != "" {
			if a.finish != "" {
				return a, errors.New("two reasons to stop")
			}
			a.finish = f
		}
		delta := choice.at("delta")
		if delta.at("role").text() != "" {
			roles++
		}
		a.text += delta.at("content").text()
		a.reasoning += delta.at("reasoning_content").text()
		for _, t := range delta.at("tool_calls").list() {
			i := int(t.at("index").number())
			switch {
			case i == len(a.calls):
				a.calls = append(a.calls, call{id: t.at("id").text(), name: t.at("function", "name").text()})
			case i > len(a.calls):
				return a, errors.New("the indices of calls have gaps")
			}
			a.calls[i].arguments += t.at("function", "arguments").text()
		}
	}
	if roles != 1 && a.failed == "" {
		return a, fmt.Errorf("the role was told %d times", roles)
	}
	return c.keep(a), nil
}

func (c *chatClient) keep(a answer) answer {
	m := object{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		var calls []object
		for _, x := range a.calls {
			calls = append(calls, object{"id": x.id, "type": "function", "function": object{"name": x.name, "arguments": x.arguments}})
		}
		m["tool_calls"] = calls
	}
	a.back = []object{m}
	return a
}

func (c *chatClient) whole(body []byte) (answer, error) {
	v, err := parse(body)
	if err != nil {
		return answer{}, err
	}
	m := v.at("choices", 0, "message")
	a := answer{
		text: m.at("content").text(), reasoning: m.at("reasoning_content").text(), finish: v.at("choices", 0, "finish_reason").text(), ends: 1,
		in: v.at("usage", "prompt_tokens").number(), out: v.at("usage", "completion_tokens").number(),
	}
	for _, t := range m.at("tool_calls").list() {
		a.calls = append(a.calls, call{t.at("id").text(), t.at("function", "name").text(), t.at("function", "arguments").text()})
	}
	return c.keep(a), nil
}

func (c *chatClient) next(a answer, results []string) {
	c.messages = append(c.messages, a.back...)
	for i, r := range results {
		c.messages = append(c.messages, object{"role": "tool", "tool_call_id": a.calls[i].id, "content": r})
	}
}

// webClient speaks the web stream, which asks as Chat Completions and answers in frames.
type webClient struct{ chatClient }

func (c *webClient) request(q question, stream bool) (string, http.Header, object) {
	_, h, body := c.chatClient.request(q, stream)
	delete(body, "model")
	delete(body, "stream")
	delete(body, "stream_options")
	delete(body, "logit_bias")
	body["use_model"] = "m"
	if q.think {
		body["think"] = true
	}
	return "/api/chat", h, body
}

func (c *webClient) refusal(body []byte) string {
	v, _ := parse(body)
	return v.at("error").text()
}

func (c *webClient) read(body []byte, _ bool) (answer, error) {
	all, err := events(body)
	if err != nil {
		return answer{}, err
	}
	var a answer
	for _, e := range all {
		v, err := parse(e.data)
		if err != nil {
			return a, err
		}
		if a.ends > 0 || a.failed != "" {
			return a, errors.New("something came after the end")
		}
		a.text += v.at("token").text()
		a.reasoning += v.at("thinking").text()
		for _, t := range v.at("tool_calls").list() {
			a.calls = append(a.calls, call{t.at("id").text(), t.at("function", "name").text(), t.at("function", "arguments").text()})
		}
		if done, _ := v.at("done").any.(bool); done {
			a.in, a.out, a.finish = v.at("promptTokens").number(), v.at("tokenCount").number(), "stop"
			if a.failed = v.at("error").text(); a.failed == "" {
				a.ends++
			}
			if len(a.calls) > 0 {
				a.finish = "tool_calls"
			}
		}
	}
	return c.keep(a), nil
}

// messagesClient speaks Anthropic's Messages.
type messagesClient struct{ messages []object }

func (c *messagesClient) request(q question, stream bool) (string, http.Header, object) {
	if c.messages == nil {
		content := []object{{"type": "text", "text": q.text}}
		if q.image {
			content = append(content, object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": pixel}})
		}
		c.messages = []object{{"role": "user", "content": content}}
	}
	body := object{"model": "m", "max_tokens": 2048, "messages": c.messages, "stream": stream}
	if q.tool {
		body["tools"] = []object{{"name": weather, "description": "Tells the weather.", "input_schema": parameters()}}
	}
	if q.think {
		body["thinking"] = object{"type": "enabled", "budget_tokens": 1024}
	}
	if q.odd {
		body["container"], body["top_k"] = "container_1", 40
	}
	return "/v1/messages", http.Header{"Anthropic-Version": {"2023-06-01"}}, body
}

func (c *messagesClient) refusal(body []byte) string {
	v, _ := parse(body)
	if v.at("type").text() != "error" {
		return ""
	}
	return v.at("error", "message").text()
}

func (c *messagesClient) read(body []byte, stream bool) (answer, error) {
	if !stream {
		v, err := parse(body)
		if err != nil {
			return answer{}, err
		}
		return c.collect(v, 1)
	}
	all, err := events(body)
	if err != nil {
		return answer{}, err
	}
	var message value
	var blocks []any
	open, ends, failed := -1, 0, ""
	for _, e := range all {
		v, err := parse(e.data)
		if err != nil {
			return answer{}, err
		}
		if v.at("type").text() != e.name {
			return answer{}, fmt.Errorf("event %s holds a %s", e.name, v.at("type").text())
		}
		index := int(v.at("index").number())
		switch e.name {
		case "ping":
			continue
		case "message_start":
			if message.any != nil {
				return answer{}, errors.New("two starts")
			}
			message = v.at("message")
			continue
		case "error":
			failed = v.at("error", "message").text()
			continue
		}
		if message.any == nil || ends > 0 || failed != "" {
			return answer{}, fmt.Errorf("%s outside the message", e.name)
		}
		m := message.any.(map[string]any)
		switch e.name {
		case "content_block_start":
			if open >= 0 || index != len(blocks) {
				return answer{}, fmt.Errorf("block %d starts while %d is open, after %d blocks", index, open, len(blocks))
			}
			open = index
			blocks = append(blocks, v.at("content_block").any)
		case "content_block_delta", "content_block_stop":
			if open != index {
				return answer{}, fmt.Errorf("%s of block %d while %d is open", e.name, index, open)
			}
			if e.name == "content_block_stop" {
				open = -1
				if err := closeBlock(blocks[index].(map[string]any)); err != nil {
					return answer{}, err
				}
				continue
			}
			addDelta(blocks[index].(map[string]any), v.at("delta"))
		case "message_delta":
			m["stop_reason"] = v.at("delta", "stop_reason").any
			usage, _ := m["usage"].(map[string]any)
			if usage == nil {
				usage = map[string]any{}
			}
			for name, n := range v.at("usage").any.(map[string]any) {
				usage[name] = n
			}
			m["usage"] = usage
		case "message_stop":
			ends++
		default:
			return answer{}, fmt.Errorf("an unknown event %s", e.name)
		}
	}
	if failed != "" {
		return answer{failed: failed, ends: ends, text: textOf(blocks)}, nil
	}
	if message.any == nil {
		return answer{}, errors.New("no message")
	}
	message.any.(map[string]any)["content"] = blocks
	return c.collect(message, ends)
}

func textOf(blocks []any) string {
	var out string
	for _, b := range blocks {
		out += value{b}.at("text").text()
	}
	return out
}

func addDelta(block map[string]any, d value) {
	add := func(name, text string) { old, _ := block[name].(string); block[name] = old + text }
	switch d.at("type").text() {
	case "text_delta":
		add("text", d.at("text").text())
	case "thinking_delta":
		add("thinking", d.at("thinking").text())
	case "signature_delta":
		add("signature", d.at("signature").text())
	case "input_json_delta":
		add("partial", d.at("partial_json").text())
	}
}

// closeBlock makes a call's input of its pieces.
func closeBlock(block map[string]any) error {
	partial, _ := block["partial"].(string)
	delete(block, "partial")
	if partial == "" {
		return nil
	}
	v, err := parse([]byte(partial))
	block["input"] = v.any
	return err
}

func (c *messagesClient) collect(v value, ends int) (answer, error) {
	if v.at("type").text() != "message" || v.at("role").text() != "assistant" {
		return answer{}, fmt.Errorf("no message: %v", v.any)
	}
	a := answer{
		finish: v.at("stop_reason").text(), ends: ends,
		in: v.at("usage", "input_tokens").number(), out: v.at("usage", "output_tokens").number(),
	}
	for _, b := range v.at("content").list() {
		switch b.at("type").text() {
		case "text":
			a.text += b.at("text").text()
		case "thinking":
			a.reasoning += b.at("thinking").text()
		case "tool_use":
			a.calls = append(a.calls, call{b.at("id").text(), b.at("name").text(), text(b.at("input").any)})
		}
	}
	a.back = []object{{"role": "assistant", "content": v.at("content").any}}
	return a, nil
}

func (c *messagesClient) next(a answer, results []string) {
	c.messages = append(c.messages, a.back...)
	var content []object
	for i, r := range results {
		content = append(content, object{"type": "tool_result", "tool_use_id": a.calls[i].id, "content": r})
	}
	c.messages = append(c.messages, object{"role": "user", "content": content})
}

// ollamaClient speaks Ollama's own dialect.
type ollamaClient struct{ messages []object }

func (c *ollamaClient) request(q question, stream bool) (string, http.Header, object) {
	if c.messages == nil {
		m := object{"role": "user", "content": q.text}
		if q.image {
			m["images"] = []string{pixel}
		}
		c.messages = []object{m}
	}
	body := object{"model": "m", "messages": c.messages, "stream": stream}
	if q.tool {
		body["tools"] = []object{{"type": "function", "function": object{"name": weather, "description": "Tells the weather.", "parameters": parameters()}}}
	}
	if q.think {
		body["think"] = true
	}
	if q.odd {
		body["options"] = object{"num_ctx": 4096, "repeat_penalty": 1.1}
	}
	return "/api/chat", nil, body
}

func (c *ollamaClient) refusal(body []byte) string {
	v, _ := parse(body)
	return v.at("error").text()
}

func (c *ollamaClient) read(body []byte, stream bool) (answer, error) {
	var a answer
	if !bytes.HasSuffix(body, []byte("\n")) && stream {
		return a, errors.New("the stream ends in the middle of a line")
	}
	for line := range bytes.Lines(body) {
		v, err := parse(line)
		if err != nil {
			return a, err
		}
		if m := v.at("error").text(); m != "" {
			a.failed = m
			continue
		}
		if a.ends > 0 || a.failed != "" {
			return a, errors.New("something came after the end")
		}
		m := v.at("message")
		a.text += m.at("content").text()
		a.reasoning += m.at("thinking").text()
		for _, t := range m.at("tool_calls").list() {
			a.calls = append(a.calls, call{t.at("id").text(), t.at("function", "name").text(), text(t.at("function", "arguments").any)})
		}
		if done, _ := v.at("done").any.(bool); done {
			a.ends++
			a.finish, a.in, a.out = v.at("done_reason").text(), v.at("prompt_eval_count").number(), v.at("eval_count").number()
		}
	}
	m := object{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		var calls []object
		for _, x := range a.calls {
			calls = append(calls, object{"function": object{"name": x.name, "arguments": jsontext.Value(x.arguments)}})
		}
		m["tool_calls"] = calls
	}
	a.back = []object{m}
	return a, nil
}

func (c *ollamaClient) next(a answer, results []string) {
	c.messages = append(c.messages, a.back...)
	for i, r := range results {
		c.messages = append(c.messages, object{"role": "tool", "tool_name": a.calls[i].name, "content": r})
	}
}

// responsesClient speaks Responses, without the server's memory.
type responsesClient struct{ items []object }

func (c *responsesClient) request(q question, stream bool) (string, http.Header, object) {
	if c.items == nil {
		content := []object{{"type": "input_text", "text": q.text}}
		if q.image {
			content = append(content, object{"type": "input_image", "image_url": "data:image/png;base64," + pixel})
		}
		c.items = []object{{"type": "message", "role": "user", "content": content}}
	}
	body := object{"model": "m", "input": c.items, "stream": stream, "store": false}
	if q.tool {
		body["tools"] = []object{{"type": "function", "name": weather, "description": "Tells the weather.", "parameters": parameters(), "strict": false}}
	}
	if q.think {
		body["reasoning"] = object{"effort": "low"}
	}
	if q.odd {
		body["truncation"], body["metadata"] = "auto", object{"order": "17"}
	}
	return "/v1/responses", nil, body
}

func (c *responsesClient) refusal(body []byte) string {
	v, _ := parse(body)
	return v.at("error", "message").text()
}

func (c *responsesClient) read(body []byte, stream bool) (answer, error) {
	if !stream {
		v, err := parse(body)
		if err != nil {
			return answer{}, err
		}
		return c.collect(v, 1)
	}
	all, err := events(body)
	if err != nil {
		return answer{}, err
	}
	var end value
	ends, failed := 0, ""
	deltas, arguments := "", ""
	for i, e := range all {
		v, err := parse(e.data)
		if err != nil {
			return answer{}, err
		}
		switch {
		case v.at("type").text() != e.name:
			return answer{}, fmt.Errorf("event %s holds a %s", e.name, v.at("type").text())
		case int(v.at("sequence_number").number()) != i:
			return answer{}, fmt.Errorf("event %d has number %d", i, v.at("sequence_number").number())
		case ends > 0 || failed != "":
			return answer{}, errors.New("something came after the end")
		}
		switch e.name {
		case "response.output_text.delta":
			deltas += v.at("delta").text()
		case "response.function_call_arguments.delta":
			arguments += v.at("delta").text()
		case "response.failed", "error":
			failed = v.at("response", "error", "message").text() + v.at("message").text()
		case "response.completed", "response.incomplete":
			ends++
			end = v.at("response")
		}
	}
	if failed != "" {
		return answer{failed: failed, ends: ends, text: deltas}, nil
	}
	a, err := c.collect(end, ends)
	if err != nil {
		return a, err
	}
	whole := ""
	for _, x := range a.calls {
		whole += x.arguments
	}
	if a.text != deltas || whole != arguments {
		return a, fmt.Errorf("the deltas are %q and %q, the whole %q and %q", deltas, arguments, a.text, whole)
	}
	return a, nil
}

func (c *responsesClient) collect(v value, ends int) (answer, error) {
	if v.at("object").text() != "response" {
		return answer{}, fmt.Errorf("no response: %v", v.any)
	}
	a := answer{
		finish: v.at("status").text(), ends: ends,
		in: v.at("usage", "input_tokens").number(), out: v.at("usage", "output_tokens").number(),
	}
	for _, item := range v.at("output").list() {
		switch item.at("type").text() {
		case "message":
			for _, part := range item.at("content").list() {
				a.text += part.at("text").text()
			}
		case "reasoning":
			for _, part := range append(item.at("content").list(), item.at("summary").list()...) {
				a.reasoning += part.at("text").text()
			}
		case "function_call":
			a.calls = append(a.calls, call{item.at("call_id").text(), item.at("name").text(), item.at("arguments").text()})
		}
		a.back = append(a.back, item.any.(map[string]any))
	}
	return a, nil
}

func (c *responsesClient) next(a answer, results []string) {
	c.items = append(c.items, a.back...)
	for i, r := range results {
		c.items = append(c.items, object{"type": "function_call_output", "call_id": a.calls[i].id, "output": r})
	}
}

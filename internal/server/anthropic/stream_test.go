package anthropic_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/wire"
)

// object is a JSON object as a client reads it.
type object = map[string]any

// heard is a stream as a client hears it.
type heard struct {
	message object   // nil before its beginning
	fault   object   // the error event, if one came
	events  []string // the kinds, in order
	pings   int
	ended   bool
}

// text is that of all blocks.
func textOf(message object) string {
	var text strings.Builder
	for _, b := range blocksOf(message, "text") {
		text.WriteString(b["text"].(string))
	}
	return text.String()
}

func blocksOf(message object, kind string) []object {
	var found []object
	content, _ := message["content"].([]any)
	for _, b := range content {
		if b := b.(object); b["type"] == kind {
			found = append(found, b)
		}
	}
	return found
}

// kindsOf lists the types of the blocks.
func kindsOf(message object) string {
	var kinds []string
	content, _ := message["content"].([]any)
	for _, b := range content {
		kinds = append(kinds, b.(object)["type"].(string))
	}
	return strings.Join(kinds, " ")
}

// listener reads a stream as strictly as the format allows.
type listener struct {
	t *testing.T
	heard
	open   object // the block that has begun and not ended
	input  string // of a call, as far as it has come
	deltas string // all text that deltas said
}

// listen reads a stream, and complains of everything that the vendor's clients could
// stumble over: the order of events, numbers that are not dense, deltas of another block,
// an end that is missing or there twice, and text that is not the sum of its deltas.
func listen(t *testing.T, body string) heard {
	t.Helper()
	l := &listener{t: t}
	events := wire.NewEventReader(strings.NewReader(body), 1<<20, nil)
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		var v object
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatalf("event %s: %v", e.Data, err)
		}
		if v["type"] != string(e.Name) {
			t.Errorf("the event is called %q and is %v", e.Name, v["type"])
		}
		l.event(v)
	}
	if l.open != nil {
		t.Errorf("a block has no end: %v", l.open)
	}
	if l.message != nil && l.fault == nil && !l.ended {
		t.Error("the message has no end")
	}
	if got := textOf(l.message); got != l.deltas {
		t.Errorf("the text is %q, its deltas %q", got, l.deltas)
	}
	hidden(t, l.message)
	return l.heard
}

func (l *listener) event(v object) {
	kind := v["type"].(string)
	if kind == "ping" {
		l.pings++
		return
	}
	if l.ended || l.fault != nil {
		l.t.Errorf("%s after the end", kind)
	}
	l.events = append(l.events, kind)
	if (l.message == nil) != (kind == "message_start") && kind != "error" {
		l.t.Fatalf("%s before the message, or in the middle of it", kind)
	}
	switch kind {
	case "message_start":
		l.message = v["message"].(object)
		if l.message["role"] != "assistant" || l.message["type"] != "message" || len(l.message["content"].([]any)) != 0 || l.message["stop_reason"] != nil {
			l.t.Errorf("the message begins as %v", l.message)
		}
		if _, ok := l.message["usage"].(object)["output_tokens"]; !ok {
			l.t.Errorf("the message begins without usage: %v", l.message)
		}
	case "content_block_start":
		l.begin(v)
	case "content_block_delta":
		l.delta(v)
	case "content_block_stop":
		l.stop(v)
	case "message_delta":
		l.end(v)
	case "message_stop":
		l.ended = true
		if l.message["stop_reason"] == nil {
			l.t.Error("the message ends without a reason")
		}
	case "error":
		l.fault = v
		l.open = nil // nothing is ended behind an error
	}
}

func (l *listener) begin(v object) {
	if l.open != nil {
		l.t.Errorf("a block begins inside another: %v", v)
	}
	content := l.message["content"].([]any)
	if v["index"] != float64(len(content)) {
		l.t.Errorf("block %d has the number %v", len(content), v["index"])
	}
	l.open, l.input = v["content_block"].(object), ""
	if text, ok := l.open["text"].(string); ok && l.open["type"] == "text" {
		l.deltas += text
	}
	l.message["content"] = append(content, l.open)
}

// deltaOf is the member of a delta that grows its block's, and the kinds of blocks that have
// deltas of that kind.
func deltaOf(kind string) (member, blocks string) {
	switch kind {
	case "text_delta":
		return "text", "text"
	case "thinking_delta":
		return "thinking", "thinking"
	case "signature_delta":
		return "signature", "thinking"
	case "input_json_delta":
		return "partial_json", "tool_use server_tool_use mcp_tool_use"
	case "citations_delta":
		return "citation", "text"
	}
	return "", ""
}

func (l *listener) delta(v object) {
	if l.open == nil || v["index"] != float64(len(l.message["content"].([]any))-1) {
		l.t.Fatalf("a delta of another block: %v", v)
	}
	d := v["delta"].(object)
	kind := d["type"].(string)
	member, owners := deltaOf(kind)
	if member == "" {
		l.t.Fatalf("a delta of a kind that the test does not know: %v", v)
	}
	if !strings.Contains(owners, l.open["type"].(string)) {
		l.t.Errorf("a block of type %v has a %s", l.open["type"], kind)
	}
	switch kind {
	case "input_json_delta":
		l.input += d["partial_json"].(string)
	case "citations_delta":
		list, _ := l.open["citations"].([]any)
		l.open["citations"] = append(list, d["citation"])
	default:
		more := d[member].(string)
		l.open[member] = l.open[member].(string) + more
		if kind == "text_delta" {
			l.deltas += more
		}
	}
}

func (l *listener) stop(v object) {
	if l.open == nil || v["index"] != float64(len(l.message["content"].([]any))-1) {
		l.t.Errorf("a block ends that is not there: %v", v)
	}
	if l.input != "" {
		var input any
		if err := json.Unmarshal([]byte(l.input), &input); err == nil {
			l.open["input"] = input
		}
	}
	l.open = nil
}

// end takes what the last event but one says over what was said at the beginning.
func (l *listener) end(v object) {
	if l.open != nil {
		l.t.Errorf("the message ends inside a block: %v", l.open)
	}
	if l.message["stop_reason"] != nil {
		l.t.Errorf("a second reason to stop: %v", v)
	}
	maps.Copy(l.message, v["delta"].(object))
	usage := v["usage"].(object)
	if _, ok := usage["output_tokens"]; !ok {
		l.t.Errorf("the end has no usage: %v", v)
	}
	for name, value := range usage {
		if value != nil { // a null says nothing
			l.message["usage"].(object)[name] = value
		}
	}
	for name, value := range v {
		if name != "type" && name != "delta" && name != "usage" {
			l.message[name] = value
		}
	}
}

// hidden checks that no call of the host shows.
func hidden(t *testing.T, message object) {
	t.Helper()
	for _, b := range blocksOf(message, "tool_use") {
		if name, _ := b["name"].(string); strings.HasPrefix(name, "skills_") {
			t.Errorf("a call of the host shows: %v", b)
		}
	}
}

// buffered reads a whole answer.
func buffered(t *testing.T, body string) object {
	t.Helper()
	var message object
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	hidden(t, message)
	return message
}

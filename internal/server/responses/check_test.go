package responses_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// listener checks the events of one response, one after the other, as strictly as the
// format allows: what the vendor's SDKs build of them must be what the last event says.
type listener struct {
	t       *testing.T
	number  int64
	began   bool
	working bool
	over    string // the last event
	items   []*heard
	last    jsontext.Value // the response at its end
}

// heard is an item as its events tell it.
type heard struct {
	id, kind, text string
	part           bool // a part has begun
	done           bool
	partDone       bool
	textDone       bool
	final          string
}

func (l *listener) fail(format string, args ...any) {
	l.t.Helper()
	l.t.Errorf("event "+strconv.FormatInt(l.number-1, 10)+": "+format, args...)
}

// event takes the next one.
func (l *listener) event(v jsontext.Value) {
	l.t.Helper()
	if wire.Check(v) != nil {
		l.fail("no JSON: %s", v)
		return
	}
	if got := member(v, "sequence_number"); got != strconv.FormatInt(l.number, 10) {
		l.fail("has the number %s, want %d", got, l.number)
	}
	l.number++
	kind := member(v, "type")
	if l.over != "" {
		l.fail("%s comes after %s", kind, l.over)
	}
	switch kind {
	case "response.created":
		if l.began {
			l.fail("a second beginning")
		}
		l.began = true
		checkResponse(l.t, wire.Member(v, "response"))
		return
	case "response.queued":
		return
	case "response.in_progress":
		if l.working = true; !l.began {
			l.fail("in progress before it was created")
		}
		checkResponse(l.t, wire.Member(v, "response"))
		return
	case "response.completed", "response.incomplete", "response.failed":
		l.end(kind, wire.Member(v, "response"))
		return
	}
	if !l.working {
		l.fail("%s before the response is in progress", kind)
	}
	index, err := strconv.Atoi(member(v, "output_index"))
	if err != nil {
		l.fail("%s has no output_index: %s", kind, v)
		return
	}
	if kind == "response.output_item.added" {
		l.added(index, wire.Member(v, "item"))
		return
	}
	if index >= len(l.items) || index < 0 {
		l.fail("%s is about item %d, which was not added", kind, index)
		return
	}
	it := l.items[index]
	if it.done {
		l.fail("%s is about item %d, which is done", kind, index)
	}
	if kind == "response.output_item.done" {
		l.done(it, wire.Member(v, "item"))
		return
	}
	if id := member(v, "item_id"); id != it.id {
		l.fail("%s names %s, want %s", kind, id, it.id)
	}
	l.inside(it, kind, v)
}

func (l *listener) added(index int, item jsontext.Value) {
	if index != len(l.items) {
		l.fail("item %d comes after %d", index, len(l.items)-1)
	}
	it := &heard{id: member(item, "id"), kind: member(item, "type")}
	for _, other := range l.items {
		if other.id == it.id {
			l.fail("the id %s comes twice", it.id)
		}
		if !other.done && (other.kind != "function_call" && other.kind != "custom_tool_call" || it.kind != other.kind) {
			l.fail("%s begins before %s %s is done", it.kind, other.kind, other.id)
		}
	}
	if it.id == "" || it.kind == "" {
		l.fail("an item without id or type: %s", item)
	}
	if it.kind != "reasoning" && member(item, "status") != "in_progress" {
		l.fail("a new item is %s", member(item, "status"))
	}
	l.items = append(l.items, it)
}

func (l *listener) inside(it *heard, kind string, v jsontext.Value) {
	name := strings.TrimPrefix(kind, "response.")
	belongs := map[string]string{
		"content_part.added": "message reasoning", "content_part.done": "message reasoning",
		"output_text.delta": "message", "output_text.done": "message",
		"reasoning_text.delta": "reasoning", "reasoning_text.done": "reasoning",
		"reasoning_summary_part.added": "reasoning", "reasoning_summary_part.done": "reasoning",
		"reasoning_summary_text.delta": "reasoning", "reasoning_summary_text.done": "reasoning",
		"function_call_arguments.delta": "function_call", "function_call_arguments.done": "function_call",
		"custom_tool_call_input.delta": "custom_tool_call", "custom_tool_call_input.done": "custom_tool_call",
	}[name]
	if !strings.Contains(belongs, it.kind) || belongs == "" {
		l.fail("%s is about a %s", kind, it.kind)
	}
	switch {
	case strings.HasSuffix(name, "part.added"):
		if it.part {
			l.fail("a second part of %s", it.id)
		}
		it.part = true
	case strings.HasSuffix(name, "part.done"):
		if !it.textDone || it.partDone {
			l.fail("%s out of place", kind)
		}
		if it.partDone = true; member(v, "part", "text") != it.text {
			l.fail("the part says %q, the deltas %q", member(v, "part", "text"), it.text)
		}
	case strings.HasSuffix(name, ".delta"):
		if it.textDone || !it.part && !strings.Contains(it.kind, "_call") {
			l.fail("%s out of place", kind)
		}
		it.text += member(v, "delta")
	default: // .done
		if it.textDone {
			l.fail("%s comes twice", kind)
		}
		it.textDone = true
		for _, whole := range []string{"text", "arguments", "input"} {
			if w := wire.Member(v, whole); w != nil && member(v, whole) != it.text {
				l.fail("%s says %s, the deltas %q", kind, w, it.text)
			}
		}
	}
}

func (l *listener) done(it *heard, item jsontext.Value) {
	if !it.textDone || it.part != it.partDone {
		l.fail("%s is done before its text is", it.id)
	}
	if member(item, "id") != it.id || member(item, "type") != it.kind {
		l.fail("done: %s, added: %s %s", item, it.kind, it.id)
	}
	if got := itemText(item); got != it.text {
		l.fail("the item says %q, its deltas %q", got, it.text)
	}
	it.done, it.final = true, string(item)
}

// itemText is what an item says.
func itemText(item jsontext.Value) string {
	switch member(item, "type") {
	case "function_call":
		return member(item, "arguments")
	case "custom_tool_call":
		return member(item, "input")
	}
	out := ""
	for _, list := range []string{"content", "summary"} {
		for c := wire.Array(wire.Member(item, list)); c.Next(); {
			out += member(c.Value, "text")
		}
	}
	return out
}

func (l *listener) end(kind string, response jsontext.Value) {
	l.over, l.last = kind, response
	checkResponse(l.t, response)
	status := strings.TrimPrefix(kind, "response.")
	if got := member(response, "status"); got != status && (status != "failed" || got != "cancelled") {
		l.fail("%s says that it is %s", kind, got)
	}
	items := []jsontext.Value{}
	for c := wire.Array(wire.Member(response, "output")); c.Next(); {
		items = append(items, c.Value)
	}
	if len(items) != len(l.items) {
		l.fail("the response has %d items, its events %d", len(items), len(l.items))
		return
	}
	for i, it := range l.items {
		switch {
		case !it.done && status != "failed":
			l.fail("item %s was not done", it.id)
		case it.done && string(items[i]) != it.final:
			l.fail("item %d at the end %s, when it was done %s", i, items[i], it.final)
		case itemText(items[i]) != it.text && it.kind != "custom_tool_call":
			l.fail("item %d says %q, its deltas %q", i, itemText(items[i]), it.text)
		}
	}
}

// listen checks a stream and gives the response at its end; nil if that did not come.
func listen(t *testing.T, body string) jsontext.Value {
	t.Helper()
	l := &listener{t: t}
	listenFrom(t, l, body)
	if l.over == "" {
		t.Errorf("the stream has no end:\n%s", body)
	}
	return l.last
}

func listenFrom(t *testing.T, l *listener, body string) {
	t.Helper()
	events := wire.NewEventReader(strings.NewReader(body), 1<<24, nil)
	names := 0
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		names++
		if string(e.Name) != member(jsontext.Value(e.Data), "type") {
			t.Errorf("the event is called %q: %s", e.Name, e.Data)
		}
		l.event(jsontext.Value(e.Data))
	}
	if strings.Contains(body, "[DONE]") {
		t.Error("the stream ends with a mark of the other dialect")
	}
}

// checkResponse checks that all members are there that the vendor's always has.
func checkResponse(t *testing.T, v jsontext.Value) {
	t.Helper()
	if wire.Check(v) != nil || v.Kind() != '{' {
		t.Fatalf("no response: %s", v)
	}
	for _, name := range []string{
		"id", "object", "created_at", "status", "error", "incomplete_details", "instructions", "model", "tools", "output",
		"parallel_tool_calls", "metadata", "tool_choice", "temperature", "top_p", "usage", "store", "previous_response_id", "text", "reasoning",
	} {
		if wire.Member(v, name) == nil {
			t.Errorf("the response has no %q: %s", name, v)
		}
	}
	if member(v, "object") != "response" || !strings.HasPrefix(member(v, "id"), "resp_") {
		t.Errorf("the response is %s %s", member(v, "object"), member(v, "id"))
	}
	status := member(v, "status")
	if (status == "failed") != (member(v, "error") != "null") {
		t.Errorf("a response that is %s has the error %s", status, member(v, "error"))
	}
	if (status == "incomplete") != (member(v, "incomplete_details") != "null") {
		t.Errorf("a response that is %s is incomplete for %s", status, member(v, "incomplete_details"))
	}
	if status == "completed" || status == "incomplete" {
		for _, name := range []string{"input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"} {
			if wire.Member(wire.Member(v, "usage"), name) == nil {
				t.Errorf("the usage has no %q: %s", name, wire.Member(v, "usage"))
			}
		}
	}
}

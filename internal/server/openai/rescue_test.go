package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// talker is an upstream that parses nothing: its calls are text, cut at every
// third byte.
func talker(texts ...string) (http.Handler, *[]string) {
	bodies := &[]string{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); err == nil || len(body) > 0 {
			*bodies = append(*bodies, string(body))
		}
		text := texts[min(len(*bodies), len(texts))-1]
		w.Header().Set("Content-Type", "text/event-stream")
		for len(text) > 0 {
			n := min(3, len(text))
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", quote(text[:n]))
			text = text[n:]
		}
		fmt.Fprint(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}), bodies
}

// TestRescue: a call that arrives as text is answered inside the server, the
// markup never shows, and the model's own bytes go back.
func TestRescue(t *testing.T) {
	const call = `<tool_call>{"name": "skills_read", "arguments": {"skill": "release-notes"}}</tool_call>`
	for _, stream := range []bool{false, true} {
		up, bodies := talker("Let me look.\n"+call, "Tickets in brackets.")
		r := newRig(t, rigOptions{upstream: up})
		_, body := r.post(t, request("m", fmt.Sprintf(`,"stream":%v`, stream)))
		read := readBuffered
		if stream {
			read = readStream
		}
		c := read(t, body)
		if want := "Let me look.\nTickets in brackets."; c.Text != want || c.Finish != "stop" || len(c.Calls) != 0 {
			t.Errorf("stream %v: %q, finish %s, calls %v, want %q and stop", stream, c.Text, c.Finish, c.Calls, want)
		}
		if len(*bodies) != 2 {
			t.Fatalf("stream %v: %d rounds, want 2", stream, len(*bodies))
		}
		second := (*bodies)[1]
		if !strings.Contains(second, quote("Let me look.\n"+call)) || strings.Contains(second, `"role":"tool"`) {
			t.Errorf("stream %v: the model's words did not go back as they were, with the result as a user turn: %s", stream, messagesOf(t, []byte(second)))
		}
		var last jsontext.Value
		for a := wire.Array(wire.Member(jsontext.Value(second), "messages")); a.Next(); {
			last = a.Value
		}
		if text, _ := wire.String(wire.Member(last, "content")); !strings.Contains(text, "names the ticket in square brackets") {
			t.Errorf("stream %v: the skill did not reach the model: %s", stream, last)
		}
	}
}

// TestRescueForTheCaller: a caller's tool that is called in text goes to the
// caller.
func TestRescueForTheCaller(t *testing.T) {
	up, _ := talker(`[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]`)
	r := newRig(t, rigOptions{upstream: up})
	_, body := r.post(t, request("m", `,"stream":true,"tools":[`+weatherTool+`]`))
	c := readStream(t, body)
	if c.Finish != "tool_calls" || len(c.Calls) != 1 || c.Calls[0].Name != "get_weather" || c.Calls[0].ID == "" || c.Text != "" {
		t.Errorf("the caller saw %+v", c)
	}
}

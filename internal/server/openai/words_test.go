package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestOwnWordsGoBack: what the model said in round 1 goes back in round 2 as the
// bytes that it came in: escapes, white space in arguments, reasoning, ids and
// members that nobody here knows.
func TestOwnWordsGoBack(t *testing.T) {
	deltas := []string{
		`{"role":"assistant","content":null,"reasoning_content":"caf\u00e9 \/ "}`,
		`{"reasoning_content":"\ud83d"}`,
		`{"reasoning_content":"\ude00"}`,
		`{"content":"a\u0062\n"}`,
		`{"tool_calls":[{"index":0,"id":"call-7 x","type":"function","function":{"name":"skills_read","arguments":"{ \"skill\""},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":" :\t\"release\u002dnotes\" }"}}]}`,
	}
	round := 0
	var second string
	up := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		n, _ := r.Body.Read(body) // the next check sees whether it was whole
		w.Header().Set("Content-Type", "text/event-stream")
		if round++; round == 2 {
			second = string(body[:n])
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		for _, d := range deltas {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	})
	r := newRig(t, rigOptions{upstream: up})
	if _, body := r.post(t, request("m", ``)); !strings.Contains(body, "done") {
		t.Fatal(body)
	}
	const want = `{"role":"assistant","reasoning_content":"caf\u00e9 \/ \ud83d\ude00","content":"a\u0062\n",` +
		`"tool_calls":[{"id":"call-7 x","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},` +
		`"function":{"name":"skills_read","arguments":"{ \"skill\" :\t\"release\u002dnotes\" }"}}]}`
	if !strings.Contains(second, want) {
		t.Errorf("round 2 was sent\n%s\nand not the model's own\n%s", messagesOf(t, []byte(second)), want)
	}
	if !strings.Contains(second, "names the ticket in square brackets") {
		t.Error("the skill did not reach the model")
	}
}

package openai_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/llm"
)

// foreign is a provider of another dialect than the door's.
type foreign struct{ *llm.Script }

func (foreign) Dialect() llm.Dialect { return llm.Anthropic }

func (foreign) Lost(r *llm.Request) []string {
	return r.Lost(llm.Carry{Parts: []llm.PartKind{llm.Image}, NoOptions: []string{"seed", "effort"}})
}

func (foreign) Models(context.Context) ([]llm.Model, error) {
	return []llm.Model{{ID: "claude-x", Raw: event(`{"type":"model","id":"claude-x","display_name":"X"}`)}}, nil
}

func newForeign(rounds ...llm.ScriptedRound) foreign {
	return foreign{&llm.Script{Rounds: rounds, Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true}}}
}

func event(data string) llm.Raw { return llm.Raw{Dialect: llm.Anthropic, Bytes: []byte(data)} }

func round(pieces ...llm.Piece) llm.ScriptedRound { return llm.ScriptedRound{Pieces: pieces} }

// begun is what an answer of the other dialect begins with: it says nothing to anybody else.
func begun() llm.Piece {
	return llm.Piece{Raw: event(`{"type":"message_start","message":{"id":"msg_1"}}`)}
}

func said(text string) llm.Piece {
	return llm.Piece{Text: text, Raw: event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}`)}
}

func ended(reason llm.Finish, input, output int64) llm.Piece {
	return llm.Piece{Finish: reason, Usage: &llm.Usage{Input: input, Output: output, Cached: 5, Written: 1}, Raw: event(`{"type":"message_delta","delta":{"stop_reason":"x"}}`)}
}

// both asks for an answer buffered and streamed, and checks that nothing of the other
// dialect is in it.
func both(t *testing.T, p func() llm.Provider, body string, check func(t *testing.T, c completion)) {
	t.Helper()
	for _, stream := range []bool{false, true} {
		r := newRig(t, rigOptions{provider: p()})
		ask, read := body, readBuffered
		if stream {
			ask, read = strings.TrimSuffix(body, "}")+`,"stream":true,"stream_options":{"include_usage":true}}`, readStream
		}
		res, got := r.post(t, ask)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("streamed %v: %d %s", stream, res.StatusCode, got)
		}
		for _, strange := range []string{"message_start", "text_delta", "signature", "stop_reason", "msg_1"} {
			if strings.Contains(got, strange) {
				t.Errorf("streamed %v: %q is in %s", stream, strange, got)
			}
		}
		c := read(t, got)
		if stream && (c.roles != 1 || c.ids != 1 || c.done != 1 || c.usages != 1) {
			t.Errorf("%d roles, %d ids, %d ends, %d usages: %s", c.roles, c.ids, c.done, c.usages, got)
		}
		if stream {
			chunks := strings.Split(strings.TrimSpace(got), "\n\n")
			if last := chunks[max(len(chunks)-2, 0)]; !strings.Contains(last, `"choices":[],"usage":`) {
				t.Errorf("the usage is not at the end: %s", got)
			}
		}
		if !strings.HasPrefix(c.ID, "chatcmpl-") || c.Model != "m" {
			t.Errorf("the answer is called %q of %q", c.ID, c.Model)
		}
		check(t, c)
	}
}

// TestForeignAnswer: text, reasoning, calls and usage of an upstream of another dialect.
func TestForeignAnswer(t *testing.T) {
	usage := llm.Piece{Usage: &llm.Usage{Input: 1}} // some tell it early, and again
	p := func() llm.Provider {
		return newForeign(round(begun(), usage,
			llm.Piece{Reasoning: "hm", Raw: event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`)},
			llm.Piece{Raw: event(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`)},
			said("Let me "), llm.Piece{Text: "look.", Repeats: true, Raw: event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look."}}`)},
			llm.Piece{Calls: []llm.CallDelta{{Index: 0, ID: "toolu_1", Name: "get_weather"}}},
			llm.Piece{Calls: []llm.CallDelta{{Index: 0, Arguments: `{"city":`}}},
			llm.Piece{Calls: []llm.CallDelta{{Index: 0, Arguments: `"Oslo"}`}}},
			llm.Piece{Calls: []llm.CallDelta{{Index: 1, ID: "toolu_2", Name: "get_weather"}}},
			ended(llm.FinishCalls, 20, 7)))
	}
	both(t, p, request("m", `,"tools":[`+weatherTool+`]`), func(t *testing.T, c completion) {
		want := completion{
			Text: "Let me look.", Reasoning: "hm", Finish: "tool_calls", Calls: []call{
				{Index: "0", ID: "toolu_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}, {Index: "1", ID: "toolu_2", Name: "get_weather"},
			},
			Usage: map[string]any{
				"prompt_tokens": 20.0, "completion_tokens": 7.0, "total_tokens": 27.0,
				"prompt_tokens_details": map[string]any{"cached_tokens": 5.0}, "completion_tokens_details": map[string]any{"reasoning_tokens": 0.0},
			},
		}
		if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(completion{}), cmpopts.IgnoreFields(completion{}, "ID", "Model")); diff != "" {
			t.Errorf("the answer differs (-want +got):\n%s", diff)
		}
	})
}

// TestForeignRounds: several rounds are one answer, without the host's calls.
func TestForeignRounds(t *testing.T) {
	p := func() llm.Provider {
		return newForeign(
			round(begun(), said("I read. "), llm.Piece{Calls: []llm.CallDelta{{ID: "toolu_1", Name: "skills_read", Arguments: `{"skill":"release-notes"}`}}}, ended(llm.FinishCalls, 20, 7)),
			round(begun(), said("It is so."), ended(llm.FinishStop, 30, 3)),
		)
	}
	both(t, p, request("m", ""), func(t *testing.T, c completion) {
		if c.Text != "I read. It is so." || len(c.Calls) > 0 || c.Finish != "stop" {
			t.Errorf("the answer is %+v", c)
		}
		if c.Usage["prompt_tokens"] != 50.0 || c.Usage["completion_tokens"] != 10.0 || c.Usage["total_tokens"] != 60.0 {
			t.Errorf("the usage is %v", c.Usage)
		}
	})
}

// TestForeignFinish: a reason to stop is one that clients of this dialect know.
func TestForeignFinish(t *testing.T) {
	for reason, want := range map[llm.Finish]string{
		llm.FinishStop: "stop", llm.FinishLength: "length", llm.FinishRefused: "content_filter", "stop_sequence": "stop", "pause_turn": "stop",
		"model_context_window_exceeded": "length", "tired": "stop",
	} {
		p := func() llm.Provider { return newForeign(round(begun(), said("x"), ended(reason, 2, 1))) }
		both(t, p, request("m", ""), func(t *testing.T, c completion) {
			if c.Finish != want {
				t.Errorf("%s became %q, want %q", reason, c.Finish, want)
			}
		})
	}
}

// TestForeignRequest: a provider of another dialect gets a request whole in neutral form,
// and the client is told what it cannot carry.
func TestForeignRequest(t *testing.T) {
	p := newForeign(round(said("x"), ended(llm.FinishStop, 2, 1)))
	p.Rounds = append(p.Rounds, p.Rounds[0]) // the request has an answer already
	r := newRig(t, rigOptions{provider: p, noSkills: true})
	res, got := r.post(t, `{"model":"m","messages":[
		{"role":"system","content":"be"},
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,BBBB"}}]},
		{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"rain"}]}],
		"tools":[`+weatherTool+`,{"type":"custom","custom":{"name":"grammar"}}],"tool_choice":{"type":"function","function":{"name":"get_weather"}},
		"max_completion_tokens":9,"temperature":0.5,"stop":"END","seed":4,"reasoning_effort":"high","logit_bias":{"1":2}}`)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, got)
	}
	warning := strings.Join(res.Header.Values("X-Metier-Warning"), "\n")
	for _, lost := range []string{`the member "logit_bias"`, `the setting "seed"`, `the setting "effort"`, `the tool "grammar"`, "reasoning of earlier answers", "files"} {
		if !strings.Contains(warning, lost) {
			t.Errorf("no warning of %s: %s", lost, warning)
		}
	}
	sent := p.Requests()[0]
	half := 0.5
	seed := int64(4)
	wantOptions := llm.Options{Choice: llm.ChoiceNamed, Function: "get_weather", MaxTokens: 9, Temperature: &half, Stop: []string{"END"}, Seed: &seed, Effort: "high"}
	if diff := cmp.Diff(wantOptions, sent.Options); diff != "" {
		t.Errorf("the options differ (-want +got):\n%s", diff)
	}
	want := []llm.Message{
		llm.TextMessage(llm.System, "be"),
		{Role: llm.User, Parts: []llm.Part{
			{Kind: llm.Text, Text: "see"},
			{Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: "AAAA"}},
			{Kind: llm.File, Media: &llm.Media{Type: "application/pdf", Name: "a.pdf", Data: "BBBB"}},
		}},
		{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}}, Calls: []llm.Call{{ID: "c1", Name: "get_weather", Arguments: "{}"}}},
		{Role: llm.Tool, CallID: "c1", Parts: []llm.Part{{Kind: llm.Text, Text: "rain"}}},
	}
	if diff := cmp.Diff(want, sent.Messages, cmpopts.IgnoreFields(llm.Message{}, "Raw"), cmpopts.IgnoreFields(llm.Part{}, "Raw")); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	if len(sent.Tools) != 2 || sent.Tools[0].Name != "get_weather" || len(sent.Tools[0].Parameters) == 0 || !sent.Tools[1].Special {
		t.Errorf("the tools are %+v", sent.Tools)
	}
}

// TestForeignErrors: what an upstream of another dialect refuses keeps its status, and has
// the words and types of this one.
func TestForeignErrors(t *testing.T) {
	const theirs = `{"type":"error","error":{"type":"their_error","message":"no"}}`
	refusal := func(status int) *llm.StatusError {
		return &llm.StatusError{Status: status, Dialect: llm.Anthropic, Body: []byte(theirs), Message: "no", Header: http.Header{"Retry-After": {"7"}}}
	}
	overflow := refusal(400)
	overflow.Overflow = &llm.Overflow{Limit: 1000}
	broke := &llm.StreamError{Message: "overloaded", Raw: []byte(theirs)}
	for name, c := range map[string]struct {
		err    error
		status int
		want   []string
	}{
		"400":         {refusal(400), 400, []string{`"type":"invalid_request_error"`, `"code":"upstream_error"`}},
		"401":         {refusal(401), 401, []string{`"type":"authentication_error"`}},
		"403":         {refusal(403), 403, []string{`"type":"permission_error"`}},
		"404":         {refusal(404), 404, []string{`"type":"invalid_request_error"`}},
		"429":         {refusal(429), 429, []string{`"type":"rate_limit_error"`}},
		"529":         {refusal(529), 529, []string{`"type":"server_error"`}},
		"too long":    {overflow, 400, []string{`"type":"invalid_request_error"`, `"code":"context_length_exceeded"`}},
		"in a stream": {broke, 502, []string{`"type":"server_error"`, "overloaded"}},
	} {
		for _, more := range []string{"", `,"stream":true`} {
			r := newRig(t, rigOptions{provider: newForeign(llm.ScriptedRound{Pieces: []llm.Piece{begun()}, Err: c.err}), noSkills: true})
			res, got := r.post(t, request("m", more))
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s%s: %d %s", name, more, res.StatusCode, got)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s%s lacks %s: %s", name, more, want, got)
				}
			}
			if strings.Contains(got, "their_error") {
				t.Errorf("%s%s: %s", name, more, got)
			}
		}
		r := newRig(t, rigOptions{provider: newForeign(llm.ScriptedRound{Pieces: []llm.Piece{begun(), said("half")}, Err: c.err}), noSkills: true})
		_, got := r.post(t, request("m", `,"stream":true`))
		if strings.Contains(got, "their_error") || strings.Contains(got, "[DONE]") || !strings.Contains(got, `data: {"error":{"message":`) {
			t.Errorf("%s after text: %s", name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s after text lacks %s: %s", name, want, got)
			}
		}
	}
}

// TestForeignModels: a model of another dialect's list has this one's form.
func TestForeignModels(t *testing.T) {
	r := newRig(t, rigOptions{provider: newForeign()})
	for path, want := range map[string]string{
		"/v1/models":          `{"object":"list","data":[{"id":"claude-x","object":"model","created":0,"owned_by":"metier"}]}`,
		"/v1/models/claude-x": `{"id":"claude-x","object":"model","created":0,"owned_by":"metier"}`,
	} {
		if _, got := get(t, r.url+path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestOwnFinish: a reason of an upstream of this dialect stays, whether or not it is known,
// also where the host has to write the chunk anew.
func TestOwnFinish(t *testing.T) {
	chunk := func(delta, finish string) string {
		return `data: {"id":"x","choices":[{"index":0,"delta":` + delta + `,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"
	}
	for _, more := range []string{"", `,"stream":true`} {
		for _, rounds := range []int{1, 2} {
			asked := 0
			r := newRig(t, rigOptions{upstream: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				asked++
				answer := chunk(`{"content":"a"}`, "eos")
				if asked < rounds {
					answer = chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"skills_read","arguments":"{\"skill\":\"release-notes\"}"}}]}`, "tool_calls")
				}
				answering("text/event-stream", answer).ServeHTTP(w, q)
			})})
			if _, got := r.post(t, request("m", more)); !strings.Contains(got, `"finish_reason":"eos"`) || asked != rounds {
				t.Errorf("%q, %d rounds of %d: %s", more, asked, rounds, got)
			}
		}
	}
}

// TestForeignGoesOn: what a client sends back is known again, with the hidden rounds before
// it, whatever the upstream speaks.
func TestForeignGoesOn(t *testing.T) {
	p := newForeign(
		round(begun(), llm.Piece{Calls: []llm.CallDelta{{ID: "toolu_1", Name: "skills_read", Arguments: `{"skill":"release-notes"}`}}}, ended(llm.FinishCalls, 2, 1)),
		round(begun(), said("It is "), said("so."), ended(llm.FinishStop, 2, 1)),
		round(begun(), said("Again."), ended(llm.FinishStop, 2, 1)),
	)
	memory := continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now)
	r := newRig(t, rigOptions{provider: p, continuity: memory})
	_, got := r.post(t, request("m", ""))
	first := readBuffered(t, got)
	_, got = r.post(t, `{"model":"m","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"`+first.Text+`"},{"role":"user","content":"and?"}]}`)
	if c := readBuffered(t, got); c.Text != "Again." {
		t.Errorf("the second answer is %+v", c)
	}
	var roles []string
	for _, m := range p.Requests()[2].Messages {
		roles = append(roles, string(m.Role))
	}
	if got := strings.Join(roles, " "); !strings.HasSuffix(got, "user assistant tool assistant user") {
		t.Errorf("the upstream got %s", got)
	}
}

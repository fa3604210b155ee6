package anthropic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/rescue"
)

// usage is what a client is told at the end of a turn of an upstream that speaks OpenAI Chat.
func usage(input, output, cached int) object {
	return object{
		"input_tokens": float64(input - cached), "cache_creation_input_tokens": float64(0),
		"cache_read_input_tokens": float64(cached), "output_tokens": float64(output),
	}
}

// both asks for an answer buffered and streamed, checks that both say the same, and returns
// what was said.
func both(t *testing.T, open func() *rig, body string, header ...string) object {
	t.Helper()
	res, answer := open().post(t, body, header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("buffered: %d %s", res.StatusCode, answer)
	}
	whole := buffered(t, answer)
	// Some upstreams of the tests count requests.
	res, answer = open().post(t, strings.TrimSuffix(body, "}")+streamed+"}", header...)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("streamed: %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), answer)
	}
	h := listen(t, answer)
	if h.pings == 0 {
		t.Error("no ping")
	}
	if diff := cmp.Diff(whole, h.message); diff != "" {
		t.Errorf("the stream says otherwise (-buffered +streamed):\n%s", diff)
	}
	return whole
}

// TestMessages: what a client sees of each scenario of an upstream of another dialect.
func TestMessages(t *testing.T) {
	const notice = "One more look. \n\n(I ran out of tool calls for this request before I could use skills_read. Ask me to continue and I will carry on from here.)"
	for _, c := range []struct {
		model, more      string
		text, kinds      string
		stop             string
		usage            object
		rounds           int
		thought, callIDs string
	}{
		{model: "hello", text: "Good morning, and welcome.", kinds: "text", stop: "end_turn", usage: usage(12, 6, 0), rounds: 1},
		{model: "skill-read", text: "The notes begin with what changed for the reader.", kinds: "text", stop: "end_turn", usage: usage(600, 36, 0), rounds: 2},
		{model: "skill-read", more: `,"skills":["release-notes"],"skills_discovery":false,"multi_agent":false`, text: "The notes begin with what changed for the reader.", kinds: "text", stop: "end_turn", rounds: 2},
		{model: "two-reads", text: "Both skills ask for dates.", kinds: "text", stop: "end_turn", rounds: 2},
		{model: "usage-cached", text: "Read from the cache.", kinds: "text", stop: "end_turn", usage: usage(700, 26, 512), rounds: 2},
		{model: "reasoning", more: thinking, text: "The number is seven.", thought: "They ask for a number. Seven fits.", kinds: "thinking text", stop: "end_turn", rounds: 1},
		{model: "reasoning", text: "The number is seven.", kinds: "text", stop: "end_turn", rounds: 1},
		{model: "reasoning", more: `,"thinking":{"type":"adaptive","display":"omitted"}`, text: "The number is seven.", kinds: "text", stop: "end_turn", rounds: 1},
		{model: "no-ids", text: "Both were read.", kinds: "text", stop: "end_turn", rounds: 2},
		{model: "loop-stubborn", text: notice, kinds: "text", stop: "end_turn", usage: usage(8*200+900, 8*20+24, 0), rounds: 9},
		{model: "cut-call", kinds: "", stop: "max_tokens", rounds: 1},
		{model: "caller-tool", more: weather, kinds: "tool_use", stop: "tool_use", usage: usage(60, 16, 0), callIDs: `call_weather_1 map[city:Oslo]`, rounds: 1},
		{model: "mixed", more: weather, text: "Let me look. ", kinds: "text tool_use", stop: "tool_use", usage: usage(210, 52, 0), callIDs: `call_mixed_weather map[city:Bergen]`, rounds: 1},
		{model: "crlf", text: "Carriage returned.", kinds: "text", stop: "end_turn", rounds: 1},
		{model: "no-done", kinds: "text", stop: "end_turn", rounds: 1},
		{model: "json-answer", kinds: "text", stop: "end_turn", rounds: 1},
	} {
		t.Run(c.model+c.more, func(t *testing.T) {
			var rigs []*rig
			m := both(t, func() *rig { rigs = append(rigs, newRig(t, rigOptions{})); return rigs[len(rigs)-1] }, request(c.model, c.more))
			if got := len(rigs[0].upstream.Requests()); got != c.rounds {
				t.Errorf("%d rounds upstream, want %d", got, c.rounds)
			}
			if got := kindsOf(m); got != c.kinds {
				t.Errorf("blocks %q, want %q", got, c.kinds)
			}
			if got := textOf(m); got != c.text && (c.text != "" || !strings.Contains(c.kinds, "text")) || strings.Contains(c.kinds, "text") && got == "" {
				t.Errorf("text %q, want %q", got, c.text)
			}
			for _, b := range blocksOf(m, "thinking") {
				if b["thinking"] != c.thought || b["signature"] != "" {
					t.Errorf("thought %v, want %q without a signature", b, c.thought)
				}
			}
			var got []string
			for _, b := range blocksOf(m, "tool_use") {
				got = append(got, fmt.Sprint(b["id"], " ", b["input"]))
			}
			if strings.Join(got, ", ") != c.callIDs {
				t.Errorf("calls %v, want %s", got, c.callIDs)
			}
			if m["stop_reason"] != c.stop || m["role"] != "assistant" || m["model"] != c.model || !strings.HasPrefix(m["id"].(string), "msg_") {
				t.Errorf("message %v, want the stop reason %s", m, c.stop)
			}
			if c.usage != nil {
				if diff := cmp.Diff(c.usage, m["usage"]); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestVendorMessages: what an upstream of the same dialect says goes through with
// everything that it says, but for the host's calls, numbers, and usage of more than one
// round.
func TestVendorMessages(t *testing.T) {
	const cited = `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x","document_index":0}}`
	searched := func(i int) []string {
		return slices.Concat(
			blockOf(i, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`),
			blockOf(i+1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"c2ln"}]}`),
		)
	}
	for _, c := range []struct {
		name, more string
		rounds     [][]string
		kinds      string
		text       string
		stop       string
		check      func(t *testing.T, m object)
	}{
		{
			name: "text", rounds: [][]string{round(began(10), says(0, "Good ", "morning."), ended("end_turn", 10, 5))},
			kinds: "text", text: "Good morning.", stop: "end_turn",
			check: func(t *testing.T, m object) {
				want := object{"input_tokens": 10.0, "cache_creation_input_tokens": 0.0, "cache_read_input_tokens": 8.0, "output_tokens": 5.0, "service_tier": "standard", "server_tool_use": object{"web_search_requests": 1.0}}
				if diff := cmp.Diff(want, m["usage"]); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				if m["id"] != "msg_up" || m["model"] != "claude-x-0203" || m["context_management"] == nil {
					t.Errorf("the upstream's own members are lost: %v", m)
				}
			},
		},
		{
			name: "thinking, a read, thinking", more: thinking,
			rounds: [][]string{
				round(began(10), thinks(0, "First I read.", "sig1"), says(1, "Let me look. "), read(2), ended("tool_use", 10, 5)),
				round(began(30), thinks(0, "Now I know.", "sig2"), says(1, "In brackets."), ended("end_turn", 30, 7)),
			},
			kinds: "thinking text thinking text", text: "Let me look. In brackets.", stop: "end_turn",
			check: func(t *testing.T, m object) {
				thoughts := blocksOf(m, "thinking")
				if thoughts[0]["signature"] != "sig1" || thoughts[1]["signature"] != "sig2" || thoughts[1]["thinking"] != "Now I know." {
					t.Errorf("thoughts %v", thoughts)
				}
				usage := m["usage"].(object)
				if usage["input_tokens"] != 40.0 || usage["output_tokens"] != 12.0 || usage["cache_read_input_tokens"] != 16.0 {
					t.Errorf("usage %v is not the sum", usage)
				}
			},
		},
		{
			name: "a read beside the caller's call", more: weather,
			rounds: [][]string{round(began(10), says(0, "Both. "), read(1), calls(2, "toolu_w", "get_weather", "", `{"city":`, `"Oslo"}`), ended("tool_use", 10, 5))},
			kinds:  "text tool_use", text: "Both. ", stop: "tool_use",
			check: func(t *testing.T, m object) {
				call := blocksOf(m, "tool_use")[0]
				if call["id"] != "toolu_w" || fmt.Sprint(call["input"]) != "map[city:Oslo]" {
					t.Errorf("the call is %v", call)
				}
			},
		},
		{
			name: "the caller's call before a read, and one without arguments", more: `,"tools":[` + weatherTool + `,{"name":"now","input_schema":{"type":"object"}}]`,
			rounds: [][]string{round(began(10), calls(0, "toolu_w", "get_weather", `{"city":"Oslo"}`), calls(1, "toolu_n", "now", ""), read(2), ended("tool_use", 10, 5))},
			kinds:  "tool_use tool_use", stop: "tool_use",
			check: func(t *testing.T, m object) {
				if call := blocksOf(m, "tool_use")[1]; call["id"] != "toolu_n" || fmt.Sprint(call["input"]) != "map[]" {
					t.Errorf("the call is %v", call)
				}
			},
		},
		{
			name: "blocks of the vendor's own tools behind a read",
			rounds: [][]string{
				round(began(10), read(0), ended("tool_use", 10, 5)),
				round(began(30), searched(0), blockOf(2, `{"type":"text","text":"","citations":[]}`, cited, `{"type":"text_delta","text":"Found."}`, cited), ended("end_turn", 30, 7)),
			},
			kinds: "server_tool_use web_search_tool_result text", text: "Found.", stop: "end_turn",
			check: func(t *testing.T, m object) {
				if found := blocksOf(m, "server_tool_use")[0]; fmt.Sprint(found["input"]) != "map[query:x]" {
					t.Errorf("input %v", found)
				}
				if text := blocksOf(m, "text")[0]; len(text["citations"].([]any)) != 2 {
					t.Errorf("citations %v", text)
				}
			},
		},
		{name: "cut off", rounds: [][]string{round(began(10), says(0, "Half a sen"), ended("max_tokens", 10, 5))}, kinds: "text", text: "Half a sen", stop: "max_tokens"},
		{
			name: "a stop sequence", rounds: [][]string{round(began(10), says(0, "Until here. "), ended("stop_sequence", 10, 5))}, kinds: "text", text: "Until here. ", stop: "stop_sequence",
			check: func(t *testing.T, m object) {
				if m["stop_sequence"] != "END" {
					t.Errorf("the sequence is %v", m["stop_sequence"])
				}
			},
		},
		{
			name: "a stop sequence behind a read", more: `,"stop_sequences":["END"]`,
			rounds: [][]string{round(began(10), read(0), ended("tool_use", 10, 5)), round(began(10), says(0, "Until here. "), ended("stop_sequence", 10, 5))},
			kinds:  "text", text: "Until here. ", stop: "stop_sequence",
			check: func(t *testing.T, m object) {
				if m["stop_sequence"] != "END" {
					t.Errorf("the sequence is %v", m["stop_sequence"])
				}
			},
		},
		{name: "paused", rounds: [][]string{round(began(10), says(0, "More to come."), ended("pause_turn", 10, 5))}, kinds: "text", text: "More to come.", stop: "pause_turn"},
		{name: "a block without text", rounds: [][]string{round(began(10), says(0), says(1, "Here."), ended("end_turn", 10, 5))}, kinds: "text", text: "Here.", stop: "end_turn"},
		{name: "nothing at all", rounds: [][]string{round(began(10), ended("end_turn", 10, 5))}, stop: "end_turn"},
		{
			name: "an event of a newer kind", rounds: [][]string{round(began(10), []string{`{"type":"message_thread","thread":{"id":"t1"}}`, "{\"type\":\"evil\\ndata: x\"}"}, says(0, "Here."), ended("end_turn", 10, 5))},
			kinds: "text", text: "Here.", stop: "end_turn",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := both(t, func() *rig { return newRig(t, rigOptions{provider: &vendor{t: t, rounds: c.rounds}}) }, request("claude-x", c.more))
			over := both(t, func() *rig { return newRig(t, rigOptions{upstream: playing(c.rounds), vendor: true}) }, request("claude-x", c.more))
			if diff := cmp.Diff(m, over); diff != "" {
				t.Errorf("the dialect's own provider says otherwise (-played +over HTTP):\n%s", diff)
			}
			if kindsOf(m) != c.kinds || textOf(m) != c.text || m["stop_reason"] != c.stop {
				t.Errorf("blocks %q, text %q, stop %v, want %q, %q, %s", kindsOf(m), textOf(m), m["stop_reason"], c.kinds, c.text, c.stop)
			}
			if c.check != nil {
				c.check(t, m)
			}
		})
	}
}

// TestCallsInTurns: calls whose fragments come in turns are told one after the other.
func TestCallsInTurns(t *testing.T) {
	d := func(i int, id, name, arguments string) llm.Piece {
		return llm.Piece{Calls: []llm.CallDelta{{Index: i, ID: id, Name: name, Arguments: arguments}}}
	}
	script := func() llm.Provider {
		return &llm.Script{
			Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true},
			Rounds: []llm.ScriptedRound{{Pieces: []llm.Piece{
				d(0, "a", "get_weather", ""), d(1, "b", "get_weather", ""), d(1, "", "", `{"city":`), d(0, "", "", `{"city"`),
				{Text: "Both. "},
				d(1, "", "", `"Bergen"}`), d(0, "", "", `:"Oslo"}`),
				{Text: "So."},
				{Finish: llm.FinishCalls},
			}}},
		}
	}
	m := both(t, func() *rig { return newRig(t, rigOptions{provider: script()}) }, request("m", weather))
	var got []string
	for _, b := range m["content"].([]any) {
		b := b.(object)
		got = append(got, fmt.Sprint(b["id"], " ", b["input"], " ", b["text"]))
	}
	if want := "a map[city:Oslo] <nil>, b map[city:Bergen] <nil>, <nil> <nil> Both. So."; strings.Join(got, ", ") != want {
		t.Errorf("blocks %q, want %q", strings.Join(got, ", "), want)
	}
}

// TestBrokenArguments: a call whose arguments are no JSON has none that a client could read
// in a whole answer.
func TestBrokenArguments(t *testing.T) {
	for finish, want := range map[llm.Finish]string{llm.FinishCalls: "tool_use", llm.FinishLength: "max_tokens"} {
		r := newRig(t, rigOptions{provider: &llm.Script{
			Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true},
			Rounds: []llm.ScriptedRound{{Pieces: []llm.Piece{
				{Calls: []llm.CallDelta{{ID: "a", Name: "get_weather", Arguments: `{"city":"Os`}}}, {Finish: finish},
			}}},
		}})
		_, body := r.post(t, request("m", weather))
		m := buffered(t, body)
		if call := blocksOf(m, "tool_use")[0]; fmt.Sprint(call["input"]) != "map[]" || m["stop_reason"] != want {
			t.Errorf("%s: %v", finish, m)
		}
	}
}

// TestMendedArguments: arguments that the host could mend are in a whole answer as it
// mended them.
func TestMendedArguments(t *testing.T) {
	script := &llm.Script{
		Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true},
		Rounds: []llm.ScriptedRound{{Pieces: []llm.Piece{
			{Calls: []llm.CallDelta{{ID: "a", Name: "get_weather", Arguments: `{"city":"Oslo",}`}}}, {Finish: llm.FinishCalls},
		}}},
	}
	r := newRig(t, rigOptions{provider: rescue.Wrap(script, rescue.Options{NewID: (&ids{}).NewID})})
	_, body := r.post(t, request("m", weather))
	if call := blocksOf(buffered(t, body), "tool_use"); len(call) != 1 || fmt.Sprint(call[0]["input"]) != "map[city:Oslo]" {
		t.Errorf("%s", body)
	}
}

// TestErrors: status, shape and headers of every way to fail.
func TestErrors(t *testing.T) {
	small, err := config.Values{}.Set(config.RequestBody, 2048)
	if err != nil {
		t.Fatal(err)
	}
	own := &llm.StatusError{
		Status: 529, Dialect: llm.Anthropic, Message: "Overloaded", Header: http.Header{"Retry-After": {"3"}, "Anthropic-Ratelimit-Requests-Remaining": {"0"}},
		Body: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_up"}`),
	}
	busy := fault.New(fault.Busy, "the model is busy")
	busy.RetryAfter = 2e9
	failing := func(err error) rigOptions {
		return rigOptions{provider: &vendor{t: t, errs: map[int]error{1: err}}}
	}
	for _, c := range []struct {
		name, body string
		header     []string
		options    rigOptions
		status     int
		kind       string
		want       string
	}{
		{"not JSON", `{"model":`, nil, rigOptions{}, 400, "invalid_request_error", "not valid JSON"},
		{"no messages", `{"model":"m","max_tokens":9}`, nil, rigOptions{}, 400, "invalid_request_error", "messages"},
		{"no version", request("hello", ""), []string{version, ""}, rigOptions{}, 400, "invalid_request_error", "anthropic-version"},
		{"unknown skill", request("hello", `,"skills":["nope"]`), nil, rigOptions{}, 400, "invalid_request_error", "meeting-minutes, release-notes"},
		{"unknown skill by header", request("hello", ``), []string{"X-Metier-Skills", "nope"}, rigOptions{}, 400, "invalid_request_error", `there is no skill "nope"`},
		{"skills of a wrong type", request("hello", `,"skills":"pdf"`), nil, rigOptions{}, 400, "invalid_request_error", "array"},
		{"discovery of a wrong type", request("hello", `,"skills_discovery":"no"`), nil, rigOptions{}, 400, "invalid_request_error", "skills_discovery"},
		{"a thread of the vendor's", request("hello", `,"thread":{"type":"create"}`), nil, rigOptions{}, 400, "invalid_request_error", "map[error_code:thread_unsupported_request]"},
		{"a finer code", request("hello", `,"skills":["nope"]`), nil, rigOptions{}, 400, "invalid_request_error", "map[error_code:skill_not_found]"},
		{"too large", request("hello", `,"x":"`+strings.Repeat("x", 3000)+`"`), nil, rigOptions{limits: small}, 413, "request_too_large", "--max-body"},
		{"compressed", request("hello", ``), []string{"Content-Encoding", "zstd"}, rigOptions{}, 415, "invalid_request_error", "zstd"},
		{"upstream 429", request("rate-limited", ``), nil, rigOptions{}, 429, "rate_limit_error", ""},
		{"upstream 401", request("unauthorized", ``), nil, rigOptions{}, 401, "authentication_error", ""},
		{"upstream 502 without an error object", request("server-error", ``), nil, rigOptions{}, 502, "api_error", "Bad Gateway"},
		{"upstream cut before its answer", request("cut-headers", ``), nil, rigOptions{}, 502, "api_error", ""},
		{"upstream cut, buffered", request("cut", ``), nil, rigOptions{}, 502, "api_error", ""},
		{"error inside the stream, buffered", request("error-in-stream", ``), nil, rigOptions{}, 502, "api_error", ""},
		{"the vendor's own", request("claude-x", ``), nil, failing(own), 529, "overloaded_error", "req_up"},
		{"the gate is full", request("claude-x", ``), nil, failing(busy), 529, "overloaded_error", "the model is busy"},
		{"a bug", request("claude-x", ``), nil, failing(fmt.Errorf("secret")), 500, "api_error", "its log has the cause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, stream := range []string{"", streamed} {
				if stream != "" && (!strings.HasPrefix(c.name, "upstream 4") && c.status != overloadedStatus) {
					continue // a stream that has not begun fails the same way
				}
				r := newRig(t, c.options)
				if v, ok := c.options.provider.(*vendor); ok {
					r = newRig(t, rigOptions{provider: &vendor{t: t, errs: v.errs}})
				}
				body := c.body
				if stream != "" {
					body = strings.TrimSuffix(body, "}") + stream + "}"
				}
				res, answer := r.post(t, body, c.header...)
				if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json" {
					t.Fatalf("%d %s, want %d: %s", res.StatusCode, res.Header.Get("Content-Type"), c.status, answer)
				}
				e := buffered(t, answer)
				f, _ := e["error"].(object)
				if e["type"] != "error" || f["type"] != c.kind || !strings.Contains(fmt.Sprint(f["message"], f["details"], e["request_id"]), c.want) {
					t.Errorf("the body is %s, want a %s with %q", answer, c.kind, c.want)
				}
				id := res.Header.Get("Request-Id")
				if id == "" || id != res.Header.Get("X-Request-Id") || e["request_id"] != id && e["request_id"] != "req_up" {
					t.Errorf("request id %q in the header, %v in the body", id, e["request_id"])
				}
				if (c.status == http.StatusTooManyRequests || c.status == overloadedStatus) && res.Header.Get("Retry-After") == "" {
					t.Error("Retry-After was lost")
				}
				if c.name == "the vendor's own" && (answer != string(own.Body) || res.Header.Get("Anthropic-Ratelimit-Requests-Remaining") != "0") {
					t.Errorf("the vendor's refusal was changed: %v %s", res.Header, answer)
				}
			}
		})
	}
}

const overloadedStatus = 529

// TestBrokenStreams: what breaks inside a stream ends in an error event and without the
// end, so that no client takes half an answer for a whole one.
func TestBrokenStreams(t *testing.T) {
	vendors := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	breaking := func(err error) rigOptions {
		return rigOptions{provider: &vendor{t: t, rounds: [][]string{append(began(10), says(0, "I was ")[:2]...)}, errs: map[int]error{1: err}}}
	}
	for name, c := range map[string]struct {
		options rigOptions
		kind    string
	}{
		"cut": {rigOptions{}, "api_error"}, "cut-event": {rigOptions{}, "api_error"}, "early-end": {rigOptions{}, "api_error"},
		"malformed": {rigOptions{}, "api_error"}, "error-in-stream": {rigOptions{}, "api_error"},
		"the vendor's own": {breaking(&llm.StreamError{Message: "Overloaded", Raw: []byte(vendors)}), "overloaded_error"},
		"broken off":       {breaking(&llm.StreamError{Message: "broke off"}), "api_error"},
	} {
		r := newRig(t, c.options)
		res, body := r.post(t, request(name, streamed))
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
		h := listen(t, body)
		if h.fault == nil || h.ended || h.fault["error"].(object)["type"] != c.kind || textOf(h.message) == "" {
			t.Errorf("%s: want text, an error event of %s and no end:\n%s", name, c.kind, body)
		}
		if name == "the vendor's own" && !strings.Contains(body, "event: error\ndata: "+vendors+"\n\n") {
			t.Errorf("the vendor's event was changed:\n%s", body)
		}
	}
}

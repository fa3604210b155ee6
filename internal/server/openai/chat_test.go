package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/demo"
)

const weatherTool = `{"type":"function","function":{"name":"get_weather","description":"w","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`

// request is a body for a scenario, with members added in front of the end.
func request(model, more string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"hello"}]` + more + `}`
}

// conversations is what a client sees of each scenario. Every row is asked for
// buffered and streamed, and both must say the same.
func TestChat(t *testing.T) {
	usage := func(in, out, cached int) map[string]any {
		u := map[string]any{"prompt_tokens": float64(in), "completion_tokens": float64(out), "total_tokens": float64(in + out)}
		if cached > 0 {
			u["prompt_tokens_details"] = map[string]any{"cached_tokens": float64(cached)}
		}
		return u
	}
	const notice = "One more look. \n\n(I ran out of tool calls for this request before I could use skills_read. Ask me to continue and I will carry on from here.)"
	for _, c := range []struct {
		model, more string
		want        completion
		rounds      int
	}{
		{"hello", ``, completion{Text: "Good morning, and welcome.", Finish: "stop", Usage: usage(12, 6, 0)}, 1},
		{"skill-read", ``, completion{Text: "", Finish: "stop", Usage: nil}, 2},
		{"skill-read", `,"skills":["release-notes"]`, completion{Finish: "stop"}, 2},
		{"skill-read", `,"skills":["release-notes"],"skills_discovery":false,"multi_agent":false`, completion{Finish: "stop"}, 2},
		{"two-reads", ``, completion{Text: "Both skills ask for dates.", Finish: "stop"}, 2},
		{"usage-cached", ``, completion{Text: "Read from the cache.", Finish: "stop", Usage: usage(700, 26, 512)}, 2},
		{"reasoning", ``, completion{Text: "The number is seven.", Reasoning: "They ask for a number. Seven fits.", Finish: "stop"}, 1},
		{"many-calls", ``, completion{Text: "I asked for too much at once.", Finish: "stop"}, 2},
		{"unknown-tool", ``, completion{Text: "There is no such tool, so I answer directly.", Finish: "stop", Usage: usage(380, 30, 0)}, 2},
		{"no-ids", ``, completion{Text: "Both were read.", Finish: "stop"}, 2},
		{"loop", ``, completion{Text: "I stop reading and answer now.", Finish: "stop", Usage: usage(8*200+900, 8*20+9, 0)}, 9},
		{"loop-stubborn", ``, completion{Text: notice, Finish: "stop", Usage: usage(8*200+900, 8*20+24, 0)}, 9},
		{"cut-call", ``, completion{Finish: "length"}, 1},
		{
			"caller-tool", `,"tools":[` + weatherTool + `]`,
			completion{Finish: "tool_calls", Calls: []call{{Index: "0", ID: "call_weather_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}, Usage: usage(60, 16, 0)},
			1,
		},
		{
			"mixed", `,"tools":[` + weatherTool + `]`,
			completion{Text: "Let me look. ", Finish: "tool_calls", Calls: []call{{Index: "0", ID: "call_mixed_weather", Name: "get_weather", Arguments: `{"city":"Bergen"}`}}, Usage: usage(210, 52, 0)},
			1,
		},
		{"split-utf8", ``, completion{Finish: "stop"}, 1},
		{"crlf", ``, completion{Finish: "stop"}, 1},
		{"multi-line", ``, completion{Finish: "stop"}, 1},
		{"no-done", ``, completion{Finish: "stop"}, 1},
		{"json-answer", ``, completion{Finish: "stop"}, 1},
	} {
		t.Run(c.model+c.more, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			res, body := r.post(t, request(c.model, c.more))
			if res.StatusCode != http.StatusOK {
				t.Fatalf("buffered: %d %s", res.StatusCode, body)
			}
			buffered := readBuffered(t, body)
			if got := len(r.upstream.Requests()); got != c.rounds {
				t.Errorf("%d rounds upstream, want %d", got, c.rounds)
			}
			r = newRig(t, rigOptions{}) // the scripted upstream counts requests
			res, body = r.post(t, request(c.model, c.more+`,"stream":true,"stream_options":{"include_usage":true}`))
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("streamed: %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
			}
			streamed := readStream(t, body)
			if streamed.roles != 1 || streamed.ids != 1 || streamed.done != 1 || streamed.usages != 1 {
				t.Errorf("%d roles, %d ids, %d ends and %d usages in one stream, want one of each:\n%s", streamed.roles, streamed.ids, streamed.done, streamed.usages, body)
			}
			opts := cmp.Options{cmpopts.IgnoreUnexported(completion{}), cmpopts.IgnoreFields(completion{}, "ID", "Model")}
			if diff := cmp.Diff(buffered, streamed, opts, cmpopts.IgnoreFields(completion{}, "Usage")); diff != "" {
				t.Errorf("the stream says otherwise (-buffered +streamed):\n%s", diff)
			}
			want := c.want
			if want.Text == "" && want.Finish == "stop" {
				want.Text = buffered.Text
				if buffered.Text == "" {
					t.Error("no text at all")
				}
			}
			if want.Usage == nil {
				want.Usage = buffered.Usage
			}
			if diff := cmp.Diff(want, buffered, opts, cmpopts.IgnoreMapEntries(isDetail)); diff != "" {
				t.Errorf("buffered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Usage, streamed.Usage, cmpopts.IgnoreMapEntries(isDetail)); diff != "" {
				t.Errorf("streamed usage (-want +got):\n%s", diff)
			}
			if strings.Contains(body, "skills_read") && !strings.Contains(body, "I ran out") {
				t.Errorf("a host call shows in the stream:\n%s", body)
			}
		})
	}
}

// isDetail leaves out details that say nothing.
func isDetail(name string, v any) bool {
	if m, ok := v.(map[string]any); ok {
		for _, x := range m {
			if n, _ := x.(float64); n != 0 {
				return name == "completion_tokens_details"
			}
		}
		return true
	}
	return false
}

func TestUsageOnlyWhenAsked(t *testing.T) {
	r := newRig(t, rigOptions{})
	_, body := r.post(t, request("hello", `,"stream":true`))
	if c := readStream(t, body); c.usages != 0 || c.done != 1 || c.Text == "" {
		t.Errorf("%d usages, %d ends, text %q: want none, one, some", c.usages, c.done, c.Text)
	}
}

func TestTwoChoices(t *testing.T) {
	for _, stream := range []bool{false, true} {
		r := newRig(t, rigOptions{})
		_, body := r.post(t, request("n-two", fmt.Sprintf(`,"n":2,"stream":%v`, stream)))
		read := readBuffered
		if stream {
			read = readStream
		}
		c := read(t, body)
		if len(c.choices) != 2 || c.choices[0] == "" || c.choices[1] == "" {
			t.Errorf("stream %v: choices %v, want two", stream, c.choices)
		}
		if sent := string(r.upstream.Requests()[0].Body); strings.Contains(sent, "skills_read") {
			t.Errorf("skills were advertised beside n=2: %s", sent)
		}
	}
}

// TestErrors: status, shape and headers of every way to fail.
func TestErrors(t *testing.T) {
	small, err := config.Values{}.Set(config.RequestBody, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, body string
		header     []string
		options    rigOptions
		status     int
		want       []string
	}{
		{"not JSON", `{"model":`, nil, rigOptions{}, 400, []string{`"type":"invalid_request_error"`, `"param":null`, `"code":null`, "not valid JSON"}},
		{"no messages", `{"model":"m"}`, nil, rigOptions{}, 400, []string{`"param":"messages"`}},
		{"unknown skill", request("hello", `,"skills":["nope"]`), nil, rigOptions{}, 400, []string{`"param":"skills"`, `"code":"skill_not_found"`, "meeting-minutes, release-notes"}},
		{"unknown skill by header", request("hello", ``), []string{"X-Metier-Skills", "release-notes, nope"}, rigOptions{}, 400, []string{`there is no skill \"nope\"`}},
		{"skills off", request("hello", `,"skills":["release-notes"]`), nil, rigOptions{noSkills: true}, 400, []string{`"code":"skills_disabled"`, "--no-skills"}},
		{"skills of a wrong type", request("hello", `,"skills":"pdf"`), nil, rigOptions{}, 400, []string{`"param":"skills"`, "array"}},
		{"discovery of a wrong type", request("hello", `,"skills_discovery":"no"`), nil, rigOptions{}, 400, []string{`"param":"skills_discovery"`}},
		{"n with skills", request("hello", `,"n":2,"skills":["release-notes"]`), nil, rigOptions{}, 400, []string{`"param":"n"`}},
		{"too large", request("hello", `,"x":"`+strings.Repeat("x", 3000)+`"`), nil, rigOptions{limits: small}, 413, []string{`"code":"request_too_large"`, "--max-body"}},
		{"compressed", request("hello", ``), []string{"Content-Encoding", "zstd"}, rigOptions{}, 415, []string{"zstd"}},
		{"upstream 429", request("rate-limited", ``), nil, rigOptions{}, 429, []string{`"error"`}},
		{"upstream 401", request("unauthorized", ``), nil, rigOptions{}, 401, []string{`"error"`}},
		{"upstream 502 without an error object", request("server-error", ``), nil, rigOptions{}, 502, []string{`"type":"server_error"`, "Bad Gateway"}},
		{"upstream cut before its answer", request("cut-headers", ``), nil, rigOptions{}, 502, []string{`"type":"server_error"`, `"code":"upstream_unreachable"`}},
		{"upstream cut, buffered", request("cut", ``), nil, rigOptions{}, 502, []string{`"type":"server_error"`}},
		{"error inside the stream, buffered", request("error-in-stream", ``), nil, rigOptions{}, 502, []string{`"error"`}},
		{"structured output of the stand-in", request("demo", `,"response_format":{"type":"json_object"}`), nil, rigOptions{provider: demo.Provider{}}, 400, []string{`"error"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.options)
			res, body := r.post(t, c.body, c.header...)
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s, want %d: %s", res.StatusCode, res.Header.Get("Content-Type"), c.status, body)
			}
			if res.Header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("body lacks %q: %s", want, body)
				}
			}
			if c.status == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "" {
				t.Error("Retry-After was lost")
			}
			// A stream that has not begun fails the same way.
			if strings.HasPrefix(c.name, "upstream 4") {
				res, _ := newRig(t, c.options).post(t, strings.TrimSuffix(c.body, "}")+`,"stream":true}`)
				if res.StatusCode != c.status {
					t.Errorf("streamed: %d, want %d", res.StatusCode, c.status)
				}
			}
		})
	}
}

// TestBrokenStreams: what breaks inside a stream ends in an error event and
// without the end mark, so that no client takes half an answer for a whole one.
func TestBrokenStreams(t *testing.T) {
	for _, model := range []string{"cut", "cut-event", "early-end", "malformed", "error-in-stream"} {
		r := newRig(t, rigOptions{})
		res, body := r.post(t, request(model, `,"stream":true`))
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", model, res.StatusCode)
		}
		if !strings.Contains(body, `{"error":`) || strings.Contains(body, "[DONE]") {
			t.Errorf("%s: want an error event and no end mark:\n%s", model, body)
		}
	}
}

// TestSelection: what goes upstream of a request's wish for skills.
func TestSelection(t *testing.T) {
	for _, c := range []struct {
		name, more string
		header     []string
		noSkills   bool
		has, lacks []string
		warning    string
	}{
		{"discovery by default", ``, nil, false, []string{"skills_list", "skills_read", "release-notes", "meeting-minutes"}, nil, ""},
		{"no skills, no trace", ``, nil, true, nil, []string{"skills_read", "release-notes"}, ""},
		{"discovery off", `,"skills_discovery":false`, nil, false, nil, []string{"skills_read", "release-notes"}, ""},
		{"one named, discovery off", `,"skills":["release-notes"],"skills_discovery":false`, nil, false, []string{"skills_read", "release-notes"}, []string{"meeting-minutes"}, ""},
		{"named by header", `,"skills_discovery":false`, []string{"X-Metier-Skills", "Release-Notes"}, false, []string{"release-notes"}, []string{"meeting-minutes"}, ""},
		{"tool_choice none inlines", `,"skills":["release-notes"],"tool_choice":"none"`, nil, false, []string{"names the ticket in square brackets", `"tool_choice":"none"`}, []string{"skills_read", "meeting-minutes"}, "no tools may be called"},
		{"structured output", `,"response_format":{"type":"json_object"}`, nil, false, nil, []string{"skills_read"}, "structured"},
		{"two choices", `,"n":2`, nil, false, nil, []string{"skills_read"}, "more than one choice"},
		{"the client's own skill tool", `,"tools":[{"type":"function","function":{"name":"Skill"}}]`, nil, false, nil, []string{"skills_read"}, "Skill"},
		{
			"a caller's tool of our name", `,"skills":["release-notes"],"tools":[{"type":"function","function":{"name":"skills_list"}}]`, nil, false,
			[]string{"skills_read", "release-notes"},
			[]string{"meeting-minutes"},
			"skills_list",
		},
		{
			"the caller owns skills_read", `,"skills":["release-notes"],"tools":[{"type":"function","function":{"name":"skills_read"}}]`, nil, false,
			[]string{"names the ticket in square brackets"},
			[]string{"skills_list"},
			"skills_read",
		},
		{
			"the caller owns both", `,"skills":["release-notes"],"tools":[{"type":"function","function":{"name":"skills_list"}},{"type":"function","function":{"name":"skills_read"}}]`, nil, false,
			[]string{"names the ticket in square brackets"},
			[]string{"meeting-minutes"},
			"skills_list",
		},
		{"a skill viewer of the client's", `,"tools":[{"type":"function","function":{"name":"skill_view"}}]`, nil, false, nil, []string{"skills_read"}, "skill_view"},
		{"stop and max_tokens go through", `,"stop":["a","b"],"max_tokens":5`, nil, false, []string{`"stop":["a","b"]`, `"max_tokens":5`}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{noSkills: c.noSkills})
			res, body := r.post(t, request("hello", c.more), c.header...)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			sent := string(r.upstream.Requests()[0].Body)
			for _, want := range c.has {
				if !strings.Contains(sent, want) {
					t.Errorf("upstream got no %q: %s", want, sent)
				}
			}
			for _, bad := range append(c.lacks, `"skills":`, `"skills_discovery"`) {
				if strings.Contains(sent, bad) {
					t.Errorf("upstream got %q: %s", bad, sent)
				}
			}
			if got := res.Header.Get("X-Metier-Warning"); (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
				t.Errorf("warning %q, want one about %q", got, c.warning)
			}
			if n := strings.Count(sent, `"name":"skills_list"`); n > 1 {
				t.Errorf("skills_list is declared %d times", n)
			}
		})
	}
}

// TestChoiceByRound: required holds for the first round only, and the forced
// answer is asked for with none.
func TestChoiceByRound(t *testing.T) {
	r := newRig(t, rigOptions{})
	if _, body := r.post(t, request("loop", `,"tool_choice":"required"`)); !strings.Contains(body, "I stop reading") {
		t.Fatal(body)
	}
	for i, q := range r.upstream.Requests() {
		want := `"tool_choice":"auto"`
		switch i {
		case 0:
			want = `"tool_choice":"required"`
		case 8:
			want = `"tool_choice":"none"`
		}
		if !strings.Contains(string(q.Body), want) {
			t.Errorf("round %d lacks %s", i+1, want)
		}
	}
}

// TestPrefix: round n+1 begins with the bytes of round n, so that an upstream's
// prefix cache holds.
func TestPrefix(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.post(t, request("loop", ``))
	requests := r.upstream.Requests()
	for i := 1; i < len(requests); i++ {
		before := messagesOf(t, requests[i-1].Body)
		now := messagesOf(t, requests[i].Body)
		if !strings.HasPrefix(now, strings.TrimSuffix(before, "]")) {
			t.Errorf("round %d does not begin with round %d:\n%s\n%s", i+1, i, before, now)
		}
	}
}

func TestModels(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/v1/models", 200, `"object":"list"`},
		{"/v1/models/hello", 200, `"id":"hello"`},
		{"/v1/models/no/such", 404, `"code":"model_not_found"`},
		{"/v1/nothing", 404, `"type":"invalid_request_error"`},
		{"/v1/chat/completions", 405, `"code":"method_not_allowed"`},
		{"/nothing", 404, `{"error":"`},
	} {
		res, body := get(t, r.url+c.path)
		if res.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("GET %s: %d %s, want %d with %q", c.path, res.StatusCode, body, c.status, c.want)
		}
	}
}

package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

func testBounds() codec.Bounds { return codec.Bounds{Messages: 3, Tools: 4, Model: 64} }

func decode(t *testing.T, body string) *Request {
	t.Helper()
	r, err := DecodeRequest([]byte(body), testBounds(), false)
	if err != nil {
		t.Fatalf("DecodeRequest(%s): %v", body, err)
	}
	return r
}

// TestEncodeKeepsBytes: what the client wrote comes out as it was written, but
// for what the host changes.
func TestEncodeKeepsBytes(t *testing.T) {
	const stream = `,"stream":true,"stream_options":{"include_usage":true}`
	host := llm.Declaration{Name: "t", Description: "d", Parameters: jsontext.Value(`{"type":"object"}`)}
	const hostTool = `{"type":"function","function":{"name":"t","description":"d","parameters":{"type":"object"}}}`
	for _, c := range []struct {
		name, in string
		change   func(*llm.Request)
		want     string
	}{
		{"plain", `{"model":"m","messages":[{"role":"user","content":"h\u0069 😀"}]}`, nil, `{"model":"m","messages":[{"role":"user","content":"h\u0069 😀"}]` + stream + `}`},
		{
			"unknown members, order and numbers", `{"temperature":0.70,"zz":{"a":[1e3, 2]},"model":"m","messages":[{"content":[{"type":"text","text":"x","cache_control":{}}],"role":"user","x":1}],"seed":12345678901234567890}`,
			nil, `{"temperature":0.70,"zz":{"a":[1e3, 2]},"model":"m","messages":[{"content":[{"type":"text","text":"x","cache_control":{}}],"role":"user","x":1}],"seed":12345678901234567890` + stream + `}`,
		},
		{"stream false", `{"stream":false,"model":"m","messages":[{"role":"user"}]}`, nil, `{"stream":true,"model":"m","messages":[{"role":"user"}],"stream_options":{"include_usage":true}}`},
		{
			"stream options kept", `{"model":"m","stream_options":{"include_usage":false,"x":1},"stream":true,"messages":[{"role":"user"}]}`,
			nil, `{"model":"m","stream_options":{"include_usage":true,"x":1},"stream":true,"messages":[{"role":"user"}]}`,
		},
		{"tools kept", `{"model":"m","tools":[{"type":"x","y":[ 1 ]}],"messages":[{"role":"user"}]}`, nil, `{"model":"m","tools":[{"type":"x","y":[ 1 ]}],"messages":[{"role":"user"}]` + stream + `}`},
		{"null tools", `{"model":"m","tools":null,"messages":[{"role":"user"}]}`, nil, `{"model":"m","tools":null,"messages":[{"role":"user"}]` + stream + `}`},
		{
			"host tools come last", `{"model":"m","tools":[{"a":1}],"messages":[{"role":"user"}]}`,
			func(r *llm.Request) { r.Tools = append(r.Tools, host) }, `{"model":"m","tools":[{"a":1},` + hostTool + `],"messages":[{"role":"user"}]` + stream + `}`,
		},
		{
			"host tools alone, tools null", `{"model":"m","tools":null,"messages":[{"role":"user"}]}`,
			func(r *llm.Request) { r.Tools = append(r.Tools, host) }, `{"model":"m","messages":[{"role":"user"}],"tools":[` + hostTool + `]` + stream + `}`,
		},
		{
			"choice replaced", `{"tool_choice":{"type":"function","function":{"name":"f"}},"model":"m","tools":[{}],"messages":[{"role":"user"}]}`,
			func(r *llm.Request) { r.Choice = llm.ChoiceAuto }, `{"tool_choice":"auto","model":"m","tools":[{}],"messages":[{"role":"user"}]` + stream + `}`,
		},
		{
			"choice added", `{"model":"m","tools":[{}],"messages":[{"role":"user"}]}`,
			func(r *llm.Request) { r.Choice = llm.ChoiceNone }, `{"model":"m","tools":[{}],"messages":[{"role":"user"}],"tool_choice":"none"` + stream + `}`,
		},
		{
			"hidden messages follow", `{"model":"m","messages":[{"role":"user","content":"q"}]}`,
			func(r *llm.Request) {
				r.Messages = append(r.Messages,
					llm.Message{Role: llm.Assistant, Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: jsontext.Value(`{"role":"assistant","content":null,"tool_calls":[ ]}`)}},
					llm.Message{Role: llm.Tool, CallID: "c1", Parts: []llm.Part{{Kind: llm.Text, Text: "body"}}})
			},
			`{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[ ]},{"role":"tool","tool_call_id":"c1","content":"body"}]` + stream + `}`,
		},
	} {
		r := decode(t, c.in)
		if c.change != nil {
			c.change(r.Request)
		}
		if diff := cmp.Diff(c.want, string(encodeRequest(r.Request, false))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"role":"system","content":"be brief"}`, `{"role":"system","content":"be brief\n\nTAIL"}`},
		{`{"content":"be brief \n\t ","x":1}`, `{"content":"be brief\n\nTAIL","x":1}`},
		{`{"content":"a\\n"}`, `{"content":"a\\n\n\nTAIL"}`},
		{`{"content":""}`, `{"content":"TAIL"}`},
		{`{"content":null}`, `{"content":"TAIL"}`},
		{`{"role":"system"}`, `{"role":"system","content":"TAIL"}`},
		{`{"content":[]}`, `{"content":[{"type":"text","text":"TAIL"}]}`},
		{
			`{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`,
			`{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"\n\nTAIL"}]}`,
		},
	} {
		if got := withTail(jsontext.Value(c.in), "TAIL"); string(got) != c.want {
			t.Errorf("withTail(%s) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for _, c := range []struct{ in, param, want string }{
		{``, "", "not valid JSON"},
		{`[1]`, "", "JSON object"},
		{`{"model":"m","messages":[{"role":"user"}],"model":"n"}`, "", "duplicate"},
		{"{\"model\":\"\xff\",\"messages\":[{\"role\":\"user\"}]}", "", "UTF-8"},
		{`{"messages":[{"role":"user"}]}`, "model", "missing"},
		{`{"model":1,"messages":[{"role":"user"}]}`, "model", "string"},
		{`{"model":"m"}`, "messages", "missing"},
		{`{"model":"m","messages":[]}`, "messages", "empty"},
		{`{"model":"m","messages":{}}`, "messages", "array"},
		{`{"model":"m","messages":["x"]}`, "messages[0]", "object"},
		{`{"model":"m","messages":[{"role":"user"},{"content":"x"}]}`, "messages[1].role", "no role"},
		{`{"model":"m","messages":[{"role":"user"}],"tools":{}}`, "tools", "array"},
		{`{"model":"m","messages":[{"role":"user"}],"stream":"yes"}`, "stream", "true or false"},
		{`{"model":"m","messages":[{"role":"user"}],"n":0}`, "n", "whole number"},
		{`{"model":"m","messages":[{"role":"user"}],"n":1.5}`, "n", "whole number"},
		{`{"model":"small","Model":"big","messages":[{"role":"user"}]}`, "Model", `write "model"`},
		{`{"model":"small","MODE\u004c":"big","messages":[{"role":"user"}]}`, "MODEL", `write "model"`},
		{`{"model":"m","messages":[{"role":"user"}],"ſtream":true}`, "ſtream", `write "stream"`},
		{`{"model":"` + strings.Repeat("m", 65) + `","messages":[{"role":"user"}]}`, "model", "limit is 64"},
		{`{"model":"m","messages":[{"role":"u"},{"role":"u"},{"role":"u"},{"role":"u"}]}`, "messages", "more than 3"},
		{`{"model":"m","messages":[{"role":"u"}],"tools":[{},{},{},{},{}]}`, "tools", "more than 4"},
	} {
		_, err := DecodeRequest([]byte(c.in), testBounds(), false)
		e, ok := errors.AsType[*codec.Error](err)
		if !ok || e.Param != c.param || !strings.Contains(e.Message, c.want) {
			t.Errorf("DecodeRequest(%s) = %v, want a DecodeError about %q with %q", c.in, err, c.param, c.want)
		}
	}
}

func TestDecodeRequestReads(t *testing.T) {
	r := decode(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"n":2,"tool_choice":{"type":"function"},
		"response_format":{"type":"json_object"},"skills":["pdf"],"messages":[{"role":"system","content":"s"},{"role":"tool","tool_call_id":"c","content":"r"}],
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{}}},{"type":"custom","custom":{"name":"g"}},{"type":"web_search"}]}`)
	if !r.Stream || !r.IncludeUsage || r.Options.Choices != 2 || r.Options.Choice != llm.ChoiceNamed || !r.Options.Structured {
		t.Errorf("options %+v, stream %v, usage %v", r.Options, r.Stream, r.IncludeUsage)
	}
	var names []string
	for _, d := range r.Tools {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"f", "g", ""}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := r.Messages[1].CallID; got != "c" {
		t.Errorf("call id %q, want c", got)
	}
	if got := string(r.Take("skills")); got != `["pdf"]` || r.Take("skills") != nil {
		t.Errorf("Take(skills) = %s, and then it must be gone", got)
	}
	if strings.Contains(string(encodeRequest(r.Request, false)), "skills") {
		t.Error("a member that was taken went upstream")
	}
	for in, want := range map[string]llm.ChoiceMode{
		`"auto"`: llm.ChoiceAuto, `"none"`: llm.ChoiceNone, `"required"`: llm.ChoiceRequired, `null`: llm.ChoiceUnset,
		`{"type":"allowed_tools"}`: llm.ChoiceOther, `"any"`: llm.ChoiceOther,
	} {
		if got, _ := decodeChoice(jsontext.Value(in)); got != want {
			t.Errorf("decodeChoice(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	r := decode(t, `{"model":"m","messages":[
		{"role":"user","content":[{"type":"text","text":"look "},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"text","text":"here"}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}]}`)
	user, assistant := Expand(r.Messages[0]), Expand(r.Messages[1])
	if got := user.Text(); got != "look here" || len(user.Parts) != 3 || user.Parts[1].Kind != llm.Image {
		t.Errorf("text %q, parts %+v", got, user.Parts)
	}
	if diff := cmp.Diff([]llm.Call{{ID: "c", Name: "f", Arguments: `{"a":1}`}}, assistant.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestAssembly: deltas become the message that the upstream would have written
// whole, escapes and unknown members included.
func TestAssembly(t *testing.T) {
	var a Assembly
	for _, delta := range []string{
		`{"role":"assistant","content":""}`,
		`{"reasoning_content":"hm\u006d"}`,
		`{"content":"caf\u00e"}`, // cut in the middle of an escape
		`{"content":"9 \ud83d"}`, // and of a surrogate pair
		`{"content":"\ude00","refusal":null,"reasoning_details":[{"a":1}]}`,
		`{"reasoning_details":[{"b":2}],"audio":{"id":"x"}}`,
	} {
		a.Delta(jsontext.Value(delta))
	}
	for _, call := range []string{
		`{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""},"extra_content":{"g":1}}`,
		`{"index":0,"function":{"arguments":"{\"a\": "}}`,
		`{"index":0,"id":null,"function":{"name":null,"arguments":"1}"}}`,
	} {
		a.Call(parseCallDelta(jsontext.Value(call)))
	}
	want := `{"role":"assistant","content":"caf\u00e9 \ud83d\ude00","reasoning_content":"hm\u006d","reasoning_details":[{"a":1},{"b":2}],"audio":{"id":"x"},` +
		`"tool_calls":[{"id":"c1","type":"function","extra_content":{"g":1},"function":{"name":"read","arguments":"{\"a\": 1}"}}]}`
	if diff := cmp.Diff(want, string(a.Message())); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if !wire.Lenient(a.Message()) {
		t.Error("the message is not JSON")
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"a"}]}],"tools":[{}],"stream":true,"n":1}`,
		`{"model":"m","messages":[{"role":"a","tool_calls":[{"function":{"arguments":{}}}]}],"stream_options":{},"tool_choice":"none"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRequest(body, testBounds(), true)
		if err != nil {
			return
		}
		r.Messages[0].Tail = "tail"
		r.Choice = llm.ChoiceAuto
		out := encodeRequest(r.Request, false)
		again, err := DecodeRequest(out, testBounds(), true)
		if err != nil {
			t.Fatalf("%s became %s, which is no request: %v", body, out, err)
		}
		if !again.Stream || !again.IncludeUsage || len(again.Messages) != len(r.Messages) || len(again.Tools) != len(r.Tools) {
			t.Errorf("%s became %s", body, out)
		}
	})
}

// FuzzReply: no stream of an upstream makes the reader panic, and a reply that
// it accepts is a message that can go back.
func FuzzReply(f *testing.F) {
	f.Add(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	f.Add(`{"error":{"message":"x"}}`, `{"choices":[],"usage":{"prompt_tokens":1}}`)
	f.Add(`{"choices":[{"index":1,"delta":{"content":"\ud83d"}}]}`, `[DONE]`)
	f.Fuzz(func(t *testing.T, first, second string) {
		r := &reply{newID: func() string { return "id" }, limits: testLimits()}
		done := false
		for _, data := range []string{first, second} {
			_, end, err := r.event(wire.Event{Data: []byte(data)})
			if err != nil {
				return
			}
			done = done || end
		}
		whole, err := r.end(done, nil)
		if err != nil {
			return
		}
		if !wire.Lenient(whole.Message.Raw.Bytes) {
			t.Errorf("%s then %s gave %s", first, second, whole.Message.Raw.Bytes)
		}
	})
}

// FuzzTemplate: a chunk that is taken for the one before with other text gives
// what the long way gives.
func FuzzTemplate(f *testing.F) {
	const chunk = `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`
	f.Add(chunk, strings.Replace(chunk, `"a"`, `"word "`, 1))
	f.Add(chunk, strings.Replace(chunk, `"a"`, `"q\"uote"`, 1))
	f.Add(chunk, strings.Replace(chunk, `"a"`, `"a"},"x":{"b":""`, 1))
	f.Add(`{"model":"a","choices":[{"delta":{"content":"a"}}]}`, `{"model":"b","choices":[{"delta":{"content":"a"}}]}`)
	f.Add(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{}}]}`, `{"choices":[{"index":0,"delta":{"content":"b"}},{"index":1,"delta":{}}]}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		warm := &reply{newID: func() string { return "id" }, limits: testLimits()}
		cold := &reply{newID: func() string { return "id" }, limits: testLimits()}
		if _, _, err := warm.event(wire.Event{Data: []byte(first)}); err != nil {
			return
		}
		if _, _, err := cold.event(wire.Event{Data: []byte(first)}); err != nil {
			t.Fatal(err)
		}
		cold.template = template{}
		got, _, err := warm.event(wire.Event{Data: []byte(second)})
		want, _, err2 := cold.event(wire.Event{Data: []byte(second)})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q then %q: %v by the template, %v without", first, second, err, err2)
		}
		if !got.Repeats {
			return
		}
		got.Repeats = false
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q then %q (-long +short):\n%s", first, second, diff)
		}
		if diff := cmp.Diff(string(cold.assembly.Message()), string(warm.assembly.Message())); diff != "" {
			t.Errorf("%q then %q, message (-long +short):\n%s", first, second, diff)
		}
	})
}

func TestTemplate(t *testing.T) {
	chunk := func(text string) string {
		return `{"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}],"x":"` + "a" + `"}`
	}
	r := &reply{newID: func() string { return "id" }, limits: testLimits()}
	for i, c := range []struct {
		text    string
		repeats bool
	}{{"a", false}, {"b", true}, {"", true}, {"ü ", true}, {`\n`, false}, {"c", true}, {"half \xc3", false}, {"d", true}} {
		p, _, err := r.event(wire.Event{Data: []byte(chunk(c.text))})
		if err != nil {
			t.Fatal(err)
		}
		if p.Repeats != c.repeats {
			t.Errorf("chunk %d, %q: Repeats %v, want %v", i, c.text, p.Repeats, c.repeats)
		}
	}
	if got := string(r.assembly.Message()); got != `{"role":"assistant","content":"abü \nchalf `+"\xc3"+`d"}` {
		t.Errorf("message %s", got)
	}
}

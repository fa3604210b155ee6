package ollama

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func decode(t *testing.T, body string, full bool) *Request {
	t.Helper()
	r, err := DecodeRequest([]byte(body), codec.NewBounds(config.Values{}), full)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

const conversation = `{"model":"m","options":{"temperature":0.5,"num_ctx":4096},"keep_alive":"5m","think":"low",
 "messages":[ {"role":"system","content":"be brief"},{"role":"user","content":"look","images":["/9j/aGk=","iVBOaGk="]},
 {"role":"assistant","content":"Let me see.","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}},{"function":{"name":"g","arguments":{}}},{"function":{"name":"f","arguments":{}},"id":"named"}]},
 {"role":"tool","tool_name":"g","content":"of g"},{"role":"tool","content":"of f"},{"role":"tool","tool_call_id":"named","content":"of named"},{"role":"tool","content":"of nobody"} ],
 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"stream":true,"x_new":{"k":[1]}}`

// TestVerbatim: a request for an upstream of the same dialect keeps what its client wrote.
func TestVerbatim(t *testing.T) {
	for _, full := range []bool{false, true} {
		got, want := jsontext.Value(encodeRequest(decode(t, conversation, full).Request)), jsontext.Value(conversation)
		for _, v := range []*jsontext.Value{&got, &want} {
			if err := v.Compact(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("full %t (-want +got):\n%s", full, diff)
		}
	}
}

// TestPlaces: calls without ids are named by their place, and results find theirs: by id, by
// name, in order.
func TestPlaces(t *testing.T) {
	for _, full := range []bool{false, true} {
		r := decode(t, conversation, full)
		var got []string
		for _, m := range r.Messages {
			for _, c := range m.Calls {
				got = append(got, c.Name+" "+c.ID)
			}
			if m.Role == llm.Tool {
				got = append(got, Expand(m).Text()+" "+m.CallID)
			}
		}
		want := []string{"f call_2_0", "g call_2_1", "f named", "of g call_2_1", "of f call_2_0", "of named named", "of nobody "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("full %t (-want +got):\n%s", full, diff)
		}
	}
	m := decode(t, conversation, false).Messages[1]
	if m = Expand(m); len(m.Parts) != 3 || m.Parts[1].Media.Type != "image/jpeg" || m.Parts[2].Media.Type != "image/png" {
		t.Errorf("%+v", m.Parts)
	}
}

// TestAdds: what the host adds stands behind the client's own and leaves it as it was.
func TestAdds(t *testing.T) {
	r := decode(t, conversation, false)
	r.Messages[0].Tail = "the skills"
	r.Tools = append(r.Tools, llm.Declaration{Name: "skills_read", Description: "reads", Parameters: jsontext.Value(`{"type":"object"}`)})
	r.Added = []llm.Member{{Name: "temperature", Value: jsontext.Value("0.2")}, {Name: "repeat_penalty", Value: jsontext.Value("1.0")}}
	golden(t, "added.json", encodeRequest(r.Request))
	r.Choice = llm.ChoiceNone
	if body := string(encodeRequest(r.Request)); strings.Contains(body, `"tools"`) {
		t.Errorf("no tool may be called: %s", body)
	}
}

// TestLostIDs: a result whose id no call has is of a call that lost its own, by name or in
// order; where calls have ids it answers none of them.
func TestLostIDs(t *testing.T) {
	const results = `{"role":"tool","tool_call_id":"y","tool_name":"g","content":""},{"role":"tool","tool_call_id":"x","content":""},{"role":"tool","tool_call_id":"z","content":""}`
	for calls, want := range map[string][]string{
		`{"function":{"name":"f"}},{"function":{"name":"g"}}`:                   {"call_0_1", "call_0_0", "z"},
		`{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}`: {"y", "x", "z"},
		`{"id":"x","function":{"name":"f"}},{"function":{"name":"h"}}`:          {"call_0_1", "x", "z"},
	} {
		var got []string
		for _, m := range decode(t, `{"model":"m","messages":[{"role":"assistant","tool_calls":[`+calls+`]},`+results+`]}`, false).Messages[1:] {
			got = append(got, m.CallID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", calls, diff)
		}
	}
}

// TestEffort: only the wish for no thinking is carried, and what is not is named.
func TestEffort(t *testing.T) {
	for effort, want := range map[string][2]string{
		"": {}, "none": {"false"}, "minimal": {"", `the setting "effort"`}, "high": {"", `the setting "effort"`},
	} {
		r := &llm.Request{Dialect: llm.OpenAIChat, Model: "m", Options: llm.Options{Effort: effort}}
		think := string(wire.Member(encodeRequest(r), "think"))
		if got := [2]string{think, strings.Join((&Provider{}).Lost(r), "")}; got != want {
			t.Errorf("%q: %q, want %q", effort, got, want)
		}
	}
}

func foreign() *llm.Request {
	half, forty, seed, no := 0.5, 40, int64(7), false
	return &llm.Request{
		Dialect: llm.OpenAIChat, Model: "m",
		Rest:  []llm.Member{{Name: "logit_bias", Value: jsontext.Value("{}")}},
		Added: []llm.Member{{Name: "repeat_penalty", Value: jsontext.Value("1.0")}},
		Options: llm.Options{
			Choice: llm.ChoiceNamed, Function: "f", Structured: true, Schema: jsontext.Value(`{"type":"object"}`), MaxTokens: 9,
			Temperature: &half, TopP: &half, TopK: &forty, Seed: &seed, Stop: []string{"a"}, FrequencyPenalty: &half, PresencePenalty: &half, Parallel: &no, Effort: "none",
		},
		Tools: []llm.Declaration{{Name: "c", Special: true}, {Name: "f"}},
		Messages: []llm.Message{
			{Role: llm.Developer, Parts: []llm.Part{{Kind: llm.Text, Text: "be brief"}}, Tail: "skills"},
			{Role: llm.User, Tail: "note", Parts: []llm.Part{
				{Kind: llm.Text, Text: "look"},
				{Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: "aGk="}},
				{Kind: llm.Image, Media: &llm.Media{URL: "https://files.test/a.png"}},
				{Kind: llm.File, Media: &llm.Media{Type: "application/pdf", Data: "aGk="}},
			}},
			{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}}, Calls: []llm.Call{{ID: "c1", Name: "f", Arguments: `{"a":1}`}, {ID: "c2", Name: "g", Arguments: "no object"}}},
			{Role: llm.Tool, CallID: "c2", Parts: []llm.Part{{Kind: llm.Text, Text: "r"}}},
			{Role: llm.Tool, CallID: "c1", Parts: []llm.Part{{Kind: llm.Text, Text: "s"}}},
		},
	}
}

func TestEncodeForeignRequest(t *testing.T) {
	golden(t, "foreign.json", encodeRequest(foreign()))
	golden(t, "foreign-lost.txt", []byte(strings.Join((&Provider{}).Lost(foreign()), "\n")+"\n"))
	own := foreign()
	own.Dialect = llm.Ollama
	if lost := (&Provider{}).Lost(own); lost != nil {
		t.Errorf("lost of a request of the own dialect: %q", lost)
	}
}

func TestDecodeOptions(t *testing.T) {
	for in, want := range map[string]string{
		`"options":{"temperature":0.5,"top_p":0.5,"top_k":4,"seed":7,"num_predict":9,"stop":"a","repeat_penalty":1,"presence_penalty":0,"frequency_penalty":0}`: `{"max_tokens":9,"temperature":0.5,"top_p":0.5,"top_k":4,"seed":7,"stop":["a"],"frequency_penalty":0,"presence_penalty":0,"repeat_penalty":1}`,
		`"options":{"num_predict":-1,"stop":["a","b"]}`:                                      `{"stop":["a","b"]}`,
		`"format":"json","think":true`:                                                       `{"structured":true,"effort":"medium"}`,
		`"format":{"type":"object"},"think":false`:                                           `{"structured":true,"schema":{"type":"object"},"effort":"none"}`,
		`"think":"high","keep_alive":-1`:                                                     `{"effort":"high"}`,
		`"options":{"temperature":null,"stop":null,"num_ctx":null},"format":"","think":null`: `{}`,
		`"options":null,"format":null`:                                                       `{}`,
	} {
		r := decode(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+in+`}`, true)
		got, err := json.Marshal(r.Options)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
		if lost := r.Lost(llm.Carry{}); lost != nil {
			t.Errorf("%s: lost %q", in, lost)
		}
	}
	for _, odd := range []string{`"options":{"num_ctx":1}`, `"think":"much"`, `"options":{"stop":[1]}`, `"options":[1]`, `"format":"xml"`, `"later":1`} {
		if lost := decode(t, `{"model":"m",`+odd+`}`, true).Lost(llm.Carry{}); len(lost) != 1 {
			t.Errorf("%s: lost %q", odd, lost)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	small := codec.Bounds{Messages: 1, Tools: 1, Model: 4}
	for body, want := range map[string]string{
		`{`:                             "not valid JSON",
		`[]`:                            "must be a JSON object",
		`{"messages":[]}`:               `"model" is missing`,
		`{"model":1}`:                   `"model" must be a string`,
		`{"model":"12345"}`:             "5 bytes: the limit is 4",
		`{"model":"m","messages":{}}`:   "must be an array",
		`{"model":"m","messages":[1]}`:  "messages[0] must be an object",
		`{"model":"m","messages":[{}]}`: "messages[0] has no role",
		`{"model":"m","messages":[{"role":"user"},{"role":"user"}]}`: "more than 1 messages",
		`{"model":"m","Messages":[]}`:                                `write "messages"`,
		`{"model":"m","tools":{}}`:                                   `"tools" must be an array`,
		`{"model":"m","tools":[{},{}]}`:                              "more than 1 tools",
		`{"model":"m","stream":1}`:                                   `"stream" must be true or false`,
	} {
		if _, err := DecodeRequest([]byte(body), small, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if r := decode(t, `{"model":"m","messages":null,"stream":null,"tools":null}`, true); len(r.Messages) != 0 || !r.Stream {
		t.Errorf("%+v", r)
	}
}

// FuzzDecodeRequest: whatever a client sends is refused, or goes upstream as JSON.
func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(conversation))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}],"images":[1]},{"role":"tool"}],"options":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRequest(body, codec.NewBounds(config.Values{}), true)
		if err != nil {
			return
		}
		if own := encodeRequest(r.Request); wire.Check(own) != nil {
			t.Fatalf("%s became %s", body, own)
		}
		r.Dialect = llm.OpenAIChat // as if another dialect had said the same
		for i := range r.Messages {
			r.Messages[i].Raw, r.Messages[i].Tail = llm.Raw{}, "note"
		}
		if neutral := encodeRequest(r.Request); wire.Check(neutral) != nil {
			t.Fatalf("%s became %s", body, neutral)
		}
	})
}

// FuzzStream: whatever an upstream sends, the reply that comes of it can be sent back.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}` + "\r\n\n" + `{"done":true,"eval_count":-1}`))
	f.Add([]byte(`{"message":{"thinking":"\ud83d"}}` + "\n" + `{"message":{"thinking":"\ude00"},"done":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &reply{newID: func() string { return "n" }, limits: limits{reply: 1 << 20, calls: 8}}
		lines := newLineReader(strings.NewReader(string(body)), 1<<16)
		for !r.done {
			line, err := lines.next()
			if err != nil {
				return
			}
			if _, _, err := r.line(line); err != nil {
				return
			}
		}
		whole, err := r.end(nil)
		if err != nil {
			t.Fatal(err)
		}
		if again := encodeRequest(&llm.Request{Dialect: llm.Ollama, Model: "m", Messages: []llm.Message{whole.Message}}); !wire.Lenient(again) {
			t.Fatalf("%s became %s", body, again)
		}
	})
}

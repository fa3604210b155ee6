package anthropic

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

func goldenFile(t *testing.T, name string, got []byte) {
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
	r, err := DecodeRequest([]byte(body), Version2023, codec.NewBounds(config.Values{}), full)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// conversation has everything that a client of the dialect says in a request.
const conversation = `{"model":"m", "max_tokens":100,"metadata":{"user_id":"u"},"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],
 "messages":[ {"role":"user","content":"hi"},
 {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1}},{"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"one"},{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}],"is_error":true},{"type":"text","text":"and now?","cache_control":{"type":"ephemeral"}}]},
 {"role":"system","content":"the user is in Oslo"},
 {"role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"aGk="}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"plain"}},{"type":"text","text":"read"}]} ],
 "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}],"stream":false,"x_new":{"k":[1]}}`

// TestVerbatim: a request for an upstream of the same dialect keeps what its client wrote:
// every member, block and cache marker, in its order.
func TestVerbatim(t *testing.T) {
	for _, full := range []bool{false, true} {
		r := decode(t, conversation, full)
		got := jsontext.Value(encodeRequest(r.Request, Version2023))
		want := jsontext.Value(strings.Replace(conversation, `"stream":false`, `"stream":true`, 1))
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

// TestAddsBehind: what the host adds stands behind the client's own, which keeps its bytes:
// the block behind the system prompt, notes behind messages, tools behind tools, results
// beside those of the caller.
func TestAddsBehind(t *testing.T) {
	ours := llm.Declaration{Name: "skills_read", Description: "reads", Parameters: jsontext.Value(`{"type":"object"}`)}
	for name, change := range map[string]func(*llm.Request){
		"block": func(r *llm.Request) { r.Messages[0].Tail = "the skills" },
		"note":  func(r *llm.Request) { r.Messages[1].Tail = "a note"; r.Messages[6].Tail = "another" },
		"tools": func(r *llm.Request) { r.Tools = append(r.Tools, ours); r.Choice = llm.ChoiceAuto },
		"result": func(r *llm.Request) {
			own := llm.TextMessage(llm.Tool, "ours")
			own.CallID = "toolu_0"
			r.Messages = append(r.Messages[:3:3], append([]llm.Message{own}, r.Messages[3:]...)...)
		},
		"asked": func(r *llm.Request) {
			r.Messages = append(r.Messages[:5:5], llm.TextMessage(llm.User, "answer now"))
			r.Choice = llm.ChoiceNone
		},
	} {
		r := decode(t, conversation, false)
		change(r.Request)
		goldenFile(t, "added-"+name+".json", encodeRequest(r.Request, Version2023))
	}
	r := decode(t, `{"model":"m","max_tokens":1,"system":"be brief","messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},"temperature":null}`, false)
	r.Messages[0].Tail, r.Choice = "the skills", llm.ChoiceAuto
	r.Tools = []llm.Declaration{ours}
	r.Added = []llm.Member{{Name: "temperature", Value: jsontext.Value("0.2")}, {Name: "id_slot", Value: jsontext.Value("1")}}
	goldenFile(t, "added-string.json", encodeRequest(r.Request, Version2023))
	r.Messages = append([]llm.Message{llm.TextMessage(llm.System, "the skills")}, r.Messages[1:]...)
	r.Rest = r.Rest[:2]
	goldenFile(t, "added-alone.json", encodeRequest(r.Request, Version2026))
}

// foreign is a request of another dialect.
func foreign() *llm.Request {
	half, forty, seed, no := 0.5, 40, int64(7), false
	return &llm.Request{
		Dialect: llm.OpenAIChat, Model: "m",
		Rest:  []llm.Member{{Name: "stop", Value: jsontext.Value(`"a"`), Neutral: true}, {Name: "logit_bias", Value: jsontext.Value("{}")}},
		Added: []llm.Member{{Name: "temperature", Value: jsontext.Value("0.3")}},
		Options: llm.Options{
			Choice: llm.ChoiceNamed, Function: "f", Structured: true, Schema: jsontext.Value(`{"type":"object"}`), MaxTokens: 9000,
			TopP: &half, TopK: &forty, Seed: &seed, Stop: []string{"a", " "}, Parallel: &no,
		},
		Tools: []llm.Declaration{{Name: "c", Special: true}, {Name: "f"}},
		Messages: []llm.Message{
			{Role: llm.System, Parts: []llm.Part{{Kind: llm.Text, Text: "be brief"}}, Tail: "skills"},
			{Role: llm.Developer, Parts: []llm.Part{{Kind: llm.Text, Text: "be kind"}}},
			{Role: llm.User, Tail: "note", Parts: []llm.Part{
				{Kind: llm.Text, Text: "look"},
				{Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: "aGk="}},
				{Kind: llm.Image, Media: &llm.Media{URL: "https://files.test/a.png"}},
				{Kind: llm.File, Media: &llm.Media{Type: "application/pdf", Name: "a.pdf", Data: "aGk="}},
				{Kind: llm.File, Media: &llm.Media{Type: "text/csv", Name: "a.csv", Data: "YSxi"}},
				{Kind: llm.File, Media: &llm.Media{Type: "audio/wav", Data: "aGk="}},
			}},
			{Role: llm.User, Parts: []llm.Part{{Kind: llm.Text, Text: "and this"}}},
			{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}}, Calls: []llm.Call{
				{ID: "call:1", Name: "f", Arguments: `{"a":1}`}, {ID: "", Name: "f", Arguments: ""}, {ID: "ok", Name: "f", Arguments: "no object"},
			}},
			{Role: llm.Tool, CallID: "call:1", Parts: []llm.Part{{Kind: llm.Text, Text: "r"}}},
			{Role: llm.Tool, CallID: "", Parts: []llm.Part{{Kind: llm.Text, Text: "s"}, {Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: "aGk="}}}},
			{Role: llm.System, Parts: []llm.Part{{Kind: llm.Text, Text: "late words"}}},
			{Role: llm.Assistant},
			{Role: llm.User, Parts: []llm.Part{{Kind: llm.Text, Text: "so?"}}},
		},
	}
}

func TestEncodeForeignRequest(t *testing.T) {
	for _, version := range []string{Version2023, Version2026} {
		goldenFile(t, "foreign-"+version+".json", encodeRequest(foreign(), version))
		thinks := foreign()
		thinks.Options.Choice, thinks.Options.Effort = llm.ChoiceUnset, "medium"
		goldenFile(t, "foreign-thinks-"+version+".json", encodeRequest(thinks, version))
		p := &Provider{version: version}
		goldenFile(t, "foreign-lost-"+version+".txt", []byte(strings.Join(p.Lost(foreign()), "\n")+"\n"))
	}
	own := foreign()
	own.Dialect = llm.Anthropic
	if lost := (&Provider{}).Lost(own); lost != nil {
		t.Errorf("lost of a request of the own dialect: %q", lost)
	}
}

// TestDecode: what another provider is told of a request of this dialect.
func TestDecode(t *testing.T) {
	r := decode(t, conversation, true)
	type short struct {
		Role, CallID, Text string
		Kinds              string
		Calls              []llm.Call
		Joined             bool
	}
	var got []short
	for _, m := range r.Messages {
		s := short{Role: string(m.Role), CallID: m.CallID, Text: m.Text(), Calls: m.Calls, Joined: m.Joined}
		for _, p := range m.Parts {
			s.Kinds += string(p.Kind) + " "
		}
		got = append(got, s)
	}
	want := []short{
		{Role: "system", Text: "be brief", Kinds: "text "},
		{Role: "user", Text: "hi", Kinds: "text "},
		{Role: "assistant", Text: "Let me see.", Kinds: "reasoning text ", Calls: []llm.Call{{ID: "toolu_1", Name: "f", Arguments: `{"a": 1}`}, {ID: "toolu_2", Name: "g", Arguments: "{}"}}},
		{Role: "tool", CallID: "toolu_1", Text: "one", Kinds: "text "},
		{Role: "tool", CallID: "toolu_2", Text: "two", Kinds: "text image ", Joined: true},
		{Role: "user", Text: "and now?", Kinds: "text ", Joined: true},
		{Role: "system", Text: "the user is in Oslo", Kinds: "text "},
		{Role: "user", Text: "plainread", Kinds: "file text text "},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if lost := r.Lost(llm.Carry{Parts: []llm.PartKind{llm.Image, llm.File}}); len(lost) != 4 {
		t.Errorf("lost %q", lost)
	}
	if r.Take("metadata") == nil || r.Take("metadata") != nil {
		t.Error("a member can be taken once")
	}
}

func TestDecodeOptions(t *testing.T) {
	for in, want := range map[string]string{
		`"tool_choice":{"type":"any","disable_parallel_tool_use":true}`:                `{"choice":"required","max_tokens":1,"parallel":false}`,
		`"tool_choice":{"type":"tool","name":"f"}`:                                     `{"choice":"named","function":"f","max_tokens":1}`,
		`"tool_choice":{"type":"none"}`:                                                `{"choice":"none","max_tokens":1}`,
		`"thinking":{"type":"enabled","budget_tokens":2000}`:                           `{"max_tokens":1,"effort":"low"}`,
		`"thinking":{"type":"enabled","budget_tokens":30000},"temperature":1`:          `{"max_tokens":1,"temperature":1,"effort":"high"}`,
		`"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`:              `{"max_tokens":1,"effort":"none"}`,
		`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`:              `{"max_tokens":1,"effort":"xhigh"}`,
		`"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`:              `{"max_tokens":1,"effort":"low"}`,
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`: `{"structured":true,"schema":{"type":"object"},"max_tokens":1}`,
		`"stop_sequences":["a","b"],"top_k":3,"top_p":0.5`:                             `{"max_tokens":1,"top_p":0.5,"top_k":3,"stop":["a","b"]}`,
	} {
		r := decode(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],`+in+`}`, true)
		got, err := jsonText(r.Options)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
		if lost := r.Lost(llm.Carry{}); lost != nil {
			t.Errorf("%s: lost %q", in, lost)
		}
	}
	for _, odd := range []string{`"tool_choice":{"type":"later"}`, `"thinking":{"type":"later"}`, `"output_config":{"x":1}`, `"temperature":"warm"`, `"stop_sequences":[1]`, `"top_k":1.5`, `"container":"c"`} {
		r := decode(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],`+odd+`}`, true)
		if lost := r.Lost(llm.Carry{}); len(lost) != 1 {
			t.Errorf("%s: lost %q", odd, lost)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	small := codec.Bounds{Messages: 1, Tools: 1, Model: 4}
	for body, want := range map[string]string{
		`{`:                              "not valid JSON",
		`[]`:                             "must be a JSON object",
		`{"messages":[{"role":"user"}]}`: `"model" is missing`,
		`{"model":1}`:                    `"model" must be a string`,
		`{"model":"m"}`:                  `"messages" is missing`,
		`{"model":"m","messages":{}}`:    "must be an array",
		`{"model":"m","messages":[1]}`:   "messages[0] must be an object",
		`{"model":"m","messages":[{}]}`:  "messages[0] has no role",
		`{"model":"m","messages":[{"role":"tool"}]}`:                 `not "tool"`,
		`{"model":"m","messages":[{"role":"user"},{"role":"user"}]}`: "more than 1 messages",
		`{"model":"m","Messages":[]}`:                                `write "messages"`,
		`{"model":"12345"}`:                                          "5 bytes: the limit is 4",
		`{"model":"m","tools":{}}`:                                   `"tools" must be an array`,
		`{"model":"m","tools":[{},{}]}`:                              "more than 1 tools",
		`{"model":"m","system":1,"messages":[{"role":"user"}]}`:      `"system" must be`,
		`{"model":"m","stream":1,"messages":[{"role":"user"}]}`:      `"stream" must be true or false`,
	} {
		_, err := DecodeRequest([]byte(body), Version2023, small, true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// FuzzDecodeRequest: whatever a client sends is refused, or goes upstream as JSON with
// everything in it that the client sent.
func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(conversation))
	f.Add([]byte(`{"model":"m","system":"s","messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"tool_result","content":[]}]}],"tools":null}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","input":[]}]},{"role":"user","content":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRequest(body, Version2026, codec.NewBounds(config.Values{}), true)
		if err != nil {
			return
		}
		own := encodeRequest(r.Request, Version2023)
		if err := wire.Check(own); err != nil {
			t.Fatalf("%s became %s: %v", body, own, err)
		}
		r.Dialect = llm.OpenAIChat // as if another dialect had said the same
		for i := range r.Messages {
			r.Messages[i].Raw, r.Messages[i].Tail = llm.Raw{}, "note"
		}
		if neutral := encodeRequest(r.Request, Version2026); wire.Check(neutral) != nil {
			t.Fatalf("%s became %s", body, neutral)
		}
	})
}

// FuzzStream: whatever an upstream sends, the reply that comes of it can be sent back.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"type":"message_start","message":{}}` + "\n" + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"","input":{"a":1}}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`))
	f.Add([]byte(`{"type":"message_start","message":{"usage":{"input_tokens":-1}}}` + "\n" + `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}` + "\n" + `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}` + "\n" + `{"type":"message_stop"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &reply{newID: func() string { return "n" }, limits: limits{reply: 1 << 20, calls: 8}}
		for line := range strings.SplitSeq(string(body), "\n") {
			if _, _, err := r.event([]byte(line)); err != nil {
				return
			}
		}
		whole, err := r.end(nil)
		if err != nil {
			return
		}
		again := encodeRequest(&llm.Request{Dialect: llm.OpenAIChat, Model: "m", Messages: []llm.Message{whole.Message}}, Version2023)
		if !wire.Lenient(again) {
			t.Fatalf("%s became %s", body, again)
		}
	})
}

func jsonText(o llm.Options) (string, error) {
	b, err := json.Marshal(o)
	return string(b), err
}

package openai

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
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

// foreign is a request of another dialect with everything that this one has a form for.
func foreign() *llm.Request {
	half, forty, seed, no := 0.5, 40, int64(7), false
	return &llm.Request{
		Dialect: llm.Anthropic, Model: "m",
		Rest:  []llm.Member{{Name: "max_tokens", Value: jsontext.Value("9"), Neutral: true}, {Name: "container", Value: jsontext.Value("{}")}},
		Added: []llm.Member{{Name: "repeat_penalty", Value: jsontext.Value("1.0")}},
		Options: llm.Options{
			Choice: llm.ChoiceNamed, Function: "f", Structured: true, Schema: jsontext.Value(`{"type":"object"}`), MaxTokens: 9,
			Temperature: &half, TopP: &half, TopK: &forty, Seed: &seed, Stop: []string{"a", "b"}, FrequencyPenalty: &half,
			PresencePenalty: &half, RepeatPenalty: &half, Parallel: &no, Effort: "low",
		},
		Tools: []llm.Declaration{
			{Name: "web_search", Special: true, Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: jsontext.Value(`{"type":"web_search_20250305"}`)}},
			{Name: "f", Description: "d", Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: jsontext.Value("{}")}},
		},
		Messages: []llm.Message{
			{Role: llm.System, Parts: []llm.Part{{Kind: llm.Text, Text: "be brief"}}, Tail: "skills"},
			{Role: llm.User, Tail: "note", Parts: []llm.Part{
				{Kind: llm.Text, Text: "look"},
				{Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: "aGk="}},
				{Kind: llm.Image, Media: &llm.Media{URL: "https://files.test/a.png"}},
				{Kind: llm.File, Media: &llm.Media{Type: "audio/x-wav", Data: "aGk="}},
				{Kind: llm.File, Media: &llm.Media{Type: "application/pdf", Name: "a.pdf", Data: "aGk="}},
				{Kind: llm.File, Media: &llm.Media{URL: "https://files.test/a.pdf"}},
			}},
			{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Reasoning, Text: "hm"}}, Calls: []llm.Call{{ID: "c", Name: "f", Arguments: `{"a":1}`}}},
			{Role: llm.Tool, CallID: "c", Parts: []llm.Part{{Kind: llm.Text, Text: "r"}, {Kind: llm.Image, Media: &llm.Media{Data: "aGk="}}}},
		},
	}
}

func TestEncodeForeignRequest(t *testing.T) {
	for name, vendor := range map[string]bool{"local": false, "vendor": true} {
		golden(t, "foreign-"+name+".json", encodeRequest(foreign(), vendor))
		p := &Provider{vendor: vendor}
		golden(t, "foreign-"+name+"-lost.txt", []byte(strings.Join(p.Lost(foreign()), "\n")+"\n"))
	}
	own := foreign()
	own.Dialect = llm.OpenAIChat
	if lost := (&Provider{}).Lost(own); lost != nil {
		t.Errorf("lost of a request of the own dialect: %q", lost)
	}
}

// TestEncodeForeignWithoutTools: tools that cannot be declared leave neither an empty list
// nor a choice of one behind.
func TestEncodeForeignWithoutTools(t *testing.T) {
	r := foreign()
	r.Tools, r.Choice = r.Tools[:1], llm.ChoiceNone
	if body := string(encodeRequest(r, false)); strings.Contains(body, `"tool_choice"`) || strings.Contains(body, `"tools"`) {
		t.Errorf("got %s", body)
	}
}

// TestDecodeOptions: each setting that other dialects have is taken, and one of a wrong
// type is left for the upstream to refuse.
func TestDecodeOptions(t *testing.T) {
	const settings = `"max_completion_tokens":9,"temperature":0.5,"top_p":0.5,"top_k":40,"seed":7,"stop":["a","b"],"frequency_penalty":0.5,` +
		`"presence_penalty":0.5,"repeat_penalty":0.5,"parallel_tool_calls":false,"reasoning_effort":"low",` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"tool_choice":{"type":"function","function":{"name":"f"}}`
	r := decode(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+settings+`}`)
	r.Dialect = llm.Ollama
	body := string(encodeRequest(r.Request, false))
	golden(t, "options.json", []byte(body))
	if lost := (&Provider{}).Lost(r.Request); len(lost) != 1 || lost[0] != `the setting "repeat_penalty"` {
		t.Errorf("lost %q", lost)
	}
	for _, wrong := range []string{`"temperature":"warm"`, `"top_k":1.5`, `"seed":"x"`, `"stop":[1]`, `"parallel_tool_calls":1`, `"reasoning_effort":{}`, `"response_format":{"type":"grammar"}`, `"tool_choice":"any"`} {
		r := decode(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+wrong+`}`)
		if r.Rest[2].Neutral || len(r.Lost(llm.Carry{})) != 1 {
			t.Errorf("%s counts as understood: %+v", wrong, r.Options)
		}
	}
}

// TestAdded: what the host adds stands beside the client's members, in place of a null,
// and never beside a value.
func TestAdded(t *testing.T) {
	for client, want := range map[string]string{
		``:                     `"temperature":0.2}`,
		`,"temperature":null`:  `"temperature":0.2}`,
		`,"Temperature":1`:     `"Temperature":1,`,
		`,"temperature":"odd"`: `"temperature":"odd",`,
	} {
		r := decode(t, `{"model":"m","messages":[{"role":"user","content":"x"}]`+client+`}`)
		r.Added = []llm.Member{{Name: "temperature", Value: jsontext.Value("0.2")}}
		body := string(encodeRequest(r.Request, false))
		if !strings.Contains(body, want) || strings.Count(strings.ToLower(body), `"temperature"`) != 1 {
			t.Errorf("%s: %s", client, body)
		}
	}
}

// TestCollectForeign: calls of an upstream of another dialect come whole into a buffered
// answer, and its reasons to stop become this one's.
func TestCollectForeign(t *testing.T) {
	c := Collector{Foreign: true}
	c.Add(&llm.Piece{Text: "a"})
	c.Add(&llm.Piece{Calls: []llm.CallDelta{{ID: "c1", Name: "f", Arguments: `{"q":`}}})
	c.Add(&llm.Piece{Calls: []llm.CallDelta{{Arguments: `"\"é"}`}, {Index: 1, ID: "c2", Name: "g"}}})
	c.Add(&llm.Piece{Finish: "end_turn"})
	golden(t, "collect-foreign.json", c.Completion(Head{ID: "x", Created: 1, Model: "m"}, "end_turn", 2, llm.Usage{Input: 3, Output: 4, Total: 7}))
}

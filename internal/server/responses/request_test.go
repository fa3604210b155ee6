package responses_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// TestRequests pins what an upstream of the other dialect is sent, and what the client is
// told of that is left out, for requests as real clients make them.
func TestRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, rigOptions{upstream: says("stop", `{"content":"ok"}`), noSkills: true})
			res, answer := r.post(t, string(body))
			got := jsontext.Value("null")
			if bodies := r.up.sent(); len(bodies) > 0 {
				got = jsontext.Value(bodies[0])
			} else {
				got = jsontext.Value(answer)
			}
			if err := got.Indent(); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".sent.txt", strings.Join(res.Header.Values(server.WarningHeader), "\n")+"\n\n"+string(got)+"\n")
		})
	}
}

// TestRefusals: what cannot be answered is said so, with the member at fault and what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		param, code  string
		words        string
		status, sent int
	}{
		{"no JSON", `{`, "null", "null", "not valid JSON", 400, 0},
		{"no object", `[]`, "null", "null", "must be a JSON object", 400, 0},
		{"no model", `{"input":"hi"}`, "model", "null", "GET /v1/models", 400, 0},
		{"no input", `{"model":"m"}`, "input", "null", `"input" is missing`, 400, 0},
		{"empty input", `{"model":"m","input":[]}`, "input", "null", "holds no message", 400, 0},
		{"input of a number", `{"model":"m","input":7}`, "input", "null", "text, or an array", 400, 0},
		{"item of a number", `{"model":"m","input":[7]}`, "input", "null", "input[0]", 400, 0},
		{"no type", `{"model":"m","input":[{"x":1}]}`, "input[0]", "null", "must have a type", 400, 0},
		{"role", `{"model":"m","input":[{"role":"tool","content":"x"}]}`, "input[0].role", "null", "must be user", 400, 0},
		{"conversation", `{"model":"m","input":"hi","conversation":"conv_1"}`, "conversation", "null", "previous_response_id", 400, 0},
		{"prompt", `{"model":"m","input":"hi","prompt":{"id":"p"}}`, "prompt", "null", "instructions", 400, 0},
		{"previous", `{"model":"m","input":"hi","previous_response_id":"resp_nope"}`, "previous_response_id", "previous_response_not_found", "send the whole conversation", 400, 0},
		{"reference", `{"model":"m","input":[{"type":"item_reference","id":"msg_nope_0"}]}`, "input[0]", "item_not_found", "send the item itself", 400, 0},
		{"background unkept", `{"model":"m","input":"hi","background":true,"store":false}`, "background", "null", "needs", 400, 0},
		{"compaction", `{"model":"m","input":[{"type":"compaction","encrypted_content":"x"}]}`, "input[0]", "null", "unreadable", 400, 0},
		{"image id", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]}`, "input[0].content", "null", "data:", 400, 0},
		{"file id", `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]}`, "input[0].content", "null", "file_data", 400, 0},
		{"store", `{"model":"m","input":"hi","store":1}`, "store", "null", "true or false", 400, 0},
		{"tokens", `{"model":"m","input":"hi","max_output_tokens":0}`, "max_output_tokens", "null", "from 1 on", 400, 0},
		{"tools", `{"model":"m","input":"hi","tools":{}}`, "tools", "null", "an array", 400, 0},
		{"skill", `{"model":"m","input":"hi","skills":["nope"]}`, "skills", "skill_not_found", "nope", 400, 0},
		{"call without id", `{"model":"m","input":[{"type":"function_call","name":"f","arguments":"{}"}]}`, "input[0]", "null", "call_id", 400, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			res, body := r.post(t, c.body)
			e := wire.Member([]byte(body), "error")
			if res.StatusCode != c.status || member(e, "param") != c.param || member(e, "code") != c.code || !strings.Contains(member(e, "message"), c.words) {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			if n := len(r.up.sent()); n != c.sent {
				t.Errorf("the upstream was asked %d times", n)
			}
		})
	}
}

// TestUpstreamRefuses: an upstream's own refusal keeps its status, its body and the headers
// that clients act on.
func TestUpstreamRefuses(t *testing.T) {
	for _, stream := range []string{"", streamed} {
		res, body := newRig(t, rigOptions{}).post(t, request("rate-limited", stream))
		if over, said := newRig(t, rigOptions{}).post(t, request("overflow", stream)); over.StatusCode != http.StatusBadRequest || member([]byte(said), "error", "code") != "context_length_exceeded" {
			t.Errorf("%d %s", over.StatusCode, said)
		}
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" || member([]byte(body), "error", "type") != "rate_limit_error" {
			t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
		}
	}
}

// TestForeignProvider: a provider of another dialect gets the neutral form.
func TestForeignProvider(t *testing.T) {
	p := &llm.Script{
		Caps:   llm.Capabilities{Declares: true, Parsed: true, Results: true},
		Rounds: []llm.ScriptedRound{{}, {Pieces: []llm.Piece{{Reasoning: "Hm."}, {Text: "A picture."}, {Finish: "end_turn", Usage: &llm.Usage{Input: 5, Output: 2, Cached: 3, Written: 1, Reasoning: 1}}}}},
	}
	r := newRig(t, rigOptions{provider: p, noSkills: true})
	got := r.made(t, `{"model":"m","instructions":"Be brief.","temperature":0.5,"max_output_tokens":7,"reasoning":{"effort":"low"},"input":[
		{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c1","output":"done"}],"tools":[{"type":"function","name":"f"}]}`)
	if textOf(got) != "A picture." || kinds(got) != "reasoning message" || member(got, "status") != "completed" {
		t.Errorf("%s", got)
	}
	usage := `{"input_tokens":5,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}`
	if diff := cmp.Diff(usage, member(got, "usage")); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	asked := p.Requests()[0]
	var seen []string
	for _, m := range asked.Messages {
		seen = append(seen, string(m.Role)+" "+m.Text()+" "+m.CallID)
		for _, c := range m.Calls {
			seen = append(seen, c.ID+" "+c.Name)
		}
		for _, a := range llm.Attachments(m) {
			seen = append(seen, a.MediaType)
		}
	}
	want := []string{"system Be brief. ", "user What is it? ", "image/png", "assistant  ", "c1 f", "tool done c1"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if o := asked.Options; *o.Temperature != 0.5 || o.MaxTokens != 7 || o.Effort != "low" {
		t.Errorf("options %+v", o)
	}
}

// TestSelects: a request says which skills it wants, in its body and in a header.
func TestSelects(t *testing.T) {
	for _, c := range []struct{ name, more, header string }{
		{"member", `,"skills":["release-notes"],"skills_discovery":false,"multi_agent":false`, ""},
		{"header", `,"skills_discovery":false`, "release-notes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			r.made(t, request("hello", c.more), server.SkillsHeader, c.header)
			sent := string(r.up.last(t))
			if !strings.Contains(sent, "release-notes") || strings.Contains(sent, "meeting-minutes") || strings.Contains(sent, "skills_discovery") {
				t.Errorf("sent %s", sent)
			}
		})
	}
}

// TestBaseURLSlip: a base URL without its /v1 works.
func TestBaseURLSlip(t *testing.T) {
	r := newRig(t, rigOptions{})
	res, body := r.ask(t, http.MethodPost, "/responses", request("hello", ""))
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if res, body := r.ask(t, http.MethodGet, "/responses/"+v.ID, ""); res.StatusCode != http.StatusOK {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

package ollama_test

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	door "github.com/metier-run/metier/internal/server/ollama"
	"github.com/metier-run/metier/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

type ids struct{}

func (ids) NewID() string { return "id" }

// script is a provider that plays rounds, and lists what Ollama and what others list.
type script struct{ llm.Script }

func (*script) Lost(*llm.Request) []string { return []string{"images"} }

// house is the server with this door in front of a script. What names no model goes to a
// door that only says so.
func house(rounds ...llm.ScriptedRound) (*server.Server, *script) {
	p := &script{llm.Script{Rounds: rounds, Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true, Context: 4096}}}
	g := gateway.New(gateway.Options{
		Provider: p, Skills: func() *skill.Snapshot { return nil }, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Host: ids{},
	})
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "the web stream has %s", body)
	})
	return server.New(server.Options{
		Doors:  []server.Door{door.New(door.Options{Gateway: g, Now: time.Now, Web: web})},
		Logger: slog.New(slog.DiscardHandler), NewID: ids{}.NewID,
	}), p
}

func send(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// times are what differs from run to run.
var times = regexp.MustCompile(`("(?:created_at|total_duration|prompt_eval_duration|eval_duration)":)("[^"]*"|[0-9]+)`)

func golden(t *testing.T, name, got string) {
	t.Helper()
	got = times.ReplaceAllString(got, "${1}0")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func says(finish llm.Finish, texts ...string) llm.ScriptedRound {
	var r llm.ScriptedRound
	for _, text := range texts {
		r.Pieces = append(r.Pieces, llm.Piece{Text: text})
	}
	r.Pieces = append(r.Pieces, llm.Piece{Finish: finish, Usage: &llm.Usage{Input: 3, Output: 2, Total: 5}})
	return r
}

// TestAnswers: each form of an answer, as it stands on the wire.
func TestAnswers(t *testing.T) {
	thinks := says(llm.FinishStop, "So.")
	thinks.Pieces = append([]llm.Piece{{Reasoning: "hm"}}, thinks.Pieces...)
	calls := says(llm.FinishCalls, "Let me see.")
	calls.Pieces = append(calls.Pieces[:1:1], llm.Piece{Calls: []llm.CallDelta{{ID: "c1", Name: "f", Arguments: `{"a":`}}},
		llm.Piece{Calls: []llm.CallDelta{{Arguments: "1}"}, {Index: 1, ID: "c2", Name: "g"}}}, calls.Pieces[1])
	own := says(llm.FinishLength, "By")
	own.Pieces[0].Raw = llm.Raw{Dialect: llm.Ollama, Bytes: []byte("{\"model\":\"own\",\r\n\"created_at\":\"x\",\"message\":{\"role\":\"assistant\",\"content\":\"By\"},\"done\":false}")}
	own.Pieces[1].Raw = llm.Raw{Dialect: llm.Ollama, Bytes: []byte(`{"model":"own","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","load_duration":7,"x_new":[1],"eval_count":2}`)}
	broken := says(llm.FinishStop, "Ye")
	broken.Pieces, broken.Err = broken.Pieces[:1], &llm.StreamError{Message: "it broke"}
	for name, round := range map[string]llm.ScriptedRound{"thinks": thinks, "calls": calls, "own": own, "broken": broken} {
		for _, path := range []string{"/api/chat", "/api/generate"} {
			h, _ := house(round)
			for _, stream := range []string{"true", "false"} {
				body := `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":` + stream + `}`
				if path == "/api/generate" {
					body = `{"model":"m","prompt":"x","stream":` + stream + `}`
				}
				w := send(h, http.MethodPost, path, body)
				kind := strings.TrimPrefix(path, "/api/")
				golden(t, fmt.Sprintf("%s-%s-%s.txt", kind, name, map[string]string{"true": "streamed", "false": "whole"}[stream]),
					fmt.Sprintf("%d %s\n%s\n", w.Code, w.Header().Get("Content-Type"), w.Body))
			}
		}
	}
}

// TestWhoseRequest: a request that names no model is the web stream's, with its body whole;
// every other one on Ollama's paths is this door's, errors included.
func TestWhoseRequest(t *testing.T) {
	h, _ := house(says(llm.FinishStop, "hi"))
	if got := send(h, http.MethodPost, "/api/chat", `{"messages":[]}`).Body.String(); got != `the web stream has {"messages":[]}` {
		t.Errorf("without a model: %s", got)
	}
	for _, path := range []string{"/api/chat", "/api/chat/ollama", "/ollama/api/chat"} {
		w := send(h, http.MethodPost, path, `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"content":"hi"`) || w.Header().Get("X-Metier-Warning") != "the upstream's dialect cannot carry images" {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/api/chat/ollama", `{"messages":[]}`, 400, `"model\" is missing`},
		{"POST", "/ollama/api/chat", `{`, 400, "not valid JSON"},
		{"POST", "/api/generate", `{"model":"m","prompt":1}`, 400, "must be a string"},
		{"POST", "/api/generate", `{"model":"m","prompt":"x","raw":true}`, 400, "cannot be carried"},
		{"POST", "/api/generate", `{"model":"m","prompt":"x","suffix":"y"}`, 400, "cannot be carried"},
		{"POST", "/api/generate", `{"model":"m","prompt":"x","images":1}`, 400, "must be an array"},
		{"POST", "/api/generate", `[]`, 400, "must be a JSON object"},
		{"POST", "/api/chat", `{"model":"m","messages":[{"role":"user","content":"x"}],"skills":1}`, 400, "array of skill names"},
		{"POST", "/api/chat", `{"model":"m","messages":[{"role":"user","content":"x"}],"skills_discovery":1}`, 400, "must be true or false"},
		{"POST", "/api/show", `{"model":"none"}`, 404, "not found"},
		{"POST", "/api/show", `{}`, 400, "is missing"},
		{"POST", "/api/pull", `{"model":"m"}`, 404, "ask the Ollama behind this server itself"},
		{"DELETE", "/ollama/api/delete", ``, 404, "ask the Ollama behind this server itself"},
		{"GET", "/ollama/none", ``, 404, "there is nothing at"},
		{"GET", "/api/show", ``, 405, "use POST"},
	} {
		w := send(h, c.method, c.path, c.body)
		var e struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); w.Code != c.status || err != nil || !strings.Contains(w.Body.String(), c.says) || e.Error == "" {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
}

// TestModels: what clients ask before they chat.
func TestModels(t *testing.T) {
	h, _ := house()
	var out strings.Builder
	for _, c := range [][3]string{
		{"GET", "/api/tags", ""},
		{"GET", "/ollama/api/ps", ""},
		{"GET", "/api/version", ""},
		{"POST", "/api/show", `{"model":"script:latest"}`},
		{"POST", "/api/show", `{"name":"script"}`},
		{"POST", "/api/chat", `{"model":"m"}`},
		{"POST", "/api/chat", `{"model":"m","messages":[],"keep_alive":"0s"}`},
		{"POST", "/api/generate", `{"model":"m","keep_alive":0}`},
		{"HEAD", "/ollama", ""},
		{"GET", "/ollama/", ""},
	} {
		w := send(h, c[0], c[1], c[2])
		fmt.Fprintf(&out, "%s %s %s\n%d %s\n", c[0], c[1], c[2], w.Code, strings.TrimSpace(w.Body.String()))
	}
	golden(t, "models.txt", out.String())
}

// TestGenerate: a prompt is a conversation, with what belongs to it, and what cannot be
// carried of it is named.
func TestGenerate(t *testing.T) {
	h, p := house(says(llm.FinishStop, "hi"))
	w := send(h, http.MethodPost, "/api/generate", `{"model":"m","system":"be brief","prompt":"look","images":["aGk="],"context":[1],"template":"t","options":{"num_predict":5},"format":"json"}`, "x-api-key", "theirs")
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := p.Requests()[0]
	if len(r.Messages) != 2 || r.Messages[0].Text() != "be brief" || r.Messages[1].Text() != "look" || r.Messages[1].Parts[1].Media.Data != "aGk=" || r.Options.MaxTokens != 5 || !r.Options.Structured {
		t.Errorf("%+v", r)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer theirs" {
		t.Errorf("credential %q", got)
	}
	if got := w.Header().Values("X-Metier-Warning"); len(got) != 3 || !strings.Contains(got[0], "context") || !strings.Contains(got[1], "template") {
		t.Errorf("warnings %q", got)
	}
}

// FuzzRequest: whatever a client sends is answered in the dialect.
func FuzzRequest(f *testing.F) {
	f.Add("/api/chat", []byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	f.Add("/api/generate", []byte(`{"model":"m","prompt":"x","images":[1],"\u006dessages":{}}`))
	f.Add("/api/show", []byte(`{"name":"script"}`))
	h, _ := house(says(llm.FinishStop, "hi"))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if path != "/api/generate" && path != "/api/show" {
			path = "/api/chat/ollama"
		}
		w := send(h, http.MethodPost, path, string(body))
		for line := range strings.Lines(w.Body.String()) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil || w.Code != http.StatusOK && v["error"] == nil {
				t.Fatalf("%s: %d %s: %v", body, w.Code, w.Body, err)
			}
		}
	})
}

package ollama_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/server"
	door "github.com/metier-run/metier/internal/server/ollama"
	"github.com/metier-run/metier/internal/wire"
	"github.com/metier-run/metier/skill"
)

// mark stands in the skill, so that its rounds can be found.
const mark = "Write every ticket in square brackets."

type counter struct{ n atomic.Int64 }

func (c *counter) NewID() string { return fmt.Sprint("id", c.n.Add(1)) }

// behind is an upstream with a rule: it reads the skill, if it may and has not yet, and
// asks for two cities' weather until it has heard of both, in OpenAI's dialect or in
// Ollama's. The dialect without ids has none from it.
type behind struct {
	native, skills bool
	bodies         []string
}

func (u *behind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body := string(b)
	u.bodies = append(u.bodies, body)
	type call struct{ name, arguments string }
	var calls []call
	if u.skills && !strings.Contains(body, mark) {
		calls = append(calls, call{"skills_read", `{"skill":"notes"}`})
	}
	if !strings.Contains(body, "wet") {
		calls = append(calls, call{"get_weather", `{"city":"Oslo"}`}, call{"get_weather", `{"city":"Bergen"}`})
	}
	text := "Dry and wet."
	if len(calls) > 0 {
		text = "Let me look. "
	}
	out := []string{}
	for i, c := range calls {
		if u.native {
			out = append(out, fmt.Sprintf(`{"function":{"name":%q,"arguments":%s}}`, c.name, c.arguments))
			continue
		}
		out = append(out, fmt.Sprintf(`{"index":%d,"id":"up_%d_%d","type":"function","function":{"name":%q,"arguments":%q}}`, i, len(u.bodies), i, c.name, c.arguments))
	}
	message := fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[%s]}`, text, strings.Join(out, ","))
	if u.native {
		fmt.Fprintf(w, `{"model":"m","message":%s,"done":false}`+"\n"+`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":4}`+"\n", message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", message)
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":14}}\n\ndata: [DONE]\n\n")
}

// whole is the server with this door in front of u, remembering what clients do not see.
func whole(t *testing.T, u *behind) *server.Server {
	t.Helper()
	up := httptest.NewServer(u)
	transport := upstream.NewTransport(config.Values{})
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		up.Close()
	})
	base, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	id := &counter{}
	var p llm.Provider = openai.New(openai.Options{Base: base.JoinPath("v1"), Transport: transport, NewID: id.NewID})
	if u.native {
		p = ollama.New(ollama.Options{Base: base, Transport: transport, NewID: id.NewID})
	}
	var snapshot *skill.Snapshot
	if u.skills {
		root := t.TempDir()
		dir := filepath.Join(root, "notes")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "---\nname: notes\ndescription: Writes notes. Use when somebody asks for notes.\n---\n\n" + mark + "\n"
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if snapshot, err = skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: root}}}); err != nil {
			t.Fatal(err)
		}
	}
	g := gateway.New(gateway.Options{
		Provider: p, Skills: func() *skill.Snapshot { return snapshot }, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Host: id,
		Continuity: continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now),
	})
	return server.New(server.Options{
		Doors:  []server.Door{door.New(door.Options{Gateway: g, Now: time.Now})},
		Logger: slog.New(slog.DiscardHandler), NewID: id.NewID,
	})
}

// shownCall is a call as a client gets it.
type shownCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"function"`
}

// shown is what a client makes of an answer, which is judged: one end that is the last
// line, counts of all rounds, and nothing of the host's.
type shown struct {
	text  string
	calls []shownCall
}

func ask(t *testing.T, h http.Handler, messages []string, stream bool, rounds int) shown {
	t.Helper()
	w := send(h, http.MethodPost, "/api/chat", fmt.Sprintf(`{"model":"m","stream":%t,"messages":[%s],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}}]}`, stream, strings.Join(messages, ",")))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var s shown
	ends := 0
	for line := range strings.Lines(w.Body.String()) {
		var v struct {
			Message struct {
				Content   string      `json:"content"`
				ToolCalls []shownCall `json:"tool_calls"`
			} `json:"message"`
			Done bool `json:"done"`
			In   int  `json:"prompt_eval_count"`
			Out  int  `json:"eval_count"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || ends > 0 {
			t.Fatalf("%v, %d ends before %s", err, ends, line)
		}
		s.text += v.Message.Content
		s.calls = append(s.calls, v.Message.ToolCalls...)
		if v.Done {
			ends++
			if v.In != 10*rounds || v.Out != 4*rounds {
				t.Errorf("counts %d and %d, want those of %d rounds", v.In, v.Out, rounds)
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
	for _, hidden := range []string{"skills_read", mark} {
		if strings.Contains(w.Body.String(), hidden) {
			t.Errorf("the client sees %q: %s", hidden, w.Body)
		}
	}
	return s
}

// spelling is how a client sends back a call, and its result.
type spelling struct {
	call, result func(i int, c shownCall) string
}

// spellings are those of the official SDKs and of clients whose users tell of trouble.
func spellings() map[string]spelling {
	bare := func(_ int, c shownCall) string {
		return fmt.Sprintf(`{"function":{"name":%q,"arguments":%s}}`, c.Function.Name, c.Function.Arguments)
	}
	named := func(id string, i int, c shownCall) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"index":%d,"name":%q,"arguments":%s}}`, id, i, c.Function.Name, c.Function.Arguments)
	}
	content := func(i int) string { return []string{"dry", "wet"}[i] }
	return map[string]spelling{
		"python": {bare, func(i int, c shownCall) string {
			return fmt.Sprintf(`{"role":"tool","content":%q,"tool_name":%q}`, content(i), c.Function.Name)
		}},
		"go": {func(i int, c shownCall) string { return named(c.ID, i, c) }, func(i int, c shownCall) string {
			return fmt.Sprintf(`{"role":"tool","content":%q,"tool_call_id":%q}`, content(i), c.ID)
		}},
		"nothing": {bare, func(i int, _ shownCall) string { return fmt.Sprintf(`{"role":"tool","content":%q}`, content(i)) }},
		"own ids": {func(i int, c shownCall) string { return named(fmt.Sprint("own", i), i, c) }, func(i int, _ shownCall) string {
			return fmt.Sprintf(`{"role":"tool","content":%q,"tool_call_id":"own%d"}`, content(i), i)
		}},
		"lost ids": {bare, func(i int, c shownCall) string {
			return fmt.Sprintf(`{"role":"tool","content":%q,"tool_call_id":%q}`, content(i), c.ID)
		}},
	}
}

// TestContinuity: whatever a client keeps of its calls, the rounds that it never saw come
// back, and each result answers its call upstream.
func TestContinuity(t *testing.T) {
	for _, native := range []bool{false, true} {
		for _, skills := range []bool{false, true} {
			for name, s := range spellings() {
				for _, stream := range []bool{false, true} {
					t.Run(fmt.Sprintf("native %t/skills %t/%s/stream %t", native, skills, name, stream), func(t *testing.T) {
						converse(t, &behind{native: native, skills: skills}, s, stream)
					})
				}
			}
		}
	}
}

func converse(t *testing.T, u *behind, s spelling, stream bool) {
	t.Helper()
	h := whole(t, u)
	messages := []string{`{"role":"user","content":"The weather?"}`}
	first := ask(t, h, messages, stream, 1)
	if len(first.calls) != 2 || first.text != "Let me look. " {
		t.Fatalf("%+v", first)
	}
	var calls, results []string
	for i, c := range first.calls {
		calls, results = append(calls, s.call(i, c)), append(results, s.result(i, c))
	}
	messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[%s]}`, first.text, strings.Join(calls, ",")))
	messages = append(messages, results...)
	second := ask(t, h, messages, stream, 1)
	if second.text != "Dry and wet." || len(second.calls) > 0 {
		t.Errorf("%+v", second)
	}
	messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":%q}`, second.text), `{"role":"user","content":"Thanks."}`)
	ask(t, h, messages, stream, 1)
	for _, body := range u.bodies[1:] {
		if n := strings.Count(body, mark); u.skills && n != 1 {
			t.Errorf("the skill is there %d times: %s", n, body)
		}
		paired(t, body, u.native)
	}
}

// paired: every result follows its call. Where there are no ids it is the order that tells.
func paired(t *testing.T, body string, native bool) {
	t.Helper()
	want := map[string]string{"Oslo": "dry", "Bergen": "wet"}
	var open []string // arguments of calls that wait, by id or in order
	ids := map[string]string{}
	answered := 0
	for c := wire.Array(wire.Member(jsontext.Value(body), "messages")); c.Next(); {
		for k := wire.Array(wire.Member(c.Value, "tool_calls")); k.Next(); {
			arguments := string(wire.Member(wire.Member(k.Value, "function"), "arguments"))
			id, _ := wire.String(wire.Member(k.Value, "id"))
			ids[id], open = arguments, append(open, arguments)
		}
		if role, _ := wire.String(wire.Member(c.Value, "role")); role != "tool" {
			continue
		}
		id, _ := wire.String(wire.Member(c.Value, "tool_call_id"))
		arguments, there := ids[id]
		if native {
			arguments, open = open[0], open[1:]
		} else if !there {
			t.Errorf("a result answers %q, which is no call: %s", id, body)
		}
		for city, says := range want {
			if content := string(wire.Member(c.Value, "content")); strings.Contains(arguments, city) {
				answered++
				if !strings.Contains(content, says) {
					t.Errorf("of %s the upstream hears %s: %s", city, content, body)
				}
			}
		}
	}
	if answered != 2 {
		t.Errorf("%d results: %s", answered, body)
	}
}

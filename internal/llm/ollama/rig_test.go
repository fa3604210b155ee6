package ollama_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ = flag.Bool("update", false, "write the golden files")

// connect is a provider in front of h.
func connect(t *testing.T, h http.Handler, o ollama.Options) *ollama.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	transport := upstream.NewTransport(o.Limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
	})
	base, err := url.Parse(srv.URL + "/api/")
	if err != nil {
		t.Fatal(err)
	}
	o.Base, o.Transport = base, transport
	n := 0
	o.NewID = func() string { n++; return strings.Repeat("i", n) }
	return ollama.New(o)
}

// play answers the suite's scenarios in the dialect. The round is told by the assistant's
// messages of the request.
type play struct {
	scenario string
	asked    atomic.Int64
}

func (p *play) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"models":[{"name":"m","model":"m","size":1},{"name":"old"},{}]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/api/chat" {
		http.NotFound(w, r)
		return
	}
	rounds := 0
	for c := wire.Array(wire.Member(body, "messages")); c.Next(); {
		if role, _ := wire.String(wire.Member(c.Value, "role")); role == "assistant" {
			rounds++
		}
	}
	if p.fails(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = io.WriteString(w, p.answer(rounds))
	if p.scenario == llmtest.Hang {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	if p.scenario == llmtest.Cut || p.scenario == llmtest.CutEvent {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// fails answers the scenarios of upstreams that refuse.
func (p *play) fails(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":%q}`, message)
	}
	switch p.scenario {
	case llmtest.RateLimited:
		w.Header().Set("Retry-After", "7")
		refuse(429, "Slow down: 0 of 60 requests are left in this minute.")
	case llmtest.Unauthorized:
		refuse(401, "This key opens nothing here.")
	case llmtest.Overflow:
		refuse(400, "the request has 9000 tokens and the window holds 4096")
	case llmtest.ServerError:
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "<html>Bad gateway</html>")
	case llmtest.SlowLoad:
		if p.asked.Add(1) > 1 {
			return false
		}
		refuse(503, "the model is still loading")
	case llmtest.HangHeaders:
		<-r.Context().Done()
	case llmtest.CutHeaders:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

func line(message string) string {
	return `{"model":"m","created_at":"2026-12-01T12:00:00Z","message":{"role":"assistant",` + message + `},"done":false}` + "\n"
}

func ended(reason string, in, out int) string {
	return fmt.Sprintf(`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":%q,"prompt_eval_count":%d,"eval_count":%d}`+"\n", reason, in, out)
}

func text(in, out int, texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(line(fmt.Sprintf(`"content":%q`, t)))
	}
	return b.String() + ended("stop", in, out)
}

func call(id, name, arguments string) string {
	named := ""
	if id != "" {
		named = fmt.Sprintf(`"id":%q,`, id)
	}
	return fmt.Sprintf(`{%s"function":{"name":%q,"arguments":%s}}`, named, name, arguments)
}

func calls(in, out int, calls ...string) string {
	return line(`"content":"","tool_calls":[`+strings.Join(calls, ",")+`]`) + ended("stop", in, out)
}

func read(id, skill string) string {
	return call(id, "skills_read", fmt.Sprintf(`{"skill":%q,"path":"SKILL.md"}`, skill))
}

func weather(id, city string) string {
	return call(id, "get_weather", fmt.Sprintf(`{"city":%q}`, city))
}

// answer is a round of a scenario.
func (p *play) answer(round int) string {
	second := round > 0
	switch p.scenario {
	case llmtest.SlowLoad:
		return text(12, 6, "Loaded and ready.")
	case llmtest.Hello:
		return text(12, 6, "Good morning,", " and welcome.")
	case llmtest.CallerTool:
		if second {
			return text(90, 7, "It is clear in Oslo.")
		}
		return calls(60, 16, weather("call_weather_1", "Oslo"))
	case llmtest.TwoReads:
		if second {
			return text(700, 9, "Both skills ask for dates.")
		}
		return calls(190, 48, read("call_two_a", "release-notes"), read("call_two_b", "meeting-minutes"))
	case llmtest.ManyCalls:
		if second {
			return text(1, 1, "I asked for too much at once.")
		}
		var ten []string
		for i := range 10 {
			ten = append(ten, call(fmt.Sprint("call_many_", i), "skills_read", fmt.Sprintf(`{"skill":"release-notes","path":"references/part-%d.md"}`, i)))
		}
		return calls(1, 1, ten...)
	case llmtest.Mixed:
		if second {
			return text(1, 1, "It rains in Bergen, and the notes say so.")
		}
		return line(`"content":"Let me look. "`) + calls(1, 1, read("call_mixed_skill", "release-notes"), weather("call_mixed_weather", "Bergen"))
	case llmtest.NoIDs:
		if second {
			return text(1, 1, "Both were read.")
		}
		return calls(1, 1, read("", "release-notes"), read("", "meeting-minutes"))
	case llmtest.SplitUTF8:
		return text(10, 9, "Grüße, 世", "界 und 🦉.")
	case llmtest.CRLF:
		return strings.ReplaceAll(text(8, 3, "Carriage returned."), "\n", "\r\n\r\n")
	case llmtest.NoDone:
		return strings.TrimSuffix(text(8, 4, "Complete, if curt."), "\n")
	case llmtest.JSONAnswer:
		return `{"model":"m","message":{"role":"assistant","content":"All at once."},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":4}`
	case llmtest.Long:
		var long []string
		for i := range 2000 {
			long = append(long, fmt.Sprintf("w%d ", i+1))
		}
		return text(8, 2000, long...)
	case llmtest.Cut:
		return line(`"content":"This will not be"`)
	case llmtest.CutEvent:
		return line(`"content":"Half "`) + `{"model":"m","mess`
	case llmtest.EarlyEnd:
		return line(`"content":"And then "`)
	case llmtest.Malformed:
		return line(`"content":"Fine so far. "`) + "{nonsense\n"
	case llmtest.ErrorInside:
		return line(`"content":"I was "`) + `{"error":"The worker ran out of memory."}` + "\n"
	case llmtest.Hang:
		return line(`"content":"Wait "`)
	}
	return ""
}

// TestConformance: of the suite only what the dialect cannot say is left out: two answers
// to one request, thoughts that are counted, caches, half calls, and events of several
// lines.
func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, scenario string) (llm.Provider, string) {
		switch scenario {
		case llmtest.TwoChoices, llmtest.Reasoning, llmtest.UsageCached, llmtest.CutCall, llmtest.MultiLine:
			t.Skip("the dialect has no form for it")
		}
		return connect(t, &play{scenario: scenario}, ollama.Options{}), "m"
	})
}

// TestModels: a model is listed by its name, whichever member has it.
func TestModels(t *testing.T) {
	models, err := connect(t, &play{}, ollama.Options{}).Models(t.Context())
	if err != nil || len(models) != 2 || models[0].ID != "m" || models[1].ID != "old" || !models[0].Raw.Is(llm.Ollama) {
		t.Errorf("%+v, %v", models, err)
	}
}

// TestReplyGoesBack: what the model wrote goes back to it as it was, thoughts and calls
// included.
func TestReplyGoesBack(t *testing.T) {
	var body string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		body = string(b)
		_, _ = io.WriteString(w, line(`"content":"","thinking":"h\u00e9"`)+line(`"content":"So."`)+calls(3, 4, call("", "f", `{"a": 1}`)))
	})
	p := connect(t, h, ollama.Options{Key: config.NewSecret("own")})
	r := &llm.Request{Dialect: llm.Ollama, Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}}
	reply, err := ask(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":"So.","thinking":"h\u00e9","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}}]}`
	if diff := cmp.Diff(want, string(reply.Message.Raw.Bytes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := reply.Message.Calls; len(c) != 1 || c[0].ID != "call_i" || c[0].Arguments != `{"a": 1}` || reply.Finish != llm.FinishCalls {
		t.Errorf("%+v", reply)
	}
	r.Messages = append(r.Messages, reply.Message)
	if _, err := ask(t.Context(), p, r); err != nil || !strings.Contains(body, want) {
		t.Errorf("%v, sent back as %s", err, body)
	}
}

func ask(ctx context.Context, p llm.Provider, r *llm.Request) (*llm.Reply, error) {
	for piece, err := range p.Stream(ctx, r) {
		if err != nil {
			return nil, err
		}
		if piece.Reply != nil {
			return piece.Reply, nil
		}
	}
	return nil, errors.New("no reply")
}

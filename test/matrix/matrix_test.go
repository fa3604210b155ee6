package matrix

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/llm/openai"
	upstreamhttp "github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/server"
	dooranthropic "github.com/metier-run/metier/internal/server/anthropic"
	doorollama "github.com/metier-run/metier/internal/server/ollama"
	dooropenai "github.com/metier-run/metier/internal/server/openai"
	"github.com/metier-run/metier/internal/server/responses"
	doorweb "github.com/metier-run/metier/internal/server/web"
	"github.com/metier-run/metier/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

type ids struct{ n atomic.Int64 }

func (i *ids) NewID() string { return fmt.Sprintf("%08d", i.n.Add(1)) }

// provider is one of the rows: how to reach an upstream, and how that speaks.
type provider struct {
	name    string
	connect func(base *url.URL, transport http.RoundTripper, newID func() string) llm.Provider
	speaks  func() speaker
}

func providers() []provider {
	return []provider{
		{"openai", func(base *url.URL, tr http.RoundTripper, newID func() string) llm.Provider {
			return openai.New(openai.Options{Base: base.JoinPath("v1"), Transport: tr, NewID: newID})
		}, func() speaker { return chatSpeaker{} }},
		{"anthropic", func(base *url.URL, tr http.RoundTripper, newID func() string) llm.Provider {
			return anthropic.New(anthropic.Options{Base: base, Transport: tr, NewID: newID})
		}, func() speaker { return &messagesSpeaker{} }},
		{"ollama", func(base *url.URL, tr http.RoundTripper, newID func() string) llm.Provider {
			return ollama.New(ollama.Options{Base: base, Transport: tr, NewID: newID})
		}, func() speaker { return linesSpeaker{} }},
	}
}

// door is one of the columns.
type door struct {
	name   string
	client func() client
	// ends are the reasons to stop of an answer, and of one with calls.
	ends, calls string
	streamOnly  bool
}

func doors() []door {
	return []door{
		{"chat", func() client { return &chatClient{} }, "stop", "tool_calls", false},
		{"responses", func() client { return &responsesClient{} }, "completed", "completed", false},
		{"messages", func() client { return &messagesClient{} }, "end_turn", "tool_use", false},
		{"ollama", func() client { return &ollamaClient{} }, "stop", "stop", false},
		{"web", func() client { return &webClient{} }, "stop", "tool_calls", true},
	}
}

// house is all doors in front of one provider in front of one upstream.
type house struct {
	url      string
	upstream *upstream
}

func newHouse(t *testing.T, p provider, s scenario) house {
	t.Helper()
	up := &upstream{speaker: p.speaks(), scenario: s}
	behind := httptest.NewServer(up)
	transport := upstreamhttp.NewTransport(config.Values{})
	base, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: "testdata/skills"}}})
	if err != nil {
		t.Fatal(err)
	}
	id := &ids{}
	logger := slog.New(slog.DiscardHandler)
	limits := config.Values{}
	skills := func() *skill.Snapshot { return snapshot }
	g := gateway.New(gateway.Options{
		Provider: p.connect(base, transport, id.NewID), Skills: skills, Limits: limits, Logger: logger, Now: time.Now, Host: id,
		Continuity: continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now),
	})
	sessions := doorweb.NewSessions(doorweb.SessionOptions{Limits: limits, Now: time.Now, NewID: id.NewID, Logger: logger})
	web := doorweb.New(doorweb.Options{Gateway: g, Sessions: sessions, Skills: skills, Limits: limits, Now: time.Now, Logger: logger})
	answers := responses.New(responses.Options{Gateway: g, Limits: limits, Now: time.Now, NewID: id.NewID})
	front := httptest.NewServer(server.New(server.Options{
		Doors: []server.Door{
			dooranthropic.New(dooranthropic.Options{Gateway: g, Limits: limits, Now: time.Now, NewID: id.NewID}),
			doorollama.New(doorollama.Options{Gateway: g, Limits: limits, Now: time.Now, Web: web.Routes()["POST /api/chat"]}),
			answers,
			dooropenai.New(dooropenai.Options{Gateway: g, Limits: limits, Now: time.Now, NewID: id.NewID}),
			web,
		},
		Limits: limits, Logger: logger, NewID: id.NewID, Loopback: true,
	}))
	t.Cleanup(func() {
		front.Close()
		sessions.Close()
		transport.CloseIdleConnections()
		behind.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return house{url: front.URL, upstream: up}
}

// reply is an answer over HTTP.
type reply struct {
	status   int
	warnings []string
	body     []byte
}

func (h house) send(t *testing.T, path string, header http.Header, body object) reply {
	t.Helper()
	b, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// A stream that is cut off is an answer, too: what came of it is judged.
	got, _ := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, warnings: res.Header.Values(server.WarningHeader), body: got}
}

// TestMatrix runs every cell, and lists what each tells its client that it cannot carry.
func TestMatrix(t *testing.T) {
	cells := map[string][]string{}
	for _, p := range providers() {
		for _, d := range doors() {
			for _, stream := range []bool{false, true} {
				if d.streamOnly && !stream {
					continue
				}
				for _, s := range scenarios() {
					name := fmt.Sprintf("%s/%s/%s/%s", p.name, d.name, map[bool]string{false: "buffered", true: "streamed"}[stream], s.name)
					t.Run(name, func(t *testing.T) {
						c := cell{house: newHouse(t, p, s), door: d, scenario: s, stream: stream, client: d.client()}
						cells[name] = c.run(t)
					})
				}
			}
		}
	}
	if t.Failed() {
		return
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		if len(cells[name]) > 0 {
			fmt.Fprintf(&list, "%s: %s\n", name, strings.Join(cells[name], "; "))
		}
	}
	golden(t, "lost.txt", list.String())
}

// cell is one conversation.
type cell struct {
	house
	door     door
	scenario scenario
	stream   bool
	client   client
}

func (c cell) run(t *testing.T) (warnings []string) {
	t.Helper()
	if c.scenario.failure != nil {
		return c.fails(t)
	}
	rounds := 0
	for n, shown := range c.scenario.shown {
		path, header, body := c.client.request(c.scenario.question, c.stream)
		got := c.send(t, path, header, body)
		if got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, excerpt(string(got.body)))
		}
		if n == 0 {
			warnings = got.warnings
		}
		c.keep(t, n, got.body)
		a, err := c.client.read(got.body, c.stream || c.door.streamOnly)
		if err != nil {
			t.Fatalf("%v\n%s", err, excerpt(string(got.body)))
		}
		last := n == len(c.scenario.shown)-1
		rounds = c.judge(t, a, shown, last, rounds, got.body)
		var results []string
		for _, x := range a.calls {
			results = append(results, c.scenario.question.answers[x.name])
		}
		c.client.next(a, results)
	}
	wantInOrder(t, c.upstream.last(), c.scenario.reaches)
	return warnings
}

// judge checks one answer. before is how many rounds were over before it; it returns how
// many are over after it.
func (c cell) judge(t *testing.T, a answer, shown string, last bool, before int, body []byte) int {
	t.Helper()
	after := before
	for after < len(c.scenario.rounds) {
		after++
		if calls := c.scenario.rounds[after-1].calls; len(calls) == 0 || slices.ContainsFunc(calls, func(x llm.Call) bool { return x.Name == weather }) {
			break
		}
	}
	n := int64(after - before)
	if a.ends != 1 || a.failed != "" {
		t.Errorf("%d ends, error %q", a.ends, a.failed)
	}
	if a.text != shown {
		t.Errorf("text %q, want %q", a.text, shown)
	}
	if a.in != n*inputTokens || a.out != n*outputTokens {
		t.Errorf("usage %d and %d, want that of %d rounds", a.in, a.out, n)
	}
	want := c.door.ends
	if !last {
		want = c.door.calls
		if len(a.calls) != 1 || a.calls[0].name != weather || a.calls[0].arguments != `{"city":"Bergen"}` || a.calls[0].id == "" {
			t.Errorf("calls %+v", a.calls)
		}
	} else if len(a.calls) > 0 {
		t.Errorf("calls %+v in the last answer", a.calls)
	}
	if a.finish != want {
		t.Errorf("finish %q, want %q", a.finish, want)
	}
	if c.scenario.name == "reasoning" && a.reasoning != c.scenario.rounds[0].reasoning {
		t.Errorf("reasoning %q", a.reasoning)
	}
	for _, hidden := range []string{"skills_read", "call_read", mark} {
		if hidden == "skills_read" && c.door.name == "web" {
			continue // its frames tell which skill was read (B1 17.5)
		}
		if bytes.Contains(body, []byte(hidden)) {
			t.Errorf("the client sees %q: %s", hidden, excerpt(string(body)))
		}
	}
	return after
}

// fails checks an answer that cannot come.
func (c cell) fails(t *testing.T) []string {
	t.Helper()
	path, header, body := c.client.request(c.scenario.question, c.stream)
	got := c.send(t, path, header, body)
	begun := c.scenario.failure.mid && (c.stream || c.door.streamOnly)
	if !begun {
		if got.status < http.StatusBadRequest || !strings.Contains(c.client.refusal(got.body), refused) {
			t.Errorf("status %d, %s", got.status, excerpt(string(got.body)))
		}
		if want := c.scenario.failure.status; want != 0 && got.status != want {
			t.Errorf("status %d, want the upstream's %d", got.status, want)
		}
		return got.warnings
	}
	c.keep(t, 0, got.body)
	a, err := c.client.read(got.body, true)
	if err != nil {
		t.Fatalf("%v\n%s", err, excerpt(string(got.body)))
	}
	if got.status != http.StatusOK || a.ends != 0 || !strings.Contains(a.failed, refused) || a.text != c.scenario.rounds[0].text[0] {
		t.Errorf("status %d, %d ends, error %q, text %q", got.status, a.ends, a.failed, a.text)
	}
	return got.warnings
}

// keep compares streams of some cells with their golden files: those where the upstream
// speaks another dialect, since streams of the same one are tested with their doors.
func (c cell) keep(t *testing.T, n int, body []byte) {
	t.Helper()
	kept := map[string]string{"chat": "anthropic", "responses": "anthropic", "messages": "ollama", "ollama": "openai", "web": "anthropic"}
	if !c.stream || kept[c.door.name] != nameOf(c.upstream.speaker) || c.scenario.name == "image" || c.scenario.name == "plain" {
		return
	}
	golden(t, fmt.Sprintf("%s-%s-%d.txt", c.door.name, strings.ReplaceAll(strings.ReplaceAll(c.scenario.name, " ", "-"), "'", ""), n+1), steady(string(body)))
}

func nameOf(s speaker) string {
	switch s.(type) {
	case chatSpeaker:
		return "openai"
	case *messagesSpeaker:
		return "anthropic"
	}
	return "ollama"
}

// times are what differs from run to run.
var times = regexp.MustCompile(`("(?:created|created_at|completed_at|elapsed|tokPerSec|total_duration|load_duration|prompt_eval_duration|eval_duration)":)("[^"]*"|[0-9.e+-]+)`)

func steady(body string) string { return times.ReplaceAllString(body, "${1}0") }

func golden(t *testing.T, name, got string) {
	t.Helper()
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

package openai_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/rescue"
	"github.com/metier-run/metier/internal/server"
	door "github.com/metier-run/metier/internal/server/openai"
	"github.com/metier-run/metier/internal/store/storetest"
	"github.com/metier-run/metier/internal/wire"
	"github.com/metier-run/metier/skill"
)

func TestMain(m *testing.M) {
	code := storetest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type ids struct{ n atomic.Int64 }

func (i *ids) NewID() string { return fmt.Sprint("id", i.n.Add(1)) }

// rig is the whole house in front of the scripted upstream, over real HTTP.
type rig struct {
	url      string
	upstream *scripted.Handler
	provider llm.Provider
	log      *syncBuffer
}

type rigOptions struct {
	noSkills bool
	limits   config.Values
	provider llm.Provider // in place of the scripted upstream
	upstream http.Handler // the same, over HTTP

	continuity continuity.Store
	models     map[string]config.Model
	discovery  config.Discovery
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{log: &syncBuffer{}}
	if o.provider == nil {
		o.provider = r.connect(t, o)
	}
	r.provider = o.provider
	s := httptest.NewServer(newHouse(t, o, r.log))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	r.url = s.URL
	return r
}

// as makes the requests that follow those of a caller whose key was checked.
func (r *rig) as(t *testing.T, o rigOptions, c access.Caller) {
	t.Helper()
	o.provider = r.provider
	house := newHouse(t, o, r.log)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		house.ServeHTTP(w, q.WithContext(access.WithCaller(q.Context(), c)))
	}))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	r.url = s.URL
}

// newHouse is the server with its one door.
func newHouse(t *testing.T, o rigOptions, log io.Writer) *server.Server {
	t.Helper()
	snapshot, err := skill.Load(t.Context(), skill.Options{Roots: []skill.Root{{Dir: "testdata/skills"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o.noSkills {
		snapshot = nil
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	id := &ids{}
	g := gateway.New(gateway.Options{
		Provider: o.provider, Skills: func() *skill.Snapshot { return snapshot },
		Limits: o.limits, Logger: logger, Now: time.Now, Host: id, Continuity: o.continuity,
		Models: o.models, Discovery: o.discovery,
	})
	return server.New(server.Options{
		Doors:  []server.Door{door.New(door.Options{Gateway: g, Limits: o.limits, Now: time.Now, NewID: id.NewID})},
		Limits: o.limits, Logger: logger, NewID: id.NewID, Loopback: true,
	})
}

func (r *rig) connect(t *testing.T, o rigOptions) llm.Provider {
	t.Helper()
	var err error
	if r.upstream, err = scripted.New(scripted.Options{}); err != nil {
		t.Fatal(err)
	}
	if o.upstream == nil {
		o.upstream = r.upstream
	}
	up := httptest.NewServer(o.upstream)
	transport := upstream.NewTransport(o.limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		up.Close()
	})
	base, err := url.Parse(up.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	id := &ids{}
	p := openai.New(openai.Options{Base: base, Transport: transport, Limits: o.limits, NewID: id.NewID})
	return rescue.Wrap(p, rescue.Options{MaxHeld: o.limits.Int(config.RescueHold), NewID: id.NewID})
}

// post sends a chat request and returns the answer, read to its end.
func (r *rig) post(t *testing.T, body string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		b = append(b, "\n<broken off>"...)
	}
	return res, string(b)
}

// completion is an answer as a client sees it, streamed or not.
type completion struct {
	ID, Model, Text, Reasoning string
	Finish                     string
	Calls                      []call
	Usage                      map[string]any
	roles, ids, done, usages   int
	choices                    map[int]string
}

type call struct{ Index, ID, Name, Arguments string }

type wireChoice struct {
	Index        int         `json:"index"`
	Delta        wireMessage `json:"delta"`
	Message      wireMessage `json:"message"`
	FinishReason *string     `json:"finish_reason"`
}

type wireMessage struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Reasoning string  `json:"reasoning_content"`
	Calls     []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type wireChunk struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Choices []wireChoice   `json:"choices"`
	Usage   map[string]any `json:"usage"`
	Error   any            `json:"error"`
}

// readStream reads a stream as strictly as the format allows.
func readStream(t *testing.T, body string) completion {
	t.Helper()
	c := completion{choices: map[int]string{}}
	seen := map[string]bool{}
	events := wire.NewEventReader(strings.NewReader(body), 1<<20, nil)
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		if c.done > 0 {
			t.Errorf("an event after the end: %s", e.Data)
		}
		if string(e.Data) == "[DONE]" {
			c.done++
			continue
		}
		var chunk wireChunk
		if err := json.Unmarshal(e.Data, &chunk); err != nil {
			t.Fatalf("chunk %s: %v", e.Data, err)
		}
		seen[chunk.ID] = true
		c.ID, c.Model = chunk.ID, chunk.Model
		if chunk.Usage != nil {
			c.Usage = chunk.Usage
			c.usages++
		}
		for _, x := range chunk.Choices {
			c.take(x.Index, x.Delta)
			if x.FinishReason != nil && x.Index == 0 {
				if c.Finish != "" {
					t.Errorf("a second finish: %s", e.Data)
				}
				c.Finish = *x.FinishReason
			}
		}
	}
	c.ids = len(seen)
	return c
}

func (c *completion) take(index int, m wireMessage) {
	text := ""
	if m.Content != nil {
		text = *m.Content
	}
	c.choices[index] += text
	if index != 0 {
		return
	}
	if m.Role != "" {
		c.roles++
	}
	c.Text += text
	c.Reasoning += m.Reasoning
	for i, d := range m.Calls {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		for len(c.Calls) <= at {
			c.Calls = append(c.Calls, call{Index: fmt.Sprint(len(c.Calls))})
		}
		c.Calls[at].ID += d.ID
		c.Calls[at].Name += d.Function.Name
		c.Calls[at].Arguments += d.Function.Arguments
	}
}

func readBuffered(t *testing.T, body string) completion {
	t.Helper()
	var whole wireChunk
	if err := json.Unmarshal([]byte(body), &whole); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	c := completion{ID: whole.ID, Model: whole.Model, Usage: whole.Usage, choices: map[int]string{}}
	for _, x := range whole.Choices {
		c.take(x.Index, x.Message)
		if x.FinishReason != nil && x.Index == 0 {
			c.Finish = *x.FinishReason
		}
	}
	return c
}

// syncBuffer is a log that is written to and read at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

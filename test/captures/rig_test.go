package captures

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is the program in front of an upstream that keeps what it gets.
type house struct {
	url      string
	upstream *recorder
}

// open wires the program to an upstream of a kind.
func open(t *testing.T, kind string, skills bool) *house {
	t.Helper()
	h := &house{upstream: &recorder{}}
	behind := httptest.NewServer(h.upstream)
	t.Cleanup(behind.Close)
	base := behind.URL
	if kind == "openai" {
		base += "/v1"
	}
	a, err := app.Open(t.Context(), app.Settings{
		Home: t.TempDir(), SkillsDirs: []string{"../../examples/skills"}, NoSkills: !skills, Discovery: config.DiscoveryOn,
		Upstream: app.Upstream{URL: base, Type: kind}, DB: config.NewSecret(app.MemoryDB), Version: "test",
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	front := httptest.NewServer(a.Server(true))
	t.Cleanup(front.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	h.url = front.URL
	return h
}

// outcome is what became of a request.
type outcome struct {
	status  int
	answer  string
	warning string
	sent    []byte // what the upstream got
	header  http.Header
}

func (o outcome) refused(t *testing.T, code string) {
	t.Helper()
	if o.status < http.StatusBadRequest || !strings.Contains(o.answer, code) {
		t.Errorf("%d %s, want %s", o.status, o.answer, code)
	}
}

// send sends a request as its client did.
func (h *house) send(t *testing.T, r request) outcome {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	q, err := http.NewRequestWithContext(ctx, r.Method, h.url+r.URL, strings.NewReader(string(r.Body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer the-callers-own")
	for _, name := range []string{"anthropic-version", "anthropic-beta"} {
		if value := r.header(name); value != "" {
			q.Header.Set(name, value)
		}
	}
	h.upstream.forget()
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("the answer broke off: %v\n%s", err, answer)
	}
	got := outcome{status: res.StatusCode, answer: string(answer), warning: strings.Join(res.Header.Values("X-Metier-Warning"), "; ")}
	got.sent, got.header = h.upstream.last()
	return got
}

// recorder is an upstream of every dialect. It says hello and keeps the last request.
type recorder struct {
	mu     sync.Mutex
	body   []byte
	header http.Header
}

func (c *recorder) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.body, c.header = nil, nil
}

func (c *recorder) last() ([]byte, http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body, c.header
}

// ServeHTTP answers the routes that an answer is asked for at, and knows no other.
func (c *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var name, kind string
	switch r.URL.Path {
	case "/v1/chat/completions":
		name, kind = "chat", "text/event-stream"
	case "/v1/messages":
		name, kind = "messages", "text/event-stream"
	case "/api/chat":
		name, kind = "ollama", "application/x-ndjson"
	default:
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.body, c.header = body, r.Header.Clone()
	c.mu.Unlock()
	answer, err := os.ReadFile("testdata/answers/" + name + ".txt")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(answer) // a caller that is gone needs none
}

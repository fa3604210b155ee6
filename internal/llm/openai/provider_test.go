package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/llm/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, h http.Handler, o openai.Options) *openai.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	transport := upstream.NewTransport(o.Limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
	})
	base, err := url.Parse(srv.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	o.Base, o.Transport = base, transport
	n := 0
	o.NewID = func() string { n++; return strings.Repeat("i", n) }
	return openai.New(o)
}

func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, scenario string) (llm.Provider, string) {
		h, err := scripted.New(scripted.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return connect(t, h, openai.Options{}), scenario
	})
}

func ask(ctx context.Context, p *openai.Provider, r *llm.Request) (*llm.Reply, error) {
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

func question(model string) *llm.Request {
	return &llm.Request{Model: model, Messages: []llm.Message{llm.TextMessage(llm.User, "hi")}}
}

// TestKey: the upstream's own key goes in place of the client's, and a client's
// goes through when there is none.
func TestKey(t *testing.T) {
	for _, c := range []struct{ own, client, want string }{
		{"upstream-key", "Bearer client-key", "Bearer upstream-key"},
		{"", "Bearer client-key", "Bearer client-key"},
		{"", "", ""},
	} {
		h, err := scripted.New(scripted.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := connect(t, h, openai.Options{Key: config.NewSecret(c.own)})
		r := question("hello")
		if c.client != "" {
			r.Header = http.Header{"Authorization": {c.client}}
		}
		if _, err := ask(t.Context(), p, r); err != nil {
			t.Fatal(err)
		}
		if got := h.Requests()[0].Header.Get("Authorization"); got != c.want {
			t.Errorf("own %q, client %q: upstream saw %q, want %q", c.own, c.client, got, c.want)
		}
	}
}

// TestKeyIsNotQuoted: an upstream that quotes the host's key in an error gives
// it to nobody.
func TestKeyIsNotQuoted(t *testing.T) {
	const key = "sk-secret-of-the-host"
	quoted := `{"error":{"message":"bad key ` + key + `"}}`
	for name, h := range map[string]http.HandlerFunc{
		"refusal": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, quoted)
		},
		"plain text": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, key)
		},
		"event": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+quoted+"\n\n")
		},
		"whole answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, quoted)
		},
	} {
		p := connect(t, h, openai.Options{Key: config.NewSecret(key)})
		_, err := ask(t.Context(), p, question("m"))
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		shown := err.Error()
		if e, ok := errors.AsType[*llm.StatusError](err); ok {
			shown += string(e.Body)
		}
		if e, ok := errors.AsType[*llm.StreamError](err); ok {
			shown += string(e.Raw)
		}
		if strings.Contains(shown, key) || !strings.Contains(shown, "***") {
			t.Errorf("%s: the error shows %s", name, shown)
		}
	}
}

// TestWhoseKeyIsRefused: a caller hears of its own key only.
func TestWhoseKeyIsRefused(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	_, err := ask(t.Context(), connect(t, refuse, openai.Options{Key: config.NewSecret("operators-key")}), question("m"))
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.Upstream {
		t.Errorf("the operator's key: %v, want an error of the upstream", err)
	}
	_, err = ask(t.Context(), connect(t, refuse, openai.Options{}), question("m"))
	if e, ok := errors.AsType[*llm.StatusError](err); !ok || e.Status != http.StatusUnauthorized {
		t.Errorf("the caller's key: %v, want the 401", err)
	}
}

// TestWebPage: a page where an answer belongs is said to be one.
func TestWebPage(t *testing.T) {
	p := connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Sign in to the guest network</html>")
	}), openai.Options{})
	if _, err := ask(t.Context(), p, question("m")); err == nil || !strings.Contains(err.Error(), "web page") || !strings.Contains(err.Error(), "guest network") {
		t.Errorf("error %v, want one that says what came", err)
	}
}

// TestBounds: an upstream that never ends an event, or a reply, is given up.
func TestBounds(t *testing.T) {
	limits, err := config.Values{}.Set(config.UpstreamEvent, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if limits, err = limits.Set(config.UpstreamReply, 16<<10); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{
		"event": "x", "reply": `data: {"choices":[{"index":0,"delta":{"content":"word"}}]}` + "\n\n",
	} {
		p := connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
		}), openai.Options{Limits: limits})
		if _, err := ask(t.Context(), p, question("m")); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an endless %s gave %v", name, err)
		}
	}
}

func TestPassHeader(t *testing.T) {
	client := http.Header{}
	for _, name := range []string{"Authorization", "OpenAI-Organization", "Cookie", "X-Forwarded-For", "Accept-Encoding", "Traceparent"} {
		client.Set(name, "x")
	}
	got := openai.PassHeader(client)
	for _, name := range []string{"Cookie", "X-Forwarded-For", "Accept-Encoding"} {
		if got.Get(name) != "" {
			t.Errorf("%s went upstream", name)
		}
	}
	for _, name := range []string{"Authorization", "OpenAI-Organization", "Traceparent"} {
		if got.Get(name) == "" {
			t.Errorf("%s did not go upstream", name)
		}
	}
}

// TestRedirect: a redirect is not followed, so that a key goes nowhere else.
func TestRedirect(t *testing.T) {
	p := connect(t, http.RedirectHandler("http://127.0.0.1:9/elsewhere", http.StatusTemporaryRedirect), openai.Options{Key: config.NewSecret("k")})
	_, err := ask(t.Context(), p, question("m"))
	if e, ok := errors.AsType[*llm.StatusError](err); !ok || e.Status != http.StatusTemporaryRedirect {
		t.Errorf("error %v, want the redirect as a StatusError", err)
	}
}

func TestUnreachable(t *testing.T) {
	base, _ := url.Parse("http://127.0.0.1:1/v1")
	transport := upstream.NewTransport(config.Values{})
	p := openai.New(openai.Options{Base: base, Transport: transport})
	_, err := ask(t.Context(), p, question("m"))
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.Upstream || !strings.Contains(e.Message, "http://127.0.0.1:1/v1") {
		t.Errorf("error %v, want one that names the upstream", err)
	}
	if _, err := p.Models(t.Context()); fault.From(err).Code != fault.Upstream {
		t.Errorf("Models: %v", err)
	}
}

// TestStall: an upstream that falls silent inside its answer is given up.
func TestStall(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	limits, err := config.Values{}.Set(config.UpstreamStall, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := connect(t, h, openai.Options{Limits: limits})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = ask(ctx, p, question("m"))
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.Timeout {
		t.Errorf("error %v, want a timeout", err)
	}
}

// TestGateAllocations gates the cost of a chunk, in allocations, never in time.
func TestGateAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates; make test runs the gates without it too")
	}
	const chunks = 2000
	var body strings.Builder
	for range chunks {
		body.WriteString(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n")
	}
	body.WriteString(`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	p := openai.New(openai.Options{Base: &url.URL{Scheme: "http", Host: "x"}, Transport: fixed(body.String())})
	perRun := testing.AllocsPerRun(5, func() {
		if _, err := ask(context.Background(), p, question("m")); err != nil {
			t.Error(err)
		}
	})
	// One a chunk (its text), and what a request costs once.
	if per := perRun / chunks; per > 1.2 {
		t.Errorf("%.2f allocations a chunk, want at most 1.2", per)
	} else {
		t.Logf("%.2f allocations a chunk", per)
	}
}

// fixed answers every request with one stream.
type fixed string

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "text/event-stream")
	_, _ = rec.WriteString(string(f))
	return rec.Result(), nil
}

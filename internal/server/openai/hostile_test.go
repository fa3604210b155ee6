package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/llm/upstream"
)

// rawUpstream answers every request with the given bytes and closes.
func rawUpstream(t *testing.T, answer string) *openai.Provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if q, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, q.Body)
				_, _ = io.WriteString(c, answer)
			}
			_ = c.Close()
		}
	}()
	transport := upstream.NewTransport(config.Values{})
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = l.Close()
		<-served
	})
	base := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/v1"}
	return openai.New(openai.Options{Base: base, Transport: transport, NewID: (&ids{}).NewID})
}

// TestHostileRefusal: whatever status and type an upstream gives its error, a
// client gets an error's status and a body that no browser opens as a page.
func TestHostileRefusal(t *testing.T) {
	for status, want := range map[string]int{
		"000 X": 502, "042 X": 502, "202 Accepted": 502, "302 Found": 502, "399 X": 502, "600 X": 502, "999 X": 502,
		"400 Bad": 400, "429 Slow": 429, "599 X": 599,
	} {
		const body = `{"error":{"message":"<script>x</script>","type":"x"}}`
		r := newRig(t, rigOptions{noSkills: true, provider: rawUpstream(t, fmt.Sprintf(
			"HTTP/1.1 %s\r\nContent-Type: text/html\r\nRetry-After: 7\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body))})
		res, got := r.post(t, request("m", ""))
		if res.StatusCode != want || got != body {
			t.Errorf("status %s became %d, want %d: %s", status, res.StatusCode, want, got)
		}
		if res.Header.Get("Content-Type") != "application/json" || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Retry-After") != "7" {
			t.Errorf("status %s: header %v", status, res.Header)
		}
		if strings.Contains(r.log.String(), "panic") {
			t.Errorf("status %s: %s", status, r.log)
		}
	}
}

// answering is an upstream that always gives one answer.
func answering(kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	})
}

// TestRoleAsToken: a token that reads "role" is not the role.
func TestRoleAsToken(t *testing.T) {
	r := newRig(t, rigOptions{noSkills: true, upstream: answering("text/event-stream",
		`data: {"id":"x","choices":[{"index":0,"delta":{"content":"role"},"logprobs":{"content":[{"token":"role"}]},"finish_reason":null}]}`+"\n\n"+
			`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")})
	_, body := r.post(t, request("m", `,"stream":true`))
	if c := readStream(t, body); c.roles != 1 || c.Text != "role" {
		t.Errorf("the role was said %d times: %s", c.roles, body)
	}
}

// TestCarriageReturns: line ends inside an upstream's JSON do not end a line of
// an event.
func TestCarriageReturns(t *testing.T) {
	for _, end := range []string{"\r", "\n", "\r\n", "\r\r", "\n\n"} {
		answer := strings.ReplaceAll(`{~"id":"x",~"choices":[{~"index":0,"message":{~"role":"assistant","content":"one"~,"x":{~}},"finish_reason":"stop"},`+
			`{"index":1,"message":{"content":~"two"},"finish_reason":"stop"}~]~}`, "~", end)
		r := newRig(t, rigOptions{noSkills: true, upstream: answering("application/json", answer)})
		_, body := r.post(t, request("m", `,"stream":true,"n":2`))
		if c := readStream(t, body); c.choices[0] != "one" || c.choices[1] != "two" || c.ID != "x" || c.done != 1 || c.roles != 1 {
			t.Errorf("line end %q: %+v\n%q", end, c, body)
		}
	}
}

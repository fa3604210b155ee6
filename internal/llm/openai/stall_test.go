package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
)

// paced answers with a text that comes again and again after a pause, and then
// with a last one. With no times it is silent for ever.
type paced struct {
	status int
	kind   string
	text   string
	pause  time.Duration
	times  int
	last   string
}

func (p paced) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: p.status, Header: http.Header{"Content-Type": {p.kind}}, Request: r,
		Body: &pacedBody{paced: p, ctx: r.Context()},
	}, nil
}

type pacedBody struct {
	paced
	ctx   context.Context
	ended bool
}

func (b *pacedBody) Read(out []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.times == 0 && b.last == "" {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	if b.times == 0 {
		n := copy(out, b.last)
		b.last = b.last[n:]
		b.ended = b.last == ""
		return n, nil
	}
	select {
	case <-time.After(b.pause):
		b.times--
		return copy(out, b.text), nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func (b *pacedBody) Close() error { return nil }

// TestSilence: what comes of an answer is waited for as long as something comes,
// but keep-alives alone are not an answer. Whatever it is that does not come.
func TestSilence(t *testing.T) {
	const stall = 10 * time.Second
	limits, err := config.Values{}.Set(config.UpstreamStall, 10)
	if err != nil {
		t.Fatal(err)
	}
	const answer = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	const whole = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`
	const events, plain = "text/event-stream", "application/json"
	for _, c := range []struct {
		name  string
		up    paced
		fails bool
		took  time.Duration
	}{
		{"a stream", paced{status: 200, kind: events}, true, stall},
		{"an error", paced{status: 500, kind: plain}, true, stall},
		{"an answer in one piece", paced{status: 200, kind: plain}, true, stall},
		{"a page", paced{status: 200, kind: "text/html"}, true, stall},
		{"keep-alives, then an answer", paced{200, events, ": ping\n\n", 6 * time.Second, 6, answer}, false, 6 * 6 * time.Second},
		{"spaces, then an answer", paced{200, plain, " ", 6 * time.Second, 6, whole}, false, 6 * 6 * time.Second},
		{"keep-alives without end", paced{200, events, ": ping\n\n", 6 * time.Second, 1 << 30, ""}, true, 4 * stall},
		{"an error without end", paced{500, plain, " ", 6 * time.Second, 1 << 30, ""}, true, 4 * stall},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := openai.New(openai.Options{Base: &url.URL{Scheme: "http", Host: "x"}, Transport: c.up, Limits: limits})
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := ask(ctx, p, question("m"))
				if took := time.Since(begin); (err != nil) != c.fails || took != c.took {
					t.Errorf("after %s: %v; want an error: %v, after %s", took, err, c.fails, c.took)
				}
				if err != nil && fault.From(err).Code != fault.Timeout {
					t.Errorf("error %v, want a timeout", err)
				}
			})
		})
	}
	for _, status := range []int{200, 500} {
		synctest.Test(t, func(t *testing.T) {
			p := openai.New(openai.Options{Base: &url.URL{Scheme: "http", Host: "x"}, Transport: paced{status: status, kind: plain}, Limits: limits})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			begin := time.Now()
			_, err := p.Models(ctx)
			if took := time.Since(begin); took != stall || fault.From(err).Code != fault.Timeout {
				t.Errorf("Models, status %d: %v after %s, want a timeout after %s", status, err, took, stall)
			}
		})
	}
}

// TestRefusalType: the type of what an upstream refuses with stays behind, and so
// no door can hand its page on as one of ours.
func TestRefusalType(t *testing.T) {
	p := openai.New(openai.Options{Base: &url.URL{Scheme: "http", Host: "x"}, Transport: paced{status: 500, kind: "text/html", last: "<html>"}})
	_, err := ask(t.Context(), p, question("m"))
	if e, ok := errors.AsType[*llm.StatusError](err); !ok || e.Header.Get("Content-Type") != "" {
		t.Errorf("error %#v, want one without the type", err)
	}
}

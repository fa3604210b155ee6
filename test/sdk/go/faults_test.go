package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// apiError is the error as applications take it.
func apiError(t *testing.T, err error) *openai.Error {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("no error of the API: %T %v", err, err)
	}
	return e
}

func TestUnknownSkill(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		id, tag := tagged(t, "1")
		p := question("hello", "Hello?")
		p.SetExtraFields(map[string]any{"skills": []string{"no-such-skill"}})
		e := apiError(t, failure(t.Context(), t, connect(t), streamed, p, tag))
		if e.StatusCode != http.StatusBadRequest || e.Param != "skills" || e.Code != "skill_not_found" || e.Type != "invalid_request_error" {
			t.Errorf("%d %s", e.StatusCode, e.RawJSON())
		}
		for _, name := range []string{"no-such-skill", "incident-report", "release-notes", "unit-pricing"} {
			if !strings.Contains(e.Message, name) {
				t.Errorf("%q does not name %s", e.Message, name)
			}
		}
		if back := e.Response.Header.Get("X-Request-Id"); back != id {
			t.Errorf("sent request id %q, got %q", id, back)
		}
	})
}

// TestRefusals are errors with a status, of the server and of its upstream.
func TestRefusals(t *testing.T) {
	manyWithSkills := question("hello", "Hello?")
	manyWithSkills.N = openai.Int(2)
	manyWithSkills.SetExtraFields(map[string]any{"skills": []string{"release-notes"}})
	for _, c := range []struct {
		name        string
		params      openai.ChatCompletionNewParams
		status      int
		kind, code  string
		param, says string
		header      [2]string
	}{
		{name: "many choices with skills", params: manyWithSkills, status: 400, kind: "invalid_request_error", code: "n_with_skills", param: "n", says: "must be 1"},
		{name: "no messages", params: openai.ChatCompletionNewParams{Model: "hello"}, status: 400, kind: "invalid_request_error", param: "messages", says: "messages"},
		{
			name: "busy", params: question("rate-limited", "Hello?"), status: 429, kind: "rate_limit_error", code: "rate_limit_exceeded",
			says: "0 of 60 requests are left", header: [2]string{"Retry-After", "7"},
		},
		{name: "refused key", params: question("unauthorized", "Hello?"), status: 401, kind: "authentication_error", code: "invalid_api_key", says: "opens nothing"},
		{name: "too long", params: question("overflow", "Hello?"), status: 400, kind: "exceed_context_size_error", code: "400", says: "window holds 4096"},
		{name: "a page", params: question("server-error", "Hello?"), status: 502, kind: "server_error", code: "upstream_error", says: "502 Bad Gateway"},
		{name: "no such model", params: question("no-such-model", "Hello?"), status: 404, kind: "invalid_request_error", code: "model_not_found", says: "no-such-model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, streamed bool) {
				e := apiError(t, failure(t.Context(), t, connect(t), streamed, c.params))
				if e.StatusCode != c.status || e.Type != c.kind || e.Code != c.code || e.Param != c.param || !strings.Contains(e.Message, c.says) {
					t.Errorf("%d %s", e.StatusCode, e.RawJSON())
				}
				if name, want := c.header[0], c.header[1]; e.Response.Header.Get(name) != want && name != "" {
					t.Errorf("%s: %q, want %q", name, e.Response.Header.Get(name), want)
				}
			})
		})
	}
}

func TestNotFound(t *testing.T) {
	c := connect(t)
	_, err := c.Models.Get(t.Context(), "no-such-model")
	if e := apiError(t, err); e.StatusCode != http.StatusNotFound || e.Code != "model_not_found" {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
	err = c.Get(t.Context(), "no/such/route", nil, nil)
	if e := apiError(t, err); e.StatusCode != http.StatusNotFound || e.Type != "invalid_request_error" {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
}

func TestRetry(t *testing.T) {
	began := time.Now()
	got := answer(t, connect(t, option.WithMaxRetries(2)), false, question("limited-once", "Hello?"))
	// Without the header the client would come back after half a second.
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("it came back after %s", took)
	}
	wantText(t, got, "Now there is room.", "stop")
	var steps []int
	for _, r := range requestsFor(t, "limited-once") {
		steps = append(steps, r.Step)
	}
	if !slices.Equal(steps, []int{1, 2}) {
		t.Errorf("the upstream answered with steps %v", steps)
	}
}

func TestErrorInStream(t *testing.T) {
	g := gather(t, streaming(t, connect(t), question("error-in-stream", "Hello?")))
	if g.text() != "I was " {
		t.Errorf("text before the error: %q", g.text())
	}
	var e *ssestream.StreamError
	if !errors.As(g.err, &e) || !strings.Contains(e.Message, "ran out of memory") || !strings.Contains(e.Message, "oom") {
		t.Errorf("got %T %v", g.err, g.err)
	}
}

func TestBrokenStream(t *testing.T) {
	for _, model := range []string{"cut", "cut-event", "early-end", "malformed"} {
		t.Run(model, func(t *testing.T) {
			g := gather(t, streaming(t, connect(t), question(model, "Hello?")))
			if g.err == nil {
				t.Error("half an answer looks whole")
			}
			for _, c := range g.chunks {
				if len(c.Choices) > 0 && c.Choices[0].FinishReason != "" {
					t.Errorf("it looks finished: %s", c.RawJSON())
				}
			}
			e := apiError(t, failure(t.Context(), t, connect(t), false, question(model, "Hello?")))
			if e.StatusCode != http.StatusBadGateway || e.Type != "server_error" {
				t.Errorf("%d %s", e.StatusCode, e.RawJSON())
			}
		})
	}
}

// TestCutCall: a call that the token limit cut must not reach anybody who might
// run it.
func TestCutCall(t *testing.T) {
	bothWays(t, func(t *testing.T, streamed bool) {
		got := answer(t, connect(t), streamed, question("cut-call", "Hello?"))
		if c := got.Choices[0]; c.FinishReason != "length" || len(c.Message.ToolCalls) > 0 {
			t.Errorf("got %+v", c)
		}
	})
}

func TestCancelledStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id, tag := tagged(t, "1")
	c := connect(t)
	stream := c.Chat.Completions.NewStreaming(ctx, question("hang", "Hello?"), tag)
	var text string
	for stream.Next() {
		if text += stream.Current().Choices[0].Delta.Content; text == "One moment " {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("got %v", stream.Err())
	}
	gone(t, "hang")
	if l := turnOf(t, id); l.Outcome != "cancelled" || l.Level != "INFO" {
		t.Errorf("logged %+v", l)
	}
}

func TestCancelledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id, tag := tagged(t, "1")
	ended := make(chan error, 1)
	c := connect(t)
	go func() {
		_, err := c.Chat.Completions.New(ctx, question("hang-headers", "Hello?"), tag)
		ended <- err
	}()
	begun(t, "hang-headers") // leave when the upstream has it, and not before
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gone(t, "hang-headers")
	if l := turnOf(t, id); l.Outcome != "cancelled" || l.Level != "INFO" {
		t.Errorf("logged %+v", l)
	}
}

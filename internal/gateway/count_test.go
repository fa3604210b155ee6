package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/capable"
	"github.com/metier-run/metier/internal/rescue"
	"github.com/metier-run/metier/skill"
)

// counter is an upstream that counts messages, or cannot.
type counter struct {
	llm.Script
	err   error
	asked *llm.Request
}

func (c *counter) CountTokens(_ context.Context, r *llm.Request) (int64, error) {
	c.asked = r
	return int64(len(r.Messages)), c.err
}

type host struct{}

func (host) NewID() string { return "id" }

// TestCount: an upstream that counts is found below everything that wraps it in a server,
// and asked about what it would be sent; where it cannot, the number is an estimate.
func TestCount(t *testing.T) {
	refused := func(status int) error { return &llm.StatusError{Status: status} }
	for name, tt := range map[string]struct {
		err       error
		estimated bool
		fails     bool
	}{
		"counts":         {nil, false, false},
		"no such route":  {refused(http.StatusNotFound), true, false},
		"no such method": {refused(http.StatusMethodNotAllowed), true, false},
		"a refusal":      {refused(http.StatusUnauthorized), false, true},
		"out of reach":   {&llm.StreamError{Message: "broke"}, false, true},
	} {
		own := &counter{Script: llm.Script{Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true}}, err: tt.err}
		var p llm.Provider = admission.Pin(own, admission.PinOptions{})
		p = rescue.Wrap(p, rescue.Options{})
		p = admission.Wrap(p, admission.NewGate(1, 1), func(context.Context) string { return "" })
		p = capable.Wrap(p, capable.Options{Most: 1})
		g := gateway.New(gateway.Options{
			Provider: p, Skills: func() *skill.Snapshot { return nil }, Now: time.Now, Host: host{}, Logger: slog.New(slog.DiscardHandler),
		})
		messages := []llm.Message{llm.TextMessage(llm.System, "Be brief."), llm.TextMessage(llm.User, "Hello, you there!")}
		c, err := g.Count(t.Context(), gateway.Request{
			Request: &llm.Request{Model: "m", Messages: messages}, Header: http.Header{"Authorization": {"Bearer k"}},
		})
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if own.asked == nil || own.asked.Header.Get("Authorization") != "Bearer k" || own.asked.Messages[1].Text() != "Hello, you there!" {
			t.Errorf("%s: it was asked about %+v", name, own.asked)
		}
		if tt.fails {
			continue
		}
		want := int64(2)
		if tt.estimated {
			want = 20 // 26 bytes and the frames of two messages, at three bytes a token
		}
		if c.Estimated != tt.estimated || c.Tokens != want {
			t.Errorf("%s: %+v, want %d tokens, estimated %v", name, c, want, tt.estimated)
		}
	}
}

// TestCountRefuses: what a turn would be refused for, its count is.
func TestCountRefuses(t *testing.T) {
	own := &counter{}
	g := gateway.New(gateway.Options{Provider: own, Skills: func() *skill.Snapshot { return nil }, Now: time.Now, Host: host{}})
	r := &llm.Request{Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}}
	if _, err := g.Count(t.Context(), gateway.Request{Request: r, Skills: []string{"pdf"}}); err == nil || own.asked != nil {
		t.Errorf("%v, asked %v", err, own.asked)
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/capable"
	"github.com/metier-run/metier/internal/llm/detect"
	"github.com/metier-run/metier/internal/rescue"
	"github.com/metier-run/metier/internal/wire"
)

// bounded is the upstream as the gateway sees it: with the rounds of a turn on one
// slot, calls that came as text made calls, behind a gate that is fair to the keys,
// and with its models' capabilities known.
func (a *App) bounded(upstream connected) llm.Provider {
	s := a.Settings
	gate := admission.NewGate(s.Limits.Int(config.UpstreamRounds), s.Limits.Int(config.UpstreamQueue))
	p := upstream.Provider
	if upstream.slots != nil {
		p = admission.Pin(p, admission.PinOptions{
			Slots: upstream.slots, Most: s.Limits.Int(config.UpstreamSlots), Reused: reused,
			Rest: s.Limits.Duration(config.UpstreamWord), Logger: a.logger,
		})
	}
	rescued := rescue.Wrap(p, rescue.Options{
		MaxHeld: s.Limits.Int(config.RescueHold), NewID: a.host.NewID,
		Off: func(model string) bool { return s.Models[model].NoRescue },
	})
	gated := admission.Wrap(rescued, gate, func(ctx context.Context) string { return access.FromContext(ctx).ID })
	models := map[string]capable.Word{}
	for name, m := range s.Models {
		models[name] = capable.Word{Declares: m.Declares, Parsed: m.Parsed, Results: m.Results, Context: m.Context}
	}
	return capable.Wrap(gated, capable.Options{
		Models: models, Probe: upstream.ask, Wait: s.Limits.Duration(config.UpstreamAsk),
		Keep: s.Limits.Duration(config.UpstreamWord), Most: s.Limits.Int(config.UpstreamModels), Logger: a.logger,
	})
}

// asker asks an upstream about its models and slots. When the kind of server was
// not found out at the start, the first question about a model does that, too.
type asker struct {
	server capable.Server
	count  count
	kind   atomic.Pointer[detect.Kind] // nil until it is known
	mu     sync.Mutex                  // of who finds that out
}

func newAsker(found detect.Found, s Settings, transport http.RoundTripper) *asker {
	a := &asker{server: capable.Server{
		Base: strings.TrimRight(found.URL, "/"), Root: strings.TrimSuffix(strings.TrimRight(found.URL, "/"), "/v1"),
		Key: s.Upstream.Key, Client: &http.Client{Transport: transport}, Bytes: s.Limits.Get(config.UpstreamEvent),
	}, count: count{wait: s.Limits.Duration(config.UpstreamAsk), keep: s.Limits.Duration(config.UpstreamWord)}}
	if found.Kind != "" && !found.Loading && !found.NeedsKey { // else it did not tell much
		a.kind.Store(&found.Kind)
	}
	return a
}

func (a *asker) ask(ctx context.Context, model string) (capable.Word, error) {
	if silent(a.server.Base) {
		return capable.Word{}, capable.ErrSilent
	}
	kind, err := a.identify(ctx)
	if err != nil {
		return capable.Word{}, err
	}
	switch kind {
	case detect.LlamaCPP:
		return a.server.LlamaCPP(ctx, model)
	case detect.Ollama:
		return a.server.Ollama(ctx, model)
	case detect.LMStudio:
		return a.server.LMStudio(ctx, model)
	}
	return a.server.Listed(ctx, model)
}

// silent reports whether a vendor's list is known to hold nothing but names.
func silent(base string) bool {
	u, err := url.Parse(base)
	return err == nil && strings.EqualFold(u.Hostname(), "api.openai.com")
}

// identify finds the kind of server out, once.
func (a *asker) identify(ctx context.Context) (detect.Kind, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if kind := a.kind.Load(); kind != nil {
		return *kind, nil
	}
	found, err := detect.Guess(ctx, a.server.Client, a.server.Base)
	if err != nil {
		return "", err
	}
	if found.Loading {
		return "", errors.New("the upstream still loads its model")
	}
	a.kind.Store(&found.Kind)
	return found.Kind, nil
}

// count is how many slots the upstream has, as it said last.
type count struct {
	wait, keep time.Duration

	mu     sync.Mutex
	n      int
	until  time.Time
	asking bool
}

// slots tells how many slots the upstream has, if it is a llama.cpp server that
// runs one model: one that runs several has none of its own. While one request
// asks, others go by what is known. No round waits for the kind to be found out.
func (a *asker) slots(ctx context.Context) (int, bool) {
	if kind := a.kind.Load(); kind == nil || *kind != detect.LlamaCPP {
		return 0, false
	}
	c := &a.count
	c.mu.Lock()
	if c.asking || time.Now().Before(c.until) {
		defer c.mu.Unlock()
		return c.n, c.n > 0
	}
	c.asking = true
	c.mu.Unlock()
	// Others go by the answer, too, so it is waited for when the client is gone.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.wait)
	defer cancel()
	n, err := a.countSlots(bounded)
	keep := c.keep
	if err != nil {
		keep = c.wait // naming none does no harm
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking, c.n, c.until = false, n, time.Now().Add(keep)
	return c.n, c.n > 0
}

// countSlots asks for the number of slots.
func (a *asker) countSlots(ctx context.Context) (int, error) {
	props, err := a.props(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask how many slots the upstream has: %w", err)
	}
	n, ok := number(wire.Member(props, "total_slots"))
	if !ok {
		return 0, nil
	}
	return int(n), nil
}

// props is what llama-server says of itself.
func (a *asker) props(ctx context.Context) (jsontext.Value, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.Root+"/props", nil)
	if err != nil {
		return nil, err
	}
	if !a.server.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+a.server.Key.Reveal())
	}
	client := *a.server.Client
	// A redirect could carry the key elsewhere.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, a.server.Bytes))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/props answered %d", res.StatusCode)
	}
	if err := wire.Check(body); err != nil {
		return nil, fmt.Errorf("/props: %w", err)
	}
	return body, nil
}

// reused reads how much of a prompt llama-server found in the slot: newer ones say
// it in the usage, older ones beside it.
func reused(event jsontext.Value) (tokens int64, told bool) {
	details := wire.Member(wire.Member(event, "usage"), "prompt_tokens_details")
	if n, ok := number(wire.Member(details, "cached_tokens")); ok {
		return n, true
	}
	return number(wire.Member(wire.Member(event, "timings"), "cache_n"))
}

// number is v if it is a whole number from 0 on that counts something real.
func number(v jsontext.Value) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 32)
	return n, err == nil && n >= 0
}

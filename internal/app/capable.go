package app

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/capable"
	"github.com/metier-run/metier/internal/llm/detect"
	"github.com/metier-run/metier/internal/rescue"
)

// bounded is the upstream as the gateway sees it: with calls that came as text
// made calls, behind a gate that is fair to the keys, and with its models'
// capabilities known.
func (a *App) bounded(upstream connected) llm.Provider {
	s := a.Settings
	gate := admission.NewGate(s.Limits.Int(config.UpstreamRounds), s.Limits.Int(config.UpstreamQueue))
	rescued := rescue.Wrap(upstream.Provider, rescue.Options{MaxHeld: s.Limits.Int(config.RescueHold), NewID: a.host.NewID})
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

// asker asks an upstream about its models. When the kind of server was not found
// out at the start, the first question does that, too.
type asker struct {
	server capable.Server
	mu     sync.Mutex
	kind   detect.Kind
}

func newAsker(found detect.Found, s Settings, transport http.RoundTripper) *asker {
	kind := found.Kind
	if found.Loading || found.NeedsKey {
		kind = "" // it did not tell much
	}
	return &asker{kind: kind, server: capable.Server{
		Base: strings.TrimRight(found.URL, "/"), Root: strings.TrimSuffix(strings.TrimRight(found.URL, "/"), "/v1"),
		Key: s.Upstream.Key, Client: &http.Client{Transport: transport}, Bytes: s.Limits.Get(config.UpstreamEvent),
	}}
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
	if a.kind != "" {
		return a.kind, nil
	}
	found, err := detect.Guess(ctx, a.server.Client, a.server.Base)
	if err != nil {
		return "", err
	}
	if found.Loading {
		return "", errors.New("the upstream still loads its model")
	}
	a.kind = found.Kind
	return a.kind, nil
}
